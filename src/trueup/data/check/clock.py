"""Checks of the time column: unit, order, gaps, jitter, rate, and clocks of other streams against it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.data.check.finding import Finding, Level, make_finding
from trueup.data.check.view import BoolArray, FloatArray
from trueup.data.reference import Reference

# a row every half second or slower is no robot log: the column is in another unit
SLOWEST_ROW_S = 0.45
UNITS = (("milliseconds", 1e-3), ("microseconds", 1e-6), ("nanoseconds", 1e-9))
LARGEST_STAMP = 1e19
FASTEST_ROW_S = 1e-5
GAP = 1.8  # a step longer than this many median steps has lost a row
JITTER = 0.25  # 5th to 95th percentile of the steps, in steps
DRIFT_S = 0.002  # accumulated over the log; less does not matter for any delay
DRIFT_PPM = 50.0  # crystals are better than this


def time_scale(time: FloatArray) -> tuple[str, float]:
    """The unit of a time column by its median step, and its factor to seconds."""
    steps = np.diff(time[_sane(time)])
    steps = steps[steps > 0]
    step = float(np.median(steps)) if len(steps) else 0.0
    if step < SLOWEST_ROW_S:
        return "seconds", 1.0
    for name, factor in UNITS:
        if step * factor < SLOWEST_ROW_S:
            return name, factor
    return "seconds", 1.0


def row_time(time: FloatArray, scale: float) -> float:
    """Median step in seconds over steps that go forward; 1 s when there is none."""
    steps = np.diff(time[_sane(time)])
    steps = steps[steps > 0] * scale
    return max(float(np.median(steps)), FASTEST_ROW_S) if len(steps) else 1.0


def _sane(time: FloatArray) -> BoolArray:
    """Stamps that can be one: finite, and no further away than nanoseconds since an epoch are."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(time) < LARGEST_STAMP)


def check_time(time: FloatArray, reference: Reference | None) -> list[Finding]:
    """Every check that needs the time column only."""
    bad = int(np.count_nonzero(~_sane(time)))
    if bad:
        text = f"{bad} of {len(time)} time stamps are not finite or beyond any clock"
        return [make_finding("not_finite", "error", text, signal="time", score=1.0, numbers={"rows": bad})]
    unit, scale = time_scale(time)
    found = _unit(time, unit, scale) + _length(time * scale)
    if len(time) < 3:
        return found
    steps, dt = np.diff(time) * scale, row_time(time, scale)
    return found + _order(steps) + _gaps(steps, dt) + _jitter(steps, dt) + _rate(steps, dt, reference)


def _unit(time: FloatArray, unit: str, scale: float) -> list[Finding]:
    if scale == 1.0:
        return []
    step = row_time(time, 1.0)
    text = f"the median step is {step:.6g}: as seconds {1 / step:.3g} Hz, as {unit} {1 / (step * scale):.4g} Hz"
    numbers = {"median_step": step, "scale": scale}
    return [make_finding("time_unit", "error", text, signal="time", score=0.95, numbers=numbers)]


def _length(time: FloatArray) -> list[Finding]:
    seconds = float(np.max(time) - np.min(time)) if len(time) else 0.0
    if len(time) >= 50 and seconds >= 2.0:
        return []
    level: Level = "error" if len(time) < 20 or seconds < 0.5 else "warning"
    text = f"{len(time)} rows over {seconds:.3g} s"
    numbers = {"rows": len(time), "seconds": seconds}
    return [make_finding("too_short", level, text, score=0.9, numbers=numbers)]


def _order(steps: FloatArray) -> list[Finding]:
    found = []
    back, same = np.flatnonzero(steps < 0), np.flatnonzero(steps == 0)
    if len(back):
        worst = int(back[np.argmin(steps[back])])
        text = f"time goes backward {len(back)} times, most at row {worst + 1}: {steps[worst]:.6g} s"
        numbers = {"times": len(back), "worst_s": steps[worst], "row": worst + 1}
        found.append(make_finding("time_backward", "error", text, signal="time", score=1.0, numbers=numbers))
    if len(same):
        share = len(same) / len(steps)
        text = f"{len(same)} rows ({share:.2%}) have the stamp of the row before, first at row {int(same[0]) + 1}"
        level: Level = "error" if share > 0.05 else "warning"
        numbers = {"times": len(same), "share": share, "row": int(same[0]) + 1}
        found.append(make_finding("time_duplicate", level, text, signal="time", score=0.6 + share, numbers=numbers))
    return found


def _gaps(steps: FloatArray, dt: float) -> list[Finding]:
    # an uneven clock has long steps of its own, which are told as jitter
    longest = max(GAP * dt, dt + 3 * (float(np.percentile(steps, 90)) - dt))
    gaps = [k for k in np.flatnonzero(steps > longest) if _missing(steps, int(k), dt) > 0.8 * dt]
    if not gaps:
        return []
    lost = sum(_missing(steps, int(k), dt) for k in gaps)
    share = lost / float(np.sum(np.abs(steps)))
    worst = int(max(gaps, key=lambda k: float(steps[k])))
    text = (
        f"{len(gaps)} gap(s), {lost:.3g} s ({share:.1%} of the log) missing; "
        f"longest {steps[worst]:.3g} s after row {worst} (a row takes {1e3 * dt:.3g} ms)"
    )
    level: Level = "error" if share > 0.1 else "warning"
    numbers = {"gaps": len(gaps), "lost_s": lost, "longest_s": steps[worst], "row": worst}
    return [make_finding("time_gap", level, text, signal="time", score=0.5 + share, numbers=numbers)]


