"""Derivatives of the net that learns, against differences; and its torques against the plain net."""

import numpy as np
import pytest
import torch
from made_nets import made_net

from trueup.calibrate.nets.net_learner import NetLearner, NetShape


def learner() -> NetLearner:
    return NetLearner(made_net(), NetShape(hidden=(8, 8), context=2, last_gain=1.0), seed=0)


def test_torques_and_their_derivatives_are_those_of_the_net():
    made, rng = learner(), np.random.default_rng(0)
    x = rng.normal(0, 0.3, (6, 12, 2, 4)).astype(np.float32)
    net = made.actuator()
    np.testing.assert_allclose(made.torques(x), net(x.astype(float)), rtol=1e-4, atol=1e-5)
    grad = made.input_gradient(x)
    step = np.zeros_like(x, dtype=float)
    step[:, :, 1, 2] = 1e-4
    slope = (net(x + step) - net(x - step)) / 2e-4
    np.testing.assert_allclose(grad[:, :, 1, 2], slope, rtol=2e-3, atol=1e-4)


def test_regression_brings_torques_where_they_should_be():
    made, rng = learner(), np.random.default_rng(1)
    x = rng.normal(0, 0.3, (400, 12, 2, 4)).astype(np.float32)
    wanted = (0.5 * np.sin(4 * x[:, :, 0, 0]) - 0.1 * np.arange(12)).astype(np.float32)
    made_before = made.torques(x)
    regressions, rows = made.regressions(x, wanted), torch.arange(400)
    first = made.regress(regressions, rows, 5e-3)
    assert first == pytest.approx(float((((made_before - wanted) / made.net.scale) ** 2).mean()), rel=1e-3)
    for _ in range(150):
        last = made.regress(regressions, rows, 5e-3)
    assert last < 0.1 * first
