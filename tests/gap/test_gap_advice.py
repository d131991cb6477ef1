"""Every fixing command is one that our command line takes, and a refit request names what can be fitted."""

import contextlib
import io
import shlex

import numpy as np
import pytest
import tyro

from trueup import cli
from trueup.calibrate.parameters import parameter_names
from trueup.gap.advice import command_for, excitation_for, refit_request
from trueup.gap.causes.hypotheses import EXCITATION, HYPOTHESES
from trueup.gap.causes.search import Tested as Result
from trueup.gap.decide import Ranked

CAUSES = (*EXCITATION, "policy rate", "loop delay")


def _ranked(cause, fits=(), tied=False, unit="s"):
    tested = Result(
        cause=cause, joints=("FL_hip_joint",), size=0.02, unit=unit, before=np.ones(4), after=np.zeros(4),
        matters=True, fits=fits,
    )  # fmt: skip
    return Ranked(tested=tested, explained=1.0, interval=(0.9, 1.0), confidence=1.0, tied=tied)


@pytest.mark.parametrize("base", ["fixed", "free"])
@pytest.mark.parametrize("cause", CAUSES)
def test_the_fixing_command_is_understood_by_the_command_line(cause, base):
    words = shlex.split(command_for(cause, "go2", ["walk.mcap"], "gap", base), comments=True)[1:]
    count = 2 if " ".join(words[:2]) in cli._VERBS else 1
    verb = " ".join(words[:count])
    with contextlib.redirect_stderr(io.StringIO()):
        tyro.cli(cli._load(cli._VERBS[verb][0]), args=words[count:], prog=f"trueup {verb}", config=cli._CONFIG)


def test_every_hypothesis_has_a_motion_that_shows_it():
    assert {one.cause for one in HYPOTHESES} <= set(EXCITATION)
    assert "; " in excitation_for(["delay", "gain"])


def test_a_request_asks_for_the_first_cause_and_those_as_good():
    causes = [
        _ranked("delay", ("delay",)),
        _ranked("gain", ("kp",), tied=True, unit="times"),
        _ranked("inertia", ("armature",)),
    ]
    asked = refit_request(causes, "go2", "fixed", ["a.mcap"], ["00"], "trunk")
    assert asked.params == ("pace", "delay", "kp")
    assert [one.name for one in asked.suspects] == ["delay", "kp"]
    assert parameter_names(",".join(asked.params))


@pytest.mark.parametrize("cause", ["joint order", "sign", "wrong rate", "heat", "state estimate"])
def test_what_no_fit_can_mend_asks_for_none(cause):
    assert refit_request([_ranked(cause)], "go2", "fixed", ["a.mcap"], ["00"], "trunk") is None


def test_a_load_names_its_body():
    asked = refit_request([_ranked("payload", ("mass_scale",), unit="times")], "go2", "free", [], [], "trunk")
    assert asked.bodies == ("trunk",)
