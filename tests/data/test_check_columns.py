"""Single checks on small logs whose answer can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.data.check.check import check_log
from trueup.data.check.finding import Finding, make_finding, ranked
from trueup.data.check.view import (
    correlation,
    hold_rows,
    position_noise,
    position_quantum,
    runs,
    sliding_correlation,
    smooth,
)
from trueup.data.log import Log, RobotReference

RATE = 200


def wave(n: int = 3, seconds: float = 6.0, **changes: np.ndarray) -> Log:
    """Joints that follow slow-to-fast sweeps exactly, 10 ms late, with a little noise."""
    rng = np.random.default_rng(1)
    t = np.arange(int(seconds * RATE)) / RATE
    late = t - 0.01
    sweep = [0.4 * np.sin(2 * np.pi * (0.3 * x + (0.3 + 0.05 * i) * x**2) + i) for x in (t, late) for i in range(n)]
    target, pos = np.stack(sweep[:n], axis=1), np.stack(sweep[n:], axis=1)
    signals = {
        "joint_pos": pos + rng.normal(0, 2e-4, pos.shape),
        "joint_vel": np.gradient(pos, 1 / RATE, axis=0),
        "target_pos": target,
    }
    return Log(time=t, joint_names=tuple("abcdef"[:n]), signals={**signals, **changes})


def robot(n: int = 3, low: float = -1.0, high: float = 1.0) -> RobotReference:
    ones = np.ones(n)
    return RobotReference(
        joint_names=tuple("abcdef"[:n]),
        position_low=low * ones,
        position_high=high * ones,
        velocity_limit=20 * ones,
        torque_limit=10 * ones,
        kp=ones,
        kd=ones,
        default_pose=(low + high) / 2 * ones,
        control_hz=50.0,
    )


def only(log: Log, code: str, reference: RobotReference | None = None) -> Finding:
    return next(f for f in check_log(log, reference).findings if f.code == code)


def test_velocity_in_degrees_a_second_is_told_as_a_unit() -> None:
    log = wave()
    finding = only(wave(joint_vel=np.degrees(log["joint_vel"])), "unit_degrees")
    assert finding.signal == "joint_vel"
    assert finding.joints == ("a", "b", "c")


def test_velocity_in_rpm_is_guessed() -> None:
    log = wave()
    finding = only(wave(joint_vel=log["joint_vel"] * 60 / (2 * np.pi)), "velocity_scale")
    assert "rpm" in finding.evidence
    assert finding.numbers["ratio"] == pytest.approx(9.549, rel=0.05)


def test_a_wheel_that_turns_on_is_not_in_degrees() -> None:
    log = wave(1)
    turns = np.linspace(0.0, 120.0, len(log))[:, None]
    still = wave(1, joint_pos=turns, target_pos=turns, joint_vel=np.full_like(turns, 120.0 / 6.0))
    assert "unit_degrees" not in check_log(still).codes


def test_lost_rows_are_counted() -> None:
    log = wave()
    keep = np.ones(len(log), bool)
    keep[300:310] = False
    cut = Log(
        time=log.time[keep],
        joint_names=log.joint_names,
        signals={name: values[keep] for name, values in log.signals.items()},
    )
    finding = only(cut, "time_gap")
    assert finding.numbers["lost_s"] == pytest.approx(10 / RATE, rel=0.01)
    assert finding.numbers["row"] == 299


def test_clock_drift_is_measured_in_parts_per_million() -> None:
    log = wave(seconds=20.0)
    report = check_log(log, None, {"imu": log.time * (1 - 500e-6) + 3.0})
    finding = next(f for f in report.findings if f.code == "clock_drift")
    assert finding.numbers["ppm"] == pytest.approx(500, rel=0.02)
    assert finding.numbers["total_s"] == pytest.approx(0.01, rel=0.02)


def test_stamps_in_pairs_give_the_same_drift() -> None:
    log = wave(seconds=20.0)
    pairs = np.stack([log.time[::4] * (1 - 500e-6), log.time[::4]], axis=1)
    codes = check_log(log, None, {"imu": pairs}).codes
    assert "clock_drift" in codes


def test_limits_are_compared_by_joint_name() -> None:
    log = wave()
    wide = robot()
    narrow = RobotReference(
        joint_names=("c", "b", "a"),
        position_low=np.array([-0.3, -1.0, -1.0]),
        position_high=wide.position_high,
        velocity_limit=wide.velocity_limit,
        torque_limit=wide.torque_limit,
        kp=wide.kp,
        kd=wide.kd,
        default_pose=wide.default_pose,
        control_hz=50.0,
    )
    finding = only(log, "limits_exceeded", narrow)
    assert finding.joints == ("c",)
    assert finding.numbers["excess"] == pytest.approx(0.1, abs=0.01)


def test_a_joint_that_does_not_move_is_named() -> None:
    log = wave()
    pos = log["joint_pos"].copy()
    target, vel = log["target_pos"].copy(), log["joint_vel"].copy()
    pos[:, 1], target[:, 1], vel[:, 1] = 0.2, 0.2, 0.0
    finding = only(wave(joint_pos=pos, target_pos=target, joint_vel=vel), "low_excitation")
    assert finding.joints == ("b",)
    assert finding.level == "warning"


def test_torque_of_a_loaded_joint_keeps_its_sign() -> None:
    """Gravity may hold one joint's torque positive; that alone is no lost sign."""
    log = wave()
    torque = 2.0 * (log["target_pos"] - log["joint_pos"])
    torque[:, 0] += 5.0
    assert "torque_unsigned" not in check_log(wave(joint_torque=torque)).codes
    assert "torque_unsigned" in check_log(wave(joint_torque=np.abs(torque))).codes


