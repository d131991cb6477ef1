"""Words for what the data exclude: one side, both sides, neither; and partners that only show together."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.calibrate.uncertainty.covariance import Posterior
from trueup.calibrate.uncertainty.verdict import Evidence, estimates, inseparable, pairs, unlike_joints, word_for
from trueup.world.fitted.fit_parameter import FitParameter


def parameter(name: str, joint: str = "FL_calf_joint", **changes: object) -> FitParameter:
    content = {
        "name": name,
        "of": (joint,),
        "unit": "",
        "low": 0.0,
        "high": 7.0,
        "scale": "log",
        "offset": 0.02,
        "prior": float(np.log(2.02)),
        "width": 1.2,
        "label": f"{name} {joint}",
    }
    return FitParameter(**(content | changes))


NO = np.zeros(3, bool)
DAMPING = parameter("damping")
CLEAR = Evidence(
    x=0.0, deviation=0.02, ends=(-0.04, 0.04), at_bound=(False, False), excluded=False, doubted=False, still=False
)


def test_a_damping_known_from_above_only_is_bounded():
    low, x, high = (DAMPING.to_x(value) for value in (0.0, 0.12, 0.35))
    seen = replace(CLEAR, x=x, deviation=0.4, ends=(low, high), at_bound=(True, False), excluded=True)
    assert word_for(DAMPING, seen) == "bounded"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "identified"),
        ({"still": True}, "not visible"),
        ({"doubted": True}, "weak"),
        ({"deviation": 0.05, "ends": (-0.1, 0.1)}, "weak"),
        ({"deviation": 0.3, "ends": (-0.6, 0.6)}, "weak"),
        ({"deviation": 1.0, "ends": (-1.96, 1.96)}, "not visible"),
        ({"deviation": 1.0, "ends": (-1.96, 1.96), "excluded": True}, "weak"),
        ({"x": -1.5, "deviation": 0.6, "ends": (-3.0, -1.0)}, "bounded"),
        ({"x": 1.0, "deviation": 0.9, "ends": (-0.5, 1.5), "at_bound": (False, True)}, "not visible"),
    ],
)
def test_words(changes: dict[str, object], word: str):
    assert word_for(DAMPING, replace(CLEAR, **changes)) == word


def test_a_search_bound_is_no_finding_but_no_friction_is():
    gain = parameter("kp", low=0.3, high=3.0, offset=0.0, prior=0.0, width=0.3, mode="times")
    stuck = replace(CLEAR, x=gain.x_bounds[1], ends=(gain.x_bounds[1] - 0.1, gain.x_bounds[1]), at_bound=(False, True))
    assert word_for(gain, stuck) == "weak"
    none = replace(CLEAR, x=DAMPING.x_bounds[0], ends=(DAMPING.x_bounds[0], -2.0), at_bound=(True, False))
    assert word_for(DAMPING, none) == "bounded"


def test_gain_and_inertia_of_a_joint_are_a_pair_and_neither_is_identified_where_the_model_lacks_something():
    both = [parameter("kp"), parameter("armature"), parameter("armature", "FR_calf_joint")]
    found = pairs(both, np.eye(3))
    assert [(one.first, one.second) for one in found] == [(0, 1)]
    assert inseparable(found, np.eye(3), NO, NO) == set()
    assert inseparable(found, np.eye(3), ~NO, ~NO) == {0, 1}
    alike = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    assert inseparable(found, alike, NO, NO) == {0, 1}
    assert inseparable(found, alike, NO, np.array([True, False, True])) == {0, 1}
    assert inseparable(found, alike, NO, ~NO) == set()  # each known by itself: correlation is in its standard error


def test_the_partner_is_named_with_what_would_tell_them_apart():
    both = [parameter("kp"), parameter("armature")]
    covariance = np.array([[0.09, 0.0891], [0.0891, 0.09]])
    seen = replace(CLEAR, deviation=0.3, ends=(-0.6, 0.6), doubted=True)
    words = estimates(both, Posterior(covariance=covariance, correlation_time_s=np.zeros(1)), [seen, seen])
    assert [one.verdict for one in words] == ["weak", "weak"]
    assert "cannot be told from armature" in words[0].advice
    assert "gravity" in words[0].advice


def test_like_joints_that_come_out_unlike_are_named_with_their_values():
    legs = [parameter("armature", f"{leg}_calf_joint") for leg in ("FL", "FR", "RL", "RR")]
    x = np.array([0.0, 0.02, -0.02, 1.0])
    assert unlike_joints(legs, np.zeros(4), np.full(4, 0.05)) == []
    assert unlike_joints(legs, x, np.full(4, 0.9)) == []
    (found,) = unlike_joints(legs, x, np.full(4, 0.05))
    assert found.members == (0, 1, 2, 3)
    assert "RR_calf_joint" in found.text
