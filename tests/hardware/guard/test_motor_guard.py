"""Every guard by itself: what trips it, what it says, and what it lets pass. States at 500 Hz, commands at 50 Hz."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from guard_doubles import PERIOD, SPEC, Runner, rows, state

from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.limiter import limits_of
from trueup.hardware.guard.motor_guard import MotorGuard
from trueup.hardware.guard.readings import GuardFault


@pytest.fixture
def runner() -> Runner:
    return Runner()


# --- phases ---
def test_an_idle_guard_damps_and_says_why_it_is_not_ready() -> None:
    guard = MotorGuard(SPEC, GuardCfg(), control_hz=50.0, period_s=PERIOD)
    assert guard.tick(0.0) is None
    assert "no state has come" in guard.status(0.0).not_ready
    guard.observe(state(0), 0.0)
    assert guard.status(0.0).not_ready == ""
    assert guard.tick(0.0) is None
    assert guard.phase == "idle"
    assert "no new state for 50 ms" in guard.status(0.05).not_ready


def test_a_first_command_without_a_state_trips() -> None:
    guard = MotorGuard(SPEC, GuardCfg(), control_hz=50.0, period_s=PERIOD)
    guard.command(rows(), 0.0)
    assert guard.trip is not None
    assert guard.trip.guard == "stale"


def test_a_fault_while_idle_keeps_from_starting_and_passes_when_it_is_gone() -> None:
    runner = Runner(start=False)
    runner.run(3, None)
    runner.step(None, joint_pos=[math.nan, -1.0])
    assert "not a finite number" in runner.guard.not_ready(runner.k * PERIOD)
    assert not runner.tripped
    runner.run(20)
    assert runner.guard.phase == "active"
    broken = Runner(start=False)
    broken.run(10, None, joint_temperature=[90.0, 30.0])
    broken.step(joint_temperature=[90.0, 30.0])
    assert broken.tripped == "temperature"


def test_a_robot_moved_by_hand_before_the_start_is_fine() -> None:
    runner = Runner(start=False)
    runner.run(5, None)
    runner.run(5, None, joint_pos=[0.8, -1.0])
    runner.run(20, [0.8, -1.0], joint_pos=[0.8, -1.0])
    assert runner.guard.phase == "active"


def test_a_trip_is_for_good_and_its_first_reason_stays(runner: Runner) -> None:
    runner.step(joint_pos=[math.nan, -1.0])
    runner.run(50)
    runner.guard.stop(GuardFault("stop", "later"), 9.0)
    assert runner.tripped == "nonfinite"
    assert runner.sent is None


def test_targets_start_from_the_measured_pose() -> None:
    runner = Runner(start=False)
    runner.step([0.7, -1.0], joint_pos=[0.3, -1.0])
    assert runner.sent is not None
    assert runner.sent[0, 0] == pytest.approx(0.4)  # one step of 0.1 rad


# --- age ---
def test_no_new_state_trips_at_the_last_tick_within_two_control_periods(runner: Runner) -> None:
    last = (runner.k - 1) * PERIOD
    runner.guard.command(rows(), last + 0.030)
    assert runner.guard.tick(last + 0.0379) is not None  # the next one, 2 ms later, is still in time
    assert runner.guard.tick(last + 0.0381) is None
    assert runner.tripped == "stale"
    assert "40 ms" in runner.reason


def test_the_age_of_a_state_is_never_allowed_beyond_a_tenth_of_a_second() -> None:
    assert GuardCfg().stale_limit_s(5.0) == 0.1
    assert GuardCfg().stale_limit_s(50.0) == 0.04


def test_states_that_keep_coming_but_late_trip(runner: Runner) -> None:
    for _ in range(60):
        k = runner.k
        runner.guard.observe(state(k), k * PERIOD + 0.05)
        runner.guard.command(rows(), k * PERIOD + 0.05)
        runner.guard.tick(k * PERIOD + 0.05)
        runner.k += 1
    assert runner.tripped == "stale"
    assert "came 49 ms late" in runner.reason  # 50, less what the two clocks may drift apart meanwhile


def test_a_robot_whose_clock_is_one_percent_slow_is_not_late() -> None:
    runner = Runner()
    for k in range(runner.k, 5000):
        now = 1.01 * k * PERIOD
        runner.guard.observe(state(k, joint_pos=[1e-4 * math.sin(k), -1.0]), now)
        runner.guard.command(rows(), now)
        runner.guard.tick(now)
    assert not runner.tripped


def test_repeated_and_older_states_are_no_news(runner: Runner) -> None:
    last = (runner.k - 1) * PERIOD
    for k in range(1, 22):
        runner.guard.observe(state(runner.k - 1 - k % 2), last + k * PERIOD)
        runner.guard.command(rows(), last + k * PERIOD)
        runner.guard.tick(last + k * PERIOD)
    assert runner.tripped == "stale"
    assert runner.guard.clips["repeated"] >= 20


def test_a_sequence_that_wraps_around_is_news(runner: Runner) -> None:
    guard = MotorGuard(SPEC, GuardCfg(), control_hz=50.0, period_s=PERIOD)
    assert guard.observe(state(0, sequence=2**32 - 1), 0.0)
    assert guard.observe(state(1, sequence=0), PERIOD)


def test_a_clock_that_runs_backwards_trips(runner: Runner) -> None:
    runner.step(time_s=0.001)
    assert runner.tripped == "clock"
    assert "back to 0.001000 s" in runner.reason


def test_a_silent_policy_trips_within_two_control_periods(runner: Runner) -> None:
    runner.run(9, None)
    while not runner.tripped and runner.k < 100:
        runner.step(None)
    assert runner.tripped == "silence"
    assert runner.guard.trip is not None
    assert 0.057 < runner.guard.trip.time_s < 0.061  # the last command came at 20 ms


def test_time_that_the_guard_itself_was_not_run_is_no_silence_up_to_two_control_periods(runner: Runner) -> None:
    guard, commanded = runner.guard, 0.02  # s, when the newest command came
    guard.excuse(0.03)
    guard.excuse(0.03)
    assert guard.tick(commanded + 0.075) is not None
    assert guard.tick(commanded + 0.080) is None  # two control periods and two that are excused
    assert runner.tripped == "silence"


def test_a_policy_that_may_be_silent_for_longer_is_excused_nothing_more() -> None:
    guard = MotorGuard(SPEC, GuardCfg(silence_s=0.1), control_hz=50.0, period_s=PERIOD)
    guard.observe(state(0), 0.0)
    guard.command(rows(), 0.0)
    guard.excuse(1.0)
    guard.observe(state(48), 0.096)
    assert guard.tick(0.097) is not None
    assert guard.tick(0.099) is None
    assert guard.trip is not None
    assert guard.trip.guard == "silence"


def test_states_that_waited_while_the_guard_was_not_run_may_come_late_and_only_they(runner: Runner) -> None:
    late, command = 0.03, runner.k * PERIOD
    for excused, trip in ((0.03, ""), (0.0, "stale")):
        guard = MotorGuard(SPEC, GuardCfg(silence_s=1.0), control_hz=50.0, period_s=PERIOD)
        for k in range(10):
            guard.observe(state(k), k * PERIOD)
        guard.command(rows(), command)
        guard.excuse(excused)
        guard.observe(state(10), 10 * PERIOD + late)
        assert (guard.tick(10 * PERIOD + late + 0.015) is None) == bool(trip)
        assert ("" if guard.trip is None else guard.trip.guard) == trip


def test_a_command_and_a_state_end_what_was_excused(runner: Runner) -> None:
    runner.guard.excuse(1.0)
    runner.run(10)  # commands and states come again
    runner.run(9, None)
    while not runner.tripped and runner.k < 100:
        runner.step(None)
    assert runner.tripped == "silence"
    assert runner.guard.trip is not None
    assert runner.k * PERIOD - runner.guard.trip.time_s < 0.041


def test_a_command_that_waited_while_the_guard_was_not_run_is_as_old_as_it_is() -> None:
    """A policy that hung meanwhile gets two control periods from when it last spoke, not from when it was heard."""
    for sent_s, silent_s in ((0.01, 0.04), (0.0, 0.05), (0.2, 0.0)):  # the last cannot be: counts as sent now
        guard = MotorGuard(SPEC, GuardCfg(), control_hz=50.0, period_s=PERIOD)
        guard.observe(state(0), 0.0)
        guard.command(rows(), 0.0)
        guard.excuse(0.045)
        guard.observe(state(25), 0.05)
        guard.command(rows(), 0.05, sent_s=sent_s)
        assert guard.tick(0.05) is not None
        last = 0.05 - silent_s + 0.04 + min(silent_s, 0.04)  # sent, two periods, what is excused of the wait
        guard.observe(state(25 + round((last - 0.05) / PERIOD)), last)
        assert guard.tick(last - 0.006) is not None
        assert guard.tick(last) is None
        assert guard.trip is not None
        assert guard.trip.guard == "silence"


def test_a_robots_clock_that_runs_ahead_of_ours_trips(runner: Runner) -> None:
    """As after a computer slept: its own clock stood still, the robot's did not."""
    now = runner.k * PERIOD
    runner.guard.observe(replace(state(runner.k), time_s=now + 0.09), now)
    assert not runner.tripped
    runner.guard.observe(replace(state(runner.k + 1), time_s=now + 1.0), now + PERIOD)
    assert runner.tripped == "clock"
    assert "advanced by 0.9" in runner.reason


