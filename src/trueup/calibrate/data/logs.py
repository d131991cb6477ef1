"""Logs prepared for a fit: refused or accepted, in the robot's joint order, on one even clock, a part held out.

Held out for scoring is a gain that is not in the fit, whole motions, or the end of the one log: a simulator that
only replays the motion it was fitted to proves little. A log with several gains, each for some seconds, is as good
as several logs; one whose gains change for moments (torque off, a soft start) stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trueup.calibrate.data.cutting import gain_pieces
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
_SHORTEST_GAIN_S = 2.0  # a part with one gain that is shorter is left out
_TRAIN_S = 4.0  # left to fit, or no gain is held out
_HELD_S, _TRAIN_LEAST_S = 1.0, 2.0  # shortest parts to score on, and to fit
Gain = tuple[float, ...]


def check(robot: Robot, logs: Sequence[Log], *, refuse: bool = True) -> list[str]:
    """Refuse logs that cannot be fitted; return warnings for the result, each kind once."""
    found: dict[tuple[str, str], list[Finding]] = {}
    if not logs:
        raise TrueupError("no log was given: calibrate needs at least one")
    seconds = sum(map(_seconds, logs))
    if refuse and seconds < _SHORTEST_S:  # in all: single logs may be short
        what = f"a log of {seconds:.1f} s is" if len(logs) == 1 else f"{len(logs)} logs of {seconds:.1f} s are"
        raise TrueupError(
            f"{what} too short to calibrate from; record at least 20 s of excitation (`trueup record ... --seconds 20`)"
        )
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
    """Refuse data in which no joint moved."""
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
    name, njoint = robot.spec.name, robot.spec.njoint
    if len(missing) == njoint:
        raise TrueupError(
            f"this log is of another robot than {name!r}: it has no joint {missing[0]!r}, its joints are "
            f"{', '.join(log.joint_names[:3])}, ...; give the robot that was recorded (--robot), or a mapping"
        )
    raise TrueupError(
        f"this log has no joint {missing[0]!r} ({len(missing)} of {njoint} are missing)"
        f"{did_you_mean(missing[0], log.joint_names)}; record all joints of {name!r}, or name them in a mapping"
    )


class Split(NamedTuple):
    """Logs to fit and logs to score on; `how`: how they were chosen, as text."""

    train: list[Log]
    held: list[Log]
    how: str


def split_logs(logs: Sequence[Log], holdout: Sequence[Log], share: float, *, fits_gains: bool = False) -> Split:
    """Score on the given held-out logs; without any, on a share of the others (`hold_out`)."""
    if not holdout:
        return hold_out(logs, share, fits_gains=fits_gains)
    train, held = ([part for log in group for part in by_gain(log)] for group in (logs, holdout))
    return Split(train, held, "held out: the logs given for it")


def hold_out(logs: Sequence[Log], fraction: float, *, fits_gains: bool = False) -> Split:
    """Hold out about `fraction`.

    fits_gains  kp or kd are fitted: two gains are then needed to fit, and only a third may be held out
    """
    parts = [part for log in logs for part in by_gain(log)]
    if fraction <= 0.0:
        return Split(parts, [], "nothing was held out")
    gains = [gain_of(part) for part in parts]
    seconds = {gain: 0.0 for gain, part in zip(gains, parts, strict=True) if is_powered(part)}
    for gain, part in zip(gains, parts, strict=True):
        if gain in seconds:
            seconds[gain] += _duration(part)
    if len(seconds) >= (3 if fits_gains else 2):
        kept = min(reversed(seconds), key=lambda gain: seconds[gain])  # the last of the shortest
        if sum(seconds.values()) - seconds[kept] >= _TRAIN_S:
            train = [part for part, gain in zip(parts, gains, strict=True) if gain != kept]
            held = [part for part, gain in zip(parts, gains, strict=True) if gain == kept]
            return Split(train, held, f"held out: the gain {_words(kept, parts)}, {seconds[kept]:.1f} s")
    if len(logs) > 1 and len(parts) == len(logs) and not any(map(_is_active, logs)):
        count = min(len(logs) - 1, max(1, round(fraction * len(logs))))
        train, held = parts[:-count], parts[-count:]
        if sum(map(_duration, held)) >= _HELD_S and sum(map(_duration, train)) >= _TRAIN_LEAST_S:
            return Split(train, held, f"held out: the last {count} of {len(logs)} logs")
    return _last_parts(parts, fraction)


def _words(gain: Gain, parts: Sequence[Log]) -> str:
    """A gain as text."""
    names = [name for name in ("kp", "kd") if any(f"target_{name}" in part for part in parts)]
    each = np.array_split(np.array(gain), len(names))
    shown = ", ".join(f"{name} {values.mean():.4g}" for name, values in zip(names, each, strict=True))
    return f"{shown} (mean over joints)"


def _is_active(log: Log) -> bool:
    """Whether a log is an active excitation for an earlier fit: such a motion is not split."""
    excitation = log.meta.get("excitation")
    return isinstance(excitation, dict) and excitation.get("kind") == "active"


def _last_parts(parts: list[Log], fraction: float) -> Split:
    pairs = [(part, round(len(part) * (1.0 - fraction))) for part in parts]
    held = [part.window(cut, len(part)) for part, cut in pairs if len(part) - cut >= 2]
    seconds, total = sum(map(_duration, held)), sum(map(_duration, parts))
    if seconds < _HELD_S or total - seconds < _TRAIN_LEAST_S:
        return Split(parts, [], f"nothing was held out: {total:.1f} s are too short for two parts")
    train = [part.window(0, cut) for part, cut in pairs if cut >= 2]
    how = f"held out: the last {seconds:.1f} s; another motion, or another gain, would be a harder test"
    return Split(train, held, how)


def by_gain(log: Log) -> list[Log]:
    """The log cut where its gains change, if several stay for two seconds each (shorter ones are left out)."""
    pieces = gain_pieces(log)
    long = [log.window(a, b) for a, b in pieces if b - a >= _SHORTEST_GAIN_S * rate_of(log)]
    gains = {gain_of(part) for part in long if is_powered(part)}
    if len(gains) < 2 or 2 * sum(map(len, long)) < len(log):
        return [log]
    return long


def gain_of(log: Log) -> Gain:
    """The log's gains, kp then kd, those used longest; () if it has none."""
    rows = [log[name] for name in ("target_kp", "target_kd") if name in log]
    if not rows:
        return ()
    both = np.concatenate(rows, axis=1)
    longest = max(gain_pieces(log), key=lambda piece: piece[1] - piece[0])
    return tuple(both[longest[0]].tolist())


def is_powered(log: Log) -> bool:
    """Whether the servos were on for most of a log (gains above zero)."""
    gain = gain_of(log)
    return not gain or any(value > 0.0 for value in gain)


def _duration(log: Log) -> float:
    return len(log) / rate_of(log)
