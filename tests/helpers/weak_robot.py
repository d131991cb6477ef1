"""A robot in the air with weaker gains than its simulator: what a delta action must find is known."""

from __future__ import annotations

import numpy as np

from trueup.data.log import Log
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

SHARE = 0.65  # of the simulator's kp that the robot has


def recorded(name: str, seconds: float, share: float = SHARE, *, seed: int = 1) -> Log:
    """A log of it, held in the air, under a multisine at the control rate."""
    robot = load_robot(name)
    sim = BatchSim(robot, SimCfg(nsim=1, model=ModelCfg(base="fixed")))
    sim.params.set("kp", share * robot.spec.kp)
    sim.reset()
    rng, hz, njoint = np.random.default_rng(seed), robot.spec.control_hz, robot.spec.njoint
    time = np.arange(round(seconds * hz)) / hz
    waves = [np.sin(rng.uniform(2, 15, njoint) * time[:, None] + rng.uniform(0, 6, njoint)) for _ in range(4)]
    targets = robot.spec.default_pose + 0.12 * np.sum(waves, axis=0)
    pos, vel = [], []
    for target in targets:
        pos.append(sim.joint_pos[0].copy())
        vel.append(sim.joint_vel[0].copy())
        sim.step(target)
    signals = {"joint_pos": np.array(pos), "joint_vel": np.array(vel), "target_pos": targets}
    return Log(joint_names=robot.spec.joint_names, time=time, signals=signals)