def _missing(steps: FloatArray, k: int, dt: float) -> float:
    """Seconds missing around a long step; duplicate or backward stamps beside it only moved them."""
    near = steps[max(0, k - 5) : k + 6]
    moved = dt if np.any(near <= 0) else 0.0  # the window may begin or end on such a stamp
    return float(np.sum(near)) - len(near) * dt - moved


def _jitter(steps: FloatArray, dt: float) -> list[Finding]:
    fair = steps[steps > 0]
    if len(fair) < max(50, 0.98 * len(steps)):  # duplicates and steps back are told by themselves
        return []
    # in parts, so that a change of rate is not taken for jitter
    ends = np.array([np.percentile(part, [5, 95]) for part in np.array_split(fair, 5)])
    low, high = np.median(ends, axis=0)
    wide = float(np.median(ends[:, 1] - ends[:, 0])) / dt
    if wide < JITTER:
        return []
    text = f"nine of ten steps lie between {1e3 * low:.3g} and {1e3 * high:.3g} ms, the median is {1e3 * dt:.3g} ms"
    numbers = {"p5_s": low, "p95_s": high, "median_s": dt}
    return [
        make_finding("time_jitter", "warning", text, signal="time", score=min(0.9, 0.3 + wide / 2), numbers=numbers)
    ]


def _rate(steps: FloatArray, dt: float, reference: Reference | None) -> list[Finding]:
    found = []
    rate = 1.0 / dt
    wanted = reference.control_hz if reference is not None else 0.0
    if rate < 0.9 * wanted or rate < 45.0:
        than = f"the robot is controlled at {wanted:g} Hz" if rate < 0.9 * wanted else "servos answer within 20 ms"
        text = f"rows come at {rate:.4g} Hz, {than}"
        found.append(make_finding("rate_low", "warning", text, signal="time", score=0.4, numbers={"rate_hz": rate}))
    elif rate < 105.0:
        text = f"rows come at {rate:.4g} Hz: one row is {1e3 * dt:.3g} ms, as long as a usual delay"
        found.append(make_finding("rate_low", "note", text, signal="time", score=0.2, numbers={"rate_hz": rate}))
    fair = steps[np.abs(steps) < 2 * GAP * dt]
    if len(fair) >= 100:
        parts = [float(np.mean(part)) for part in np.array_split(fair, 5)]
        change = max(parts) / max(min(parts), 1e-12)
        if change > 1.03:
            text = f"the rate lies between {1 / max(parts):.4g} and {1 / min(parts):.4g} Hz in five parts of the log"
            numbers = {"low_hz": 1 / max(parts), "high_hz": 1 / min(parts)}
            found.append(make_finding("rate_change", "warning", text, signal="time", score=0.6, numbers=numbers))
    return found


def check_streams(time: FloatArray, streams: Mapping[str, FloatArray]) -> list[Finding]:
    """Compare the stamps of each stream with the log's clock.

    A stream is (T,), its own stamp for every row, or (N, 2), columns (own stamp, log time). Latency makes single
    differences noisy but never early, so the lower envelope in twenty parts is what is looked at.
    """
    found: list[Finding] = []
    for name, stamps in streams.items():
        own, here = (stamps[:, 0], stamps[:, 1]) if stamps.ndim == 2 else (stamps, time)
        comparable = own.shape == here.shape and len(own) >= 40 and bool(np.all(_sane(own) & _sane(here)))
        if not comparable or float(np.ptp(here)) < 1e-3:
            text = f"{len(own)} stamps for {len(here)} rows, 40 finite ones over time needed: clocks not compared"
            found.append(make_finding("clock_drift", "note", text, signal=name, score=0.1))
            continue
        found += _clock(name, own, here)
    return found


def _clock(name: str, own: FloatArray, here: FloatArray) -> list[Finding]:
    late = here - own
    late = late - float(np.median(late))
    parts = [np.array_split(x, 20) for x in (here - here[0], late)]
    middle = np.array([float(np.mean(x)) for x in parts[0]])
    floor = np.array([float(np.percentile(x, 10)) for x in parts[1]])
    noise = float(np.median(np.abs(late - np.repeat(floor, [len(x) for x in parts[1]]))))
    jumps = np.diff(floor)
    largest = int(np.argmax(np.abs(jumps)))
    others = float(np.median(np.abs(jumps)))
    span = float(np.ptp(here))
    if abs(jumps[largest]) > max(0.005, 8 * others, 2 * noise):
        at = float(middle[largest] + middle[largest + 1]) / 2
        text = f"stream {name!r} leaps by {1e3 * jumps[largest]:+.3g} ms against the log's clock at {at:.3g} s"
        numbers = {"jump_s": jumps[largest], "at_s": at}
        return [make_finding("clock_jump", "error", text, signal=name, score=0.9, numbers=numbers)]
    slope = float(np.polyfit(middle, floor, 1)[0])
    total, ppm = slope * span, 1e6 * slope
    if abs(total) < max(DRIFT_S, noise) or abs(ppm) < DRIFT_PPM:
        return []
    text = f"stream {name!r} drifts by {ppm:+.0f} ppm against the log's clock: {1e3 * total:+.3g} ms over {span:.3g} s"
    level: Level = "error" if abs(total) > 0.02 else "warning"
    numbers = {"ppm": ppm, "total_s": total, "seconds": span}
    return [make_finding("clock_drift", level, text, signal=name, score=0.7, numbers=numbers)]
