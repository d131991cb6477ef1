"""Both engines against known answers, and against each other."""

import pytest

from trueup.core.errors import TrueupError
from trueup.world.engines.conformance.run import CASES, conformance

pytest.importorskip("sapien", reason="the second engine is not installed (extra physx)")

# name: (SAPIEN against the exact answer, MuJoCo against SAPIEN), in the case's unit
CLOSE = {
    "pendulum period": (1e-4, 1e-5),
    "period, rotor five times": (1e-4, 1e-5),
    "arm held level, torque": (5e-4, 5e-4),
    "viscous damping, speed after 0.2 s": (5e-3, 1e-4),  # one step of 1 ms
    "dry friction, 1.5 times it, speed after 0.2 s": (1e-4, 1e-4),
    "dry friction stops 4 rad/s, way": (4e-3, 2e-3),  # 4 rad/s for 1 ms
    "servo's step, worst error, 1000 Hz": (1.0, 1e-3),
    "servo's step, worst error, 200 Hz": (5.0, 1e-3),
    "motor's envelope, speed after 0.15 s": (0.02, 1e-3),
    "command delay": (0.01, 0.01),
    "free fall, 0.4 s": (0.5 * 9.81 * 0.4 * 0.005 + 1e-4, 1e-4),  # half a step's speed too much
    "friction cone, block slides from": (0.3, 0.3),  # asked in steps of 0.25
    "block slides from 1 m/s, way": (5e-3, 2e-3),  # 1 m/s for 5 ms
    "block at rest, depth": (0.1, 0.1),
}


@pytest.mark.parametrize("name", CLOSE)
def test_engines_agree_with_physics_and_each_other(name):
    (case,) = conformance([name])
    assert case.exact is not None
    exact, other = CLOSE[name]
    assert case.found["sapien"] == pytest.approx(case.exact, abs=exact)
    assert case.found["mujoco"] == pytest.approx(case.found["sapien"], abs=other)


def test_friction_at_rest_holds_in_physx_and_creeps_in_mujoco():
    joint, block = conformance(["dry friction holds 0.8 of it, moved in 5 s", "block on half that slope creeps"])
    assert abs(joint.found["sapien"]) < 0.5  # mrad
    assert joint.found["mujoco"] > 10.0
    assert block.found["sapien"] < 0.05  # mm/s
    assert block.found["mujoco"] > 0.2


@pytest.mark.medium
def test_a_standing_go2_needs_about_the_same_torque_in_both():
    (case,) = conformance(["go2 stands, torque of calves"])
    assert case.exact is None
    assert case.found["mujoco"] == pytest.approx(case.found["sapien"], rel=0.1)


def test_every_case_is_looked_at_and_unknown_ones_are_refused():
    seen = {*CLOSE, "dry friction holds 0.8 of it, moved in 5 s", "block on half that slope creeps"}
    assert set(CASES) - seen == {"go2 stands, torque of calves"}
    with pytest.raises(TrueupError, match=r"no case 'pendulum perod' \(did you mean 'pendulum period'"):
        conformance(["pendulum perod"])
