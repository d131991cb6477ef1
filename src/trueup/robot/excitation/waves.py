"""The shapes of excitation: one joint's deviation from its default pose, as pure functions of numbers.

Each wave fills `slot.rows` rows and stays inside its `Bounds` by construction; start and end are smoothed by
the caller. Joints that move together get different waves (tones, order, times), because
equal motions of two joints cannot be separated afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.robot.excitation.limits import Bounds, fit_into
from trueup.robot.excitation.plan import min_jerk, move_distance, move_time

Kind = Literal["multisine", "chirp", "steps", "random_holds", "sine_ladder", "square_ladder", "hold", "squat"]
FEWEST_TONES = 6
STEPS = (1.0, -1.0, 0.5, -0.5, 0.0)


@dataclass(frozen=True, kw_only=True)
class WaveCfg:
    """Numbers of the shapes.

    low_hz, high_hz     band of chirp and multisine
    sweep               how a chirp runs through the band
    tones               at most so many a joint in a multisine
    hold_s              time at a level: shortest and longest (random holds); steps use the longest
    ladder_amplitudes   parts of the allowed amplitude; with each of
    ladder_hz           these frequencies they make the pairs of a ladder (12: Fey et al. 2025, arXiv
                        2502.10894)
    """

    low_hz: float = 0.2
    high_hz: float = 8.0
    sweep: Literal["log", "linear"] = "log"
    tones: int = 24
    hold_s: tuple[float, float] = (0.05, 0.6)
    ladder_amplitudes: tuple[float, ...] = (0.3, 0.6, 1.0)
    ladder_hz: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)

    def __post_init__(self) -> None:
        if not 0.0 < self.low_hz < self.high_hz < np.inf:
            raise TrueupError(f"a band needs 0 < low_hz < high_hz, found {self.low_hz} and {self.high_hz}")
        if not 0.0 < self.hold_s[0] <= self.hold_s[1] < np.inf or self.tones < 1:
            raise TrueupError("hold_s needs 0 < shortest <= longest, and tones at least 1")
        if not (self.ladder_amplitudes and self.ladder_hz):
            raise TrueupError("a ladder needs at least one amplitude and one frequency")
        if not all(0.0 < part <= 1.0 for part in self.ladder_amplitudes):
            raise TrueupError(f"ladder_amplitudes are parts in (0, 1], found {self.ladder_amplitudes}")
        if not all(0.0 < hz < np.inf for hz in self.ladder_hz):
            raise TrueupError(f"ladder_hz must be positive, found {self.ladder_hz}")


@dataclass(frozen=True, kw_only=True)
class Slot:
    """Where a wave is played: `rows` rows `dt` apart, by number `index` of `group` joints moving together."""

    rows: int
    dt: float
    index: int
    group: int
    random: RowRandom

    def uniform(self, count: int) -> FloatArray:
        return self.random.uniform(count).ravel()

    def shuffled(self, count: int) -> NDArray[np.intp]:
        """A random order; the natural one for a joint that moves alone."""
        return np.argsort(self.uniform(count)) if self.group > 1 else np.arange(count)


def chirp(slot: Slot, bounds: Bounds, cfg: WaveCfg) -> FloatArray:
    """Sweep the band once; joints that move together sweep up and down, each from another place in the band.

    The amplitude follows the frequency: A(f) = min(A, v / w, a / w^2), w = 2 pi f.
    """
    x = np.arange(slot.rows) / max(slot.rows - 1, 1)
    if slot.group > 1:
        around = (x + slot.index / slot.group) % 1.0
        x = 1.0 - np.abs(1.0 - 2.0 * around)
    if cfg.sweep == "log":
        frequency = cfg.low_hz * (cfg.high_hz / cfg.low_hz) ** x
    else:
        frequency = cfg.low_hz + (cfg.high_hz - cfg.low_hz) * x
    phase = 2.0 * np.pi * (np.cumsum(frequency) * slot.dt + slot.uniform(1)[0] * (slot.group > 1))
    return np.asarray(bounds.at(frequency) * np.sin(phase), np.float64)


def multisine(slot: Slot, bounds: Bounds, cfg: WaveCfg) -> FloatArray:
    """Sum of harmonics of 1/T with low-crest phases, each as strong as its frequency allows, over sqrt(f).

    Without the root the fast tones would use up the acceleration and leave little of the slow ones.

    Joints that move together take every `group`-th harmonic: then their waves are orthogonal. When that would
    leave a joint fewer than six tones, all share the harmonics and differ by random phases.
    """
    period = slot.rows * slot.dt
    first, last = max(1, int(np.ceil(cfg.low_hz * period))), int(np.floor(cfg.high_hz * period))
    harmonics = np.arange(first, max(first, last) + 1)
    is_shared = slot.group > 1 and len(harmonics) // slot.group < FEWEST_TONES
    if not is_shared:
        harmonics = harmonics[slot.index :: slot.group]
    picked = harmonics[_spread(len(harmonics), cfg.tones)]
    amplitude = bounds.at(picked / period) / np.sqrt(picked)
    phase = schroeder_phases(amplitude**2)
    if is_shared:
        phase = phase + 2.0 * np.pi * slot.uniform(len(picked))
    start = slot.uniform(1)[0] if slot.group > 1 else 0.0
    turns = np.outer(np.arange(slot.rows) / slot.rows + start, picked)
    wave = np.cos(2.0 * np.pi * turns + phase) @ amplitude
    return fit_into(wave * (bounds.amplitude / max(float(np.abs(wave).max()), 1e-300)), bounds, slot.dt)


def _spread(count: int, most: int) -> NDArray[np.intp]:
    """At most `most` of the indices 0 .. count - 1, evenly over their logarithm."""
    return np.unique(np.geomspace(1, count, min(most, count)).round().astype(np.intp) - 1)


def schroeder_phases(power: FloatArray) -> FloatArray:
    """Phases that keep a multisine's peak low: phi_k = -2 pi sum_{l<k} (k - l) p_l (Schroeder 1970)."""
    share = power / power.sum()
    return -2.0 * np.pi * np.concatenate([[0.0], np.cumsum(np.cumsum(share))[:-1]])


