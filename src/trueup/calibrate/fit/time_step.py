"""What the length of a physics step puts into the parameters.

A coarse step acts like a little more inertia and delay, and a fit takes them off again: on a go2 at 200 Hz armatures
come out 11 to 35 % wrong. The same windows are simulated once more with half the step; the change of the residuals,
seen through the Jacobian of the fit, is the change of the parameters: dx = -(H + I)^-1 J^T (r_half - r). The error of
the integrator falls in proportion to its step, so a vanishing step would change them by twice that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.fit.residuals import Jacobian, Shooting
from trueup.world.fitted.fit_parameter import FitParameter

FloatArray = NDArray[np.float64]
_WORTH_TELLING = 1.0  # standard errors
_WORTH_PERCENT = 2.0  # of the value, for those that are scaled by their logarithm
_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class StepEffect:
    """Change of x (nparameter,) that a vanishing physics step would bring, and the physics rate of the fit."""

    change: FloatArray
    physics_hz: float


def step_effect(shooting: Shooting, x: FloatArray, residuals: FloatArray, jacobian: Jacobian) -> StepEffect:
    """Compare with half the step: one more rollout of the windows. Arguments as at the end of a fit."""
    rate = shooting.cfg.physics_hz or shooting.robot.spec.physics_hz
    finer = Shooting(
        shooting.robot, shooting.windows, shooting.parameters, replace(shooting.cfg, physics_hz=2.0 * rate)
    )
    finer.sigma = shooting.sigma
    moved = finer.residuals(x[None])[0] - residuals
    hessian, gradient = np.eye(len(x)), np.zeros(len(x))
    for w in range(len(moved)):
        flat = jacobian[:, w].reshape(len(x), -1).astype(np.float64)
        hessian += flat @ flat.T
        gradient += flat @ moved[w].reshape(-1)
    change = np.asarray(-2.0 * np.linalg.solve(hessian, gradient), np.float64)
    return StepEffect(change=change, physics_hz=rate)


def step_notes(
    parameters: Sequence[FitParameter], x: FloatArray, deviation: FloatArray, effect: StepEffect
) -> tuple[str, ...]:
    """A warning if the step moves a parameter by more than its standard error and by something that matters."""
    told = []
    for k, entry in enumerate(parameters):
        size = abs(float(effect.change[k])) / max(float(deviation[k]), 1e-12)
        now, then = (float(entry.to_value(np.array(at))) for at in (x[k], x[k] + effect.change[k]))
        percent = 100.0 * (now - then) / max(abs(then), 1e-12)
        if size > _WORTH_TELLING and (entry.scale == "linear" or abs(percent) > _WORTH_PERCENT):
            by = f"{percent:+.0f} %" if entry.scale == "log" else f"{now - then:+.2g} {entry.unit}"
            told.append((size, f"{entry.label} {by}"))
    if not told:
        return ()
    worst = ", ".join(text for _, text in sorted(told, reverse=True)[:_SHOWN])
    return (
        f"physics at {effect.physics_hz:.0f} Hz puts its own error into {len(told)} of {len(parameters)} parameters: "
        f"{worst}; fit with --physics {max(1000.0, 2 * effect.physics_hz):.0f}, or keep this rate where they are used",
    )