@pytest.mark.parametrize("at_s", [0.0, 5000.0])
def test_a_robot_switched_off_and_on_before_the_start_may_start(at_s: float) -> None:
    """Its clock begins anew, or is set."""
    runner = Runner(start=False)
    for k in range(20):
        runner.guard.observe(replace(state(k), time_s=1000.0 + k * PERIOD), k * PERIOD)
    for k in range(20, 40):
        runner.guard.observe(replace(state(k), time_s=at_s + k * PERIOD), k * PERIOD)
    assert runner.guard.not_ready(39 * PERIOD) == ""
    runner.guard.command(rows(), 39 * PERIOD)
    assert runner.guard.tick(39 * PERIOD) is not None


def test_a_trip_for_want_of_states_repeats_what_the_driver_says(runner: Runner) -> None:
    runner.guard.hint = "connection refused"
    assert runner.guard.tick(runner.k * PERIOD + 0.05) is None
    assert runner.reason.endswith("; the driver says: connection refused")


# --- numbers ---
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e30])
@pytest.mark.parametrize("name", ["joint_pos", "joint_vel", "joint_torque", "joint_temperature"])
def test_a_joint_number_that_cannot_be_trips_at_once(runner: Runner, name: str, bad: float) -> None:
    runner.step(**{name: [0.0, bad]})
    assert runner.tripped == ("implausible" if math.isfinite(bad) else "nonfinite")
    assert f"joint 'b': {name} reports {bad}" in runner.reason
    assert runner.sent is None


