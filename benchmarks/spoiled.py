"""Logs as users bring them: cut, stretched, on other clocks, with gain steps, holes and missing joints.

Every function takes a generator and a good log and returns the logs of one call of `calibrate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from trueup.data.log import SIGNALS, Log
from trueup.data.resample import resample

Spoil = Callable[[np.random.Generator, Log], list[Log]]


def as_it_is(rng: np.random.Generator, log: Log) -> list[Log]:
    return [log]


def cut(rng: np.random.Generator, log: Log) -> list[Log]:
    """A part of 5 s or more."""
    first = int(rng.integers(0, len(log) // 3))
    last = int(rng.integers(2 * len(log) // 3, len(log)))
    return [log.window(first, last)]


def very_short(rng: np.random.Generator, log: Log) -> list[Log]:
    return [log.window(0, int(rng.choice([0, 1, 2, 3, 10, 60, 150, 400, 900, 1100])))]


def parts_of_one(rng: np.random.Generator, log: Log) -> list[Log]:
    edges = np.sort(rng.choice(np.arange(50, len(log) - 50), 3, replace=False))
    spans = zip([0, *edges], [*edges, len(log)], strict=True)
    return [log.window(int(a), int(b)) for a, b in spans]


def many_short(rng: np.random.Generator, log: Log) -> list[Log]:
    size = int(rng.uniform(0.3, 2.0) * log.rate_hz)
    return [log.window(a, a + size) for a in range(0, len(log) - size, size)]


def another_rate(rng: np.random.Generator, log: Log) -> list[Log]:
    """From 50 to 1000 Hz."""
    return [resample(log, float(rng.choice([50.0, 83.3, 100.0, 125.0, 250.0, 333.3, 500.0, 1000.0])))]


def clock_off(rng: np.random.Generator, log: Log) -> list[Log]:
    return [replace(log, time=log.time * (1.0 + float(rng.choice([-1e-3, 1e-3, 3e-4]))))]


def two_clocks(rng: np.random.Generator, log: Log) -> list[Log]:
    """Two recordings of one rate whose clocks differ by 0.02 to 0.2 %."""
    off = float(rng.choice([1e-4, 1e-3]))
    half = len(log) // 2
    first, second = log.window(0, half), log.window(half, len(log))
    return [replace(first, time=first.time * (1 - off)), replace(second, time=second.time * (1 + off))]


def mixed_rates(rng: np.random.Generator, log: Log) -> list[Log]:
    third = len(log) // 3
    rates = rng.choice([50.0, 100.0, 200.0, 333.3, 1000.0], 3)
    return [resample(log.window(k * third, (k + 1) * third), float(rate)) for k, rate in enumerate(rates)]


def stretched(rng: np.random.Generator, log: Log) -> list[Log]:
    return [replace(log, time=log.time * float(rng.uniform(0.4, 2.5)))]


def uneven(rng: np.random.Generator, log: Log) -> list[Log]:
    step = np.diff(log.time, prepend=log.time[0] - 1.0 / log.rate_hz)
    return [replace(log, time=np.cumsum(step * rng.uniform(0.5, 1.5, len(log))))]


def rows_lost(rng: np.random.Generator, log: Log) -> list[Log]:
    keep = np.flatnonzero(rng.random(len(log)) > float(rng.choice([0.01, 0.2])))
    return [_rows(log, keep)]


def rows_twice(rng: np.random.Generator, log: Log) -> list[Log]:
    """Rows repeated, with their time stamps or with new ones."""
    twice = np.sort(np.concatenate([np.arange(len(log)), rng.choice(len(log), len(log) // 50)]))
    out = _rows(log, twice)
    return [out if rng.random() < 0.5 else replace(out, time=np.arange(len(out)) / log.rate_hz)]


def backwards(rng: np.random.Generator, log: Log) -> list[Log]:
    time = log.time.copy()
    time[len(log) // 2 :] -= float(rng.uniform(0.1, 3.0))
    return [replace(log, time=time)]


def gain_steps(rng: np.random.Generator, log: Log) -> list[Log]:
    """A few gains, or one every moment."""
    every = max(1, int(rng.choice([1, 7, 40, 200, 700])))
    factor = rng.uniform(0.5, 2.0, len(log) // every + 1)[np.arange(len(log)) // every]
    return [_gains(log, factor[:, None])]


def torque_off(rng: np.random.Generator, log: Log) -> list[Log]:
    """Servos off for some stretches, or for the whole log."""
    on = np.ones(len(log))
    for _ in range(int(rng.integers(1, 4))):
        first = int(rng.integers(0, len(log)))
        on[first : first + int(rng.choice([20, 300, 1500]))] = 0.0
    return [_gains(log, on[:, None] if rng.random() < 0.85 else np.zeros((len(log), 1)))]


def one_joint_off(rng: np.random.Generator, log: Log) -> list[Log]:
    on = np.ones((len(log), len(log.joint_names)))
    on[len(log) // 3 :, int(rng.integers(on.shape[1]))] = 0.0
    return [_gains(log, on)]


def missing_joints(rng: np.random.Generator, log: Log) -> list[Log]:
    count = int(rng.integers(1, max(2, len(log.joint_names))))
    keep = np.sort(rng.permutation(len(log.joint_names))[count:])
    return [_columns(log, keep)]


def other_order(rng: np.random.Generator, log: Log) -> list[Log]:
    return [_columns(log, rng.permutation(len(log.joint_names)))]


def holes(rng: np.random.Generator, log: Log) -> list[Log]:
    """Values that are not finite, in any signal or in time."""
    name = str(rng.choice([*log.signals, "time"]))
    wrong = float(rng.choice([np.nan, np.inf, -np.inf]))
    at = rng.choice(len(log), int(rng.choice([1, 30])))
    if name == "time":
        time = log.time.copy()
        time[at] = wrong
        return [replace(log, time=time)]
    values = log[name].copy()
    values[at, int(rng.integers(values.shape[1]))] = wrong
    return [replace(log, signals={**log.signals, name: values})]


def constant_commands(rng: np.random.Generator, log: Log) -> list[Log]:
    still = np.repeat(log["target_pos"][:1], len(log), axis=0)
    signals = {**log.signals, "target_pos": still}
    if rng.random() < 0.5:
        signals["joint_pos"] = np.repeat(log["joint_pos"][:1], len(log), axis=0)
    return [replace(log, signals=signals)]


def signals_missing(rng: np.random.Generator, log: Log) -> list[Log]:
    gone = str(rng.choice(list(log.signals)))
    return [replace(log, signals={name: v for name, v in log.signals.items() if name != gone})]


def more_commands(rng: np.random.Generator, log: Log) -> list[Log]:
    """Velocity and torque commands, in all logs of a call or in one of them."""
    half = len(log) // 2
    speed = np.gradient(log["target_pos"], log.time, axis=0)
    full = replace(log, signals={**log.signals, "target_vel": speed, "target_torque": 0.01 * speed})
    return [full] if rng.random() < 0.5 else [full.window(0, half), log.window(half, len(log))]


def wild(rng: np.random.Generator, log: Log) -> list[Log]:
    """Commands far outside what the robot can do, or negative gains."""
    if rng.random() < 0.5:
        return [_gains(log, -np.ones((len(log), 1)))]
    return [replace(log, signals={**log.signals, "target_pos": 1e3 * log["target_pos"]})]


SPOILS: tuple[Spoil, ...] = (
    as_it_is,
    cut,
    very_short,
    parts_of_one,
    many_short,
    another_rate,
    clock_off,
    two_clocks,
    mixed_rates,
    stretched,
    uneven,
    rows_lost,
    rows_twice,
    backwards,
    gain_steps,
    torque_off,
    one_joint_off,
    missing_joints,
    other_order,
    holes,
    constant_commands,
    signals_missing,
    more_commands,
    wild,
)


def _rows(log: Log, rows: np.ndarray) -> Log:
    signals = {name: values[rows] for name, values in log.signals.items()}
    return replace(log, time=log.time[rows], signals=signals)


def _columns(log: Log, keep: np.ndarray) -> Log:
    signals = {n: v[:, keep] if SIGNALS[n][0] == "joint" else v for n, v in log.signals.items()}
    return replace(log, joint_names=tuple(log.joint_names[k] for k in keep), signals=signals)


def _gains(log: Log, factor: np.ndarray) -> Log:
    """The log with its gains (10 N m/rad where it has none) times a factor (T, 1 or njoint)."""
    ones = np.ones_like(log["joint_pos"])
    kp, kd = log.signals.get("target_kp", 10.0 * ones), log.signals.get("target_kd", 0.3 * ones)
    return replace(log, signals={**log.signals, "target_kp": kp * factor, "target_kd": kd * factor})
