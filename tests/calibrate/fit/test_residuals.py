"""Residuals: zero at the truth, one rollout for many vectors, limbs share perturbations."""

import numpy as np
import pytest
from planted_logs import RATE, draw_truth, planted_log

import trueup.calibrate.fit.residuals as module
from trueup.calibrate.config import WindowCfg
from trueup.calibrate.data.cutting import position_noise, quantum, saturated
from trueup.calibrate.data.windows import cut_windows
from trueup.calibrate.fit.residuals import Shooting, colour, fit_sim_cfg
from trueup.calibrate.parameters import make_parameters, parameters_for
from trueup.calibrate.rules import PACE
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg

ROBOT = load_robot("go2")
TRUTH = draw_truth(ROBOT, 5)


def make(log: Log, **window) -> Shooting:
    windows = cut_windows(ROBOT, [log], WindowCfg(**({"window_s": 0.5, "warm_up_s": 0.1} | window)))
    cfg = fit_sim_cfg(ROBOT, windows.rate_hz, PACE)
    return Shooting(ROBOT, windows, parameters_for(ROBOT, cfg, PACE, tie="none", bodies=()), cfg)


def true_x(shooting: Shooting) -> np.ndarray:
    names = ROBOT.spec.joint_names
    return np.array([entry.to_x(TRUTH[entry.name][names.index(entry.of[0])]) for entry in shooting.parameters])


@pytest.fixture(scope="module")
def shooting() -> Shooting:
    return make(planted_log(ROBOT, TRUTH, seconds=3.0))


def test_the_truth_leaves_noise_only():
    shooting = make(planted_log(ROBOT, TRUTH, seconds=3.0), window_s=1.0, warm_up_s=0.4)
    left = shooting.residuals(true_x(shooting)[None])[0]
    position = left[shooting.windows.compared[..., 0], :12]
    assert 0.6 < np.sqrt((position**2).mean()) < 1.4
    assert np.sqrt((shooting.residuals(np.zeros((1, 49))) ** 2).mean()) > 5


def test_many_vectors_at_once_give_what_each_gives_alone(shooting, monkeypatch):
    x = np.random.default_rng(0).normal(0, 0.3, (5, 49))
    together = shooting.residuals(x)
    monkeypatch.setattr(module, "_MEMORY_NUMBERS", 1)
    np.testing.assert_array_equal(together, shooting.residuals(x))


def test_limbs_of_a_held_base_share_rollouts_and_the_jacobian_equals_plain_differences(shooting):
    assert len(shooting.colouring.groups) == 13
    x = np.random.default_rng(1).normal(0, 0.2, 49)
    at = shooting.residuals(x[None])[0]
    jacobian = shooting.jacobian(x, at)
    for k in (0, 16, 31, 44, 48):
        moved = x.copy()
        moved[k] += 0.01
        plain = (shooting.residuals(moved[None])[0] - at) / 0.01
        np.testing.assert_allclose(jacobian[k], plain, atol=1e-4 * np.abs(plain).max())


def test_a_free_base_couples_all_limbs():
    sim = BatchSim(ROBOT, SimCfg())
    parameters = make_parameters(sim, ("armature",))
    assert len(colour(sim, parameters).groups) == 12


def test_judged_samples_cover_the_log_once():
    log = planted_log(ROBOT, TRUTH, seconds=3.3)
    windows = cut_windows(ROBOT, [log], WindowCfg(window_s=0.5, warm_up_s=0.1))
    assert windows.compared[..., 0].sum() == len(log) - 1 - round(0.1 * RATE)


def test_logs_are_stacked_and_one_too_short_is_refused():
    log = planted_log(ROBOT, TRUTH, seconds=2.0)
    windows = cut_windows(ROBOT, [log, log], WindowCfg(window_s=0.5, warm_up_s=0.1))
    np.testing.assert_array_equal(windows.target[: windows.count // 2], windows.target[windows.count // 2 :])
    with pytest.raises(TrueupError, match="too short"):
        cut_windows(ROBOT, [log.window(0, 50)], WindowCfg(window_s=0.5))


def test_noise_is_measured_from_the_log():
    log = planted_log(ROBOT, TRUTH, seconds=4.0, noise=5e-4, quantum=2e-4)
    np.testing.assert_allclose(position_noise(log["joint_pos"]), 5e-4, rtol=0.2)
    np.testing.assert_allclose(quantum(np.round(log["joint_pos"] / 1e-3) * 1e-3), 1e-3, rtol=1e-6)


def test_samples_at_the_torque_limit_are_masked_with_what_follows():
    log = planted_log(ROBOT, TRUTH, seconds=1.0)
    target = log["target_pos"].copy()
    target[100, 3] += 5.0  # 100 N m asked of a 23.7 N m motor
    spoiled = Log(time=log.time, joint_names=log.joint_names, signals={**log.signals, "target_pos": target})
    mask = saturated(ROBOT, spoiled, np.zeros_like(target))
    assert mask[100:110, 3].all()
    assert mask.sum() == 11


def test_more_windows_than_wanted_are_thinned_evenly():
    log = planted_log(ROBOT, TRUTH, seconds=4.0)
    full = cut_windows(ROBOT, [log], WindowCfg(window_s=0.5, warm_up_s=0.1))
    thin = cut_windows(ROBOT, [log], WindowCfg(window_s=0.5, warm_up_s=0.1, max_windows=3))
    assert thin.count == 3
    np.testing.assert_array_equal(thin.target[[0, -1]], full.target[[0, -1]])
