"""What is kept back for scoring: a gain that the fit has not seen, whole motions, or the end of the one log.

A simulator that only replays the motion it was fitted to has proved little. Logs whose gains change are cut where they
change, since a window has one gain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.log import Log

_SHORTEST_S = 2.0  # a part with one gain that is shorter is left out
_TRAIN_S = 4.0  # less is not held against a fit
_MOST_PARTS = 50
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
    seconds = {
        gain: sum(_seconds(p) for p, g in zip(parts, gains, strict=True) if g == gain) for gain in gains
    }
    if len(seconds) >= (3 if fits_gains else 2):
        kept = min(reversed(seconds), key=lambda gain: seconds[gain])  # the last of the shortest
        if sum(seconds.values()) - seconds[kept] >= _TRAIN_S:
            return Split(
                train=[p for p, g in zip(parts, gains, strict=True) if g != kept],
                held=[p for p, g in zip(parts, gains, strict=True) if g == kept],
                how=f"held out: the gain kp {np.mean(kept[: len(kept) // 2]):.4g}, kd "
                f"{np.mean(kept[len(kept) // 2 :]):.4g} (mean over joints), {seconds[kept]:.1f} s",
            )
    if len(logs) > 1 and len(parts) == len(logs) and not any(map(is_active, logs)):
        count = min(len(logs) - 1, max(1, round(fraction * len(logs))))
        return Split(
            train=parts[:-count], held=parts[-count:], how=f"held out: the last {count} of {len(logs)} logs"
        )
    return _last_parts(parts, fraction)


def is_active(log: Log) -> bool:
    """Whether a log was recorded for what an earlier fit lacked: such a motion is needed whole."""
    excitation = log.meta.get("excitation")
    return isinstance(excitation, dict) and excitation.get("kind") == "active"


def _last_parts(parts: Sequence[Log], fraction: float) -> Split:
    cuts = [round(len(part) * (1.0 - fraction)) for part in parts]
    pairs = list(zip(parts, cuts, strict=True))
    held = [part.window(cut, len(part)) for part, cut in pairs if len(part) - cut >= 2]
    seconds = sum(_seconds(part) for part in held)
    return Split(
        train=[part.window(0, cut) for part, cut in pairs],
        held=held,
        how=f"held out: the last {seconds:.1f} s; another motion, or another gain, would be a harder test",
    )


def by_gain(log: Log) -> list[Log]:
    """The log cut where its gains change; parts under two seconds are left out."""
    change = np.zeros(max(len(log) - 1, 0), bool)
    for name in ("target_kp", "target_kd"):
        if name in log:
            change |= (log[name][1:] != log[name][:-1]).any(axis=1)
    edges = [0, *(np.flatnonzero(change) + 1).tolist(), len(log)]
    if len(edges) == 2:
        return [log]
    parts = [log.window(a, b) for a, b in pairwise(edges) if b - a >= _SHORTEST_S * log.rate_hz]
    if not parts or len(edges) > _MOST_PARTS:
        raise TrueupError(
            f"the gains change {len(edges) - 2} times and hardly ever stay for {_SHORTEST_S:g} s: a fit needs "
            "stretches with constant gains; record each gain on its own",
            place="target_kp",
        )
    return parts


def gain_of(log: Log) -> Gain:
    """The log's gains, kp then kd; () when it does not say."""
    rows = [log[name][0] for name in ("target_kp", "target_kd") if name in log]
    return tuple(np.concatenate(rows).tolist()) if rows else ()


def _seconds(log: Log) -> float:
    return len(log) / log.rate_hz