def steps(slot: Slot, bounds: Bounds, cfg: WaveCfg) -> FloatArray:
    """Go up and down in full and half steps, `hold_s[1]` each; joints that move together step in turn."""
    hold = max(2, round(cfg.hold_s[1] / slot.dt))
    offset = round(hold * slot.index / slot.group)
    edges = np.arange(offset, slot.rows, hold)
    rounds = [np.array(STEPS)[slot.shuffled(len(STEPS))] for _ in range(len(edges) // len(STEPS) + 1)]
    levels = np.concatenate(rounds)[: len(edges)]
    return _levels(slot.rows, edges, bounds.amplitude * levels, bounds, slot.dt)


def random_holds(slot: Slot, bounds: Bounds, cfg: WaveCfg) -> FloatArray:
    """Random levels for random times in `hold_s`, times spread evenly over their logarithm."""
    shortest = max(2, round(cfg.hold_s[0] / slot.dt))
    longest = max(shortest, round(cfg.hold_s[1] / slot.dt))
    count = slot.rows // shortest + 1
    lengths = np.round(shortest * (longest / shortest) ** slot.uniform(count)).astype(int)
    edges = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    levels = bounds.amplitude * (2.0 * slot.uniform(count) - 1.0)
    inside = edges < slot.rows
    return _levels(slot.rows, edges[inside], levels[inside], bounds, slot.dt)


def _levels(rows: int, edges: NDArray[np.intp], levels: FloatArray, bounds: Bounds, dt: float) -> FloatArray:
    """Hold levels, each from its edge on; go to it as fast as the bounds allow, or as far as time allows."""
    wave, now = np.zeros(rows), 0.0
    for start, end, level in zip(edges, [*edges[1:], rows], levels, strict=True):
        reach = float(move_distance((end - start) * dt, bounds.velocity, bounds.acceleration))
        way = float(np.clip(level - now, -reach, reach))
        need = float(move_time(way, bounds.velocity, bounds.acceleration))
        going = min(max(1, int(np.ceil(need / dt))), int(end - start))
        wave[start:end] = now + way * min_jerk(np.arange(end - start) / going)
        now += way
    return wave


def _ladder(slot: Slot, cfg: WaveCfg, rung: Callable[[int, float, float], FloatArray]) -> FloatArray:
    """Play every amplitude with every frequency, one after the other, each in an equal share of the time.

    Joints that move together play them in another order, with another sign.
    """
    pairs = [(part, hz) for part in cfg.ladder_amplitudes for hz in cfg.ladder_hz]
    length = slot.rows // len(pairs)
    least = 0.75 / min(cfg.ladder_hz)
    if length * slot.dt < least:
        need = np.ceil(len(pairs) * least) + 1
        raise TrueupError(
            f"a ladder of {len(pairs)} pairs leaves {length * slot.dt:.2f} s for each, and "
            f"{min(cfg.ladder_hz):g} Hz needs {least:.2f} s: ask for {need:.0f} s a motion, or fewer pairs"
        )
    sign = -1.0 if slot.group > 1 and slot.uniform(1)[0] < 0.5 else 1.0
    parts = [rung(length, *pairs[k]) for k in slot.shuffled(len(pairs))]
    return sign * np.concatenate([*parts, np.zeros(slot.rows - length * len(pairs))])


def sine_ladder(slot: Slot, bounds: Bounds, cfg: WaveCfg) -> FloatArray:
    """Sines of every amplitude and frequency, whole numbers of periods, swelling and fading."""

    def rung(rows: int, part: float, hz: float) -> FloatArray:
        cycles = max(1, round(hz * rows * slot.dt))
        x = np.arange(rows) / rows
        fade = min(0.25, 1.0 / cycles)
        envelope = min_jerk(x / fade) * min_jerk((1.0 - x) / fade)
        amplitude = min(part * bounds.amplitude, float(bounds.at(cycles / (rows * slot.dt))))
        return fit_into(amplitude * envelope * np.sin(2.0 * np.pi * cycles * x), bounds, slot.dt)

    return _ladder(slot, cfg, rung)


def square_ladder(slot: Slot, bounds: Bounds, cfg: WaveCfg) -> FloatArray:
    """Square waves of every amplitude and frequency, flanks as steep as the bounds allow.

    A square that its flanks would fill by more than half is made smaller, so that it stays a square.
    """

    def rung(rows: int, part: float, hz: float) -> FloatArray:
        halves = min(2 * max(1, round(hz * rows * slot.dt - 0.5)) + 1, rows // 4)
        edges = np.arange(halves) * rows // halves
        reach = float(move_distance(0.5 * rows * slot.dt / halves, bounds.velocity, bounds.acceleration))
        amplitude = min(part * bounds.amplitude, 0.5 * reach)
        signs = np.where(np.arange(halves) % 2 == 0, 1.0, -1.0)
        signs[-1] = 0.0
        return _levels(rows, edges, amplitude * signs, bounds, slot.dt)

    return _ladder(slot, cfg, rung)


def hold(slot: Slot, bounds: Bounds, cfg: WaveCfg) -> FloatArray:
    """Stay at the default pose: noise, drift and sag alone."""
    return np.zeros(slot.rows)


Wave = Callable[[Slot, Bounds, WaveCfg], FloatArray]
WAVES: dict[Kind, Wave] = {
    "multisine": multisine,
    "chirp": chirp,
    "steps": steps,
    "random_holds": random_holds,
    "sine_ladder": sine_ladder,
    "square_ladder": square_ladder,
    "hold": hold,
}
