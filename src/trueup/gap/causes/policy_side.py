"""Hypotheses about the policy's side: normaliser, rate, delay of its loop; tested by replaying the policy.

The right one leaves an error of sensor noise, any other a large error at every step: neither simulation nor tuning is
needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.gap.causes.policy_replay import Feeding, PolicyReplay, Rows, control_steps, not_replayable, with_constants
from trueup.gap.causes.search import Tested
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.policy.graph.policy_onnx import MEAN, SCALE
from trueup.policy.normalizer import EPS

_LEAST, _FEW, _MOST, _BLOCK = 8, 24, 160, 8  # numbers of steps: needed, to choose, to test, in one block
_LAGS, _TRIED = 3.5, 20  # control periods; delays that are tried
_FITS = 0.2  # of the usual change of targets in one step: a smaller error is sensor noise
_PLAIN = 0.25  # of the square error under the passport's own input: another input must leave less
_LATE = 0.5  # of a control period: states of an ordinary loop are newer
_RATE = 0.05
_LARGE = np.array(1e9)


class PolicySide(NamedTuple):
    """Causes on the policy's side before ranking, with errors of every step; `note` is for the result."""

    causes: tuple[Tested, ...]
    held: np.ndarray
    note: str


def try_policy(bundle: PolicyBundle, log: Log) -> PolicySide:
    """Replay the policy on a log, with the passport's input and with faulty variants."""
    nothing = np.zeros(0, np.bool_)
    why = not_replayable(bundle, log)
    steps = None if why else control_steps(log)
    replay = None if steps is None else PolicyReplay(bundle=bundle, log=log, steps=steps)
    if replay is None or len(replay.steps.rows) < replay.first + _LEAST:
        return PolicySide((), nothing, f"the policy was not computed again: {why or 'it ran too few steps'}")
    at = np.arange(replay.first, len(replay.steps.rows))
    at = at[np.unique(np.linspace(0, len(at) - 1, min(_MOST, len(at))).astype(np.intp))]
    held = np.arange(len(at)) // min(_BLOCK, len(at) // 4) % 2 == 1
    return _decided(replay, at, held)


def feedings(bundle: PolicyBundle) -> Iterator[Feeding]:
    """The passport's own first, then common faults: statistics missing or mistaken, missing scales."""
    seen, graph = bundle.passport.policy.observation, bundle.graph
    yield Feeding("", seen, graph)
    facts = bundle.passport.normalizer
    if facts is not None:
        mean, std = np.array(facts.mean), np.array(facts.std)
        scale = 1.0 / (std + EPS)
        raw = {MEAN: 0.0 * mean, SCALE: np.ones_like(mean), "low": -_LARGE, "high": _LARGE}  # and no bounds
        yield Feeding("without its normaliser", seen, with_constants(graph, **raw))
        yield Feeding("with a normaliser without means", seen, with_constants(graph, **{MEAN: 0.0 * mean}))
        yield Feeding("with a normaliser that divides by the variance", seen,
                      with_constants(graph, **{SCALE: 1.0 / (std**2 + EPS)}))  # fmt: skip
        yield Feeding("with observations normalised twice", seen,
                      with_constants(graph, **{MEAN: mean + mean / scale, SCALE: scale**2}))  # fmt: skip
        ranges = bundle.passport.ranges
        if ranges is not None:
            other = {MEAN: np.array(ranges.mean), SCALE: 1.0 / (np.array(ranges.std) + EPS)}
            yield Feeding("with statistics of another run", seen, with_constants(graph, **other))
    # of the command, which is solved for, no scale can be told
    known = [(k, term) for k, term in enumerate(seen.terms) if term.signal != "command"]
    scaled = [k for k, term in known if np.any(np.array(term.scale) != 1.0)]
    for some in [*([k] for k in scaled), *([scaled] if len(scaled) > 1 else [])]:
        terms = tuple(
            msgspec.structs.replace(term, scale=1.0) if k in some else term for k, term in enumerate(seen.terms)
        )
        names = " and ".join(seen.terms[k].signal for k in some)
        yield Feeding(f"without the scale of {names}", msgspec.structs.replace(seen, terms=terms), graph)