@pytest.mark.parametrize(
    ("changed", "guard", "words"),
    [
        ({"voltage": math.nan}, "nonfinite", "voltage"),
        ({"voltage": 1e9}, "implausible", "voltage"),
        ({"time_s": math.nan}, "nonfinite", "clock"),
        ({"imu_gyro": [0.0, math.nan, 0.0]}, "nonfinite", "imu_gyro"),
        ({"imu_acc": [0.0, 0.0, 1e30]}, "implausible", "imu_acc"),
        ({"imu_quat": [0.0, 0.0, 0.0, 0.0]}, "implausible", "length 0.000"),
        ({"imu_quat": [0.9, 0.0, 0.0, 0.0]}, "implausible", "length 0.900"),
        ({"imu_quat": None}, "implausible", "in some reports and not in others"),
        ({"imu_gyro": None}, "implausible", "imu_gyro"),
        ({"joint_pos": [0.0, -1.0, 0.0]}, "implausible", "joint_pos of the robot has shape (3,)"),
    ],
)
def test_other_numbers_that_cannot_be_trip_at_once(
    runner: Runner, changed: dict[str, object], guard: str, words: str
) -> None:
    runner.step(**changed)
    assert runner.tripped == guard
    assert words in runner.reason


def test_what_a_robot_does_not_measure_is_no_fault() -> None:
    blind = {"joint_torque": [math.nan] * 2, "joint_temperature": [math.nan] * 2, "voltage": math.nan}
    blind |= {"imu_quat": None, "imu_gyro": None, "imu_acc": None}
    runner = Runner(start=False)
    runner.run(50, **blind)
    assert runner.guard.phase == "active"


def test_a_quaternion_may_change_its_sign(runner: Runner) -> None:
    for k in range(20):
        runner.step(imu_quat=[(-1.0) ** k, 0.0, 0.0, 0.0])
    assert not runner.tripped


