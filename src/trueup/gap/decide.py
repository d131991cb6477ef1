"""The decision: which change explains most of the mismatch on windows it was not estimated on.

A cause counts if its size matters, if the 90 % interval of what it explains (bootstrap over held-out windows) lies
above what a log of the model itself gains by the same search, and above `LEAST`. Causes that explain as much as the
first within what the windows can tell are tied; of tied ones the one with fewer numbers comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trueup.core.arrays import FloatArray, Mask
from trueup.gap.causes.search import Tested

LEAST = 0.06  # of the mismatch that a cause must explain at least
_DRAWS = 500
_TIE = 0.02  # of the mismatch: explanations that differ by less are told as equal
_STEP_PRICE = 0.004  # per number, in the order only


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A tested cause with what the bootstrap says about it."""

    tested: Tested
    explained: float
    interval: tuple[float, float]
    confidence: float
    tied: bool


def best_of_each(tested: Sequence[Tested], held: Mask) -> list[Tested]:
    """One hypothesis for each cause: the one that explains most of the half it was estimated on."""
    best: dict[str, Tested] = {}
    for one in tested:
        if one.cause not in best or one.explained(~held) > best[one.cause].explained(~held):
            best[one.cause] = one
    return list(best.values())


def draws(tested: Sequence[Tested], held: Mask, seed: int) -> FloatArray:
    """Explained shares (draw, cause) of held-out windows drawn with replacement, neighbours together."""
    blocks = np.split(np.flatnonzero(held), np.flatnonzero(np.diff(np.flatnonzero(held)) > 1) + 1)
    size = min(len(one) for one in blocks)
    some = np.stack([one[:size] for one in blocks])
    chosen = some[np.random.default_rng(seed).choice(len(some), (_DRAWS, len(some)))].reshape(_DRAWS, -1)
    before = np.stack([one.before[chosen].sum(axis=1) for one in tested], axis=1)
    after = np.stack([one.after[chosen].sum(axis=1) for one in tested], axis=1)
    return np.asarray(1.0 - after / np.maximum(before, 1e-12))


def suspects(tested: Sequence[Tested], held: Mask, seed: int) -> list[Tested]:
    """Causes that matter and whose interval lies above `LEAST`, before chance is known; what explains most first."""
    known = [one for one in tested if one.matters]
    if not known:
        return []
    low = np.quantile(draws(known, held, seed), 0.05, axis=0)
    kept = [one for one, least in zip(known, low, strict=True) if least > LEAST]
    return sorted(kept, key=lambda one: -one.explained(held))


def rank(tested: Sequence[Tested], chance: Mapping[str, float], held: Mask, seed: int) -> list[Ranked]:
    """Causes above chance, the best first; `chance`: share that each explains of a log of the model itself."""
    if not tested:
        return []
    drawn = draws(tested, held, seed)
    low, high = np.quantile(drawn, (0.05, 0.95), axis=0)
    kept = [k for k, one in enumerate(tested) if low[k] > LEAST + chance.get(one.cause, 0.0)]
    if not kept:
        return []
    drawn, low, high = drawn[:, kept], low[kept], high[kept]
    some = [tested[k] for k in kept]
    priced = drawn - _STEP_PRICE * np.array([one.numbers for one in some])
    share = np.bincount(priced.argmax(axis=1), minlength=len(some)) / len(drawn)
    order = np.argsort(-np.median(priced, axis=0), kind="stable")
    first = order[0]
    out = []
    for k in order:
        behind = float(np.quantile(priced[:, first] - priced[:, k], 0.05))
        out.append(
            Ranked(
                tested=some[k],
                explained=some[k].explained(held),
                interval=(float(low[k]), float(high[k])),
                confidence=float(share[k]),
                tied=bool(k != first and behind < _TIE),
            )
        )
    return out
