"""Intervals: white noise gives the textbook, coloured noise its due, blindness the prior."""

import numpy as np
from scipy.signal import lfilter

from trueup.calibrate.uncertainty import Posterior, autocovariance, model_error, posterior, widened

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
    judged = np.ones((2, 50), bool)
    judged[:, ::3] = False
    np.testing.assert_allclose(autocovariance(values, judged, 1), [1.0, 0.5])


def test_model_error_widens_what_it_touches_and_never_beyond_the_prior():
    reach = np.array([[True, False], [False, True], [True, True]])
    factor = model_error(np.array([1.1e-3, 7e-3]), np.array([1e-3, 1e-3]), reach)
    np.testing.assert_allclose(factor, [1.0, 13.0, np.sqrt(85.0)])
    found = Posterior(covariance=np.diag([0.01, 0.01, 0.09]), correlation_time_s=np.zeros(2))
    np.testing.assert_allclose(widened(found, factor / 2).deviation, [0.05, 0.65, 1.0])
