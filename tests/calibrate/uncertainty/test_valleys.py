"""Valleys: what the data cannot tell apart is measured as a combination, and a fit goes on to its floor."""

import numpy as np
import pytest
from planted_logs import planted_log

from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg
from trueup.calibrate.fit.fit import Fitter
from trueup.calibrate.fit.problem import make_problem
from trueup.calibrate.uncertainty.valleys import measured, settled, valleys
from trueup.robot.load import load_robot

# a light foot: what the motor gives can hardly be told from what it must move
ANKLE = load_robot("pendulum:load_mass=0.3,load_length=0.05")
TRUTH = {"kp": np.array([16.0]), "armature": np.array([0.015]), "friction": np.array([0.15])}


def problem(params: str):
    log = planted_log(ANKLE, TRUTH, seconds=8.0, size=0.04)
    return make_problem(ANKLE, [log], CalibrateCfg(params=params, physics_hz=200.0))


def deviation(jacobian: np.ndarray) -> np.ndarray:
    flat = jacobian.reshape(len(jacobian), -1).astype(float)
    return np.sqrt(np.diag(np.linalg.inv(flat @ flat.T + np.eye(len(flat)))))


@pytest.fixture(scope="module")
def fitted():
    made = problem("armature,friction,kp,kd,damping")
    return made, Fitter(made, FitCfg(method="local")).run()


@pytest.mark.medium
def test_two_names_for_one_thing_are_found_and_not_called_known(fitted):
    """Without a velocity target kd brakes exactly as damping does: only their sum can be seen."""
    made, solution = fitted
    found = valleys(made.fine, solution.x, solution.jacobian)
    names = [entry.name for entry in made.fine.parameters]
    kd, damping = names.index("kd"), names.index("damping")
    assert any(abs(d.along[kd]) > 0.3 and d.along[kd] * d.along[damping] < 0 for d in found)
    after = deviation(measured(made.fine, solution.x, solution.jacobian))
    assert after[kd] ** 2 + after[damping] ** 2 > 0.8  # nearly a whole prior width is left along the valley


@pytest.mark.medium
def test_a_settled_fit_is_no_worse_and_knows_less(fitted):
    made, solution = fitted
    new = settled(made.fine, solution)
    assert new.cost <= solution.cost
    names = [entry.name for entry in made.fine.parameters]
    k = names.index("kp")
    assert deviation(new.jacobian)[k] > deviation(solution.jacobian)[k]
    true = made.fine.parameters[k].to_x(0.8)
    assert abs(new.x[k] - true) < 2.5 * deviation(new.jacobian)[k]


@pytest.mark.medium
def test_a_fit_without_valleys_is_left_as_it_is():
    made = problem("friction,delay")
    solution = Fitter(made, FitCfg(method="local")).run()
    assert settled(made.fine, solution) is solution


@pytest.mark.medium
def test_the_gain_of_a_light_joint_in_small_motion_is_weak_not_identified():
    log = planted_log(ANKLE, TRUTH, seconds=8.0, size=0.012)
    cfg = CalibrateCfg(params="pace,kp,kd", physics_hz=200.0, check=False, fit=FitCfg(method="local"))
    found = calibrate(ANKLE, [log], cfg).calibration.find("kp")
    assert found.verdict != "identified"
    low, high = found.interval
    assert low < 0.8 < high
