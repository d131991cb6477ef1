"""Logs of a robot whose servo has a hidden extra torque that no parameter of the simulator has."""

import numpy as np

from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.substep import SubstepModel
from trueup.world.batch import BatchSim, SimCfg

RATE = 200.0


class Hidden(SubstepModel):
    """tau = -a tanh(v / 0.1) + b tanh(20 e) + p: friction that a PD servo's model lacks, a servo that pulls harder, and
    pushes from outside, which change from call to call."""

    def __init__(self, friction: np.ndarray, pull: np.ndarray, push: np.ndarray) -> None:
        self.friction, self.pull, self.push = friction, pull, push
        self.rng, self.now = np.random.default_rng(5), np.zeros_like(push)

    def reset(self, sim, ids) -> None:
        pass

    def step(self, sim, state):
        error = state.target_pos - state.joint_pos
        self.now = 0.98 * self.now + 0.2 * self.push * self.rng.standard_normal(self.push.shape)
        own = -self.friction * np.tanh(state.joint_vel / 0.1) + self.pull * np.tanh(20 * error)
        return own + self.now


def residual_log(
    robot: Robot,
    *,
    seed: int,
    seconds: float = 10.0,
    noise: float = 1e-4,
    size: float = 0.2,
    hidden: float = 1.0,
    push: float = 0.0,
) -> Log:
    """Multisine on all joints under the hidden torque, times `hidden`; pushes in shares of the torque limit."""
    rng, spec = np.random.default_rng(seed), robot.spec
    limit = spec.torque_limit
    time = np.arange(round(seconds * RATE)) / RATE
    target = np.tile(spec.default_pose, (len(time), 1))
    for j in range(spec.njoint):
        for hz in (0.2, 0.5, 1.1, 2.3, 4.0):
            wave = np.sin(2 * np.pi * hz * rng.uniform(0.9, 1.1) * time + rng.uniform(0, 6))
            target[:, j] += size / np.sqrt(1 + hz) * wave
    sim = BatchSim(
        robot,
        SimCfg(control_hz=RATE, physics_hz=RATE * 5, model=ModelCfg(base="fixed")),
        Hidden(0.02 * hidden * limit, 0.01 * hidden * limit, push * limit),
    )
    sim.reset()
    for _ in range(200):
        sim.step(target[0])
    pos, vel = np.empty_like(target), np.empty_like(target)
    for t in range(len(time)):
        pos[t], vel[t] = sim.joint_pos[0], sim.joint_vel[0]
        sim.step(target[t])
    pos += noise * rng.standard_normal(pos.shape)
    return Log(
        time=time, joint_names=spec.joint_names, signals={"joint_pos": pos, "joint_vel": vel, "target_pos": target}
    )
