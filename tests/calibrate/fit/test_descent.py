"""Descent and profile on problems whose answer is known: two limbs, one shared parameter, bounds, flat valleys."""

from types import SimpleNamespace

import numpy as np
import pytest

from trueup.calibrate.fit.descent import Descent
from trueup.calibrate.fit.fit import Solution
from trueup.calibrate.uncertainty.profile import SURE, Profiler

OWNER = np.array([0, 0, 1, -1])  # two parameters of limb 0, one of limb 1, one that both feel
TRUE = np.array([0.4, -0.3, 0.8, 0.2])


class Bent:
    """Residuals of two channels (limbs) that bend with x; counts what it costs."""

    def __init__(self, *, bend: float = 0.3, flat: float = 1.0) -> None:
        rng = np.random.default_rng(0)
        self.rows = 30.0 * rng.standard_normal((2, 40, 4))
        self.rows[0, :, 2] = 0.0
        self.rows[1, :, :2] = 0.0
        self.bend, self.flat, self.vectors, self.linearised = bend, flat, 0, 0
        self.bounds = (np.full(4, -2.0), np.full(4, 2.0))
        self.colouring = SimpleNamespace(owner=OWNER, limb=np.array([0, 1]))
        self.channel_limb = np.array([0, 1])

    def residuals(self, x: np.ndarray) -> np.ndarray:
        self.vectors += len(x)
        away = x - TRUE
        away = np.where(np.abs(away) > 0.005, self.flat * (away - np.sign(away) * 0.005) + np.sign(away) * 0.005, away)
        bent = away + self.bend * away**2
        return np.einsum("ctp,vp->vtc", self.rows, bent)[:, None]

    def jacobian(self, x: np.ndarray, at: np.ndarray) -> np.ndarray:
        self.linearised += 1
        moved = self.residuals(x + 1e-4 * np.eye(4))
        return ((moved - at) / 1e-4).astype(np.float32)


def descent(problem: Bent) -> Descent:
    return Descent(problem)  # type: ignore[arg-type]


def test_a_descent_ends_at_the_optimum_with_a_jacobian_taken_there():
    problem = Bent()
    end = descent(problem).run(np.zeros(4), tolerance=1e-4, iterations=40, exact=True)
    assert end.standing
    assert end.is_linear_here
    np.testing.assert_allclose(end.x, TRUE, atol=2e-3)


def test_an_old_jacobian_saves_new_ones():
    problem = Bent()
    end = descent(problem).run(np.zeros(4), tolerance=1e-4, iterations=40, exact=True)
    assert problem.linearised <= 3
    near = Bent()
    again = descent(near).run(TRUE + 0.01, tolerance=1e-4, iterations=40, jacobian=end.jacobian, exact=True)
    np.testing.assert_allclose(again.x, TRUE, atol=2e-3)
    assert near.linearised == 1


def test_steps_stay_inside_the_box_and_may_end_on_it():
    problem = Bent(bend=0.0)
    problem.bounds = (np.full(4, -2.0), np.array([0.1, 2.0, 2.0, 2.0]))
    end = descent(problem).run(np.zeros(4), tolerance=1e-4, iterations=40, exact=True)
    assert end.standing
    assert end.x[0] == pytest.approx(0.1)


def test_what_was_seen_is_told_after_every_step():
    seen: list[float] = []
    descent(Bent()).run(np.zeros(4), tolerance=1e-4, iterations=40, watch=lambda x, cost: seen.append(cost), exact=True)
    assert seen == sorted(seen, reverse=True)
    assert len(seen) >= 2


def profiler(problem: Bent) -> Profiler:
    at = problem.residuals(TRUE[None])[0]
    jacobian = problem.jacobian(TRUE, at)
    flat = jacobian.reshape(4, -1).astype(float)
    deviation = np.sqrt(np.diag(np.linalg.inv(flat @ flat.T + np.eye(4))))
    solution = Solution(x=TRUE, cost=0.0, residuals=at, jacobian=jacobian, iterations=1, converged=True)
    return Profiler(descent(problem), solution, deviation)


def widths(found: Profiler) -> np.ndarray:
    """Both half widths of every interval, in standard errors' worth of 95 %."""
    return np.abs(found.profile().ends - TRUE[:, None]) / (SURE * found._deviation[:, None])


def test_a_valley_as_steep_as_its_curvature_keeps_its_intervals():
    np.testing.assert_allclose(widths(profiler(Bent(bend=0.0))), 1.0)


def test_a_valley_that_flattens_out_gets_wider_intervals():
    # beyond 5 mrad the residuals grow ten times more slowly: two standard errors out the cost is far too low
    found = widths(profiler(Bent(bend=0.0, flat=0.1)))
    assert found.max() > 1.3
    assert found.min() >= 1.0 - 1e-9


def test_a_value_far_from_the_estimate_is_excluded_and_the_estimate_itself_is_not():
    found = profiler(Bent(bend=0.0))
    np.testing.assert_allclose(found.rise_at(TRUE), 0.0, atol=1e-9)
    far = found.rise_at(TRUE + 3.0 * SURE * found._deviation)
    near = found.rise_at(TRUE + 0.5 * SURE * found._deviation)
    assert (far > found.wanted).all()
    assert (near < found.wanted).all()
    np.testing.assert_allclose(far / found.wanted, 9.0, rtol=0.25)
