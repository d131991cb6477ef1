"""What a command may ask for: numbers by hand, and for any input whatsoever."""

from __future__ import annotations

import math

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from guard_doubles import PERIOD, SPEC, Runner, rows, state
from hypothesis import given, settings
from hypothesis import strategies as st

from trueup.core.errors import TrueupError
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.limiter import CommandChecks, Limited, bound_target, bound_torque, limits_of
from trueup.hardware.guard.motor_guard import MotorGuard

LIMITS = limits_of(SPEC, GuardCfg())
REST = np.array([0.0, -1.0])
STILL = np.zeros(2)


def asked(sent: np.ndarray, pos: np.ndarray, vel: np.ndarray) -> np.ndarray:
    """The servo's equation."""
    target, speed, kp, kd, torque = sent
    return kp * (target - pos) + kd * (speed - vel) + torque


def test_a_gentle_command_passes_unchanged() -> None:
    sent = bound_torque(rows([0.1, -0.9]), REST, STILL, LIMITS)
    np.testing.assert_array_equal(sent.rows, rows([0.1, -0.9]))
    assert sent.clips == ()


def test_torque_is_held_at_the_fraction_by_moving_the_target() -> None:
    # joint a: kp 20, 80 % of 20 N m = 16 N m -> 0.8 rad; joint b: 32 N m / 40 = 0.8 rad
    sent = bound_torque(rows([1.0, -2.5]), REST, STILL, LIMITS)
    np.testing.assert_allclose(sent.rows[0], [0.8, -1.8])
    np.testing.assert_allclose(asked(sent.rows, REST, STILL), [16.0, -32.0])
    assert sent.clips == ("torque",)


def test_braking_counts_into_the_torque() -> None:
    # joint a turns at -10 rad/s: the damper gives +5 N m of the 16, leaving 11 / 20 = 0.55 rad
    sent = bound_torque(rows([1.0, -1.0]), REST, np.array([-10.0, 0.0]), LIMITS)
    assert sent.rows[0, 0] == pytest.approx(0.55)


def test_a_damper_too_strong_for_the_speed_is_weakened() -> None:
    sent = bound_torque(rows(kd=[4.0, 1.0]), REST, np.array([8.0, 0.0]), LIMITS)
    assert sent.rows[3, 0] == pytest.approx(2.0)  # 16 N m / 8 rad/s
    assert asked(sent.rows, REST, np.array([8.0, 0.0]))[0] == pytest.approx(-16.0)


def test_derating_lowers_the_torque() -> None:
    sent = bound_torque(rows([1.0, -1.0]), REST, STILL, LIMITS, derate=0.5)
    assert sent.rows[0, 0] == pytest.approx(0.4)


@pytest.mark.parametrize(("pos", "most"), [(0.94, 16.0), (0.975, 8.0), (1.0, 0.0), (1.1, 0.0)])
def test_torque_towards_a_position_limit_fades_to_zero(pos: float, most: float) -> None:
    here = np.array([pos, -1.0])
    sent = bound_torque(rows(torque=[15.0, 0.0], target=[1.0, -1.0]), here, STILL, LIMITS)
    assert asked(sent.rows, here, STILL)[0] <= most + 1e-6
    if most == 8.0:
        assert asked(sent.rows, here, STILL)[0] == pytest.approx(8.0)
        assert sent.clips == ("soft_zone",)


def test_torque_away_from_a_position_limit_is_free() -> None:
    here = np.array([1.05, -1.0])
    sent = bound_torque(rows([0.5, -1.0]), here, STILL, LIMITS)
    np.testing.assert_array_equal(sent.rows, rows([0.5, -1.0]))


def test_pure_torque_is_cut_where_there_is_no_stiffness_to_move_a_target() -> None:
    sent = bound_torque(rows(kp=[0.0, 0.0], torque=[19.0, 0.0]), REST, STILL, LIMITS)
    assert sent.rows[4, 0] == pytest.approx(16.0)


def test_targets_are_clipped_to_limits_and_counted() -> None:
    out = bound_target(rows([1.5, -1.0], vel=[11.0, 0.0], kp=[100.0, 40.0]), REST, np.full(2, 9.0), LIMITS)
    assert out.rows[0].tolist() == [1.0, -1.0]
    assert out.rows[1].tolist() == [10.0, 0.0]
    assert out.rows[2].tolist() == [40.0, 40.0]  # twice the robot's own
    assert out.clips == ("position", "target_vel", "gain")


# --- steps ---
def moved(step_s: float, count: int, cfg: GuardCfg | None = None) -> list[float]:
    """Targets of joint a when a policy asks for 0.9 rad at once, every `step_s`."""
    checks = CommandChecks(SPEC, cfg or GuardCfg(), LIMITS, 50.0)
    checks.start(REST, 0.0)
    targets = []
    for k in range(count):
        out = checks.accept(rows([0.9, -1.0]), REST, k * step_s)
        assert isinstance(out, Limited)
        assert "step" in out.clips
        targets.append(float(out.rows[0, 0]))
    return targets


def test_a_target_moves_by_a_tenth_of_a_radian_a_step() -> None:
    np.testing.assert_allclose(moved(0.02, 5), [0.1, 0.2, 0.3, 0.4, 0.5])


