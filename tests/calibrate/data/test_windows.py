"""Windows of logs whose gains change, of several clocks and of many short pieces."""

from dataclasses import replace

import numpy as np
import pytest
from planted_logs import draw_truth, planted_log

from trueup.calibrate.config import WindowCfg
from trueup.calibrate.data.windows import cut_windows
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import resample
from trueup.robot.load import load_robot

ROBOT = load_robot("pendulum")
TRUTH = {
    "armature": np.array([0.01]),
    "damping": np.array([0.1]),
    "friction": np.array([0.05]),
    "delay": np.array([0.005]),
}
LOG = planted_log(ROBOT, TRUTH, seconds=12.0)


def with_gains(log: Log, factor: np.ndarray) -> Log:
    kp, kd = factor[:, None] * ROBOT.spec.kp, factor[:, None] * ROBOT.spec.kd
    return replace(log, signals={**log.signals, "target_kp": kp, "target_kd": kd})


def test_windows_end_where_gains_change():
    factor = np.ones(len(LOG))
    factor[700:1500], factor[1500:1600] = 2.0, 0.0  # the last half second is too short for a window
    windows = cut_windows(ROBOT, [with_gains(LOG, factor)], WindowCfg(window_s=1.0))
    assert windows.kp.shape == (windows.count, 1)
    assert set(np.unique(windows.kp / ROBOT.spec.kp).round(9)) == {1.0, 2.0}
    gain = {tuple(target[:, 0]): value for target, value in zip(windows.target, windows.kp[:, 0], strict=True)}
    for target, kp in gain.items():  # every sample of a window lies where its gain was in force
        start = int(np.flatnonzero(LOG["target_pos"][:, 0] == target[0])[0])
        assert (factor[start : start + len(target)] * ROBOT.spec.kp[0] == kp).all()


def test_a_passive_stretch_makes_windows_too():
    factor = np.ones(len(LOG))
    factor[1000:1800] = 0.0
    windows = cut_windows(ROBOT, [with_gains(LOG, factor)], WindowCfg(window_s=1.0))
    assert (windows.kp == 0.0).any()
    assert (windows.kd[windows.kp == 0.0] == 0.0).all()


def test_windows_follow_gains_that_never_rest():
    factor = 1.0 + 0.5 * (np.arange(len(LOG)) // 20 % 2)
    windows = cut_windows(ROBOT, [with_gains(LOG, factor)], WindowCfg())
    assert windows.kp.shape == windows.target.shape
    assert windows.recorded.changes


def test_every_judged_sample_is_judged_once():
    windows = cut_windows(ROBOT, [LOG.window(0, 1777)], WindowCfg(window_s=0.7), mask_saturated=False)
    assert windows.compared[..., 0].sum() == 1777 - 1 - round(0.3 * 200)


@pytest.mark.parametrize("off", [1e-4, 1e-3])
def test_clocks_that_hardly_differ_are_one_rate(off):
    first, second = LOG.window(0, 1200), LOG.window(1200, 2400)
    logs = [replace(first, time=first.time * (1 - off)), replace(second, time=second.time * (1 + off))]
    windows = cut_windows(ROBOT, logs, WindowCfg(window_s=1.0))
    assert windows.count >= 10
    np.testing.assert_array_equal(windows.target[0], LOG["target_pos"][: windows.target.shape[1]])


def test_other_rates_are_brought_to_the_most_common_one():
    logs = [resample(LOG.window(0, 600), 50.0), LOG.window(600, 1800), resample(LOG.window(1800, 2400), 1000.0)]
    windows = cut_windows(ROBOT, logs, WindowCfg(window_s=1.0))
    assert windows.rate_hz == 200.0
    assert windows.target.shape[1] == 260


def test_short_logs_are_taken_together_and_shorter_ones_than_a_window_left_out():
    pieces = [LOG.window(k, k + 250) for k in range(0, 2250, 250)]
    windows = cut_windows(ROBOT, [*pieces, LOG.window(0, 60)], WindowCfg())
    assert windows.count >= len(pieces)
    assert "1 of 10 logs are shorter than a window" in " ".join(windows.notes)
    with pytest.raises(TrueupError, match="too short for windows"):
        cut_windows(ROBOT, [LOG.window(0, 60)], WindowCfg())


def test_go2_with_a_gain_step_has_the_gains_of_both_sides():
    robot = load_robot("go2")
    log = planted_log(robot, draw_truth(robot, 0), seconds=4.0)
    kp = np.tile(robot.spec.kp, (len(log), 1))
    kp[400:] *= 1.5
    windows = cut_windows(robot, [replace(log, signals={**log.signals, "target_kp": kp})], WindowCfg())
    assert {1.0, 1.5} == set(np.unique(windows.kp / robot.spec.kp).round(9))
