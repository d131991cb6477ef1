"""Which rung to use: the simplest whose held-out error is within one standard error of the best, and why.

A net that is trained in a simulator corrects that simulator too, its physics step above all: on a go2 at 200 Hz the
step alone causes 0.4 mrad. So before a learned model is recommended, the parametric rung that it would replace is
fitted again with half the step (`StepCheck`). If that does as well, the parameters were right and the step is to blame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import PositionError, Scores

_LEARNED = ("torque", "residual")


class Recommendation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rung to use, the one with the lowest error, and the reason."""

    rung: str
    best: str
    reason: str


class StepCheck(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rung fitted once more at `physics_hz`, twice the rate of the others, and its error over whole unseen logs."""

    rung: str
    physics_hz: float
    whole: PositionError


def recommend(
    scores: Mapping[str, Scores], unbounded: Sequence[str] = (), finer: StepCheck | None = None
) -> Recommendation:
    """Choose among rungs given simplest first; those that diverge in long rollouts cannot be used."""
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
    """The parametric rung that a learned one is about to replace; None: the choice is not a learned one."""
    fit = _usable(scores, unbounded)
    numbers = {name: one for name, one in fit.items() if not _is_learned(name)}
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
    return rung_named(name).kind in _LEARNED


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


def _reason(
    scores: Mapping[str, Scores], fit: Mapping[str, Scores], chosen: str, best: str, finer: StepCheck | None
) -> str:
    mine, top = fit[chosen].whole, fit[best].whole
    title = rung_named(chosen).title
    parts = []
    if finer is not None and chosen == finer.rung:
        parts.append(
            f"{title} leaves {_mrad(mine.mean)} mrad on unseen data, {rung_named(best).title} {_mrad(top.mean)} +- "
            f"{_mrad(top.se)}; but what that mends is the physics step: at {finer.physics_hz:.0f} Hz {title} alone "
            f"leaves {_mrad(finer.whole.mean)}"
        )
    elif chosen == best:
        parts.append(
            f"{title} has the lowest error on unseen data, {_mrad(mine.mean)} +- {_mrad(mine.se)} mrad, and no simpler "
            "rung is within one standard error of it"
        )
    else:
        parts.append(
            f"{title} is the simplest rung within one standard error of the best: {_mrad(mine.mean)} mrad on unseen "
            f"data against {_mrad(top.mean)} +- {_mrad(top.se)} of {rung_named(best).title}"
        )
    if finer is not None and chosen == best:
        parts.append(
            f"half the physics step would not do: at {finer.physics_hz:.0f} Hz {rung_named(finer.rung).title} leaves "
            f"{_mrad(finer.whole.mean)}"
        )
    simpler = [name for name in list(scores)[: list(scores).index(chosen)] if name in fit]
    if simpler:
        below = min(simpler, key=lambda name: fit[name].whole.mean)
        parts.append(f"the best simpler rung, {rung_named(below).title}, leaves {_mrad(fit[below].whole.mean)}")
    if gone := [rung_named(name).title for name in scores if name not in fit]:
        parts.append(f"left out because they run away in long rollouts: {', '.join(gone)}")
    if bad := overfits(scores):
        parts.append(
            "overfitted: "
            + ", ".join(
                f"{rung_named(a).title} (worse than {rung_named(b).title} on unseen data)" for a, b in bad.items()
            )
        )
    return "; ".join(parts)


def _mrad(value: float) -> str:
    return f"{1e3 * value:.2f}"