def test_a_reference_of_wrong_shape_is_refused() -> None:
    with pytest.raises(TrueupError, match="kp must have one number for each of 2 joints"):
        RobotReference(
            joint_names=("a", "b"),
            position_low=np.zeros(2),
            position_high=np.ones(2),
            velocity_limit=np.ones(2),
            torque_limit=np.ones(2),
            kp=np.ones(3),
            kd=np.ones(2),
            default_pose=np.zeros(2),
            control_hz=50.0,
        )


def test_findings_are_ranked_by_level_then_score() -> None:
    note = make_finding("rate_low", "note", "", score=1.0)
    mild = make_finding("time_gap", "warning", "", score=0.2)
    bad = make_finding("time_jitter", "warning", "", score=0.7)
    worst = make_finding("not_finite", "error", "", score=0.1)
    assert ranked([note, mild, bad, worst]) == (worst, bad, mild, note)


def test_hold_of_a_fifty_hertz_command_in_a_log_of_two_hundred_is_four_rows() -> None:
    command = np.repeat(np.random.default_rng(0).normal(size=(100, 2)), 4, axis=0)
    assert hold_rows(command, 1 / 200) == 4
    assert hold_rows(np.repeat(command, 25, axis=0), 1 / 200) == 1  # half a second: steps, no control period


def test_noise_and_quantum_are_recovered() -> None:
    rng = np.random.default_rng(0)
    motion = np.sin(np.arange(4000) / 200)[:, None]
    noisy = motion + rng.normal(0, 1e-3, motion.shape)
    assert position_noise(noisy)[0] == pytest.approx(1e-3, rel=0.1)
    assert position_quantum(np.round(noisy / 0.004) * 0.004)[0] == pytest.approx(0.004)
    assert position_quantum(noisy)[0] == 0.0


def test_smoothing_keeps_a_constant_and_runs_are_half_open() -> None:
    np.testing.assert_allclose(smooth(np.full((40, 2), 3.0), 4), 3.0)
    assert runs(np.array([1, 1, 0, 1], bool)) == [(0, 2), (3, 4)]


def around(pose: list[float], centre: list[float]) -> tuple[Log, RobotReference]:
    """A log around `centre` of a robot whose default pose is `pose`, with limits 0.6 rad either way."""
    log, ones = wave(), np.ones(3)
    moved = {name: log[name] + np.array(centre) for name in ("joint_pos", "target_pos")}
    reference = replace(
        robot(),
        position_low=np.array(pose) - 0.6 * ones,
        position_high=np.array(pose) + 0.6 * ones,
        default_pose=np.array(pose),
    )
    return wave(**moved), reference


def test_negated_joints_are_told_by_sign_and_exchanged_ones_by_order() -> None:
    negated = check_log(*around([1.0, -1.4, 0.1], [-1.0, 1.4, 0.1]))
    assert {f.code for f in negated.alarms} == {"joint_sign"}
    exchanged = check_log(*around([1.0, -1.4, 0.1], [-1.4, 1.0, 0.1]))
    assert {f.code for f in exchanged.alarms} == {"joint_order"}


def test_where_order_and_sign_explain_alike_both_are_told() -> None:
    report = check_log(*around([1.2, -1.2, 0.1], [-1.2, 1.2, 0.1]))
    assert {"joint_sign", "joint_order"} <= report.codes


def test_a_target_in_degrees_is_found_behind_a_slow_servo() -> None:
    log = wave()
    target = np.degrees(np.roll(log["target_pos"], -20, axis=0))  # 0.1 s ahead of its joint
    finding = only(wave(target_pos=target), "unit_degrees")
    assert finding.signal == "target_pos"


def test_a_leap_at_rest_is_a_jump_and_a_leap_to_the_command_a_frozen_sensor() -> None:
    log = wave()
    pos, target = log["joint_pos"].copy(), log["target_pos"].copy()
    pos[400:700, 1], target[380:700, 1] = 0.2, 0.2
    pos[550, 1] = 0.6
    assert only(wave(joint_pos=pos, target_pos=target), "encoder_jump").joints == ("b",)
    pos = log["joint_pos"].copy()
    pos[400:520, 1] = pos[400, 1]
    assert only(wave(joint_pos=pos), "frozen").joints == ("b",)


def test_sliding_correlation_equals_the_plain_one_at_every_shift() -> None:
    rng = np.random.default_rng(0)
    long = rng.normal(size=300).cumsum() + 100.0
    short = long[20:-20] + rng.normal(size=260)
    plain = [correlation(short, long[k : k + 260]) for k in range(41)]
    np.testing.assert_allclose(sliding_correlation(short, long), plain, atol=1e-12)
