"""Nets from measured torque: a filter is found exactly, a nonlinear motor better by a net, and the guard's range."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.calibrate.nets.supervised import FORMS, make_samples, train_supervised
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import load_robot

RATE = 200.0
Z1 = load_robot("z1")


def torque_log(law, seed: int = 0, seconds: float = 20.0) -> Log:
    """Random smooth motion with torques of a law of error and velocity."""
    rng, n = np.random.default_rng(seed), Z1.spec.njoint
    time = np.arange(round(seconds * RATE)) / RATE
    waves = [0.3 * np.sin(2 * np.pi * rng.uniform(0.3, 3, n) * time[:, None] + rng.uniform(0, 6, n)) for _ in range(3)]
    pos = Z1.spec.default_pose + sum(waves)
    vel = np.gradient(pos, time, axis=0)
    target = pos + 0.05 * np.sin(2 * np.pi * rng.uniform(0.5, 4, n) * time[:, None] + rng.uniform(0, 6, n))
    torque = law(target - pos, vel) + 1e-3 * rng.standard_normal(pos.shape)
    signals = {"joint_pos": pos, "joint_vel": vel, "target_pos": target, "joint_torque": torque}
    return Log(time=time, joint_names=Z1.spec.joint_names, signals=signals)


def linear(error, vel):
    late = np.concatenate([error[:2], error[:-2]])  # 10 ms
    return 20.0 * error + 10.0 * late - 0.5 * vel + 0.1


def bent(error, vel):
    return 3.0 * np.tanh(12.0 * error) - 0.4 * np.tanh(vel / 0.2)


def left(net, log: Log) -> float:
    samples = make_samples([log], net.spec)
    return float(np.sqrt(((net(samples.inputs.astype(float)) - samples.torque) ** 2).mean()))


def test_a_linear_servo_is_found_to_its_noise():
    net = train_supervised(Z1, [torque_log(linear)], None, FORMS["fir"])
    assert net.hidden == ()
    assert left(net, torque_log(linear, seed=1)) < 2e-3


@pytest.mark.medium
def test_a_bent_motor_needs_the_net():
    logs, other = [torque_log(bent), torque_log(bent, seed=2)], torque_log(bent, seed=1)
    filter_left = left(train_supervised(Z1, logs, None, FORMS["fir"]), other)
    shares: list[float] = []
    net = train_supervised(Z1, logs, None, replace(FORMS["net"], passes=20), shares.append)
    assert left(net, other) < 0.35 * filter_left
    assert shares == sorted(shares)
    assert net.spec.kind == "torque"


def test_the_fitted_range_covers_the_data():
    log = torque_log(linear)
    net = train_supervised(Z1, [log], None, FORMS["fir"])
    speed = np.abs(log["joint_vel"]).max()
    assert net.high[:, 1].max() >= 0.9 * speed


def test_a_log_without_torque_is_refused():
    log = torque_log(linear)
    signals = {name: values for name, values in log.signals.items() if name != "joint_torque"}
    bare = Log(time=log.time, joint_names=log.joint_names, signals=signals)
    with pytest.raises(TrueupError, match="unsupervised"):
        train_supervised(Z1, [bare])
