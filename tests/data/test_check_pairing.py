"""The lag between command and answer, against logs whose delay is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from make_logs import Sample, clean_as

from trueup.data.check.check import check_log, command_delay_s
from trueup.data.lag import _triangle
from trueup.data.log import Log


def shifted(log: Log, rows: int) -> Log:
    at = np.clip(np.arange(len(log)) - rows, 0, len(log) - 1)
    return replace(log, signals={**log.signals, "target_pos": log["target_pos"][at]})


def policy(seed: int, *, torque: bool, delay: float = 1.0) -> Sample:
    return clean_as(seed, njoint=6, rate=200, excitation="policy", seconds=6.0, torque=torque, delay=delay)


def test_weights_of_a_held_command_match_the_triangle_by_hand() -> None:
    """The mean over (t-1, t+1) of a step held by rows: half of this row, half of the one before; later by the lag."""
    shifts = np.arange(-2.0, 4.0)
    at_zero = _triangle(shifts, np.array(0.0))
    np.testing.assert_allclose(at_zero, [0, 0, 0.5, 0.5, 0, 0], atol=1e-12)
    at_half = _triangle(shifts, np.array(0.5))
    np.testing.assert_allclose(at_half, [0, 0, 0.125, 0.75, 0.125, 0], atol=1e-12)
    for lag in (-0.75, 0.3, 1.9):
        assert _triangle(shifts, np.array(lag)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("delay", [0.5, 1.25, 2.5])
def test_measured_lag_is_the_planted_delay(delay: float) -> None:
    sample = clean_as(3, njoint=6, rate=200, excitation="holds", seconds=6.0, delay=delay, torque=False)
    report = check_log(sample.log)
    assert report.measured["command_lag_rows"] == pytest.approx(delay, abs=0.5)


@pytest.mark.parametrize("torque", [True, False], ids=["by torque", "by acceleration"])
def test_commands_one_control_step_late_are_an_error_that_names_the_step(torque: bool) -> None:
    sample = policy(4, torque=torque)
    report = check_log(shifted(sample.log, sample.plan.hold), sample.reference)
    finding = next(f for f in report.findings if f.code == "command_late")
    assert finding.level == "error"
    assert "about 1 control step(s) late" in finding.evidence
    assert finding.numbers["lag_rows"] == pytest.approx(1.0 - 4.0, abs=1.0)


@pytest.mark.parametrize("torque", [True, False], ids=["by torque", "by acceleration"])
def test_a_feedback_policy_with_true_pairing_is_left_alone(torque: bool) -> None:
    sample = policy(4, torque=torque)
    assert not {"command_late", "command_early"} & check_log(sample.log, sample.reference).codes


def test_one_row_of_shift_within_the_robots_delay_stays_unseen() -> None:
    """A limit of the method, kept as a test: the robot's own delay hides a shift that is shorter."""
    sample = clean_as(3, njoint=6, rate=200, excitation="holds", seconds=6.0, delay=2.0, torque=False)
    assert "command_late" not in check_log(shifted(sample.log, 1)).codes


def test_a_robot_that_hardly_moves_gives_no_verdict() -> None:
    sample = clean_as(3, njoint=6, rate=200, excitation="holds", seconds=6.0, delay=2.0, torque=False)
    pos = sample.log["joint_pos"]
    still = np.tile(pos.mean(axis=0), (len(pos), 1))
    log = replace(sample.log, signals={**sample.log.signals, "target_pos": still})
    assert "command_lag_rows" not in check_log(log).measured


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda log: shifted(log, 0).window(0, 50), "50 rows are too few"),
        (lambda log: replace(log, time=log.time[0] + 0.05 * np.arange(len(log))), "rows are 50 ms apart"),
        (lambda log: _held(log), "commands of the joints that move do not change"),
    ],
)
def test_where_no_verdict_is_possible_the_reason_is_told(change: Callable[[Log], Log], why: str) -> None:
    sample = clean_as(3, njoint=6, rate=200, excitation="holds", seconds=6.0, delay=2.0, torque=False)
    finding = next(f for f in check_log(change(sample.log)).findings if f.code == "pairing_unknown")
    assert why in finding.evidence
    assert finding.level == "note"


def _held(log: Log) -> Log:
    first = np.tile(log["target_pos"][:1], (len(log), 1))
    return replace(log, signals={**log.signals, "target_pos": first})


def test_a_verdict_leaves_no_doubt_to_note() -> None:
    assert "pairing_unknown" not in check_log(policy(4, torque=True).log).codes


def test_late_commands_of_a_stiff_servo_in_a_slow_log_are_found() -> None:
    """At 50 Hz these servos swing within a few rows; the lag is blurred but still before the command."""
    sample = clean_as(20050, njoint=6, rate=50, excitation="multisine", seconds=12.0, torque=False)
    assert "command_late" in check_log(shifted(sample.log, 4)).codes
    assert "command_late" not in check_log(sample.log).codes


@pytest.mark.parametrize("rows", [1.0, 3.0, 5.0])
def test_the_least_delay_is_the_planted_one(rows: float) -> None:
    sample = policy(3, torque=True, delay=rows)
    assert command_delay_s(sample.log) == pytest.approx(rows / sample.log.rate_hz, abs=1e-6)


def test_a_log_without_torques_tells_no_delay() -> None:
    assert np.isnan(command_delay_s(policy(3, torque=False).log))
