"""Which rungs there are, what stands on what, and what data they need."""

from dataclasses import replace

import numpy as np
import pytest
from planted_logs import planted_log

from trueup.calibrate.actuator.fits import common_params, not_supported
from trueup.calibrate.actuator.rungs import RUNGS, choose, params_of, rung_named
from trueup.calibrate.parameters import parameter_names
from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot

ROBOT = load_robot("go2")


def with_torque(log, make):
    asked = ROBOT.spec.kp * (log["target_pos"] - log["joint_pos"]) - ROBOT.spec.kd * log["joint_vel"]
    return replace(log, signals={**log.signals, "joint_torque": make(asked)})


def test_rungs_are_simplest_first_and_stand_on_simpler_ones():
    names = [rung.name for rung in RUNGS]
    assert names[0] == "pd"
    assert names[-1] == "uan"
    for rung in RUNGS:
        assert not rung.start or names.index(rung.start) < names.index(rung.name)


def test_every_parametric_rung_fits_what_a_calibration_knows():
    for rung in RUNGS:
        if rung.kind == "params":
            assert "delay" in parameter_names(params_of(rung, "pace"))


def test_what_a_rung_stands_on_comes_with_it():
    assert [rung.name for rung in choose("uan,pd")] == ["pd", "delay", "pace", "uan"]
    assert [rung.name for rung in choose("all")] == [rung.name for rung in RUNGS]


def test_an_unknown_rung_is_named_with_its_neighbour():
    with pytest.raises(TrueupError, match="did you mean 'pace'"):
        choose("pac")


def test_a_torque_rung_needs_torque_and_its_sign():
    log = planted_log(ROBOT, {}, seconds=6.0)
    net, pace = rung_named("net"), rung_named("pace")
    assert "needs measured torque" in not_supported(ROBOT, [log], net)
    assert not_supported(ROBOT, [log], pace) == ""
    assert not_supported(ROBOT, [with_torque(log, lambda tau: tau)], net) == ""
    assert "never negative" in not_supported(ROBOT, [with_torque(log, np.abs)], net)
    assert "points away" in not_supported(ROBOT, [with_torque(log, lambda tau: -tau)], net)


def test_gains_that_would_always_saturate_are_not_the_servos():
    log = planted_log(ROBOT, {}, seconds=5.0)
    assert common_params(ROBOT, [log]) == "pace"
    off = replace(log, signals={**log.signals, "joint_pos": log["joint_pos"] + 2.0})
    assert common_params(ROBOT, [off]) == "servo"
