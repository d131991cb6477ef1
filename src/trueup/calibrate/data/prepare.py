"""Logs made ready for a fit: refused or accepted, in the robot's joint order, on one even clock."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.core.errors import TrueupError, did_you_mean
from trueup.data.check.check import check_log
from trueup.data.check.finding import Finding
from trueup.data.log import Log
from trueup.data.resample import at_rate, common_rate, is_uniform, rate_of, resample
from trueup.robot.load import Robot
from trueup.robot.reference import log_reference
from trueup.world.replay.tracks import require_finite

_SHORTEST_S = 5.0  # in all
_CHECKED_S = 5.0  # of a single log


def check(robot: Robot, logs: Sequence[Log], *, refuse: bool = True) -> list[str]:
    """Refuse what cannot be fitted; return warnings that the result should carry, each kind once."""
    found: dict[tuple[str, str], list[Finding]] = {}
    if not logs:
        raise TrueupError("no log was given: calibrate needs at least one")
    if refuse:
        _long_enough(logs)
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
    require_finite(log)
    if not refuse or _seconds(log) < _CHECKED_S:  # the validator's statistics need some seconds
        return ()
    report = check_log(log, log_reference(robot.spec))
    if not report.usable:
        worst = report.findings[0]
        raise TrueupError(f"this log would mislead a fit: {worst.evidence}. {worst.fix}", place=worst.signal)
    return report.alarms


def _long_enough(logs: Sequence[Log]) -> None:
    """Refuse less than some seconds in all; single logs may be short."""
    seconds = sum(map(_seconds, logs))
    if seconds < _SHORTEST_S:
        what = (
            f"a log of {seconds:.1f} s is" if len(logs) == 1 else f"{len(logs)} logs of {seconds:.1f} s are"
        )
        raise TrueupError(
            f"{what} too short to calibrate from; record at least 20 s of excitation "
            "(`trueup record ... --seconds 20`)"
        )


def _seconds(log: Log) -> float:
    return float(log.time[-1] - log.time[0]) if len(log) > 1 else 0.0


def in_order(robot: Robot, log: Log) -> Log:
    """The log in the spec's joint order and on an even clock."""
    log = log.with_joint_order(robot.spec.joint_names)
    return log if is_uniform(log) else resample(log, rate_of(log))


def ready(robot: Robot, logs: Sequence[Log], holdout: Sequence[Log] = ()) -> tuple[list[Log], list[Log]]:
    """Logs and held-out logs in the spec's joint order and on one clock: the most common rate of the logs."""
    ordered, kept = ([in_order(robot, log) for log in group] for group in (logs, holdout))
    rate = common_rate(ordered)
    return [at_rate(log, rate) for log in ordered], [at_rate(log, rate) for log in kept]


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
