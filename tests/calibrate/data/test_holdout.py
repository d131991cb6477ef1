"""What is kept back: a gain, whole logs, or the end of one; logs are cut where gains change."""

import numpy as np

from trueup.calibrate.data.logs import by_gain, gain_of, hold_out
from trueup.data.log import Log

RATE = 100.0


def make(seconds: float, kp: float | None = None, value: float = 0.0) -> Log:
    rows = round(seconds * RATE)
    signals = {"joint_pos": np.full((rows, 2), value), "target_pos": np.zeros((rows, 2))}
    if kp is not None:
        signals |= {"target_kp": np.full((rows, 2), kp), "target_kd": np.ones((rows, 2))}
    return Log(time=np.arange(rows) / RATE, joint_names=("a", "b"), signals=signals)


def joined(*logs: Log) -> Log:
    signals = {name: np.concatenate([log[name] for log in logs]) for name in logs[0].signals}
    rows = sum(len(log) for log in logs)
    return Log(time=np.arange(rows) / RATE, joint_names=("a", "b"), signals=signals)


def test_the_end_of_a_single_log_is_kept_back():
    split = hold_out([make(20)], 0.25)
    assert [len(log) for log in (*split.train, *split.held)] == [1500, 500]
    assert "the last 5.0 s" in split.how
    assert hold_out([make(20)], 0.0).held == []


def test_whole_motions_are_kept_back_when_there_are_several():
    logs = [make(10, value=k) for k in range(5)]
    split = hold_out(logs, 0.4)
    assert split.train == logs[:3]
    assert split.held == logs[3:]
    assert hold_out(logs[:2], 0.25).held == [logs[1]]


def test_a_gain_is_kept_back_when_there_are_several():
    logs = [make(10, 20), make(10, 40), make(10, 20)]
    split = hold_out(logs, 0.25)
    assert split.held == [logs[1]]
    assert "kp 40" in split.how


def test_parts_of_one_log_with_their_own_gains_count_as_logs():
    split = hold_out([joined(make(10, 20), make(1, 30), make(5, 40))], 0.25)
    assert [gain_of(log)[0] for log in split.train] == [20.0]
    assert [gain_of(log)[0] for log in split.held] == [40.0]
    assert len(split.train[0]) == 1000


def test_two_gains_stay_in_the_fit_when_gains_are_fitted():
    logs = [make(10, 20), make(10, 40)]
    assert hold_out(logs, 0.25, fits_gains=True).held == [logs[1]]  # a motion: nothing else would be left
    three = [*logs, make(8, 60), make(9, 20)]
    split = hold_out(three, 0.25, fits_gains=True)
    assert split.held == [three[2]]


def test_a_log_whose_gains_change_for_moments_stays_whole():
    restless = make(10, 20)
    restless["target_kp"][:, 0] = np.arange(1000) // 10
    assert by_gain(restless) == [restless]
    off = joined(make(10, 20), make(3, 0), make(5, 20))
    off["target_kd"][1000:1300] = 0.0
    assert by_gain(off) == [off]
    assert gain_of(off)[0] == 20.0


def test_a_servo_that_is_off_is_no_gain_to_hold_out():
    off = make(6, 0)
    off["target_kd"][:] = 0.0
    logs = [make(10, 20), off, make(10, 40)]
    split = hold_out(logs, 0.25)
    assert split.held == [logs[2]]
    assert split.train == logs[:2]


def test_a_log_too_short_for_two_parts_is_fitted_whole_and_says_so():
    split = hold_out([make(3)], 0.25)
    assert split.held == []
    assert "too short for two parts" in split.how


def test_a_log_recorded_for_what_was_weak_is_not_held_out_whole():
    time = np.arange(2000) / 200
    wave = np.sin(time)[:, None]
    signals = {"joint_pos": wave, "target_pos": wave}
    logs = [
        Log(time=time, joint_names=("joint",), signals=signals, meta={"excitation": {"kind": kind}})
        for kind in ("multisine", "active")
    ]
    split = hold_out(logs, 0.25)
    assert [len(part) for part in split.train] == [1500, 1500]
    assert [len(part) for part in split.held] == [500, 500]