# --- jumps ---
def test_one_or_two_outliers_are_left_out_and_counted(runner: Runner) -> None:
    runner.run(2, joint_pos=[0.5, -1.0])
    runner.run(20)
    assert not runner.tripped
    assert runner.guard.clips["bridged"] == 2


def test_the_policy_does_not_see_an_outlier(runner: Runner) -> None:
    assert not runner.guard.observe(state(runner.k, joint_pos=[0.5, -1.0]), runner.k * PERIOD)
    assert runner.guard.newest is not None
    assert runner.guard.newest.joint_pos[0] == 0.0


def test_an_outlier_that_stays_trips_with_the_third_report(runner: Runner) -> None:
    runner.run(3, joint_pos=[0.5, -1.0])
    assert runner.tripped == "jump"
    assert "joint 'a' jumped from 0.000 to 0.500 rad" in runner.reason


def test_a_fast_motion_is_no_jump() -> None:
    runner = Runner(GuardCfg(tracking_rad=None))
    for k in range(40):  # 9 rad/s, of which every report but one in ten is lost: 0.18 rad between two
        runner.k += 9
        runner.guard.command(rows(), runner.k * PERIOD)
        runner.step(joint_pos=[-0.9 + 0.18 * (k % 10), -1.0], joint_vel=[9.0, 0.0]) if k < 10 else None
    assert runner.guard.clips["bridged"] <= 2  # the first one jumps from rest
    assert not runner.tripped


def test_a_jump_of_the_imu_trips_although_each_pose_is_upright(runner: Runner) -> None:
    turned = [math.cos(0.4), 0.0, 0.0, math.sin(0.4)]  # 0.8 rad about the vertical
    runner.run(3, imu_quat=turned)
    assert runner.tripped == "jump"
    assert "orientation jumped by 0.800 rad" in runner.reason


# --- frozen ---
def test_a_robot_at_rest_may_repeat_itself_for_ever(runner: Runner) -> None:
    runner.run(3000)
    assert not runner.tripped


def test_a_whole_report_that_freezes_while_targets_move_trips(runner: Runner) -> None:
    began = runner.k
    for k in range(60):  # 2 rad/s: after 0.025 s the push has changed by 5 % of 20 N m
        runner.step([0.004 * k, -1.0])
    assert runner.tripped == "frozen"
    assert "whole report" in runner.reason
    assert "joint 'a' was told to change its torque" in runner.reason
    assert runner.guard.trip is not None
    assert runner.guard.trip.time_s - began * PERIOD < 0.1


def test_a_whole_report_that_freezes_while_it_says_to_move_trips_within_two_control_periods(runner: Runner) -> None:
    moving = {"joint_vel": [0.5, 0.0], "joint_pos": [0.01, -1.0]}
    began = runner.k * PERIOD
    runner.run(25, **moving)
    assert runner.tripped == "frozen"
    assert runner.guard.trip is not None
    assert runner.guard.trip.time_s - began <= 0.042 + 1e-9


def test_one_dead_encoder_among_moving_joints_trips(runner: Runner) -> None:
    for k in range(200):
        swing = 0.4 * math.sin(0.02 * k)
        runner.step([swing, -1.0 + swing], joint_pos=[0.0, -1.0 + swing + 1e-5 * k], joint_torque=[k * 1e-3, 0.0])
    assert runner.tripped == "frozen"
    assert "joint 'a' stays at 0.0000 rad" in runner.reason


def test_one_encoder_that_stands_while_its_velocity_goes_on_trips(runner: Runner) -> None:
    for k in range(150):
        runner.step(joint_vel=[0.6, 0.0], joint_torque=[0.0, 1e-6 * k])
    assert runner.tripped == "frozen"
    assert "joint 'a'" in runner.reason
    assert "says that it moves" in runner.reason


def test_a_quantised_encoder_under_a_changing_load_is_not_frozen(runner: Runner) -> None:
    step = 2 * math.pi / 4096
    for k in range(2000):  # a slow motion: the encoder stands for many reports, then moves by one step
        true = 0.02 * math.sin(2 * math.pi * k / 2000)
        at = round(true / step) * step
        runner.step([true, -1.0], joint_pos=[at, -1.0], joint_torque=[3.0 * math.sin(0.01 * k), 0.0])
    assert not runner.tripped


