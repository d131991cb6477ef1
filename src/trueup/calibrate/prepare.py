"""Logs made ready for a fit: refused or accepted, in the robot's joint order, on an even clock, split."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.core.errors import TrueupError
from trueup.data.check import check_log
from trueup.data.log import Log
from trueup.data.resample import is_uniform, resample
from trueup.robot.load import Robot
from trueup.robot.reference import log_reference

_SHORTEST_S = 5.0


def check(robot: Robot, log: Log, *, refuse: bool = True) -> list[str]:
    """Refuse what cannot be fitted; return warnings that the result should carry."""
    for name in ("joint_pos", "target_pos"):
        log[name]  # says what is missing and what is there
    log.with_joint_order(robot.spec.joint_names)
    seconds = float(log.time[-1] - log.time[0]) if len(log) > 1 else 0.0
    if seconds < _SHORTEST_S:
        raise TrueupError(
            f"a log of {seconds:.1f} s is too short to calibrate from; record at least 20 s of excitation "
            "(`trueup record ... --seconds 20`)"
        )
    if not refuse:
        return []
    report = check_log(log, log_reference(robot.spec))
    if not report.usable:
        worst = report.findings[0]
        raise TrueupError(f"this log would mislead a fit: {worst.evidence}. {worst.fix}", place=worst.signal)
    return [f"{finding.evidence}: {finding.consequence}" for finding in report.alarms]


def in_order(robot: Robot, log: Log) -> Log:
    """The log in the spec's joint order and on an even clock."""
    log = log.with_joint_order(robot.spec.joint_names)
    return log if is_uniform(log) else resample(log, log.rate_hz)


def split(logs: Sequence[Log], fraction: float) -> tuple[list[Log], list[Log]]:
    """Keep the last part of every log back; two logs or more and whole motions would be better: give them."""
    if fraction <= 0.0:
        return list(logs), []
    cuts = [round(len(log) * (1.0 - fraction)) for log in logs]
    pairs = list(zip(logs, cuts, strict=True))
    return (
        [log.window(0, cut) for log, cut in pairs],
        [log.window(cut, len(log)) for log, cut in pairs if len(log) - cut >= 2],
    )
