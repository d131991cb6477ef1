"""Checks of the time column: unit, order, gaps, jitter, rate, and clocks of other streams against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.check.finding import Finding, Level, make_finding
from trueup.data.check.view import BoolArray
from trueup.data.log import RobotReference

# a row every half second or slower is no robot log: the column is in another unit
SLOWEST_ROW_S = 0.45
UNITS = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
LARGEST_STAMP = 1e19
FASTEST_ROW_S = 1e-5
GAP = 1.8  # a step longer than this many median steps has lost a row
JITTER = 0.25  # 5th to 95th percentile of the steps, in steps
DRIFT_S = 0.002  # accumulated over the log; less does not matter for any delay
DRIFT_PPM = 50.0  # crystals are better than this


def time_unit(time: FloatArray) -> str:
    """The unit of a time column by its median step."""
    steps = _forward(time)
    step = float(np.median(steps)) if len(steps) else 0.0
    return next((name for name, factor in UNITS.items() if step * factor < SLOWEST_ROW_S), "seconds")


def row_time(time: FloatArray, scale: float) -> float:
    """Median step in seconds over steps that go forward; 1 s when there is none."""
    steps = _forward(time) * scale
    return max(float(np.median(steps)), FASTEST_ROW_S) if len(steps) else 1.0


def _forward(time: FloatArray) -> FloatArray:
    steps = np.diff(time[_sane(time)])
    return steps[steps > 0]


def _sane(time: FloatArray) -> BoolArray:
    """Plausible stamps: finite, and no larger than nanoseconds since an epoch."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(time) < LARGEST_STAMP)


def check_time(time: FloatArray, reference: RobotReference | None) -> Iterator[Finding]:
    """Every check that needs the time column only."""
    bad = int(np.count_nonzero(~_sane(time)))
    if bad:
        text = f"{bad} of {len(time)} time stamps are not finite or beyond any clock"
        yield make_finding("not_finite", "error", text, "time", score=1.0, rows=bad)
        return
    unit = time_unit(time)
    scale = UNITS[unit]
    if scale != 1.0:
        step = row_time(time, 1.0)
        text = f"the median step is {step:.6g}: as seconds {1 / step:.3g} Hz, as {unit} {1 / (step * scale):.4g} Hz"
        yield make_finding("time_unit", "error", text, "time", score=0.95, median_step=step, scale=scale)
    seconds = float(np.ptp(time * scale)) if len(time) else 0.0
    if len(time) < 50 or seconds < 2.0:
        text = f"{len(time)} rows over {seconds:.3g} s"
        level: Level = "error" if len(time) < 20 or seconds < 0.5 else "warning"
        yield make_finding("too_short", level, text, score=0.9, rows=len(time), seconds=seconds)
    if len(time) >= 3:
        steps, dt = np.diff(time) * scale, row_time(time, scale)
        yield from _order(steps)
        yield from _gaps(steps, dt)
        yield from _jitter(steps, dt)
        yield from _rate(steps, dt, reference)


def _order(steps: FloatArray) -> Iterator[Finding]:
    back, same = np.flatnonzero(steps < 0), np.flatnonzero(steps == 0)
    if len(back):
        row = int(back[np.argmin(steps[back])])
        text = f"time goes backward {len(back)} times, most at row {row + 1}: {steps[row]:.6g} s"
        numbers = {"times": len(back), "worst_s": steps[row], "row": row + 1}
        yield make_finding("time_backward", "error", text, "time", score=1.0, **numbers)
    if len(same):
        share, row = len(same) / len(steps), int(same[0]) + 1
        text = f"{len(same)} rows ({share:.2%}) have the stamp of the row before, first at row {row}"
        level: Level = "error" if share > 0.05 else "warning"
        numbers = {"times": len(same), "share": share, "row": row}
        yield make_finding("time_duplicate", level, text, "time", score=0.6 + share, **numbers)


def _gaps(steps: FloatArray, dt: float) -> Iterator[Finding]:
    # long steps of an uneven clock are reported as jitter
    longest = max(GAP * dt, dt + 3 * (float(np.percentile(steps, 90)) - dt))
    gaps = [int(k) for k in np.flatnonzero(steps > longest) if _missing(steps, int(k), dt) > 0.8 * dt]
    if gaps:
        lost = sum(_missing(steps, k, dt) for k in gaps)
        share = lost / float(np.sum(np.abs(steps)))
        worst = max(gaps, key=lambda k: float(steps[k]))
        text = (
            f"{len(gaps)} gap(s), {lost:.3g} s ({share:.1%} of the log) missing; "
            f"longest {steps[worst]:.3g} s after row {worst} (a row takes {1e3 * dt:.3g} ms)"
        )
        level: Level = "error" if share > 0.1 else "warning"
        numbers = {"gaps": len(gaps), "lost_s": lost, "longest_s": steps[worst], "row": worst}
        yield make_finding("time_gap", level, text, "time", score=0.5 + share, **numbers)


