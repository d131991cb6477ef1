"""Logs made ready for a fit: refused or accepted, in the robot's joint order, on an even clock."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.core.errors import TrueupError, did_you_mean
from trueup.data.check import check_log
from trueup.data.finding import Finding
from trueup.data.log import Log
from trueup.data.resample import is_uniform, resample
from trueup.robot.load import Robot
from trueup.robot.reference import log_reference

_SHORTEST_S = 5.0


def check(robot: Robot, logs: Sequence[Log], *, refuse: bool = True) -> list[str]:
    """Refuse what cannot be fitted; return warnings that the result should carry, each kind once."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for log in logs:
        for finding in _alarms(robot, log, refuse=refuse):
            found.setdefault((finding.code, finding.signal), []).append(finding)
    notes = []
    for same in found.values():
        worst = max(same, key=lambda finding: finding.score)
        where = f" (so in {len(same)} of {len(logs)} logs)" if len(logs) > 1 else ""
        notes.append(f"{worst.evidence}{where}: {worst.consequence}")
    return notes


def _alarms(robot: Robot, log: Log, *, refuse: bool) -> Sequence[Finding]:
    for name in ("joint_pos", "target_pos"):
        log[name]  # says what is missing and what is there
    _same_joints(robot, log)
    seconds = float(log.time[-1] - log.time[0]) if len(log) > 1 else 0.0
    if seconds < _SHORTEST_S:
        raise TrueupError(
            f"a log of {seconds:.1f} s is too short to calibrate from; record at least 20 s of excitation "
            "(`trueup record ... --seconds 20`)"
        )
    if not refuse:
        return ()
    report = check_log(log, log_reference(robot.spec))
    if not report.usable:
        worst = report.findings[0]
        raise TrueupError(f"this log would mislead a fit: {worst.evidence}. {worst.fix}", place=worst.signal)
    return report.alarms


def in_order(robot: Robot, log: Log) -> Log:
    """The log in the spec's joint order and on an even clock."""
    log = log.with_joint_order(robot.spec.joint_names)
    return log if is_uniform(log) else resample(log, log.rate_hz)


def moves(robot: Robot, still: frozenset[str]) -> None:
    """Refuse data in which no joint was moved."""
    if still >= set(robot.spec.joint_names):
        raise TrueupError(
            "no joint was moved in these logs: nothing can be learned about the dynamics; record an excitation, for "
            f"example `trueup record --robot {robot.spec.name} --excitation multisine --seconds 20`",
            place="target_pos",
        )


def _same_joints(robot: Robot, log: Log) -> None:
    """Refuse a log of another robot, or one in which joints are missing."""
    missing = [name for name in robot.spec.joint_names if name not in log.joint_names]
    if not missing:
        return
    if len(missing) == robot.spec.njoint:
        raise TrueupError(
            f"this log is of another robot than {robot.spec.name!r}: it has no joint {missing[0]!r}, its joints are "
            f"{', '.join(log.joint_names[:3])}, ...; give the robot that was recorded (--robot), or a mapping with "
            "its joint names"
        )
    raise TrueupError(
        f"this log has no joint {missing[0]!r} ({len(missing)} of {robot.spec.njoint} are missing)"
        f"{did_you_mean(missing[0], log.joint_names)}; record all joints of {robot.spec.name!r}, or name them in a "
        "mapping"
    )
