"""Intervals: white noise gives the textbook, coloured noise its due, blindness the prior."""

import numpy as np
from scipy.signal import lfilter

from trueup.calibrate.uncertainty.covariance import (
    Part,
    Posterior,
    autocovariance,
    information,
    model_error_factor,
    posterior,
    tempered,
    widened,
    with_model_error,
)

WINDOWS, LENGTH, RATE = 10, 300, 200.0


def slow_columns(rng: np.random.Generator, count: int) -> np.ndarray:
    time = np.arange(WINDOWS * LENGTH).reshape(WINDOWS, LENGTH) / RATE
    waves = [np.sin(2 * np.pi * rng.uniform(0.3, 3) * time + rng.uniform(0, 6)) for _ in range(count)]
    return np.array(waves)[..., None].astype(np.float32)


def coloured(rng: np.random.Generator, pole: float) -> np.ndarray:
    white = rng.standard_normal(WINDOWS * LENGTH)
    return np.sqrt(1 - pole**2) * lfilter([1.0], [1.0, -pole], white).reshape(WINDOWS, LENGTH, 1)


def coverage(pole: float, trials: int = 60) -> float:
    """Share of true values within two standard errors, for a linear problem whose answer is known."""
    rng, hits = np.random.default_rng(3), []
    for _ in range(trials):
        jacobian = slow_columns(rng, 4)
        noise = coloured(rng, pole)
        flat = jacobian.reshape(4, -1).astype(float)
        error = np.linalg.solve(flat @ flat.T + np.eye(4), -flat @ noise.ravel())
        left = noise + np.tensordot(error, jacobian, 1)
        found = posterior(jacobian, left, np.ones(left.shape, bool), RATE)
        hits += list(np.abs(error) < 2 * found.deviation)
    return float(np.mean(hits))


def test_two_standard_errors_cover_95_percent_for_white_and_for_slow_noise():
    assert coverage(0.0) > 0.93
    assert coverage(0.9) > 0.91


def test_white_residuals_give_the_textbook_covariance():
    rng = np.random.default_rng(0)
    jacobian = slow_columns(rng, 3)
    residuals = rng.standard_normal((WINDOWS, LENGTH, 1))
    flat = jacobian.reshape(3, -1).astype(float)
    textbook = np.sqrt(np.diag(np.linalg.inv(flat @ flat.T + np.eye(3))))
    found = posterior(jacobian, residuals, np.ones(residuals.shape, bool), RATE)
    assert (found.deviation / textbook > 0.8).all()
    assert (found.deviation / textbook < 1.6).all()


def test_what_the_data_does_not_see_keeps_its_prior():
    rng = np.random.default_rng(0)
    jacobian = slow_columns(rng, 3)
    jacobian[1] = 0.0
    residuals = coloured(rng, 0.8)
    found = posterior(jacobian, residuals, np.ones(residuals.shape, bool), RATE)
    assert found.deviation[1] == 1.0
    assert found.deviation[0] < 0.2
    assert abs(found.correlation[1, 0]) < 1e-12


def test_two_parameters_that_do_the_same_are_reported_as_correlated_and_wide():
    rng = np.random.default_rng(0)
    jacobian = slow_columns(rng, 2)
    jacobian[1] = jacobian[0]
    found = posterior(jacobian, coloured(rng, 0.0), np.ones((WINDOWS, LENGTH, 1), bool), RATE)
    assert (found.deviation > 0.6).all()
    assert found.correlation[0, 1] < -0.95


def test_autocovariance_skips_samples_that_are_not_judged():
    values = np.ones((2, 50))
    compared = np.ones((2, 50), bool)
    compared[:, ::3] = False
    np.testing.assert_allclose(autocovariance(values, compared, 1), [1.0, 0.5])


def test_widening_ends_at_the_prior():
    found = Posterior(covariance=np.diag([0.01, 0.01, 0.09]), correlation_time_s=np.zeros(2))
    np.testing.assert_allclose(widened(found, np.array([1.0, 6.5, 5.0])).deviation, [0.1, 0.65, 1.0])


def test_parts_of_the_data_add_up_to_the_whole():
    rng = np.random.default_rng(1)
    jacobian, residuals = slow_columns(rng, 3), coloured(rng, 0.5)
    compared, every = np.ones(residuals.shape, bool), np.arange(1)
    fast = rng.uniform(size=residuals.shape) > 0.5
    whole = information(jacobian, residuals, compared, RATE)
    for parts in (
        [Part(channels=every, windows=np.arange(3)), Part(channels=every, windows=np.arange(3, WINDOWS))],
        [Part(channels=every, samples=fast), Part(channels=every, samples=~fast)],
    ):
        found = [information(jacobian, residuals, compared, RATE, part=part) for part in parts]
        np.testing.assert_allclose(sum(one.hessian for one in found), whole.hessian, rtol=1e-9)
        np.testing.assert_allclose(sum(one.gradient for one in found), whole.gradient, rtol=1e-6, atol=1e-6)


def test_model_error_lets_draws_miss_by_its_share_of_what_is_left_over():
    rng = np.random.default_rng(2)
    jacobian = slow_columns(rng, 4)
    flat = jacobian.reshape(4, -1).astype(float)
    bread = np.linalg.inv(flat @ flat.T + np.eye(4))
    samples, parameters = float(flat.shape[1]), 4.0
    factor = model_error_factor(np.array(1.0), np.array(samples), np.array(parameters), share=0.5)
    tight = Posterior(covariance=1e-12 * np.eye(4), correlation_time_s=np.zeros(1))
    found = with_model_error(tight, bread, np.full(4, float(factor)))
    moved = rng.multivariate_normal(np.zeros(4), found.covariance, 4000) @ flat
    # residuals have unit size: draws must be half of it away from the estimate
    np.testing.assert_allclose(np.sqrt((moved**2).mean()), 0.5, rtol=0.05)
    assert model_error_factor(np.array(0.0), np.array(samples), np.array(parameters)) == 0.0


def test_what_is_handed_on_is_narrowed_until_it_replays_and_only_where_the_data_see():
    rng = np.random.default_rng(3)
    flat = slow_columns(rng, 3).reshape(3, -1).astype(float)
    flat[2] = 0.0
    seen, samples = flat @ flat.T, float(flat.shape[1])
    wide = Posterior(covariance=np.diag([0.9, 0.9, 1.0]), correlation_time_s=np.zeros(1))
    found = tempered(wide, seen, samples)
    moved = rng.multivariate_normal(np.zeros(3), found.covariance, 4000) @ flat
    np.testing.assert_allclose((moved**2).mean(), 0.4, rtol=0.05)
    np.testing.assert_allclose(found.deviation[2], 1.0)
    narrow = Posterior(covariance=1e-6 * np.eye(3), correlation_time_s=np.zeros(1))
    assert tempered(narrow, seen, samples) is narrow
