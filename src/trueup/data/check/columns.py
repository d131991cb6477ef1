"""Checks of single columns: missing, not finite, frozen, stale, jumping, coarse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.data.check.finding import Finding, Level, make_finding
from trueup.data.check.view import LogView, position_quantum, runs, spread
from trueup.data.log import Log

ANSWER_S = 0.1  # a joint may stand still this long after its command moved: delay and stiction
FROZEN_MOVE_RAD = 0.05
STICTION_RAD = 0.12  # friction and backlash hide a smaller command
COARSE_RAD = 1e-3  # an encoder of 12 bits has 1.5 mrad
NEEDED: dict[str, Level] = {"joint_pos": "error", "target_pos": "warning"}


def check_presence(log: Log) -> Iterator[Finding]:
    """Report missing signals and values that are not finite."""
    for name, level in NEEDED.items():
        if name not in log:
            text = f"the log has no {name}; it has {', '.join(log.signals) or 'nothing'}"
            yield make_finding("signal_missing", level, text, name, score=1.0)
    for name, values in log.signals.items():
        bad = ~np.isfinite(values)
        if bad.any():
            rows, first = int(np.count_nonzero(bad.any(axis=1))), int(np.argmax(bad.any(axis=1)))
            columns = np.flatnonzero(bad.any(axis=0))
            who = [log.joint_names[j] for j in columns] if values.shape[1] == len(log.joint_names) else []
            text = f"{rows} of {len(values)} rows of {name} hold NaN or infinity, first at row {first}"
            share = rows / len(values)
            yield make_finding("not_finite", "error", text, name, who, score=1.0, rows=rows, share=share, row=first)


class Stop(NamedTuple):
    """A stretch of rows where a position reads constant, how far its command went, and whether that proves a fault."""

    proven: bool
    rows: int
    start: int
    command_rad: float


def check_frozen(view: LogView) -> Iterator[Finding]:
    """Report positions that stay exactly constant while the joint must be moving."""
    stuck: dict[int, Stop] = {}
    for j in view.fair:
        stops = [_stop(view, j, *run) for run in runs(np.diff(view.pos[:, j]) == 0)]
        found = [stop for stop in stops if stop is not None]
        if found:
            stuck[j] = max(found, key=lambda stop: stop[:2])
    if not stuck:
        return
    j, worst = max(stuck.items(), key=lambda item: item[1][:2])
    seconds, share = worst.rows * view.dt, worst.rows / view.rows
    cause = "a frozen sensor, or a joint held by a stop" if worst.proven else "a joint held by friction or a stop"
    text = (
        f"{view.names[j]} reads exactly {view.pos[worst.start, j]:.6g} rad for {seconds:.3g} s "
        f"(rows {worst.start} to {worst.start + worst.rows}) while its command moves by {worst.command_rad:.3g} rad: "
        f"{cause}"
    )
    level: Level = ("error" if share > 0.2 else "warning") if worst.proven else "note"
    numbers = {"seconds": seconds, "share": share, "row": worst.start, "command_moved_rad": worst.command_rad}
    view.blamed.update(k for k, stop in stuck.items() if stop.proven and stop.rows > 0.2 * view.rows)
    yield view.finding("frozen", level, text, "joint_pos", sorted(stuck), score=0.6 + share, **numbers)


def _stop(view: LogView, j: int, start: int, stop: int) -> Stop | None:
    """Whether other signals show motion, or a command for it, in rows start..stop where the position is constant."""
    answer = max(6, round(ANSWER_S / view.dt))
    if stop - start < max(10, answer + 4):
        return None
    inside, tail = slice(start, stop - answer), slice(stop - answer, stop + 1)
    commanded, moved = (
        float(np.ptp(view.target[rows, j])) if view.target is not None else 0.0 for rows in (tail, inside)
    )
    steps = np.abs(np.diff(view.pos[:, j]))
    quick = float(np.percentile(steps, 99.5))
    fastest = float(np.delete(steps, min(stop, len(steps) - 1)).max(initial=0.0))
    leap = abs(float(view.pos[min(stop + 1, view.rows - 1), j] - view.pos[stop, j]))
    # a jump at the end proves motion in between, unless a fresh command explains it: then it is no faster than others
    sudden = (leap > 3 * quick and commanded < 0.5 * leap) or leap > 1.8 * fastest > 0
    leapt = leap > max(0.02, 8 * view.noise[j]) and sudden and _caught_up(view, j, start, stop)
    wide = float(spread(view.pos[:, j : j + 1])[0])
    travel = float(np.ptp(np.cumsum(view.vel[inside, j]))) * view.dt if view.vel is not None else 0.0
    span = float(spread(view.target[:, j : j + 1])[0]) if view.target is not None else np.inf
    silent = _silent(view, j, start, stop)
    ignored = moved > max(FROZEN_MOVE_RAD, 0.4 * span)
    proven = leapt or silent or travel > max(FROZEN_MOVE_RAD, 0.2 * wide) or (ignored and moved > STICTION_RAD)
    return Stop(proven, stop - start, start, moved) if proven or ignored else None


def _caught_up(view: LogView, j: int, start: int, stop: int) -> bool:
    """Whether the step after rows start..stop can be stick-slip: not undone, and along the command."""
    after = view.pos[stop : stop + 3, j] - view.pos[stop, j]
    if len(after) > 2 and abs(float(after[2])) < 0.3 * abs(float(after[1])):
        return False
    if view.target is None or len(after) < 2:
        return True
    moved = float(np.ptp(view.target[start : stop + 1, j]))
    left = float(view.target[stop, j] - view.pos[stop, j])
    return moved > 0.3 * abs(float(after[1])) or abs(left - float(after[1])) < abs(left)


def _silent(view: LogView, j: int, start: int, stop: int) -> bool:
    """Whether the encoder's usual noise at rest is missing in rows start..stop."""
    pos = view.pos[:, j]
    if view.quantum[j] > 0.7 * view.noise[j]:  # a coarse encoder is silent between two steps
        return False
    rests = np.abs(pos[8:] - pos[:-8]) < 6 * np.hypot(view.noise[j], view.quantum[j])
    same = np.diff(pos)[4 : 4 + len(rests)] == 0
    elsewhere = np.ones(len(rests), bool)
    elsewhere[max(0, start - 12) : stop + 4] = False
    quiet = rests & elsewhere
    if np.count_nonzero(quiet) < 100:
        return False
    return bool(np.mean(same[quiet]) ** (stop - start) < 1e-9)


