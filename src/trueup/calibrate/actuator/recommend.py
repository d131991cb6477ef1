"""Which rung to use: the simplest whose held-out error is within one standard error of the best, and why.

A net that is trained in a simulator corrects that simulator too, its physics step above all: on a go2 at 200 Hz the
step alone causes 0.4 mrad. So before a learned model is recommended, the parametric rung that it would replace is
fitted again with half the step (`StepCheck`). If that does as well, the error comes from the step, not the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import PositionError, Scores


class Recommendation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rung to use, the one with the lowest error, and the reason."""

    rung: str
    best: str
    reason: str


class StepCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rung fitted again at `physics_hz`, twice the rate of the others, and its error over whole unseen logs.

    key  of its problem
    """

    rung: str
    physics_hz: float
    whole: PositionError
    key: str = ""


def recommend(
    scores: Mapping[str, Scores], unbounded: Sequence[str] = (), finer: StepCheck | None = None
) -> Recommendation:
    """Choose among rungs, simplest first; those that diverge in long rollouts are excluded."""
    fit = _usable(scores, unbounded)
    if not fit:
        first = next(iter(scores))
        return Recommendation(
            rung=first, best=first, reason="no rung stayed bounded: look at the data first (`trueup data check`)"
        )
    chosen, best = _simplest(fit)
    top = fit[best].whole
    is_step = finer is not None and _is_learned(chosen) and finer.whole.mean <= top.mean + top.se
    if finer is not None and is_step:
        chosen = finer.rung
    return Recommendation(rung=chosen, best=best, reason=_reason(scores, fit, chosen, best, finer))


def in_question(scores: Mapping[str, Scores], unbounded: Sequence[str] = ()) -> str | None:
    """The parametric rung that a learned one would replace; None: the choice is not a learned one."""
    fit = _usable(scores, unbounded)
    numbers = {name: score for name, score in fit.items() if not _is_learned(name)}
    if not numbers or not _is_learned(_simplest(fit)[0]):
        return None
    return _simplest(numbers)[0]


def _usable(scores: Mapping[str, Scores], unbounded: Sequence[str]) -> dict[str, Scores]:
    return {name: s for name, s in scores.items() if name not in unbounded and not s.diverged}


def _simplest(fit: Mapping[str, Scores]) -> tuple[str, str]:
    """The simplest within one standard error of the best, and the best."""
    best = min(fit, key=lambda name: fit[name].whole.mean)
    limit = fit[best].whole.mean + fit[best].whole.se
    return next(name for name in fit if fit[name].whole.mean <= limit), best


def _is_learned(name: str) -> bool:
    return rung_named(name).is_learned


def overfits(scores: Mapping[str, Scores]) -> dict[str, str]:
    """Rungs better than a simpler one on their own data but worse on unseen motion, with that simpler one."""
    found = {}
    for k, (name, scored) in enumerate(scores.items()):
        for simpler, other in list(scores.items())[:k]:
            worse = scored.motion.mean > other.motion.mean + other.motion.se
            if worse and scored.train.mean < other.train.mean:
                found[name] = simpler
                break
    return found


def _reason(
    scores: Mapping[str, Scores], fit: Mapping[str, Scores], chosen: str, best: str, finer: StepCheck | None
) -> str:
    title = {name: rung_named(name).title for name in scores}
    left = {name: f"{1e3 * score.whole.mean:.2f}" for name, score in fit.items()}
    winner, top, se = title[chosen], title[best], f"{1e3 * fit[best].whole.se:.2f}"
    finer_left = "" if finer is None else f"{1e3 * finer.whole.mean:.2f}"
    parts = []
    if finer is not None and chosen == finer.rung:
        parts.append(
            f"{winner} leaves {left[chosen]} mrad on unseen data, {top} {left[best]} +- {se}; but that mends the "
            f"physics step: at {finer.physics_hz:.0f} Hz {winner} alone leaves {finer_left}"
        )
    elif chosen == best:
        parts.append(
            f"{winner} has the lowest error on unseen data, {left[best]} +- {se} mrad; no simpler rung is within one "
            "standard error of it"
        )
    else:
        parts.append(
            f"{winner} is the simplest rung within one standard error of the best: {left[chosen]} mrad on unseen data "
            f"against {left[best]} +- {se} of {top}"
        )
    if finer is not None and chosen == best:
        parts.append(
            f"half the physics step would not do: at {finer.physics_hz:.0f} Hz {title[finer.rung]} leaves {finer_left}"
        )
    if simpler := [name for name in list(scores)[: list(scores).index(chosen)] if name in fit]:
        below = min(simpler, key=lambda name: fit[name].whole.mean)
        parts.append(f"the best simpler rung, {title[below]}, leaves {left[below]}")
    if gone := [title[name] for name in scores if name not in fit]:
        parts.append(f"left out because they run away in long rollouts: {', '.join(gone)}")
    if bad := overfits(scores):
        words = [f"{title[a]} (worse than {title[b]} on unseen data)" for a, b in bad.items()]
        parts.append(f"overfitted: {', '.join(words)}")
    return "; ".join(parts)
