"""Drop a robot, hold its default pose, and log what happens: the first thing to try with any robot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg, trunk_body
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import read_calibration
from trueup.world.fitted.origins import ValueOrigin, origins
from trueup.world.fitted.posterior import Fitted, sim_for_fit
from trueup.world.randomization.randomize import Randomizer, Ranges, joint_ranges, locomotion_ranges
from trueup.world.sensors import SensorCfg
from trueup.world.verbs import DropCfg


@dataclass(frozen=True, kw_only=True)
class Drop:
    """Result of a drop: log and `qpos` of simulation 0, final heights, divergence and speed of all of them.

    final_height     (nsim,) of the base above the ground; NaN on a held base
    steps_per_second control steps of all simulations per second of wall clock
    origins          where parameters that are not the robot's own came from
    """

    log: Log
    qpos: NDArray[np.float64]
    sample_hz: float
    final_height: NDArray[np.float64]
    diverged: int
    steps_per_second: float
    origins: tuple[ValueOrigin, ...] = ()


def drop(robot: Robot | str, cfg: DropCfg | None = None, *, progress: Callable[[float], None] | None = None) -> Drop:
    """Run `cfg.nsim` copies of the robot from `cfg.height_m` above its standing height, holding the default pose."""
    cfg, robot = cfg or DropCfg(), load_robot(robot)
    sim, found = _varied(robot, cfg)
    qpos = np.tile(sim.default_qpos, (sim.nsim, 1))
    if sim.free_base:
        qpos[:, sim.base_qpos + 2] += cfg.height_m
    sim.reset(qpos=qpos)
    steps = max(1, round(cfg.seconds / sim.control_dt))
    rows = []
    started = perf_counter()
    for t in range(steps):
        rows.append(_row(sim))
        sim.step(robot.spec.default_pose)
        if progress is not None:
            progress((t + 1) / steps)
    elapsed = perf_counter() - started
    height = sim.qpos[:, sim.base_qpos + 2].copy() if sim.free_base else np.full(sim.nsim, np.nan)
    signals = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    qpos, time = signals.pop("qpos"), np.arange(steps, dtype=np.float64) * sim.control_dt
    meta: dict[str, object] = {"source": "simulation", "robot": robot.spec.name, "seed": cfg.seed}
    return Drop(
        log=Log(time=time, joint_names=robot.spec.joint_names, signals=signals, meta=meta),
        qpos=qpos,
        sample_hz=1.0 / sim.control_dt,
        final_height=height,
        diverged=int(sim.diverged.sum()),
        steps_per_second=steps * sim.nsim / elapsed,
        origins=found,
    )


def _varied(robot: Robot, cfg: DropCfg) -> tuple[BatchSim, tuple[ValueOrigin, ...]]:
    """Build the simulations and set their parameters from the calibration and the ranges."""
    sensors = cfg.sensors or SensorCfg()
    sim_cfg = SimCfg(nsim=cfg.nsim, threads=cfg.threads, seed=cfg.seed, model=ModelCfg(base=cfg.base), sensors=sensors)
    params = read_calibration(cfg.params) if isinstance(cfg.params, str | Path) else cfg.params
    sim = BatchSim(robot, sim_cfg if params is None else sim_for_fit(sim_cfg, params))
    ranges = default_ranges(sim) if cfg.randomize else {}
    fitted = None if params is None else Fitted(params, sim, posterior=cfg.nsim > 1)
    if ranges or fitted is not None:
        Randomizer(sim, ranges, fitted).apply()
    return sim, origins(sim, ranges, fitted)


def default_ranges(sim: BatchSim) -> Ranges:
    """Ranges for this robot: locomotion on a floating base, joints only on a held one."""
    return locomotion_ranges(trunk_body(sim.model, sim.robot)) if sim.free_base else joint_ranges()


def _row(sim: BatchSim) -> dict[str, NDArray[np.float64]]:
    """Sensor readings, torque and command of simulation 0."""
    seen = sim.observe()
    row = {
        "qpos": sim.qpos[0].copy(),
        "joint_pos": seen.joint_pos[0].copy(),
        "joint_vel": seen.joint_vel[0].copy(),
        "joint_torque": sim.joint_torque[0].copy(),
        "target_pos": sim.robot.spec.default_pose,
    }
    if sim.free_base:
        at = sim.base_qpos
        row["base_pos"] = sim.qpos[0, at : at + 3].copy()
        row["base_quat"] = sim.qpos[0, at + 3 : at + 7].copy()
    return row
