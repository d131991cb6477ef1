"""The error carried back through the linear model of the joints, against differences of the engine itself."""

from dataclasses import replace

import numpy as np
import pytest
from residual_logs import residual_log

from trueup.calibrate.nets.net_design import blank_net
from trueup.calibrate.nets.net_learner import NetLearner, NetShape
from trueup.calibrate.nets.uan.gradient import GradientCfg, GradientTrainer, torque_gradient
from trueup.calibrate.nets.uan.inverse import missing_torque
from trueup.calibrate.nets.uan.rollout import Rollouts, make_tracks
from trueup.calibrate.nets.uan.uan import UanCfg, choose_windows, make_uan_problem
from trueup.robot.load import load_robot

PENDULUM = load_robot("pendulum")


def problem(cfg: UanCfg):
    tracks = make_tracks(PENDULUM, [residual_log(PENDULUM, seed=0, seconds=6.0)])
    return make_uan_problem(PENDULUM, tracks, None, cfg)


@pytest.mark.medium
def test_the_gradient_is_that_of_the_engine():
    cfg = UanCfg(hidden=(8,), context=0, windows=4, window_s=0.4, warm_up_s=0.1)
    made = problem(cfg)
    learner = NetLearner(made.blank, NetShape(hidden=(8,), last_gain=1.0), seed=1)
    trainer = GradientTrainer(made.rollouts, learner, made.windows, made.unit, GradientCfg(), 0)
    rows = made.windows.train[[10, 300, 500, 700]]

    def loss() -> float:
        rollout = made.rollouts.run(learner.actuator(), rows)
        return trainer._loss(rollout.error, len(rollout.inputs(learner.net.spec)))[0]

    rollout = made.rollouts.run(learner.actuator(), rows)
    inputs = rollout.inputs(learner.net.spec)
    _, loss_grad = trainer._loss(rollout.error, len(inputs))
    torque_grad = trainer._torque_gradient(rows, inputs, loss_grad)
    flat = inputs.reshape(-1, *inputs.shape[2:])
    before = learner.parameters.flat.clone()
    learner.step(flat, torque_grad.reshape(len(flat), -1), 0.0)
    grad = learner.parameters.grad.clone()
    step = 1e-3 / float(grad.norm())
    values = []
    for sign in (1.0, -1.0):
        learner.parameters.flat.copy_(before + sign * step * grad)
        values.append(loss())
    slope = (values[0] - values[1]) / (2 * step)
    assert slope == pytest.approx(float(grad.norm()) ** 2, rel=0.2)  # dry friction is not in the model


def test_without_a_net_the_adjoint_is_the_impulse_response_backwards():
    from trueup.calibrate.nets.uan.gradient import LinearJoints

    a, b = np.array([[[1.0, 0.1], [-0.2, 0.9]]]), np.array([[[0.0], [0.5]]])
    loss_grad = np.zeros((4, 1, 1))
    loss_grad[3] = 1.0
    none = np.zeros((3, 1, 1, 1, 1), np.float32)
    got = torque_gradient(LinearJoints(a, b), loss_grad, none, np.zeros((1, 2, 1, 1)), (0,))
    power = [np.linalg.matrix_power(a[0], 2 - t) for t in range(3)]
    np.testing.assert_allclose(got[:, 0, 0], [(p @ b[0])[0, 0] for p in power])


@pytest.mark.medium
def test_the_missing_torque_makes_the_simulator_follow_the_log():
    cfg = UanCfg(hidden=(8,), context=0, windows=2)
    made = problem(replace(cfg, windows=2))
    tracks = made.rollouts.tracks
    net = blank_net(made.blank.spec, (8,), 0, scale=np.ones(1))
    whole = Rollouts(PENDULUM, tracks, net, 1, len(tracks.target) - 2, 1000.0)
    before = missing_torque(whole, net, np.array([0]), 0)
    found = missing_torque(whole, net, np.array([0]), 4)
    hidden = found.torque[0][100:-100, 0]
    error, speed = found.inputs[0][100:-100, 0, 0, 0], -found.inputs[0][100:-100, 0, 1, 0]
    limit = PENDULUM.spec.torque_limit[0]
    truth = limit * (-0.02 * np.tanh(speed / 0.1) + 0.01 * np.tanh(20 * error))
    assert np.sqrt((before.before.error**2).mean()) > 1e-3
    assert np.sqrt(((hidden - truth) ** 2).mean()) < 0.5 * np.sqrt((truth**2).mean())


def test_windows_kept_back_lie_at_the_end_of_each_log():
    logs = [residual_log(PENDULUM, seed=k, seconds=6.0) for k in range(2)]
    tracks = make_tracks(PENDULUM, logs)
    windows = choose_windows(tracks, UanCfg(window_s=0.3, warm_up_s=0.1))
    place = (windows.held - tracks.first[windows.held]) / (tracks.last - tracks.first)[windows.held]
    assert place.min() >= 0.84
    assert ((windows.train + 80 < tracks.last[windows.train]) & (windows.train >= tracks.first[windows.train])).all()
