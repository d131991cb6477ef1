"""The decision: which change explains most of the mismatch on windows it was not estimated on.

A cause counts if its size matters, if the 90 % interval of what it explains (bootstrap over held-out windows in which
it has an effect) lies above what a log of the model itself gains by the same search, and above `LEAST`. Causes that
explain as much as the first within what the windows can tell are tied; of tied ones the one with fewer numbers comes
first. Of several recordings whole recordings are drawn, too: what is wrong with a robot is wrong in each, while a
number that makes up for something the model lacks mends one motion and spoils another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Mask
from trueup.gap.causes.search import Tested

Rows = NDArray[np.intp]
LEAST = 0.06  # of the mismatch that a cause must explain at least
_DRAWS = 500
_FEWEST = 3  # blocks of held-out windows in which a cause must have an effect
_TIE = 0.02  # of the mismatch: explanations that differ by less count as equal
_STEP_PRICE = 0.004  # per number, in the order only


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A tested cause with its bootstrap interval and confidence."""

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


def draws(tested: Sequence[Tested], held: Mask, seed: int, log: Rows | None = None) -> FloatArray:
    """Explained shares (draw, cause) of held-out windows drawn with replacement, neighbours together.

    log  (W,) recording that each window is of; None: one
    """
    block = blocks_of(held)
    counts = _counts(_log_of_blocks(block, held, log), seed)
    sums = [[counts @ np.bincount(block, one[held]) for one in (each.before, each.after)] for each in tested]
    return np.stack([1.0 - after / np.maximum(before, 1e-12) for before, after in sums], axis=1)


def _log_of_blocks(block: Rows, held: Mask, log: Rows | None) -> Rows:
    """Recording (B,) of each block."""
    of = np.zeros(block[-1] + 1, np.intp)
    if log is not None:
        of[block] = log[held]
    return of


def _counts(log: Rows, seed: int) -> FloatArray:
    """How often each block (draw, B) is drawn: recordings with replacement, then blocks of each."""
    rng, logs = np.random.default_rng(seed), np.unique(log)
    if len(logs) == 1:
        chosen = rng.choice(len(log), (_DRAWS, len(log)))
        return np.stack([np.bincount(one, minlength=len(log)) for one in chosen]).astype(np.float64)
    rows = [np.flatnonzero(log == one) for one in logs]
    drawn = []
    for which in rng.choice(len(logs), (_DRAWS, len(logs))):
        chosen = np.concatenate([rng.choice(rows[k], len(rows[k])) for k in which])
        drawn.append(np.bincount(chosen, minlength=len(log)))
    return np.stack(drawn).astype(np.float64)


def blocks_of(held: Mask) -> Rows:
    """Number of the block that each held-out window belongs to: neighbours are of one."""
    at = np.flatnonzero(held)
    return np.concatenate([[0], np.cumsum(np.diff(at) > 1)])


def least(one: Tested, held: Mask, seed: int, log: Rows | None = None) -> float:
    """Lower end (5 %) of what a cause explains of the held-out windows in which it has an effect.

    The others carry no information on it: heat in the last third of a log leaves two thirds unchanged.
    """
    block, acts = blocks_of(held), one.acts[held]
    before, after = (np.bincount(block, np.where(acts, each[held], 0.0)) for each in (one.before, one.after))
    own = np.flatnonzero(np.bincount(block, acts) > 0)
    if len(own) < _FEWEST:
        return -np.inf
    counts = _counts(_log_of_blocks(block, held, log)[own], seed)
    share = 1.0 - counts @ after[own] / np.maximum(counts @ before[own], 1e-12)
    return float(np.quantile(share, 0.05))


def suspects(tested: Sequence[Tested], held: Mask, seed: int, log: Rows | None = None) -> list[Tested]:
    """Causes that matter and explain more than `LEAST`, before chance is known; what explains most first."""
    kept = [one for one in tested if one.matters and least(one, held, seed, log) > LEAST]
    return sorted(kept, key=lambda one: -one.explained(held))


def rank(
    tested: Sequence[Tested], chance: Mapping[str, float], held: Mask, seed: int, log: Rows | None = None
) -> list[Ranked]:
    """Causes above chance, the best first; `chance`: mismatch that each explains of a log of the model itself."""
    some = [one for one in tested if least(one, held, seed, log) > LEAST + _by_chance(one, chance, held)]
    if not some:
        return []
    drawn = draws(some, held, seed, log)
    low, high = np.quantile(drawn, (0.05, 0.95), axis=0)
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


def rank_alone(one: Tested, held: Mask, seed: int) -> Ranked:
    """A cause tested on its own, with the interval of what it explains."""
    drawn = draws([one], held, seed)[:, 0]
    low, high = (float(value) for value in np.quantile(drawn, (0.05, 0.95)))
    return Ranked(
        tested=one, explained=one.explained(held), interval=(low, high), confidence=float(np.mean(drawn > LEAST)),
        tied=False,
    )  # fmt: skip


def _by_chance(one: Tested, chance: Mapping[str, float], held: Mask) -> float:
    """As a share of the mismatch in which the cause acts."""
    return max(0.0, chance.get(one.cause, 0.0)) / max(float(one.before[held & one.acts].sum()), 1e-12)
