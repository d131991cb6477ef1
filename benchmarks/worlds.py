"""One trained policy, one evaluation loop, two worlds: batched MuJoCo, and twins in processes behind their drivers.

    python benchmarks/worlds.py RUN --twins 8 --preset ideal

RUN is the folder of a go2-velocity training. Both worlds ask the same commands (one seed). A driver does not measure
the velocity of the base: what is compared is falls, turning error and power.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tyro

from trueup.hardware.drivers.open import open_driver
from trueup.policy.action import JointOrder
from trueup.policy.mlp import MlpPolicy, load_policy
from trueup.robot.load import load_robot
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.evaluation.evaluate import Played, evaluate
from trueup.tasks.evaluation.worlds import DriverWorld, SimWorld, World
from trueup.tasks.load import load_task
from trueup.train.folder import RunFolder


@dataclass(frozen=True)
class WorldsCfg:
    run: tyro.conf.Positional[Path]
    twins: int = 8
    preset: str = "ideal"
    seconds: float = 20.0
    seed: int = 100  # of the commands and of the first twin


def play(world: World, policy: MlpPolicy, cfg: WorldsCfg) -> Played:
    """The policy in a world, asked by one seed."""
    task = load_task(policy.spec.task)
    goal = build(task, EnvCfg(nenv=world.nrow, threads=1, seed=cfg.seed)).goal
    return evaluate(world, policy.act, policy.spec, task, goal, cfg.seconds)


def in_simulation(policy: MlpPolicy, cfg: WorldsCfg) -> Played:
    task = load_task(policy.spec.task)
    parts = build(replace(task, randomize={}, pushes=None), EnvCfg(nenv=cfg.twins, threads=1, seed=cfg.seed))
    return play(SimWorld(parts.sim, parts.sense), policy, cfg)


def on_twins(policy: MlpPolicy, cfg: WorldsCfg) -> Played:
    """Each twin is a process in lock-step."""
    spec, robot = policy.spec, load_robot(policy.spec.robot)
    order = JointOrder(spec.observation.joint_names, robot.spec.joint_names)
    with ExitStack() as stack:
        drivers = []
        for k in range(cfg.twins):
            name = f"twin:{cfg.preset}?seed={cfg.seed + k}&base=free&lockstep=1"
            drivers.append(open_driver(name, robot, command_hz=spec.control_hz))
            stack.callback(drivers[-1].close)
            drivers[-1].connect()
        gains = (order.to_robot(np.array(part)) for part in (spec.kp, spec.kd))
        return play(DriverWorld(robot.spec, drivers, *gains, 1.0 / spec.control_hz), policy, cfg)


def main(cfg: WorldsCfg) -> None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # seals of these twins
    policy = load_policy(RunFolder(cfg.run).policy)
    worlds = {"batched MuJoCo": in_simulation, f"twins, {cfg.preset}": on_twins}
    for name, run in worlds.items():
        played = run(policy, cfg)
        known = [key for key in ("velocity_error", "turn_error", "power") if key in played.metrics]
        figures = "  ".join(f"{key} {played.mean(key):.3f}" for key in known)
        print(f"{name:18} falls {played.falls} of {cfg.twins}  {figures}")
        print(f"{'':18} not measured: {', '.join(played.unknown) or 'nothing'}")


if __name__ == "__main__":
    main(tyro.cli(WorldsCfg))