def noisy(k: int, size: float = 1e-3) -> dict[str, list[float]]:
    return {"imu_gyro": [size * math.sin(k), 0.0, 0.0], "imu_acc": [0.0, 0.0, 9.81 + size * math.sin(1.7 * k)]}


def test_an_imu_that_stops_talking_while_the_joints_go_on_trips_within_two_control_periods(runner: Runner) -> None:
    for k in range(150):
        runner.step(**noisy(k))
    began = runner.k * PERIOD
    for k in range(30):
        runner.step(joint_pos=[1e-4 * k, -1.0], **noisy(149))
    assert runner.tripped == "frozen"
    assert "the IMU reports the same to the last bit" in runner.reason
    assert runner.guard.trip is not None
    assert runner.guard.trip.time_s - began <= 0.04


def test_an_imu_that_comes_to_rest_little_by_little_is_not_frozen(runner: Runner) -> None:
    for k in range(1000):  # falls below the last bit of a double after 0.7 s
        runner.step(**noisy(k, math.exp(-0.1 * k)))
    assert not runner.tripped


# --- limits of the body ---
def test_a_joint_beyond_its_limit_and_margin_trips() -> None:
    runner = Runner(GuardCfg(jump_rad=10.0))
    runner.run(5, joint_pos=[1.09, -1.0])
    assert not runner.tripped
    runner.step(joint_pos=[1.11, -1.0])
    assert runner.tripped == "position"
    assert runner.reason == "joint 'a' is at 1.110 rad, outside its limits [-1.000, 1.000]"


def test_a_robot_that_rests_beyond_a_limit_may_start_and_come_back() -> None:
    runner = Runner(start=False)
    for k in range(300):
        runner.step([1.0, -1.0], joint_pos=[1.2 - 0.001 * k, -1.0], joint_vel=[-0.5, 0.0])
    assert not runner.tripped
    assert runner.guard.phase == "active"


def test_a_velocity_beyond_the_limit_trips_when_it_lasts() -> None:
    runner = Runner(GuardCfg(jump_rad=10.0))
    for k in range(30):  # a single wild value now and then
        runner.step(joint_vel=[13.0 if k % 5 == 0 else 0.0, 1e-3 * k])
    assert not runner.tripped
    for k in range(12):
        runner.step(joint_vel=[12.1, 0.0], joint_pos=[0.024 * k, -1.0])
    assert runner.tripped == "velocity"
    assert "joint 'a' turns at 12.10 rad/s, its limit is 10.00" in runner.reason


def test_a_motor_that_reports_half_as_much_again_as_its_limit_trips(runner: Runner) -> None:
    for k in range(20):
        runner.step(joint_torque=[29.9 + 1e-3 * k, 0.0])
    assert not runner.tripped
    for k in range(12):
        runner.step(joint_torque=[-31.0 - 1e-3 * k, 0.0])
    assert runner.tripped == "torque"
    assert "1.5 times its limit 20.0" in runner.reason


def test_a_blocked_joint_trips_and_a_loaded_one_does_not() -> None:
    loaded = Runner()
    for k in range(600):  # 0.7 rad off: 14 of 16 N m
        loaded.step([0.7, -1.0], joint_pos=[1e-5 * math.sin(k), -1.0])
    assert not loaded.tripped
    blocked = Runner()
    for k in range(600):
        blocked.step([0.9, -1.0], joint_pos=[1e-5 * math.sin(k), -1.0])
    assert blocked.tripped == "tracking"
    assert "joint 'a' is 0.9" in blocked.reason
    assert "is it blocked?" in blocked.reason


def test_a_fall_trips() -> None:
    runner = Runner()
    for k in range(300):
        angle = 0.004 * k
        runner.step(imu_quat=[math.cos(angle / 2), math.sin(angle / 2), 0.0, 0.0], imu_gyro=[2.0, 0.0, 0.0])
        if runner.tripped:
            break
    assert runner.tripped == "tilt"
    assert "1.00 rad from upright, the limit is 1 rad" in runner.reason


