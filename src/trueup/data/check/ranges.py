"""Checks of how much a log moves: saturation, clipped commands, excitation."""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.check.finding import Finding, Level
from trueup.data.check.view import LogView, runs, smooth, spread

AT_LIMIT = 0.98
SATURATED_SHARE, HARMFUL_SHARE = 0.01, 0.03  # below the second a fit can leave the rows out
TOO_SMALL_RAD = 0.02
FEWEST_LEVELS = 100  # distinct values below the extreme
SLOW_RAD_S2 = 1.0
NARROW_SHARE = 0.97


def check_saturation(view: LogView, leapt: Set[int]) -> Iterator[Finding]:
    """Report torque and velocity at their limit, or clipped; joints in `leapt` (position jumps) are checked too."""
    joints = sorted({*view.fair, *leapt})
    if view.torque is not None:
        torque = {j: _flat_share(view.torque[:, j]) for j in joints}
        if view.reference is not None:
            size = np.abs(view.torque) / view.reference.torque_limit
            at_limit = np.mean((size >= AT_LIMIT) & (size < 1.05), axis=0)  # far above is told as a limit exceeded
            torque = {j: max(share, float(at_limit[j])) for j, share in torque.items()}
        yield from _saturated(view, "torque_saturated", "joint_torque", torque)
    if view.reference is not None and view.vel is not None:
        speed = np.mean(np.abs(view.vel) >= 0.95 * view.reference.velocity_limit, axis=0)
        yield from _saturated(view, "velocity_saturated", "joint_vel", {j: float(speed[j]) for j in joints})


def _flat_share(values: FloatArray) -> float:
    """Share of rows that sit exactly on the extreme.

    A coarse column repeats its values everywhere; there the extreme says nothing.
    """
    size = np.abs(values)
    top = float(size.max(initial=0.0))
    flat = size >= top * (1 - 1e-6)
    if top <= 0 or len(np.unique(values[~flat])) < FEWEST_LEVELS:
        return 0.0
    return float(np.mean(flat))


def _saturated(view: LogView, code: str, signal: str, shares: dict[int, float]) -> Iterator[Finding]:
    bad = {j: share for j, share in shares.items() if share > SATURATED_SHARE}
    if bad:
        j, share = max(bad.items(), key=lambda item: item[1])
        text = f"{view.names[j]} is at its largest {signal} in {share:.1%} of the rows"
        level: Level = "warning" if share > HARMFUL_SHARE else "note"
        yield view.finding(code, level, text, signal, sorted(bad), score=0.4 + share, share=share)


def check_clipping(view: LogView) -> Iterator[Finding]:
    """Report commands that run into one and the same extreme and stay there."""
    if view.target is None:
        return
    target = view.target[:: view.hold]
    shares = {j: max(_clipped_share(target[:, j]), _clipped_share(-target[:, j])) for j in view.fair}
    clipped = {j: share for j, share in shares.items() if share > SATURATED_SHARE}
    if not clipped:
        return
    j, share = max(clipped.items(), key=lambda item: item[1])
    text = f"the command of {view.names[j]} runs into its extreme and stays there, {share:.1%} of the rows"
    level: Level = "note"
    if view.reference is not None:
        ends = np.stack([view.reference.position_low, view.reference.position_high])
        extremes = np.stack([view.target.min(axis=0), view.target.max(axis=0)])
        if np.any(np.abs(ends - extremes)[:, sorted(clipped)] < 0.01):
            level, text = "warning", f"{text}, which is the joint's limit"
    yield view.finding("target_clipped", level, text, "target_pos", sorted(clipped), score=0.3 + share, share=share)


def _clipped_share(command: FloatArray) -> float:
    """Share of rows at the maximum after entries at speed: a smooth wave cut flat, not a step or a slow stop."""
    top = float(command.max(initial=-np.inf))
    step = np.abs(np.diff(command))
    if len(command) < 20 or float(step.max()) == 0:
        return 0.0
    usual = float(np.median(step[step > 0]))
    stays = [(a, b) for a, b in runs(command >= top - 1e-9) if b - a >= 2 and a >= 2]
    # at speed up to the row before: two levels of a square wave are no clipping
    rising = command[:-2] < command[1:-1]
    hit = [
        (a, b)
        for a, b in stays
        if rising[a - 2] and 0.3 * usual < step[a - 2] < 5 * usual and step[a - 1] > 0.1 * usual
    ]
    return sum(b - a for a, b in hit) / len(command) if len(hit) >= 2 else 0.0


def check_excitation(view: LogView) -> Iterator[Finding]:
    """Report joints that move too little, too slowly or at one frequency only."""
    wide = spread(view.pos)
    floor = np.maximum(TOO_SMALL_RAD, 8 * np.hypot(view.noise, view.quantum))
    still = [j for j in view.fair if wide[j] < floor[j]]
    if still:
        level: Level = "error" if len(still) == len(view.names) else "warning"
        worst = float(np.max(wide[still]))
        text = f"{len(still)} of {len(view.names)} joints move by less than {max(worst, 1e-4):.2g} rad"
        yield view.finding("low_excitation", level, text, "joint_pos", still, score=0.5, largest_range_rad=worst)
    movers = [j for j in view.fair if j not in still]
    if movers and view.rows >= 50:
        yield from _slow(view, movers)
        yield from _narrow(view, movers)


def _slow(view: LogView, movers: list[int]) -> Iterator[Finding]:
    half = max(1, min(round(0.05 / view.dt), view.rows // 8))
    pos = smooth(view.pos[:, movers], half)
    second = (pos[2 * half :] - 2 * pos[half:-half] + pos[: -2 * half]) / (half * view.dt) ** 2
    peak = np.percentile(np.abs(second[half : -half or None]), 98, axis=0)
    bad = [j for j, top in zip(movers, peak, strict=True) if top < SLOW_RAD_S2]
    if bad:
        least = float(np.min(peak))
        text = f"accelerations stay below {least:.2g} to {SLOW_RAD_S2:g} rad/s^2 in {len(bad)} joint(s)"
        yield view.finding("slow_excitation", "note", text, "joint_pos", bad, score=0.3, acceleration_rad_s2=least)


def _narrow(view: LogView, movers: list[int]) -> Iterator[Finding]:
    """One line in the spectrum of the velocity holds nearly everything."""
    window = np.hanning(view.rows - 1)[:, None]
    step = np.diff(view.pos[:, movers], axis=0)
    power = np.abs(np.fft.rfft((step - step.mean(axis=0)) * window, axis=0)) ** 2
    hz = np.fft.rfftfreq(view.rows - 1, view.dt)
    low = hz < max(25.0, 4 * hz[1])  # above, differences are noise
    power, hz = power[low], hz[low]
    bad: dict[int, float] = {}
    for i, j in enumerate(movers):
        peak = float(hz[np.argmax(power[:, i])])
        near = np.abs(hz - peak) <= max(0.1 * peak, 2.5 * hz[1])
        if float(power[near, i].sum() / max(power[:, i].sum(), 1e-300)) > NARROW_SHARE:
            bad[j] = peak
    if bad:
        j, peak = next(iter(bad.items()))
        text = f"{len(bad)} joint(s) move at one frequency only, {view.names[j]} at {peak:.2g} Hz"
        yield view.finding("narrow_excitation", "note", text, "joint_pos", bad, score=0.3, hz=peak)
