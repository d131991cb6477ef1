"""Logs on the ground: the base starts from odometry, is compared with it, and contact parameters come back."""

import numpy as np
import pytest
from planted_logs import contact_log

from trueup.calibrate.config import FitCfg, WindowCfg
from trueup.calibrate.data.cutting import BASE_CHANNELS, rotation_between
from trueup.calibrate.data.windows import cut_windows
from trueup.calibrate.fit.fit import Fitter
from trueup.calibrate.fit.problem import Problem
from trueup.calibrate.fit.residuals import Shooting, fit_sim_cfg
from trueup.calibrate.parameters import parameters_for
from trueup.calibrate.rules import CONTACT
from trueup.calibrate.uncertainty.assess import assess
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import load_robot

ROBOT = load_robot("go2")
TRUTH = {"contact_friction": 0.35, "contact_timeconst": 0.035, "contact_dampratio": 0.6}


def make(log: Log) -> Shooting:
    windows = cut_windows(ROBOT, [log], WindowCfg(), free_base=True)
    cfg = fit_sim_cfg(ROBOT, windows.rate_hz, CONTACT, free_base=True)
    return Shooting(ROBOT, windows, parameters_for(ROBOT, cfg, CONTACT, tie="none", bodies=()), cfg)


@pytest.fixture(scope="module")
def shooting() -> Shooting:
    return make(contact_log(ROBOT, TRUTH))


def test_the_base_is_compared_with_odometry_and_the_truth_leaves_little(shooting):
    assert shooting.windows.measured.shape[-1] == 24 + BASE_CHANNELS
    true = np.array([entry.to_x(TRUTH[entry.name]) for entry in shooting.parameters])
    both = shooting.residuals(np.array([true, np.zeros(3)]))
    assert (both[0] ** 2).mean() < 0.5 * (both[1] ** 2).mean()


@pytest.mark.medium
def test_contact_friction_and_softness_come_back_within_their_intervals(shooting):
    solution = Fitter(Problem(fine=shooting), FitCfg(iterations=12)).run()
    assessed = assess(shooting, solution)
    for estimate in assessed.estimates:
        true = TRUTH[estimate.parameter.name]
        assert estimate.interval[0] < true < estimate.interval[1], estimate
        assert estimate.interval[1] < 2.0 * estimate.interval[0], estimate  # an interval that says something
        assert abs(estimate.value - true) < 0.1 * true, estimate
        assert estimate.verdict in ("identified", "weak")


def test_a_log_without_odometry_is_refused_with_the_remedy():
    log = contact_log(ROBOT, TRUTH, seconds=1.0)
    blind = {name: values for name, values in log.signals.items() if name != "base_vel"}
    with pytest.raises(TrueupError, match="odometry"):
        make(Log(time=log.time, joint_names=log.joint_names, signals=blind))


def test_rotation_between_is_the_angle_and_axis():
    half = 0.3
    turned = np.array([np.cos(half), 0.0, np.sin(half), 0.0])
    still = np.array([1.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(rotation_between(still, turned), [0, 0.6, 0], atol=1e-12)
    np.testing.assert_allclose(rotation_between(still, -turned), [0, 0.6, 0], atol=1e-12)
    np.testing.assert_allclose(rotation_between(turned, turned), 0, atol=1e-12)
