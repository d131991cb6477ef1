"""Which way of training a UAN is the fastest on a CPU: inversion, or PPO as published.

    python benchmarks/actuator_methods.py [--seeds 41 42] [--cpu-s 90]

A pendulum twin `harmonic`, the same logs, base and net for all; whole-rollout error on unseen motion against CPU time.
Nothing reads the twin's truth.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from actuator_logs import twin_logs
from parts import ACTUATORS

from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg
from trueup.calibrate.nets.uan import uan
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.net_actuator import NetActuator, with_net
from trueup.world.batch import SimCfg
from trueup.world.fitted.calibration import Calibration
from trueup.world.replay.replay import ReplayCfg, replay

METHODS = ("inverse", "rl")
Numbers = dict[str, object]


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    seeds: tuple[int, ...] = (41, 42)
    cpu_s: float = 90.0
    """Of training per method."""
    fresh: bool = False


def main(cfg: BenchCfg) -> None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()
    keys = [f"pendulum {seed}" for seed in cfg.seeds]
    runs = ACTUATORS.each("methods", keys, lambda key: measure(int(key.split()[1]), cfg.cpu_s), fresh=cfg.fresh)
    rows = []
    for key, run in runs.items():
        for method in METHODS:
            curve = run[method]
            cells = [f"{1e3 * _at(curve, share * cfg.cpu_s):.2f}" for share in (0.1, 0.3, 1.0)]
            rows.append(f"| {key} | {1e3 * run['pace']:.2f} | {method} | {' | '.join(cells)} |")
    text = f"""## Ways of training UAN

A pendulum twin `harmonic`, 60 s of logs, net 128-128 on `pace`; whole-rollout error
on unseen motion (steps, sine ladder), mrad, of the best net so far by what was kept back of the training logs, against
CPU seconds of training.

| twin | pace | method | {0.1 * cfg.cpu_s:.0f} s | {0.3 * cfg.cpu_s:.0f} s | {cfg.cpu_s:.0f} s |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(rows)}
"""
    numbers = {
        f"uan_{method}_over_pace": float(np.mean([_at(r[method], np.inf) / r["pace"] for r in runs.values()]))
        for method in METHODS
    }
    ACTUATORS.merge("methods", numbers, text, " ".join(["python benchmarks/actuator_methods.py", *sys.argv[1:]]))


def _at(curve: list[list[float]], cpu_s: float) -> float:
    """The last error that was measured by this time."""
    return [error for at, error in curve if at <= cpu_s or at == curve[0][0]][-1]


def measure(seed: int, cpu_s: float) -> Numbers:
    """Error against CPU time of every method on one twin."""
    robot = load_robot("pendulum")
    with tempfile.TemporaryDirectory() as folder:
        logs = twin_logs(robot, "harmonic", seed, Path(folder), gain=False)
        base = calibrate(robot, logs.train, CalibrateCfg(holdout_share=0.0, check=False)).calibration
    out: Numbers = {"pace": whole(robot, logs.unseen, base, None)}
    for method in METHODS:
        out[method] = curve(robot, logs.train, logs.unseen, base, method, cpu_s)
    return out


def curve(
    robot: Robot, train: list[Log], unseen: list[Log], base: Calibration, method: str, cpu_s: float
) -> list[list[float]]:
    """(CPU seconds, error) as the training goes on; scoring is not counted."""
    cfg = uan.UanCfg(context=0, method=method, iterations=400)
    tracks = uan.make_tracks(robot, train)
    began, scoring, found, seen = time.process_time(), 0.0, [], -1.0
    problem = uan.make_uan_problem(robot, tracks, base, cfg)
    trainer = uan.make_trainer(problem, cfg)
    while not trainer.done:
        trainer.iterate()
        spent = time.process_time() - began - scoring
        if spent - seen > cpu_s / 20 or trainer.done:
            seen, mark = spent, time.process_time()
            found.append([spent, whole(robot, unseen, base, trainer.result())])
            scoring += time.process_time() - mark
        if spent > cpu_s:
            break
    return found


def whole(robot: Robot, logs: list[Log], base: Calibration, net: ActuatorNet | None) -> float:
    """Whole-rollout error, rad, mean over logs."""
    cfg = SimCfg(physics_hz=1000.0, model=ModelCfg(base="fixed"))
    out = []
    for log in logs:
        if net is None:
            out.append(replay(robot, log, ReplayCfg(sim=cfg), prepare=base.apply).rmse.mean())
            continue
        actuator = NetActuator(net)
        out.append(
            replay(
                robot, log, ReplayCfg(sim=with_net(cfg, net)), prepare=actuator.prepare, substep_model=actuator
            ).rmse.mean()
        )
    return float(np.mean(out))


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