def check_stale(view: LogView) -> Iterator[Finding]:
    """Report positions that repeat exactly while the joint moves by several quanta a row."""
    shares: dict[int, float] = {}
    for j in view.fair if view.rows >= 60 else ():
        pos = view.pos[:, j]
        pace = np.abs(pos[4:] - pos[:-4]) / 4
        pace = np.minimum(pace[:-5], pace[5:])  # before and after the step: it must move on both sides
        repeats = np.diff(pos)[4 : 4 + len(pace)] == 0
        sure = pace > max(3 * view.quantum[j], float(np.percentile(pace, 60)), 1e-6)
        if np.count_nonzero(sure) >= 40 and np.mean(repeats[sure]) > 0.3:
            shares[j] = float(np.mean(repeats[sure]))
    if shares:
        share = float(np.median(list(shares.values())))
        true_hz = (1 - share) / view.dt
        text = (
            f"{share:.0%} of the rows repeat the position before while the joint moves: "
            f"new values come at about {true_hz:.3g} Hz in a log of {1 / view.dt:.4g} Hz"
        )
        view.blamed.update(shares)
        numbers = {"share": share, "true_hz": true_hz}
        yield view.finding("stale_samples", "warning", text, "joint_pos", sorted(shares), score=share, **numbers)


def check_jumps(view: LogView) -> Iterator[Finding]:
    """Report single steps that no joint can make: full turns, and jumps that contradict velocity and neighbours."""
    wraps: dict[int, int] = {}
    leaps: dict[int, tuple[float, int]] = {}
    for j in view.fair:
        step = np.diff(view.pos[:, j])
        turns = np.count_nonzero(np.abs(np.abs(step) - 2 * np.pi) < 0.35)
        if turns:
            wraps[j] = int(turns)
            continue
        rows = _impossible(view, j, step)
        if len(rows):
            row = int(rows[np.argmax(np.abs(step[rows]))])
            leaps[j] = (abs(float(step[row])), row)
    if wraps:
        times = sum(wraps.values())
        text = f"the position leaps by a full turn {times} time(s)"
        yield view.finding("encoder_wrap", "error", text, "joint_pos", wraps, times=times)
    if leaps:
        j, (size, row) = max(leaps.items(), key=lambda item: item[1][0])
        text = (
            f"{view.names[j]} moves by {size:.3g} rad between rows {row} and {row + 1}: {size / view.dt:.3g} rad/s, "
            f"which its limit, its velocity column or the rows around deny"
        )
        numbers = {"step_rad": size, "speed_rad_s": size / view.dt, "row": row}
        yield view.finding("encoder_jump", "warning", text, "joint_pos", leaps, score=0.7, **numbers)
    view.blamed.update(wraps, leaps)


