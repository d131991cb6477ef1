"""Which rung to use: the simplest whose held-out error is within one standard error of the best, and why, in words.

Where the best is learned, within a tenth is near enough too: thousands of weights mend a little even where nothing but
the parameters' own uncertainty is left to mend, and cost speed and a range outside which they know nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import Scores

_WORTH = 0.1  # of the error that a learned model must take away


class Recommendation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rung to use, the one with the lowest error, and the reason."""

    rung: str
    best: str
    reason: str


def recommend(scores: Mapping[str, Scores], unbounded: Sequence[str] = ()) -> Recommendation:
    """Choose among rungs given simplest first; those that run away in long rollouts cannot be used."""
    fit = {name: s for name, s in scores.items() if name not in unbounded and not s.diverged}
    if not fit:
        first = next(iter(scores))
        return Recommendation(
            rung=first,
            best=first,
            reason="no rung stayed bounded: look at the data first (`trueup data check`)",
        )
    best = min(fit, key=lambda name: fit[name].whole.mean)
    limit = fit[best].whole.mean + fit[best].whole.se
    if rung_named(best).kind in ("torque", "residual"):
        limit = max(limit, fit[best].whole.mean / (1.0 - _WORTH))
    chosen = next(name for name in fit if fit[name].whole.mean <= limit)
    return Recommendation(rung=chosen, best=best, reason=_reason(scores, fit, chosen, best))


def overfits(scores: Mapping[str, Scores]) -> dict[str, str]:
    """Rungs that fit their own data better than a simpler one and unseen motion worse, with that simpler one."""
    found = {}
    names = list(scores)
    for k, name in enumerate(names):
        mine = scores[name]
        for simpler in names[:k]:
            other = scores[simpler]
            worse = mine.motion.mean > other.motion.mean + other.motion.se
            if mine.train.mean < other.train.mean and worse:
                found[name] = simpler
                break
    return found


def _reason(scores: Mapping[str, Scores], fit: Mapping[str, Scores], chosen: str, best: str) -> str:
    mine, top = fit[chosen].whole, fit[best].whole
    title = rung_named(chosen).title
    parts = []
    if chosen == best:
        parts.append(
            f"{title} has the lowest error on unseen data, {_mrad(mine.mean)} +- {_mrad(mine.se)} mrad, and no simpler "
            "rung is within one standard error of it"
        )
    else:
        near = "one standard error" if mine.mean <= top.mean + top.se else f"{100 * _WORTH:.0f} %"
        parts.append(
            f"{title} is the simplest rung within {near} of the best: {_mrad(mine.mean)} mrad on unseen "
            f"data against {_mrad(top.mean)} +- {_mrad(top.se)} of {rung_named(best).title}"
        )
    simpler = [name for name in list(scores)[: list(scores).index(chosen)] if name in fit]
    if simpler:
        below = min(simpler, key=lambda name: fit[name].whole.mean)
        parts.append(
            f"the best simpler rung, {rung_named(below).title}, leaves {_mrad(fit[below].whole.mean)}"
        )
    if gone := [rung_named(name).title for name in scores if name not in fit]:
        parts.append(f"left out because they run away in long rollouts: {', '.join(gone)}")
    if bad := overfits(scores):
        parts.append(
            "overfitted: "
            + ", ".join(
                f"{rung_named(a).title} (worse than {rung_named(b).title} on unseen data)"
                for a, b in bad.items()
            )
        )
    return "; ".join(parts)


def _mrad(value: float) -> str:
    return f"{1e3 * value:.2f}"