def test_a_policy_that_sends_ten_times_as_often_moves_no_faster() -> None:
    # 0.1 rad with the first command, what was saved up (half a step), then 0.01 rad with each
    np.testing.assert_allclose(moved(0.002, 5), [0.1, 0.16, 0.17, 0.18, 0.19])


def test_a_command_that_comes_a_little_early_is_not_cut() -> None:
    checks = CommandChecks(SPEC, GuardCfg(), LIMITS, 50.0)
    checks.start(REST, 0.0)
    for k, now in enumerate((0.0, 0.017, 0.043, 0.058, 0.08)):
        out = checks.accept(rows([0.1 * (k + 1), -1.0]), REST, now)
        assert isinstance(out, Limited)
        assert out.rows[0, 0] == pytest.approx(0.1 * (k + 1))
        assert out.clips == ()


def test_a_step_inside_the_bound_is_sent_at_once_and_whole() -> None:
    runner = Runner()
    while runner.k % 10:
        runner.step()
    runner.step([0.08, -1.0])
    assert runner.sent is not None
    assert runner.sent[0, 0] == 0.08


def test_gains_are_scaled_for_a_hanging_robot() -> None:
    runner = Runner(GuardCfg(gain_factor=0.2))
    assert runner.sent is not None
    np.testing.assert_allclose(runner.sent[2:4], [[4.0, 8.0], [0.1, 0.2]])


def test_a_target_follows_the_joint_while_it_has_no_stiffness() -> None:
    checks = CommandChecks(SPEC, GuardCfg(), LIMITS, 50.0)
    checks.start(REST, 0.0)
    checks.accept(rows(kp=[0.0, 40.0]), REST, 0.0)
    out = checks.accept(rows([0.55, -1.0]), np.array([0.5, -1.0]), 0.02)  # it was pushed to 0.5 meanwhile
    assert isinstance(out, Limited)
    assert out.rows[0, 0] == pytest.approx(0.55)


# --- any input ---
numbers = st.floats(width=64) | st.sampled_from([0.0, 1e-300, 1e30, -1e308, math.inf, -math.inf, math.nan])
small = st.floats(-20.0, 20.0)
commands = hnp.arrays(np.float64, (5, 2), elements=numbers | small)
sane = hnp.arrays(np.float64, (5, 2), elements=small)


def is_within(sent: np.ndarray) -> bool:
    return bool(np.isfinite(sent).all() and (sent >= LIMITS.least).all() and (sent <= LIMITS.most).all())


@settings(max_examples=200, deadline=None)
@given(
    sane, hnp.arrays(np.float64, 2, elements=st.floats(-3, 3)), hnp.arrays(np.float64, 2, elements=st.floats(-40, 40))
)
def test_a_limited_command_is_within_limits_and_limiting_it_again_changes_nothing(
    command: np.ndarray, pos: np.ndarray, vel: np.ndarray
) -> None:
    reference = np.clip(pos, LIMITS.low, LIMITS.high)
    first = bound_target(np.abs(command) * [[1], [1], [1], [1], [-1]], reference, np.full(2, 0.1), LIMITS)
    again = bound_target(first.rows, reference, np.full(2, 0.1), LIMITS)
    np.testing.assert_array_equal(first.rows, again.rows)
    sent = bound_torque(first.rows, pos, vel, LIMITS)
    assert is_within(sent.rows)
    assert (np.abs(asked(sent.rows, pos, vel)) <= LIMITS.allowed * (1 + 1e-6)).all()
    push = asked(sent.rows, pos, np.zeros(2))
    assert not (push[pos >= LIMITS.high] > 1e-6).any()
    assert not (push[pos <= LIMITS.low] < -1e-6).any()
    np.testing.assert_allclose(sent.push, push, atol=1e-6)
    np.testing.assert_array_equal(bound_torque(sent.rows, pos, vel, LIMITS).rows, sent.rows)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(commands | hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=6)), numbers), max_size=6
    )
)
def test_whatever_comes_out_of_the_guard_is_finite_and_within_limits(feed: list[tuple[np.ndarray, float]]) -> None:
    guard = MotorGuard(SPEC, GuardCfg(), control_hz=50.0, period_s=PERIOD)
    guard.observe(state(0), 0.0)
    for k, (command, reading) in enumerate(feed, start=1):
        guard.command(command, k * PERIOD)
        guard.observe(state(k, joint_pos=[reading, -1.0], joint_vel=[0.0, reading]), k * PERIOD)
        sent = guard.tick(k * PERIOD)
        assert sent is None or is_within(sent)
        if sent is None:
            assert guard.trip is not None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"torque_fraction": 0.0}, "torque_fraction"),
        ({"torque_fraction": 1.2}, "torque_fraction"),
        ({"stale_s": 0.2}, "stale_s"),
        ({"max_step_rad": float("nan")}, "max_step_rad"),
        ({"gain_factor": 2.0}, "gain_factor"),
        ({"guard_hz": 5000.0}, "guard_hz"),
        ({"silence_s": 0.0}, "silence_s"),
        ({"temperature_derate_c": 90.0}, "temperature_derate_c"),
        ({"voltage_derate": 20.0, "voltage_stop": 22.0}, "voltage_derate"),
        ({"jump_rad": -1.0}, "jump_rad"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused_by_name(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(TrueupError, match=words):
        GuardCfg(**wrong)  # type: ignore[arg-type]
