"""Every flaw the validator knows, planted into clean logs at two strengths.

A plant takes a clean sample, a strength (0 weak, 1 strong) and a generator, and returns what check_log is given.
BASES says which clean logs a flaw can be planted in at all: columns can only be swapped where there are two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from make_logs import Sample, clean, clean_as

from trueup.data.log import FloatArray, Log, RobotReference

JOINT_SIGNALS = ("joint_pos", "joint_vel", "joint_torque", "target_pos")


@dataclass(frozen=True)
class Case:
    """Arguments of check_log."""

    log: Log
    reference: RobotReference | None = None
    streams: dict[str, FloatArray] | None = None


Plant = Callable[[Sample, int, np.random.Generator], Case]


def _with(log: Log, **signals: FloatArray | None) -> Log:
    merged = {name: values for name, values in {**log.signals, **signals}.items() if values is not None}
    return replace(log, signals=merged)


def _case(sample: Sample, rng: np.random.Generator, **signals: FloatArray | None) -> Case:
    """Half of the cases are checked without a robot."""
    return Case(_with(sample.log, **signals), sample.reference if rng.random() < 0.5 else None)


def _retime(sample: Sample, time: FloatArray) -> Case:
    return Case(replace(sample.log, time=time), sample.reference)


def _pick(sample: Sample, strength: int, rng: np.random.Generator) -> list[int]:
    """One joint when weak, all when strong."""
    n = len(sample.log.joint_names)
    return list(range(n)) if strength else [int(rng.integers(n))]


# time ----------------------------------------------------------------------------------------------------------------


def too_short(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    rows = int((0.3 if strength else 1.5) * s.plan.rate)
    return Case(s.log.window(0, rows), s.reference)


def time_backward(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    time = s.log.time.copy()
    k = int(rng.integers(10, len(time) - 10))
    if strength:
        time[k:] -= 0.5
    else:
        time[k] = time[k - 2] - 0.2 / s.plan.rate
    return _retime(s, time)


def time_duplicate(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    time = s.log.time.copy()
    count = max(1, int(len(time) * (0.1 if strength else 0.003)))
    rows = rng.choice(np.arange(1, len(time)), count, replace=False)
    time[rows] = time[rows - 1]
    return _retime(s, time)


def time_gap(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    keep = np.ones(len(s.log), bool)
    for _ in range(5 if strength else 1):
        k = int(rng.integers(5, len(keep) - 60))
        keep[k : k + (20 if strength else 2)] = False
    signals = {name: values[keep] for name, values in s.log.signals.items()}
    return Case(replace(s.log, time=s.log.time[keep], signals=signals), s.reference)


def time_jitter(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    size = (0.45 if strength else 0.2) / s.plan.rate
    return _retime(s, s.log.time + rng.uniform(-size, size, len(s.log)))


def rate_low(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    every = s.plan.rate // (10 if strength else 25)
    signals = {name: values[::every] for name, values in s.log.signals.items()}
    return Case(replace(s.log, time=s.log.time[::every], signals=signals), s.reference)


def rate_change(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    steps = np.diff(s.log.time)
    steps[int(len(steps) * rng.uniform(0.3, 0.7)) :] *= 1.5 if strength else 1.06
    return _retime(s, np.concatenate([[0.0], np.cumsum(steps)]))


def time_unit(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    return _retime(s, s.log.time * (1e6 if strength else 1e3))


def _stamps(s: Sample, rng: np.random.Generator) -> FloatArray:
    return s.log.time - 0.001 - rng.exponential(0.0003, len(s.log)) + rng.uniform(-1e3, 1e3)


def clock_drift(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    passed = np.linspace(0.0, 1.0, len(s.log))
    return Case(s.log, s.reference, {"imu": _stamps(s, rng) + (0.06 if strength else -0.006) * passed})


def clock_jump(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    stamps = _stamps(s, rng)
    stamps[int(len(stamps) * rng.uniform(0.2, 0.8)) :] += 0.3 if strength else -0.02
    return Case(s.log, s.reference, {"imu": stamps})


# single columns ------------------------------------------------------------------------------------------------------


def signal_missing(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    return _case(s, rng, **{"joint_pos" if strength else "target_pos": None})


def not_finite(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    name = str(rng.choice(["joint_pos", "joint_vel", "target_pos"]))
    values = s.log[name].copy()
    rows = rng.choice(len(values), len(values) // 20 if strength else 1, replace=False)
    values[rows, int(rng.integers(values.shape[1]))] = np.inf if strength else np.nan
    return _case(s, rng, **{name: values})


def unit_degrees(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    if strength:  # every column, so that only the range tells
        names = ("joint_pos", "joint_vel", "target_pos")
        return Case(_with(s.log, **{name: np.degrees(s.log[name]) for name in names}), s.reference)
    name = str(rng.choice(["joint_pos", "joint_vel", "target_pos"]))
    values = s.log[name].copy()
    joints = _pick(s, strength, rng)
    values[:, joints] = np.degrees(values[:, joints])
    return _case(s, rng, **{name: values})


def unit_normalised(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    stroke = 3.5 if strength else 2.0
    names = (*s.log.joint_names[:-1], "jaw")
    pos, target = s.log["joint_pos"].copy(), s.log["target_pos"].copy()
    middle = pos[:, -1].mean()
    for values in (pos, target):
        values[:, -1] = 0.5 + (values[:, -1] - middle) / stroke
    return Case(replace(_with(s.log, joint_pos=pos, target_pos=target), joint_names=names))


def frozen(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    pos, vel = s.log["joint_pos"].copy(), s.log["joint_vel"].copy()
    j, rows = int(rng.integers(pos.shape[1])), len(pos)
    length = int(0.6 * s.plan.rate)
    starts = np.arange(rows // 10, max(rows // 10 + 1, min(rows // 2, rows - length)))
    if not strength:  # a sensor that freezes while its joint rests loses nothing: take a stretch in which it moves
        travel = np.array([np.ptp(pos[k : k + length, j]) for k in starts])
        starts = starts[travel >= min(0.25 * np.ptp(pos[:, j]), travel.max())]
    start = int(rng.choice(starts))
    stop = rows if strength else start + length
    pos[start:stop, j] = pos[start, j]
    if rng.random() < 0.5:
        vel[start:stop, j] = vel[start, j]
    return _case(s, rng, joint_pos=pos, joint_vel=vel)


def stale_samples(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    every = 4 if strength else 2
    rows = np.arange(len(s.log)) // every * every
    return _case(s, rng, joint_pos=s.log["joint_pos"][rows], joint_vel=s.log["joint_vel"][rows])


def encoder_jump(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    pos = s.log["joint_pos"].copy()
    j, k = int(rng.integers(pos.shape[1])), int(rng.integers(10, len(pos) - 10))
    size = max(0.08, 2.5 * float(s.reference.velocity_limit[j]) / s.plan.rate)
    pos[k : k + 1 if not strength else None, j] += 2 * size if strength else size
    return Case(_with(s.log, joint_pos=pos), s.reference)


def encoder_wrap(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    pos = s.log["joint_pos"].copy()
    j = int(rng.integers(pos.shape[1]))
    # at rest on its highest level a coarse encoder may never read more than its 98th percentile
    highest = float(pos[:, j].max()) - 0.05 * float(np.ptp(pos[:, j]))
    edge = min(highest, float(np.percentile(pos[:, j], 50 if strength else 98)))
    pos[pos[:, j] > edge, j] -= 2 * np.pi
    return _case(s, rng, joint_pos=pos)


def quantisation(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    step = 0.006 if strength else 0.0021
    return _case(s, rng, joint_pos=np.round(s.log["joint_pos"] / step) * step)


# range ---------------------------------------------------------------------------------------------------------------


def torque_saturated(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    torque = s.log["joint_torque"]
    top = np.percentile(np.abs(torque), 85 if strength else 95, axis=0)
    clipped = np.clip(torque, -top, top)
    return Case(_with(s.log, joint_torque=clipped), replace(s.reference, torque_limit=top) if strength else None)


def velocity_saturated(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    vel = s.log["joint_vel"]
    top = np.percentile(np.abs(vel), 90 if strength else 97, axis=0)
    return Case(_with(s.log, joint_vel=np.clip(vel, -top, top)), replace(s.reference, velocity_limit=top))


def target_clipped(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    target = s.log["target_pos"]
    low, high = np.percentile(target, [20, 80] if strength else [7, 93], axis=0)
    reference = replace(s.reference, position_low=low, position_high=high) if rng.random() < 0.3 else None
    return Case(_with(s.log, target_pos=np.clip(target, low, high)), reference)


def torque_unsigned(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    torque = np.abs(s.log["joint_torque"])
    if strength:
        torque = np.round(torque / 0.02) * 0.02
    return _case(s, rng, joint_torque=torque)


def torque_sign(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    torque = s.log["joint_torque"].copy()
    joints = _pick(s, strength, rng)
    torque[:, joints] *= -1
    return _case(s, rng, joint_torque=torque)


def limits_exceeded(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    j = int(rng.integers(len(s.log.joint_names)))
    high = s.reference.position_high.copy()
    high[j] = np.percentile(s.log["joint_pos"][:, j], 98) - (0.1 if strength else 0.02)
    return Case(s.log, replace(s.reference, position_high=high))


def target_outside_limits(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    j = int(rng.integers(len(s.log.joint_names)))
    low = s.reference.position_low.copy()
    low[j] = np.percentile(s.log["target_pos"][:, j], 1) + (0.1 if strength else 0.02)
    return Case(s.log, replace(s.reference, position_low=low))


def low_excitation(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    pos, target, vel = (s.log[name].copy() for name in ("joint_pos", "target_pos", "joint_vel"))
    joints = _pick(s, strength, rng)
    for j in joints:
        size = 0.01 / np.ptp(pos[:, j])
        for values in (pos, target, vel):
            values[:, j] = values[:, j].mean() + size * (values[:, j] - values[:, j].mean())
        pos[:, j] += rng.normal(0, 3e-4, len(pos))
    return _case(s, rng, joint_pos=pos, target_pos=target, joint_vel=vel)


def _sine(s: Sample, hz: float, size: float, rng: np.random.Generator) -> Case:
    """All joints follow one sine with 10 ms of lag."""
    t = np.arange(len(s.log)) / s.plan.rate
    middle = s.log["joint_pos"].mean(axis=0)
    late = 2 * np.pi * hz * (t - 0.01)[:, None]
    pos = middle + size * np.sin(late) + rng.normal(0, 3e-4, s.log["joint_pos"].shape)
    vel = 2 * np.pi * hz * size * np.cos(late) + rng.normal(0, 0.01, pos.shape)
    target = middle + size * np.sin(2 * np.pi * hz * t)[:, None] + 0 * pos
    return _case(s, rng, joint_pos=pos, joint_vel=vel, target_pos=target, joint_torque=None)


def slow_excitation(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    return _sine(s, 0.1 if strength else 0.2, 0.2, rng)


def narrow_excitation(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    return _sine(s, 1.0 if strength else 3.0, 0.2, rng)


# velocity ------------------------------------------------------------------------------------------------------------


def velocity_sign(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    vel = s.log["joint_vel"].copy()
    vel[:, _pick(s, strength, rng)] *= -1
    return _case(s, rng, joint_vel=vel)


def velocity_scale(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    vel = s.log["joint_vel"].copy()
    vel[:, _pick(s, strength, rng)] *= 9.549 if strength else 0.65
    return Case(_with(s.log, joint_vel=vel))


def velocity_lag(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    keep = np.exp(-1 / (s.plan.rate * (0.15 if strength else 0.06)))
    vel, state = s.log["joint_vel"].copy(), np.zeros(s.log["joint_vel"].shape[1])
    for k in range(len(vel)):
        state = keep * state + (1 - keep) * vel[k]
        vel[k] = state
    return _case(s, rng, joint_vel=vel)


def velocity_order(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    return _case(s, rng, joint_vel=s.log["joint_vel"][:, _shuffle(s, strength, rng)])


def velocity_unrelated(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    vel = s.log["joint_vel"].copy()
    joints = _pick(s, strength, rng)
    for j in joints:
        noise = rng.normal(0, 1.0, len(vel))
        width = max(1, s.plan.rate // 20)
        vel[:, j] = noise if strength else np.convolve(noise, np.ones(width) / width**0.5, mode="same")
    return _case(s, rng, joint_vel=vel)


# robot ---------------------------------------------------------------------------------------------------------------


def _shuffle(s: Sample, strength: int, rng: np.random.Generator) -> list[int]:
    """Two joints exchanged when weak, all moved by one when strong."""
    n = len(s.log.joint_names)
    order = list(range(n))
    if strength:
        return order[1:] + order[:1]
    alike = np.corrcoef(s.log["target_pos"].T)  # joints that move alike cannot be told apart, nor does it matter
    pairs = [(i, j) for i in range(n) for j in range(i) if abs(alike[i, j]) < 0.7]
    i, j = pairs[int(rng.integers(len(pairs)))]
    order[i], order[j] = order[j], order[i]
    return order


def joint_names(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    if strength:
        log = replace(s.log, signals={}, joint_names=("other", *s.log.joint_names))
        extra = {n: np.concatenate([v[:, :1], v], axis=1) for n, v in s.log.signals.items()}
        return Case(replace(log, signals=extra), s.reference)
    return Case(replace(s.log, joint_names=("other", *s.log.joint_names[1:])), s.reference)


def joint_order(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    """Exchange whole columns of two joints that the robot tells apart, if possible not each other's negative."""
    middle = s.reference.default_pose
    order = list(range(len(middle)))
    pairs = [(i, j) for i in order for j in order[:i]]
    apart = {(i, j): abs(float(middle[i] - middle[j])) for i, j in pairs}
    i, j = max(pairs, key=lambda p: (apart[p] > 1.3 and abs(middle[p[0]] + middle[p[1]]) > 0.3, apart[p]))
    if strength:
        order = [int(k) for k in np.argsort(middle)[::-1][np.argsort(np.argsort(middle))]]
    else:
        order[i], order[j] = order[j], order[i]
    moved = {name: s.log[name][:, order] for name in JOINT_SIGNALS if name in s.log}
    return Case(_with(s.log, **moved), s.reference)