def test_a_robot_that_is_bolted_down_or_told_so_may_lean() -> None:
    lean = {"imu_quat": [math.cos(0.75), math.sin(0.75), 0.0, 0.0]}
    runner = Runner(GuardCfg(tilt_rad=None), start=False)
    runner.run(30, **lean)
    assert not runner.tripped
    fallen = Runner(start=False)
    fallen.run(30, **lean)
    assert fallen.tripped == "tilt"


# --- health ---
@pytest.mark.parametrize(("celsius", "share"), [(70.0, 1.0), (77.5, 2 / 3), (84.9, 0.3378)])
def test_heat_takes_torque_away(runner: Runner, celsius: float, share: float) -> None:
    runner.run(3, joint_temperature=[30.0, celsius])
    assert runner.guard.derate == pytest.approx(share, abs=1e-3)
    assert not runner.tripped


def test_a_hot_motor_trips_with_the_third_report(runner: Runner) -> None:
    runner.run(2, joint_temperature=[30.0, 85.0])
    runner.step()
    runner.run(2, joint_temperature=[30.0, 86.0])
    assert not runner.tripped
    runner.step(joint_temperature=[30.0, 86.0])
    assert runner.tripped == "temperature"
    assert runner.reason == "joint 'b' is 86 deg C hot, the limit is 85; let it cool"


def test_a_low_battery_takes_torque_away_and_then_trips() -> None:
    runner = Runner(GuardCfg(voltage_derate=24.0, voltage_stop=21.0))
    runner.step(voltage=22.5)
    assert runner.guard.derate == pytest.approx(2 / 3)
    runner.run(3, voltage=20.9)
    assert runner.tripped == "voltage"
    assert runner.reason == "the battery gives 20.9 V, the limit is 21.0; charge it"


def test_a_battery_without_limits_is_not_judged(runner: Runner) -> None:
    runner.run(20, voltage=1.0)
    assert not runner.tripped


# --- commands ---
@pytest.mark.parametrize(
    ("command", "words"),
    [
        (rows([math.nan, -1.0]), "target_pos nan for joint 'a': not a finite number"),
        (rows(torque=[0.0, math.inf]), "torque inf for joint 'b': not a finite number"),
        (rows([0.0, 1.1]), "target_pos 1.1 for joint 'b', far outside"),
        (rows(kp=[-1.0, 40.0]), "kp -1 for joint 'a', far outside"),
        (rows(kp=[20.0, 1e6]), "kp 1e+06 for joint 'b', far outside"),
        (rows(vel=[31.0, 0.0]), "target_vel 31 for joint 'a', far outside"),
        (rows(torque=[61.0, 0.0]), "torque 61 for joint 'a', far outside"),
        (np.zeros((5, 3)), "has shape (5, 2), found (5, 3)"),
        (np.zeros(0), "has shape (5, 2), found (0,)"),
    ],
)
def test_a_command_of_no_sane_policy_trips(runner: Runner, command: np.ndarray, words: str) -> None:
    runner.guard.command(command, runner.k * PERIOD)
    assert runner.tripped == "command"
    assert words in runner.reason
    assert runner.guard.tick(runner.k * PERIOD) is None


def test_a_command_a_little_outside_is_clipped_and_counted(runner: Runner) -> None:
    for k in range(150):
        at = 0.006 * k  # 3 rad/s
        runner.step([1.3, -1.0], joint_pos=[at, -1.0], joint_vel=[3.0, 0.0])
    assert not runner.tripped
    assert runner.sent is not None
    assert runner.sent[0, 0] <= limits_of(SPEC, GuardCfg()).high[0]
    assert runner.guard.clips["position"] == 15


# --- what is told ---
def test_the_status_names_the_worst_joint_of_every_guard(runner: Runner) -> None:
    runner.step(joint_temperature=[30.0, 60.0], joint_vel=[0.0, 2.0], joint_pos=[0.0, -0.95])
    margins = runner.guard.status(runner.k * PERIOD).margins
    assert (margins["temperature"].joint, margins["temperature"].value) == ("b", 60.0)
    assert (margins["velocity"].joint, margins["velocity"].value) == ("b", pytest.approx(0.4))
    assert (margins["position"].joint, margins["position"].value) == ("b", pytest.approx(-0.45))
    assert margins["torque"].value == pytest.approx(4.0 / 40.0)  # 40 * 0.05 of position and 1 * 2 of velocity
    assert margins["silence"].limit == 0.04
    assert margins["tilt"].value == 0.0
