"""What is kept back for scoring: a gain that the fit has not seen, whole motions, or the end of the one log.

A simulator that only replays the motion it was fitted to has proved little. A log with several gains, each for some
seconds, is as good as several logs; one whose gains change for moments (torque off, a soft start) stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trueup.calibrate.data.cutting import gain_pieces
from trueup.data.log import Log
from trueup.data.resample import rate_of

_SHORTEST_S = 2.0  # a part with one gain that is shorter is left out
_TRAIN_S = 4.0  # less is not held against a fit
_HELD_S, _TRAIN_LEAST_S = 1.0, 2.0  # less cannot be scored, or fitted
Gain = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Split:
    """Logs to fit and logs to score on, and in words how they were chosen."""

    train: list[Log]
    held: list[Log]
    how: str


def hold_out(logs: Sequence[Log], fraction: float, *, fits_gains: bool = False) -> Split:
    """Keep about `fraction` back.

    fits_gains  kp or kd are fitted: two gains are then needed to fit, and only a third may be kept back
    """
    parts = [part for log in logs for part in by_gain(log)]
    if fraction <= 0.0:
        return Split(train=parts, held=[], how="nothing was held out")
    gains = [gain_of(part) for part in parts]
    powered = [gain for gain, part in zip(gains, parts, strict=True) if is_powered(part)]
    seconds = {
        gain: sum(_seconds(p) for p, g in zip(parts, gains, strict=True) if g == gain) for gain in powered
    }
    if len(seconds) >= (3 if fits_gains else 2):
        kept = min(reversed(seconds), key=lambda gain: seconds[gain])  # the last of the shortest
        if sum(seconds.values()) - seconds[kept] >= _TRAIN_S:
            return Split(
                train=[p for p, g in zip(parts, gains, strict=True) if g != kept],
                held=[p for p, g in zip(parts, gains, strict=True) if g == kept],
                how=f"held out: the gain {_words(kept, parts)}, {seconds[kept]:.1f} s",
            )
    if len(logs) > 1 and len(parts) == len(logs) and not any(map(is_active, logs)):
        count = min(len(logs) - 1, max(1, round(fraction * len(logs))))
        train, held = parts[:-count], parts[-count:]
        if sum(map(_seconds, held)) >= _HELD_S and sum(map(_seconds, train)) >= _TRAIN_LEAST_S:
            return Split(train=train, held=held, how=f"held out: the last {count} of {len(logs)} logs")
    return _last_parts(parts, fraction)


def _words(gain: Gain, parts: Sequence[Log]) -> str:
    """A gain in words, for the parts it is of."""
    names = [name for name in ("kp", "kd") if any(f"target_{name}" in part for part in parts)]
    each = np.array_split(np.array(gain), len(names))
    told = ", ".join(f"{name} {values.mean():.4g}" for name, values in zip(names, each, strict=True))
    return f"{told} (mean over joints)"


def is_active(log: Log) -> bool:
    """Whether a log was recorded for what an earlier fit lacked: such a motion is needed whole."""
    excitation = log.meta.get("excitation")
    return isinstance(excitation, dict) and excitation.get("kind") == "active"


def _last_parts(parts: Sequence[Log], fraction: float) -> Split:
    cuts = [round(len(part) * (1.0 - fraction)) for part in parts]
    pairs = list(zip(parts, cuts, strict=True))
    held = [part.window(cut, len(part)) for part, cut in pairs if len(part) - cut >= 2]
    seconds, rest = sum(map(_seconds, held)), sum(map(_seconds, parts)) - sum(map(_seconds, held))
    if seconds < _HELD_S or rest < _TRAIN_LEAST_S:
        how = f"nothing was held out: {seconds + rest:.1f} s are too short for two parts"
        return Split(train=list(parts), held=[], how=how)
    return Split(
        train=[part.window(0, cut) for part, cut in pairs if cut >= 2],
        held=held,
        how=f"held out: the last {seconds:.1f} s; another motion, or another gain, would be a harder test",
    )


def by_gain(log: Log) -> list[Log]:
    """The log cut where its gains change, if several stay for two seconds each (shorter ones are left out)."""
    pieces = gain_pieces(log)
    long = [log.window(a, b) for a, b in pieces if b - a >= _SHORTEST_S * rate_of(log)]
    gains = {gain_of(part) for part in long if is_powered(part)}
    if len(gains) < 2 or 2 * sum(map(len, long)) < len(log):
        return [log]
    return long


def gain_of(log: Log) -> Gain:
    """The log's gains, kp then kd, those that were in force longest; () when it does not say."""
    rows = [log[name] for name in ("target_kp", "target_kd") if name in log]
    if not rows:
        return ()
    both = np.concatenate(rows, axis=1)
    longest = max(gain_pieces(log), key=lambda piece: piece[1] - piece[0])
    return tuple(both[longest[0]].tolist())


def is_powered(log: Log) -> bool:
    """Whether the servos were on for most of a log: gains of zero leave a joint to itself."""
    gain = gain_of(log)
    return not gain or any(value > 0.0 for value in gain)


def _seconds(log: Log) -> float:
    return len(log) / rate_of(log)