def _decided(replay: PolicyReplay, at: Rows, held: np.ndarray) -> PolicySide:
    every, lags = list(feedings(replay.bundle)), _lags(replay)
    fit = at[~held]
    few = fit[np.linspace(0, len(fit) - 1, min(_FEW, len(fit))).astype(np.intp)]
    rough = np.array([[np.median(replay.errors(one, int(lag), few)) for lag in lags] for one in every])
    usual = replay.errors(every[0], int(lags[rough[0].argmin()]), at)
    best = int(rough.min(axis=1).argmin())
    after = usual if best == 0 else replay.errors(every[best], int(lags[rough[best].argmin()]), at)
    if not _plainly_less(after, usual):
        best, after = 0, usual
    left, moved = float(np.sqrt(np.median(after))), replay.spread(at)
    if left > _FITS * moved:
        told = f"the best is {1e3 * left:.0f} mrad from its targets, which move by {1e3 * moved:.0f} in a step"
        return PolicySide((), held, f"the policy of the bundle does not give the recorded targets: {told}")
    causes = _of_rate(replay, at)
    if late := _of_delay(replay, every[best], lags, rough[best], at, after):
        causes.insert(0, late)
    if best != 0:
        words = every[best].words
        causes.insert(0, _tested("normaliser", 1.0, "change of what the policy sees", words, usual, after))
    return PolicySide(tuple(causes), held, f"the policy computed again is {1e3 * left:.1f} mrad from its targets")


def _lags(replay: PolicyReplay) -> Rows:
    """Rows by which the states that the policy acted on may be older than its targets."""
    most = int(_LAGS * replay.steps.period_s / replay.row_s)
    return np.unique(np.linspace(0, most, min(most, _TRIED) + 1).astype(np.intp))


def _of_delay(
    replay: PolicyReplay, feeding: Feeding, lags: Rows, rough: FloatArray, at: Rows, after: FloatArray
) -> Tested | None:
    """States that are older than any ordinary loop's, where younger ones leave plainly more."""
    row_s, period_s = replay.row_s, replay.steps.period_s
    ordinary, late = lags * row_s < _LATE * period_s, int(lags[rough.argmin()])
    in_time = int(lags[ordinary][rough[ordinary].argmin()])
    if late == in_time:
        return None
    before = replay.errors(feeding, in_time, at)
    words = f"{1e3 * late * row_s:.0f} ms ({late * row_s / period_s:.1f} control steps) late"
    return _tested("loop delay", late * row_s, "s", words, before, after) if _plainly_less(after, before) else None


def _of_rate(replay: PolicyReplay, at: Rows) -> list[Tested]:
    """Another rate than the passport's."""
    hz, period_s, log = replay.bundle.passport.policy.control_hz, replay.steps.period_s, replay.log
    if abs(np.log(period_s * hz)) <= _RATE:
        return []
    words = f"at {1.0 / period_s:.1f} Hz, where its passport says {hz:g} Hz"
    gaps = log.time[replay.steps.rows[at]] - log.time[replay.steps.rows[at - 1]]
    before, after = np.square(gaps - 1.0 / hz), np.square(gaps - period_s)
    return [_tested("policy rate", 1.0 / period_s, "Hz", words, before, after)]


def _plainly_less(one: FloatArray, other: FloatArray) -> bool:
    """Whether an explanation leaves so little that sensor noise cannot have chosen it."""
    return bool(np.median(one) < _PLAIN * np.median(other))


def _tested(cause: str, size: float, unit: str, words: str, before: FloatArray, after: FloatArray) -> Tested:
    told = f"targets are those of the policy {words}"
    if cause != "policy rate":
        near, far = (1e3 * float(np.sqrt(np.median(one))) for one in (after, before))
        told += f": {near:.1f} mrad apart, {far:.0f} as the passport says"
    return Tested(cause=cause, joints=(), size=size, unit=unit, before=before, after=after, matters=True, evidence=told)
