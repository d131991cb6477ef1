"""Hypotheses that change the log itself: joints exchanged, a joint turned round, a clock that runs wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.log import SIGNALS, Log
from trueup.gap.mismatch import Model, losses
from trueup.gap.search import Tested
from trueup.gap.windows import Windows

Cut = Callable[[Log], Windows]
_CANDIDATES = 4
_RATES = (0.6, 0.7, 0.8, 0.9, 1.1, 1.25, 1.5)


def _joint_signals(log: Log, *, commands: bool, states: bool) -> list[str]:
    names = [name for name in log.signals if SIGNALS[name][0] == "joint"]
    return [name for name in names if (commands if name.startswith("target_") else states)]


def exchanged(log: Log, i: int, k: int, *, commands: bool, states: bool) -> Log:
    """The log with two joints' columns exchanged."""
    out = dict(log.signals)
    for name in _joint_signals(log, commands=commands, states=states):
        out[name] = log[name].copy()
        out[name][:, [i, k]] = log[name][:, [k, i]]
    return replace(log, signals=out)


def turned(log: Log, j: int, *, commands: bool, states: bool) -> Log:
    """The log with one joint's positions, speeds and torques negated."""
    out = dict(log.signals)
    for name in _joint_signals(log, commands=commands, states=states):
        if name not in ("target_kp", "target_kd", "joint_temperature"):
            out[name] = log[name].copy()
            out[name][:, j] *= -1.0
    return replace(log, signals=out)


def following(log: Log) -> FloatArray:
    """How well joint i follows target k, correlation (njoint, njoint) of changes over 0.1 s."""
    lag = max(1, round(0.1 * log.rate_hz))
    pos = log["joint_pos"][lag:] - log["joint_pos"][:-lag]
    target = log["target_pos"][lag:] - log["target_pos"][:-lag]
    target = target[: -max(1, lag // 3)]
    pos = pos[len(pos) - len(target) :]
    scale = np.maximum(pos.std(axis=0)[:, None] * target.std(axis=0), 1e-9)
    found: FloatArray = (pos - pos.mean(axis=0)).T @ (target - target.mean(axis=0)) / len(pos) / scale
    return found


def log_changes(log: Log) -> Iterator[tuple[str, tuple[int, ...], str, Log]]:
    """Changes that are worth a replay: those by which joints would follow their targets better, and turned pairs."""
    match, n = following(log), len(log.joint_names)
    own = np.diag(match)
    pairs = sorted(combinations(range(n), 2), key=lambda p: own[p[0]] + own[p[1]] - match[p] - match[p[::-1]])
    for i, k in pairs[:_CANDIDATES]:
        for commands, states, what in ((True, False, "commands"), (True, True, "commands and states")):
            yield "joint order", (i, k), what, exchanged(log, i, k, commands=commands, states=states)
    for j in np.argsort(own)[:_CANDIDATES].tolist():
        yield "sign", (j,), "commands", turned(log, j, commands=True, states=False)
    for j in range(n):
        yield "sign", (j,), "commands and states", turned(log, j, commands=True, states=True)


def pair_changes(log: Log) -> Iterator[tuple[str, tuple[int, ...], str, Log]]:
    """Every pair of joints exchanged in commands and states: plugs in the wrong sockets."""
    for i, k in combinations(range(len(log.joint_names)), 2):
        yield "joint order", (i, k), "commands and states", exchanged(log, i, k, commands=True, states=True)


def try_structure(model: Model, log: Log, cut: Cut, before: FloatArray) -> list[Tested]:
    """The best exchange and the best turned joint by the estimating half, then judged on all windows."""
    best: dict[str, tuple[float, Tested]] = {}
    for cause, joints, what, changed in (*log_changes(log), *pair_changes(log)):
        windows = cut(changed)
        after = losses(model, windows, [{}])[0].sum(axis=1)
        cost = float(after[~windows.held].sum())
        if cause not in best or cost < best[cause][0]:
            names = tuple(log.joint_names[j] for j in joints)
            word = "exchanged" if cause == "joint order" else "turned round"
            found = Tested(
                cause=cause, joints=names, size=float(len(joints)), unit="joints", before=before, after=after,
                matters=True, evidence=f"{what} of {' and '.join(names)} {word}",
            )  # fmt: skip
            best[cause] = (cost, found)
    return [tested for _, tested in best.values()]


def try_rate(model: Model, log: Log, cut: Cut, before: FloatArray) -> Tested:
    """The log on a clock that runs faster or slower."""
    tried = []
    for scale in _RATES:
        other = replace(log, time=log.time[0] + (log.time - log.time[0]) * scale)
        if "joint_vel" in log:  # else the windows' own: a driver's speed has its own clock
            other = replace(other, signals={k: v for k, v in other.signals.items() if k != "joint_vel"})
        windows = cut(other)
        tried.append((scale, losses(model, windows, [{}])[0].sum(axis=1), windows.held))
    scale, after, _ = min(tried, key=lambda one: float(one[1][~one[2]].sum()))
    return Tested(
        cause="wrong rate", joints=(), size=1.0 / scale, unit="times the rate that the log says", before=before,
        after=after, matters=True, evidence=f"the log's clock runs {1 / scale:.2f} times as fast as the robot",
    )  # fmt: skip
