"""The net that learns: derivatives against differences, torques against the plain net, and its state."""

import numpy as np
import pytest
import torch
from made_nets import made_net

from trueup.calibrate.nets.net_learner import NetLearner


def learner(activation: str = "elu") -> NetLearner:
    return NetLearner(made_net(activation=activation, hidden=(8, 8), ncontext=2), seed=0, last_gain=1.0)


def miss_of(made: NetLearner, x: np.ndarray, wanted: np.ndarray) -> float:
    return float((((made.actuator()(x.astype(float)) - wanted) / made.net.scale) ** 2).mean())


@pytest.mark.parametrize("activation", ["elu", "softsign"])
def test_the_miss_and_its_derivative_are_those_of_the_net(activation):
    made, rng = learner(activation), np.random.default_rng(0)
    x = rng.normal(0, 0.3, (6, 12, 2, 4)).astype(np.float32)
    wanted = rng.normal(size=(6, 12)).astype(np.float32)
    data, rows = made.regressions(x, wanted), torch.arange(6)
    assert made.miss(data, rows) == pytest.approx(miss_of(made, x, wanted), rel=1e-4)
    before = made.copy()
    made.regress(data, rows, 0.0)
    grad = made.parameters.grad.numpy().copy()
    way, values = grad / np.linalg.norm(grad), []
    for step in (1e-2, -1e-2):
        made.put((before + step * way).astype(np.float32))
        values.append(miss_of(made, x, wanted))
    assert (values[0] - values[1]) / 2e-2 == pytest.approx(float(np.linalg.norm(grad)), rel=5e-3)


@pytest.mark.parametrize("activation", ["elu", "softsign"])
def test_regression_brings_torques_where_they_should_be(activation):
    made, rng = learner(activation), np.random.default_rng(1)
    x = rng.normal(0, 0.3, (400, 12, 2, 4)).astype(np.float32)
    wanted = (0.5 * np.sin(4 * x[:, :, 0, 0]) - 0.1 * np.arange(12)).astype(np.float32)
    data, rows = made.regressions(x, wanted), torch.arange(400)
    first = made.regress(data, rows, 5e-3)
    for _ in range(200):
        last = made.regress(data, rows, 5e-3)
    assert last < 0.1 * first


def test_a_restored_learner_takes_the_same_steps():
    x, wanted = np.random.default_rng(0).normal(size=(20, 12, 2, 4)).astype(np.float32), np.zeros((20, 12), np.float32)
    made, again = learner(), learner()
    data, rows = made.regressions(x, wanted), torch.arange(20)
    made.regress(data, rows, 1e-2)
    again.restore({name: np.array(part) for name, part in made.state().items()})
    for one in (made, again):
        one.regress(data, rows, 1e-2)
    np.testing.assert_array_equal(made.copy(), again.copy())