def _impossible(view: LogView, j: int, step: FloatArray) -> NDArray[np.intp]:
    """Rows before impossible steps."""
    size = np.abs(step)
    noise = 8 * view.noise[j] + 2 * view.quantum[j]
    padded = np.pad(size, 2, mode="edge")
    around = np.max(np.stack([padded[k : k + len(size)] for k in (0, 1, 3, 4)]), axis=0)
    alone = (size > 3 * around + noise) & (size > max(0.03, noise)) & view.regular
    fast = np.zeros_like(size)
    if view.vel is not None:
        fast = np.maximum(np.abs(view.vel[1:, j]), np.abs(view.vel[:-1, j])) * view.dt
        alone &= size > 4 * fast + noise
    else:
        alone &= size > 10 * float(np.percentile(size, 99)) + noise
    spike = np.zeros_like(alone)  # there and back: both steps are large, so neither is alone
    spike[:-1] = (np.abs(step[:-1] + step[1:]) < 0.3 * size[:-1]) & (size[:-1] > max(0.03, noise))
    outer = np.max(np.stack([padded[k : k + len(size)] for k in (0, 1, 4)]), axis=0)
    spike &= size > 4 * outer + noise
    strange = alone | spike
    if view.reference is not None:
        limit = float(view.reference.velocity_limit[j]) * view.dt
        # above the limit for many rows is fast motion, not a jump
        strange |= (size > 1.5 * limit + noise) & (size > np.maximum(1.5 * outer, 2 * fast)) & view.regular
    # steps that end a standstill and catch up with the command are reported as frozen
    still = max(10, round(ANSWER_S / view.dt))
    rows = [int(k) for k in np.flatnonzero(strange)]
    released = [k >= still and not size[k - still : k].any() and _caught_up(view, j, k - still, k) for k in rows]
    return np.array(rows, np.intp)[~np.array(released, bool)]


def check_quantisation(view: LogView) -> Iterator[Finding]:
    """Note positions and velocities that come in coarse steps."""
    coarse = [j for j in view.fair if view.quantum[j] > COARSE_RAD]
    if coarse:
        worst = float(np.max(view.quantum[coarse]))
        speed = worst / view.dt
        text = f"positions come in steps of {1e3 * worst:.3g} mrad: one step a row is {speed:.3g} rad/s"
        numbers = {"quantum_rad": worst, "speed_rad_s": speed}
        yield view.finding("quantisation", "note", text, "joint_pos", coarse, score=0.3, **numbers)
    if view.vel is not None:
        step, top = position_quantum(view.vel), np.percentile(np.abs(view.vel), 99, axis=0)
        rough = [j for j in view.fair if step[j] > 0.05 * top[j] > 0]
        if rough:
            worst = float(np.max(step[rough]))
            text = f"velocities come in steps of {worst:.3g} rad/s, over a twentieth of the fastest motion"
            yield view.finding("quantisation", "note", text, "joint_vel", rough, score=0.3, quantum_rad_s=worst)
