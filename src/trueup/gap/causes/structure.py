"""Hypotheses that change the log itself: two joints exchanged, a joint's sign flipped, a wrong clock rate.

Exchanges and flips are applied to the windows, so that many run side by side in one batch; a few windows choose which
are then tried on all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.gap.causes.search import Tested
from trueup.gap.mismatch import Model, losses
from trueup.gap.windows import LogWindows, joined, some

_RATES = (0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5)
_FEW, _TRIED = 6, 3  # windows that choose, changes that are tried on all windows
_CLOCK, _AGREE = 0.05, 0.2  # logarithms of clock rates: a wrong one, and two estimates that agree
_ALIKE, _SAME = 0.8, 0.99999  # correlation of reported speeds with differences of positions
_COMMANDS = ("past", "target", "target_vel", "torque", "kp", "kd")
_UNSIGNED = ("kp", "kd")


class WiringChange(NamedTuple):
    """Two joints exchanged, or one flipped, in the commands alone or in commands and states."""

    joints: tuple[int, ...]
    states: bool

    @property
    def cause(self) -> str:
        return "joint order" if len(self.joints) == 2 else "sign"


def changes(njoint: int) -> Iterator[WiringChange]:
    """Every pair and every joint, both ways."""
    for states in (False, True):
        yield from (WiringChange(pair, states) for pair in combinations(range(njoint), 2))
        yield from (WiringChange((j,), states) for j in range(njoint))


def changed(windows: LogWindows, change: WiringChange) -> LogWindows:
    """The windows with a log of the changed wiring."""

    def turn(values: FloatArray | None, signed: bool) -> FloatArray | None:
        if values is None:
            return None
        out = values.copy()
        if len(change.joints) == 2:
            out[..., list(change.joints)] = values[..., list(change.joints[::-1])]
        elif signed:
            out[..., change.joints[0]] *= -1.0
        return out

    names = (*_COMMANDS, "pos", "vel") if change.states else _COMMANDS
    inner = {name: turn(getattr(windows.recorded, name), name not in _UNSIGNED) for name in names}
    measured = turn(windows.measured, True) if change.states else windows.measured
    assert measured is not None
    recorded = replace(windows.recorded, **inner)  # type: ignore[arg-type]
    return replace(windows, recorded=recorded, measured=measured)


def try_structure(model: Model, windows: LogWindows, before: FloatArray) -> list[Tested]:
    """The best exchange and the best flip by the estimating half; `before` (W,) without any change."""
    names, out = model.robot.spec.joint_names, []
    tried = list(changes(len(names)))
    at = np.flatnonzero(~windows.held)
    few = some(windows, at[np.linspace(0, len(at) - 1, min(_FEW, len(at))).astype(int)])
    rough = _costs(model, few, tried).sum(axis=1)
    for cause in ("joint order", "sign"):
        of_cause = [k for k, one in enumerate(tried) if one.cause == cause]
        best = [tried[k] for k in sorted(of_cause, key=lambda k: rough[k])[:_TRIED]]
        if not best:
            continue
        after = _costs(model, windows, best)
        k = int(after[:, ~windows.held].sum(axis=1).argmin())
        joints = tuple(names[j] for j in best[k].joints)
        what = "commands and states" if best[k].states else "commands"
        word = "exchanged" if cause == "joint order" else "turned round"
        out.append(Tested(cause=cause, joints=joints, size=float(len(joints)), unit="joints", before=before,
                          after=after[k], matters=True, numbers=2,
                          evidence=f"{what} of {' and '.join(joints)} {word}"))  # fmt: skip
    return out


def _costs(model: Model, windows: LogWindows, tried: Sequence[WiringChange]) -> FloatArray:
    """Mismatch (change, W)."""
    each, parts = max(1, 400 // windows.count), []
    for k in range(0, len(tried), each):
        batch = joined([changed(windows, one) for one in tried[k : k + each]])
        parts.append(losses(model, batch, [{}])[0].sum(axis=1).reshape(-1, windows.count))
    return np.concatenate(parts)


def try_rate(
    model: Model, logs: Sequence[Log], cut: Callable[[Sequence[Log]], LogWindows], before: FloatArray
) -> Tested:
    """The logs on a clock that runs faster or slower; `cut` makes windows at the same rows.

    Where motors report speeds by a clock of their own, these must agree: a stiffer robot looks like a slower clock.
    """
    tried = []
    for scale in _RATES:
        windows = cut([on_clock(log, scale) for log in logs])
        tried.append((scale, losses(model, windows, [{}])[0].sum(axis=1), windows.held))
    scale, after, _ = min(tried, key=lambda one: float(one[1][~one[2]].sum()))
    told, words = clock_by_speeds(logs[0]), ""
    if told is not None:
        words = f"; speeds that the motors report say {told:.2f}"
    return Tested(
        cause="wrong rate", joints=(), size=1.0 / scale, unit="times the rate that the log says", before=before,
        after=after, matters=told is None or (abs(np.log(told)) > _CLOCK and abs(np.log(told * scale)) < _AGREE),
        evidence=f"the log's clock runs {1 / scale:.2f} times as fast as the robot{words}",
    )  # fmt: skip


def clock_by_speeds(log: Log) -> float | None:
    """Rate of the log's clock by the motors' reported speeds; None where these are differences of positions."""
    if "joint_vel" not in log or not np.isfinite(log["joint_vel"]).all():
        return None
    told = log["joint_vel"][1:-1]
    step = (log["joint_pos"][2:] - log["joint_pos"][:-2]) / (log.time[2:] - log.time[:-2])[:, None]
    both = float(np.sum(told * step))
    match = both / max(float(np.sqrt(np.sum(told**2) * np.sum(step**2))), 1e-12)
    if not _SAME > match > _ALIKE:
        return None
    return float(np.sqrt(np.sum(told**2) / np.sum(step**2)))


def on_clock(log: Log, scale: float) -> Log:
    """The log with its time stretched; speeds that a driver reported have their own clock and go."""
    kept = {name: values for name, values in log.signals.items() if name != "joint_vel"}
    return replace(log, time=log.time[0] + (log.time - log.time[0]) * scale, signals=kept)
