"""Recording: what is logged is what happened, and whatever happens the robot is damped and the log kept."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from fake_driver import FakeDriver, lost

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.hardware.driver import RobotState
from trueup.hardware.watch import WatchCfg
from trueup.record import recording
from trueup.record.record import RecordCfg, RecordingProgress, RecordResult, record, record_meta
from trueup.record.sink import LogRows
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.excitation.plan import Plan
from trueup.robot.load import load_robot

ROBOT = load_robot("so101")
SPEC = ROBOT.spec
PLAN = excite(SPEC, ExcitationCfg(seconds=3.0, rate_hz=200.0))
AWAY = SPEC.default_pose + np.array([0.3, -0.2, 0.1, 0.0, 0.5, 0.2])


def run(
    driver: FakeDriver, plan: Plan = PLAN, cfg: RecordCfg | None = None, **more: object
) -> tuple[RecordResult, Log]:
    sink = LogRows(SPEC.joint_names, record_meta(ROBOT, plan, cfg, driver="fake"))
    result = record(ROBOT, driver, plan, sink, cfg, **more)  # type: ignore[arg-type]
    return result, sink.log()


def assert_safe_end(driver: FakeDriver, result: RecordResult, log: Log) -> None:
    assert driver.calls[0] == "connect"
    assert "damp" in driver.calls
    assert driver.calls[-1] == "close"
    assert result.rows == len(log)
    assert log.meta["ended"] == result.ended
    assert log.meta["reason"] == result.reason


# --- what is logged ---


def test_row_t_holds_the_state_and_the_command_in_force_from_then_on() -> None:
    _, log = run(FakeDriver(SPEC))
    again = FakeDriver(SPEC)
    for t in range(len(log)):
        state = again.read()
        assert state.time_s == log.time[t]
        assert (state.joint_pos == log["joint_pos"][t]).all()
        assert (state.joint_vel == log["joint_vel"][t]).all()
        command = {name: log[f"target_{name}"][t] for name in ("kp", "kd", "vel", "pos", "torque")}
        again.write(
            replace(
                again.damp(),
                target_pos=command["pos"],
                target_vel=command["vel"],
                torque=command["torque"],
                kp=command["kp"],
                kd=command["kd"],
            )
        )


def test_commands_one_row_off_would_not_give_the_states() -> None:
    """The other way round: the test above can fail."""
    _, log = run(FakeDriver(SPEC))
    again, target = FakeDriver(SPEC), np.roll(log["target_pos"], 1, axis=0)
    worst = 0.0
    for t in range(len(log)):
        worst = max(worst, float(np.abs(again.read().joint_pos - log["joint_pos"][t]).max()))
        again.write(replace(again.damp(), target_pos=target[t], kp=SPEC.kp, kd=SPEC.kd))
    assert worst > 1e-3


def test_the_log_has_the_command_that_was_really_sent() -> None:
    driver = FakeDriver(SPEC, clamp=0.05)
    _, log = run(driver)
    assert np.abs(PLAN.target_pos - SPEC.default_pose).max() > 0.1
    assert np.abs(log["target_pos"] - SPEC.default_pose).max() <= 0.05 + 1e-12
    assert (log["target_pos"] == np.array([sent.target_pos for sent in driver.written])).all()


def test_plan_is_played_row_by_row_with_the_gains_of_the_spec() -> None:
    result, log = run(FakeDriver(SPEC))
    assert result.ended == "done"
    assert result.phases == {"plan": 0}  # found at the default pose: no way to go
    assert (log["target_pos"] == PLAN.target_pos).all()
    assert (log["target_kp"] == SPEC.kp).all()
    assert (log["target_kd"] == SPEC.kd).all()
    assert not log["target_vel"].any()
    assert log.rate_hz == pytest.approx(200.0)


def test_velocity_targets_of_the_plan_are_sent() -> None:
    plan = excite(SPEC, ExcitationCfg(seconds=3.0, with_velocity=True))
    _, log = run(FakeDriver(SPEC), plan)
    assert (log["target_vel"] == plan.target_vel).all()


def test_it_comes_from_where_the_robot_is_and_goes_back() -> None:
    driver = FakeDriver(SPEC, start=AWAY)
    result, log = run(driver)
    assert list(result.phases) == ["approach", "plan", "home"]
    assert log["target_pos"][0] == pytest.approx(AWAY)
    first, last = result.phases["plan"], result.phases["home"]
    assert (log["target_pos"][first:last] == PLAN.target_pos).all()
    assert log["target_pos"][-1] == pytest.approx(AWAY)
    assert driver.pos == pytest.approx(AWAY, abs=0.02)
    assert (np.abs(np.diff(log["target_pos"], axis=0)) * 200.0 <= SPEC.velocity_limit).all()


def test_meta_says_where_a_log_comes_from_in_plain_values() -> None:
    _, log = run(FakeDriver(SPEC))
    meta = log.meta
    assert msgspec.json.decode(msgspec.json.encode(meta)) == meta
    assert (meta["robot"], meta["driver"], meta["seed"], meta["rate_hz"]) == ("so101", "fake", 0, 200.0)
    assert meta["excitation"]["config"]["kind"] == "multisine"  # type: ignore[index]
    assert meta["versions"].keys() == {"trueup", "python", "numpy"}  # type: ignore[attr-defined]
    assert meta["ended"] == "done"
    assert meta["loop"]["ticks"] == len(log)  # type: ignore[index]


def test_the_spec_hash_changes_with_the_spec() -> None:
    stiffer = msgspec.structs.replace(SPEC.joints[0], kp=1.0)
    other = replace(ROBOT, spec=msgspec.structs.replace(SPEC, joints=(stiffer, *SPEC.joints[1:])))
    one, two = (record_meta(robot, PLAN, driver="x")["spec_sha256"] for robot in (ROBOT, other))
    assert one != two
    assert record_meta(ROBOT, PLAN, driver="x")["spec_sha256"] == one


def test_a_quantity_that_is_not_measured_is_left_out() -> None:
    def spoil(state: RobotState) -> RobotState:
        return replace(state, joint_temperature=np.full(6, np.nan), voltage=np.nan)

    result, log = run(FakeDriver(SPEC, spoil=spoil))
    assert result.ended == "done"
    assert "joint_temperature" not in log
    assert "voltage" not in log
    assert "joint_torque" in log


def test_imu_is_logged_where_there_is_one() -> None:
    def spoil(state: RobotState) -> RobotState:
        return replace(state, imu_quat=np.array([1.0, 0, 0, 0]), imu_gyro=np.zeros(3), imu_acc=np.array([0, 0, 9.81]))

    _, log = run(FakeDriver(SPEC, spoil=spoil))
    assert log["imu_acc"][-1] == pytest.approx([0, 0, 9.81])


def test_progress_is_shown_and_ends_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RecordingProgress] = []
    monkeypatch.setattr(recording, "PROGRESS_S", 1e-6)
    run(FakeDriver(SPEC, start=AWAY), on_progress=seen.append)
    assert [step.phase for step in seen][:: len(seen) - 1] == ["approach", "home"]
    assert seen[-1].seconds == pytest.approx(seen[-1].total_s)
    assert [step.seconds for step in seen] == sorted(step.seconds for step in seen)


@pytest.mark.medium
def test_real_time_recording_keeps_the_rate() -> None:
    driver = FakeDriver(SPEC, realtime=True)
    cfg = RecordCfg(watch=WatchCfg(stale_s=2.0))  # a loaded test machine may pause
    result, log = run(driver, cfg=cfg)
    assert result.ended == "done"
    assert result.loop is not None
    assert log.time[-1] - log.time[0] == pytest.approx(PLAN.seconds, abs=0.01 + 2 * result.loop.late_max_s)
    assert len(log) + result.loop.missed >= len(PLAN)
    # a tick that came late plays the row that is due, not the next one
    row = np.round((log.time - log.time[0]) * 200.0).astype(int)
    target = PLAN.target_pos[np.minimum(row, len(PLAN) - 1)]
    assert np.median(np.abs(target - log["target_pos"])) < 1e-3


# --- how it ends ---


def at(row: int, **change: Callable[[RobotState], Any]) -> Callable[[RobotState], RobotState]:
    """Change a state from a given one on."""

    def spoil(state: RobotState) -> RobotState:
        if state.sequence < row:
            return state
        return replace(state, **{name: make(state) for name, make in change.items()})

    return spoil


def put(name: str, joint: int, value: float) -> Callable[[RobotState], Any]:
    def make(state: RobotState) -> Any:
        values = getattr(state, name).copy()
        values[joint] = value
        return values

    return make


VIOLATIONS = {
    "position": (at(100, joint_pos=put("joint_pos", 2, 1.9)), "'elbow_flex' is at 1.900 rad, outside its limits"),
    "velocity": (at(100, joint_vel=put("joint_vel", 1, -14.0)), "'shoulder_lift' turns at -14.00 rad/s"),
    "temperature": (at(100, joint_temperature=put("joint_temperature", 4, 80.0)), "'wrist_roll' is 80 deg C hot"),
    "nan": (at(100, joint_pos=put("joint_pos", 0, np.nan)), "'shoulder_pan' reports a position that is not finite"),
    "inf": (at(100, joint_vel=put("joint_vel", 0, np.inf)), "'shoulder_pan' reports a velocity that is not finite"),
}


@pytest.mark.parametrize("kind", VIOLATIONS)
def test_a_violated_limit_damps_at_once_and_is_in_the_log(kind: str) -> None:
    spoil, words = VIOLATIONS[kind]
    driver = FakeDriver(SPEC, spoil=spoil)
    result, log = run(driver)
    assert_safe_end(driver, result, log)
    assert result.ended == "aborted"
    assert words in result.reason
    patience = 4 if kind == "velocity" else 0  # 20 ms
    assert len(log) == 100 + patience + 1
    assert len(driver.written) == len(log) - 1  # the last state was answered with damping
    assert not log["target_kp"][-1].any()
    assert (log["target_kp"][:-1] == SPEC.kp).all()


def test_a_blocked_joint_is_noticed() -> None:
    plan = excite(SPEC, ExcitationCfg(kind="chirp", seconds=10.0))
    driver = FakeDriver(SPEC, blocked=3)
    result, log = run(driver, plan, RecordCfg(watch=WatchCfg(tracking_rad=0.2)))
    assert_safe_end(driver, result, log)
    assert result.ended == "aborted"
    assert "'wrist_flex' is 0." in result.reason
    assert "blocked" in result.reason


def test_a_short_spike_of_velocity_is_forgiven() -> None:
    def spoil(state: RobotState) -> RobotState:
        return at(100, joint_vel=put("joint_vel", 1, 14.0))(state) if state.sequence < 103 else state

    result, _ = run(FakeDriver(SPEC, spoil=spoil))
    assert result.ended == "done"


@pytest.mark.parametrize("realtime", [False, True])
def test_a_frozen_state_ends_it(realtime: bool) -> None:
    kept: list[RobotState] = []

    def spoil(state: RobotState) -> RobotState:
        kept.append(state)
        return kept[min(len(kept), 80) - 1]

    driver = FakeDriver(SPEC, spoil=spoil, realtime=realtime)
    result, log = run(driver, cfg=RecordCfg(watch=WatchCfg(stale_s=0.3)))
    assert_safe_end(driver, result, log)
    assert result.ended == "aborted"
    assert "no new state" in result.reason
    assert result.stale_ticks > 0
    assert len(log) <= 80
    assert (np.diff(log.time) > 0).all()  # a state seen twice is not logged twice


def test_a_clock_that_goes_back_ends_it() -> None:
    driver = FakeDriver(SPEC, spoil=at(50, time_s=lambda state: state.time_s - 1.0))
    result, log = run(driver)
    assert_safe_end(driver, result, log)
    assert result.ended == "failed"
    assert "clock went from" in result.reason
    assert (np.diff(log.time) > 0).all()


def test_a_driver_that_cannot_send_ends_it_with_the_state_kept() -> None:
    driver = FakeDriver(SPEC, on_write=lambda number: lost() if number == 70 else None)
    result, log = run(driver)
    assert_safe_end(driver, result, log)
    assert (result.ended, result.reason) == ("failed", "the robot does not answer")
    assert len(log) == 71
    assert not log["target_kp"][-1].any()


def test_a_driver_that_cannot_read_ends_it() -> None:
    def spoil(state: RobotState) -> RobotState:
        if state.sequence == 70:
            lost()
        return state

    driver = FakeDriver(SPEC, spoil=spoil)
    result, log = run(driver)
    assert_safe_end(driver, result, log)
    assert result.ended == "failed"
    assert len(log) == 70


def test_ctrl_c_keeps_the_log_and_says_so() -> None:
    driver = FakeDriver(SPEC, on_write=lambda number: os.kill(os.getpid(), signal.SIGINT) if number == 90 else None)
    result, log = run(driver)
    assert_safe_end(driver, result, log)
    assert result.ended == "interrupted"
    assert len(log) == 91


def test_a_bug_passes_through_after_damping_and_the_log_says_so() -> None:
    def bug(number: int) -> None:
        if number == 60:
            raise ZeroDivisionError("a bug")

    driver, sink = FakeDriver(SPEC, on_write=bug), LogRows(SPEC.joint_names)
    with pytest.raises(ZeroDivisionError):
        record(ROBOT, driver, PLAN, sink)
    log = sink.log()
    assert driver.calls[-2:] == ["damp", "close"]
    assert log.meta["ended"] == "failed"
    assert "ZeroDivisionError" in str(log.meta["reason"])
    assert len(log) == 60


def test_a_full_disk_damps_the_robot() -> None:
    class FullDisk(LogRows):
        def append(self, time_s: float, **signals: object) -> None:
            if time_s > 10.5:
                raise TrueupError("no space left")
            super().append(time_s, **signals)  # type: ignore[arg-type]

        def note(self, meta: object) -> None:
            raise TrueupError("no space left")

    driver = FakeDriver(SPEC)
    result = record(ROBOT, driver, PLAN, FullDisk(SPEC.joint_names))
    assert (result.ended, result.reason) == ("failed", "no space left")
    assert driver.calls[-1] == "close"
    assert "damp" in driver.calls


# --- what is refused before anything moves ---


def refused(driver: FakeDriver, words: str, plan: Plan = PLAN, **more: object) -> None:
    with pytest.raises(TrueupError, match=words):
        run(driver, plan, **more)  # type: ignore[arg-type]
    assert not driver.written


def test_another_joint_order_is_refused() -> None:
    driver = FakeDriver(SPEC)
    driver.joint_names = tuple(reversed(SPEC.joint_names))
    refused(driver, "the order counts")
    assert driver.calls[-1] == "close"


def test_a_robot_far_outside_its_limits_is_not_moved() -> None:
    start = SPEC.default_pose.copy()
    start[0] = 2.5
    refused(FakeDriver(SPEC, start=start), "'shoulder_pan' is found at 2.500 rad")
    start[0] = np.nan
    refused(FakeDriver(SPEC, start=start), "'shoulder_pan' is found at nan rad")


def test_a_robot_slightly_outside_its_limits_comes_back() -> None:
    start = SPEC.default_pose.copy()
    start[0] = SPEC.position_high[0] + 0.2
    result, log = run(FakeDriver(SPEC, start=start))
    assert result.ended == "done"
    assert (log["target_pos"] <= SPEC.position_high + 1e-12).all()


def test_plans_outside_limits_or_for_another_robot_are_refused() -> None:
    far = replace(PLAN, target_pos=PLAN.target_pos + 5.0)
    refused(FakeDriver(SPEC), "leaves the position limit of joint", far)
    jump = PLAN.target_pos.copy()
    jump[300:, 2] += 0.4
    refused(
        FakeDriver(SPEC), "leaves the velocity limit of joint 'elbow_flex' at 1.495 s", replace(PLAN, target_pos=jump)
    )
    other = excite(load_robot("go2").spec, ExcitationCfg(seconds=3.0))
    refused(FakeDriver(SPEC), "not for robot 'so101'", other)


def test_a_way_that_the_model_refuses_is_not_gone() -> None:
    ways: list[Plan] = []

    def check(way: Plan) -> None:
        ways.append(way)
        if len(ways) == 2:
            raise TrueupError("the arm would hit the table")

    refused(FakeDriver(SPEC, start=AWAY), "hit the table", check_move=check)
    assert ways[0].target_pos[0] == pytest.approx(AWAY)
    assert ways[1].target_pos[-1] == pytest.approx(AWAY)


def test_lock_step_at_another_rate_is_refused_in_the_second_row() -> None:
    driver = FakeDriver(SPEC, rate_hz=50.0)
    result, _ = run(driver)
    assert result.ended == "failed"
    assert "20.000 ms a command and the plan by 5.000 ms" in result.reason
    assert len(driver.written) == 1


def test_lock_step_recording_is_much_faster_than_real_time() -> None:
    begin = time.perf_counter()
    run(FakeDriver(SPEC))
    assert time.perf_counter() - begin < 1.5  # of 3 s, and the fake robot takes most of it