def _missing(steps: FloatArray, k: int, dt: float) -> float:
    """Seconds missing around a long step; duplicate or backward stamps beside it only shift rows."""
    near = steps[max(0, k - 5) : k + 6]
    moved = dt if np.any(near <= 0) else 0.0  # the window may begin or end on such a stamp
    return float(np.sum(near)) - len(near) * dt - moved


def _jitter(steps: FloatArray, dt: float) -> Iterator[Finding]:
    fair = steps[steps > 0]
    if len(fair) < max(50, 0.98 * len(steps)):  # duplicates and steps back are reported separately
        return
    # in parts, so that a change of rate is not taken for jitter
    ends = np.array([np.percentile(part, [5, 95]) for part in np.array_split(fair, 5)])
    low, high = np.median(ends, axis=0)
    wide = float(np.median(ends[:, 1] - ends[:, 0])) / dt
    if wide >= JITTER:
        text = f"nine of ten steps lie between {1e3 * low:.3g} and {1e3 * high:.3g} ms, the median is {1e3 * dt:.3g} ms"
        numbers = {"p5_s": low, "p95_s": high, "median_s": dt}
        yield make_finding("time_jitter", "warning", text, "time", score=min(0.9, 0.3 + wide / 2), **numbers)


def _rate(steps: FloatArray, dt: float, reference: RobotReference | None) -> Iterator[Finding]:
    rate = 1.0 / dt
    wanted = reference.control_hz if reference is not None else 0.0
    if rate < 0.9 * wanted or rate < 45.0:
        than = f"the robot is controlled at {wanted:g} Hz" if rate < 0.9 * wanted else "servos answer within 20 ms"
        text = f"rows come at {rate:.4g} Hz, {than}"
        yield make_finding("rate_low", "warning", text, "time", score=0.4, rate_hz=rate)
    elif rate < 105.0:
        text = f"rows come at {rate:.4g} Hz: one row is {1e3 * dt:.3g} ms, as long as a usual delay"
        yield make_finding("rate_low", "note", text, "time", score=0.2, rate_hz=rate)
    fair = steps[np.abs(steps) < 2 * GAP * dt]
    if len(fair) >= 100:
        parts = [float(np.mean(part)) for part in np.array_split(fair, 5)]
        if max(parts) / max(min(parts), 1e-12) > 1.03:
            low, high = 1 / max(parts), 1 / min(parts)
            text = f"the rate lies between {low:.4g} and {high:.4g} Hz in five parts of the log"
            yield make_finding("rate_change", "warning", text, "time", score=0.6, low_hz=low, high_hz=high)


def check_streams(time: FloatArray, streams: Mapping[str, FloatArray]) -> Iterator[Finding]:
    """Compare the stamps of each stream with the log's clock.

    A stream is (T,), its own stamp for every row, or (N, 2), columns (own stamp, log time). Latency makes single
    differences noisy but never early, so the lower envelope in twenty parts is compared.
    """
    for name, stamps in streams.items():
        own, here = (stamps[:, 0], stamps[:, 1]) if stamps.ndim == 2 else (stamps, time)
        comparable = own.shape == here.shape and len(own) >= 40 and bool(np.all(_sane(own) & _sane(here)))
        if comparable and float(np.ptp(here)) >= 1e-3:
            yield from _clock(name, own, here)
        else:
            text = f"{len(own)} stamps for {len(here)} rows, 40 finite ones over time needed: clocks not compared"
            yield make_finding("clock_drift", "note", text, name, score=0.1)


def _clock(name: str, own: FloatArray, here: FloatArray) -> Iterator[Finding]:
    late = here - own
    late = late - float(np.median(late))
    parts = np.array_split(late, 20)
    middle = np.array([float(np.mean(x)) for x in np.array_split(here - here[0], 20)])
    floor = np.array([float(np.percentile(x, 10)) for x in parts])
    noise = float(np.median(np.abs(late - np.repeat(floor, [len(x) for x in parts]))))
    jumps = np.diff(floor)
    largest = int(np.argmax(np.abs(jumps)))
    jump, span = jumps[largest], float(np.ptp(here))
    slope = float(np.polyfit(middle, floor, 1)[0])
    total, ppm = slope * span, 1e6 * slope
    if abs(jump) > max(0.005, 8 * float(np.median(np.abs(jumps))), 2 * noise):
        at = float(middle[largest] + middle[largest + 1]) / 2
        text = f"stream {name!r} leaps by {1e3 * jump:+.3g} ms against the log's clock at {at:.3g} s"
        yield make_finding("clock_jump", "error", text, name, score=0.9, jump_s=jump, at_s=at)
    elif abs(total) >= max(DRIFT_S, noise) and abs(ppm) >= DRIFT_PPM:
        drift = f"{ppm:+.0f} ppm against the log's clock: {1e3 * total:+.3g} ms over {span:.3g} s"
        level: Level = "error" if abs(total) > 0.02 else "warning"
        numbers = {"ppm": ppm, "total_s": total, "seconds": span}
        yield make_finding("clock_drift", level, f"stream {name!r} drifts by {drift}", name, score=0.7, **numbers)
