"""Logs prepared for a fit: what is refused in all, one clock for all, and splits that were asked for."""

import numpy as np
import pytest
from planted_logs import planted_log

from trueup.calibrate.data.logs import by_gain, check, gain_of, hold_out, moves, ready, split_logs
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import load_robot

ROBOT = load_robot("pendulum")


def made(seconds: float, *gains: float, rate: float = 100.0) -> Log:
    """A still log whose gains kp are in force one after the other, each for the same time."""
    rows = round(seconds * rate)
    signals = {"joint_pos": np.zeros((rows, 1)), "target_pos": np.zeros((rows, 1))}
    if gains:
        signals["target_kp"] = np.repeat(gains, rows // len(gains))[:, None]
    return Log(time=np.arange(rows) / rate, joint_names=ROBOT.spec.joint_names, signals=signals)


def test_no_log_and_logs_too_short_in_all_are_refused():
    with pytest.raises(TrueupError, match="no log was given"):
        check(ROBOT, [])
    with pytest.raises(TrueupError, match=r"2 logs of 4\.0 s are too short"):
        check(ROBOT, [made(2.01), made(2.01)])
    assert check(ROBOT, [made(2.01)], refuse=False) == []


def test_a_number_that_is_not_finite_is_refused_even_where_all_else_is_let_through():
    log = made(6.0)
    log["joint_pos"][7] = np.nan
    with pytest.raises(TrueupError, match="finite"):
        check(ROBOT, [log], refuse=False)


def test_a_log_without_commands_is_told_what_it_lacks():
    log = Log(time=np.arange(9) / 10, joint_names=ROBOT.spec.joint_names, signals={"joint_pos": np.zeros((9, 1))})
    with pytest.raises(TrueupError, match="target_pos"):
        check(ROBOT, [log], refuse=False)


def test_all_logs_come_to_the_clock_that_most_have_and_held_out_ones_too():
    train, held = ready(ROBOT, [made(3.0), made(3.0), made(2.0, rate=50.0)], [made(1.0, rate=200.0)])
    for log in (*train, *held):
        np.testing.assert_allclose(np.diff(log.time), 0.01)


def test_joints_are_put_into_the_robot_s_order():
    robot = load_robot("so101")
    log = planted_log(robot, {}, seconds=0.5, noise=0.0)
    names = robot.spec.joint_names[::-1]
    turned = Log(time=log.time, joint_names=names, signals={k: v[:, ::-1] for k, v in log.signals.items()})
    (back,), _ = ready(robot, [turned])
    assert back.joint_names == robot.spec.joint_names
    np.testing.assert_allclose(back["joint_pos"], log["joint_pos"])


def test_logs_given_for_scoring_are_used_whole_and_cut_by_gain():
    split = split_logs([made(8.0)], [made(8.0, 10.0, 20.0)], 0.25)
    assert [len(log) for log in split.train] == [800]
    assert [gain_of(log) for log in split.held] == [(10.0,), (20.0,)]
    assert split.how == "held out: the logs given for it"


def test_a_gain_that_would_leave_too_little_to_fit_is_not_held_out():
    logs = [made(3.0, 10.0), made(3.0, 20.0)]
    split = hold_out(logs, 0.25)
    assert "the last 1 of 2 logs" in split.how  # three seconds of one gain are too few: a motion is kept back
    assert "the gain" in hold_out([made(4.0, 10.0), made(3.0, 20.0)], 0.25).how


@pytest.mark.parametrize(
    ("seconds", "gains", "parts"),
    [(8.0, (10.0, 20.0), 2), (3.9, (10.0, 20.0), 1), (9.0, (10.0, 20.0, 10.0), 3), (8.0, (10.0, 10.0), 1)],
)
def test_a_log_is_several_only_if_each_gain_stays_two_seconds(seconds, gains, parts):
    assert len(by_gain(made(seconds, *gains))) == parts


def test_data_in_which_one_joint_moved_are_taken():
    robot = load_robot("so101")
    moves(robot, frozenset(robot.spec.joint_names[1:]))
    with pytest.raises(TrueupError, match="no joint was moved.*--robot so101"):
        moves(robot, frozenset(robot.spec.joint_names))