def joint_sign(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    """Negate joints whose middle is far from zero; a joint around zero looks the same either way."""
    middle = np.abs(s.reference.default_pose)
    joints = np.flatnonzero(middle > 0.6) if strength else np.array([int(np.argmax(middle))])
    flip = np.ones(len(middle))
    flip[joints] = -1
    moved = {name: s.log[name] * flip for name in JOINT_SIGNALS if name in s.log}
    return Case(_with(s.log, **moved), s.reference)


def column_swap(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    return _case(s, rng, target_pos=s.log["target_pos"][:, _shuffle(s, strength, rng)])


def sign_flip(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    flip = np.ones(len(s.log.joint_names))
    flip[_pick(s, strength, rng)] = -1
    return Case(_with(s.log, target_pos=s.log["target_pos"] * flip))


# pairing -------------------------------------------------------------------------------------------------------------


def _shift(s: Sample, rows: int, rng: np.random.Generator) -> Case:
    """Move the commands `rows` rows later (negative: earlier)."""
    at = np.clip(np.arange(len(s.log)) - rows, 0, len(s.log) - 1)
    return _case(s, rng, target_pos=s.log["target_pos"][at])


def command_late(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    """One or two control steps late; a log with a command in every row is late by what 20 ms take."""
    rows = s.plan.hold if s.plan.hold > 1 else max(4, s.plan.rate // 50)
    return _shift(s, rows * (2 if strength else 1), rng)


def command_early(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    return _shift(s, -s.plan.hold * (2 if strength else 1), rng)


def pairing_unknown(s: Sample, strength: int, rng: np.random.Generator) -> Case:
    """Motion of one tone, which any lag explains, when weak; commands that never change when strong."""
    if not strength:
        return _sine(s, 1.0, 0.2, rng)
    held = np.tile(s.log["target_pos"][:1], (len(s.log), 1))
    return _case(s, rng, target_pos=held, joint_torque=None)


def _many(seed: int) -> Sample:
    return clean_as(seed, njoint=6 if seed % 2 else 12)


def _with_torque(seed: int) -> Sample:
    return clean_as(seed, torque=True)


def _both_ways(seed: int) -> Sample:
    """Torque that changes its sign in some joint: one that never does has no sign to lose."""
    for other in range(seed, seed + 10**6, 10**5):
        sample = clean_as(other, torque=True)
        torque = sample.log["joint_torque"]
        if np.any(np.mean(torque < 0, axis=0) * np.mean(torque > 0, axis=0) > 0.02):
            return sample
    raise AssertionError(f"no log near seed {seed} has torque both ways")


def _smooth(seed: int) -> Sample:
    return clean_as(seed, excitation="multisine" if seed % 2 else "chirp")


def _long(seed: int) -> Sample:
    return clean_as(seed, seconds=12.0, rate=(50, 100, 200)[seed % 3])


def _broad(seed: int) -> Sample:
    """Commands that tell delay: not a chirp, whose parts are single tones."""
    excitation = ("multisine", "steps", "holds", "policy", "policy")[seed % 5]
    return clean_as(seed, excitation=excitation, rate=(200, 500, 1000)[seed % 3] if excitation == "policy" else None)


def _policy(seed: int) -> Sample:
    return clean_as(seed, excitation="policy", rate=200, delay=1.0 + 1.5 * (seed % 4) / 3)


BASES: dict[str, Callable[[int], Sample]] = {
    "torque_saturated": _with_torque,
    "torque_unsigned": _both_ways,
    "torque_sign": _with_torque,
    "target_clipped": _smooth,
    "slow_excitation": _long,
    "narrow_excitation": _long,
    "velocity_order": _many,
    "joint_order": _many,
    "joint_sign": _many,
    "column_swap": _many,
    "sign_flip": clean,
    "command_late": _broad,
    "command_early": _policy,
    "pairing_unknown": _long,
}

PLANTS: dict[str, Plant] = {
    plant.__name__: plant
    for plant in (
        *(too_short, time_backward, time_duplicate, time_gap, time_jitter, rate_low, rate_change, time_unit),
        *(clock_drift, clock_jump, signal_missing, not_finite, unit_degrees, unit_normalised, frozen, stale_samples),
        *(encoder_jump, encoder_wrap, quantisation, torque_saturated, velocity_saturated, target_clipped),
        *(torque_unsigned, torque_sign, limits_exceeded, target_outside_limits, low_excitation, slow_excitation),
        *(narrow_excitation, velocity_sign, velocity_scale, velocity_lag, velocity_order, velocity_unrelated),
        *(joint_names, joint_order, joint_sign, column_swap, sign_flip, command_late, command_early),
        pairing_unknown,
    )
}


def spoiled(code: str, strength: int, seed: int) -> Case:
    """The clean log of a seed with one flaw planted."""
    sample = BASES.get(code, clean)(seed)
    return PLANTS[code](sample, strength, np.random.default_rng([seed, strength, len(code)]))
