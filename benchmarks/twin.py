"""How fast twins run in lock-step, over the real socket, against robot time.

    python benchmarks/twin.py [--seconds 10]

Ratios are robot seconds per second of processor time (the twin's process alone; twin and driver together) and of wall
clock, and the twin's processor time against plain steps of MuJoCo for the same robot in the same run: machines are
shared, and the last is the one that does not depend on the others.
"""

from __future__ import annotations

import os
import resource
import tempfile
from dataclasses import dataclass
from time import perf_counter, process_time

import mujoco
import numpy as np
import tyro
from results import publish

from trueup.robot.drivers.base import Command
from trueup.robot.drivers.open import open_driver
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.sim.batch import BatchSim, SimCfg


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    robot: str = "go2"
    presets: tuple[str, ...] = ("pace", "mild", "harmonic", "worn", "payload")
    rates: tuple[float, ...] = (200.0, 500.0)
    seconds: float = 10.0


def main(cfg: BenchCfg) -> None:
    os.sched_setaffinity(
        0, {min(os.sched_getaffinity(0))}
    )  # twin and driver share one core: no core wakes the other
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # sealed truths of a benchmark are nobody's business
    rows = [measure(cfg, preset, rate) for rate in cfg.rates for preset in cfg.presets]
    slowest = min(row["twin_per_cpu_second"] for row in rows if row["rate_hz"] == cfg.rates[0])
    numbers: dict[str, object] = {"slowest_at_first_rate": slowest, "robot": cfg.robot, "rows": rows}
    publish("twin", numbers, page(cfg, rows, slowest))


def measure(cfg: BenchCfg, preset: str, rate: float) -> dict[str, object]:
    """Drive one twin by sines and time it."""
    robot = load_robot(cfg.robot)
    spec = robot.spec
    driver = open_driver(f"twin:{preset}?seed=1", robot, command_hz=rate, lockstep=True)
    driver.connect()
    children = _children_cpu()
    zero = np.zeros(spec.njoint)
    wall, own = perf_counter(), process_time()
    for k in range(round(cfg.seconds * rate)):
        driver.read()
        target = spec.default_pose + 0.1 * np.sin(0.02 * k + np.arange(spec.njoint))
        driver.write(Command(target_pos=target, target_vel=zero, kp=spec.kp, kd=spec.kd, torque=zero))
    driver.read()
    wall, own = perf_counter() - wall, process_time() - own
    driver.close()
    bare = _engine_cpu(cfg)
    twin = _children_cpu() - children - _start_cpu(cfg, preset, rate)
    return {
        "preset": preset,
        "rate_hz": rate,
        "twin_per_cpu_second": round(cfg.seconds / twin, 1),
        "both_per_cpu_second": round(cfg.seconds / (twin + own), 1),
        "wall": round(cfg.seconds / wall, 1),
        "twin_over_bare_engine": round(twin / bare, 2),
    }


def _engine_cpu(cfg: BenchCfg) -> float:
    """Processor time of the bare engine for the same robot time at 1 kHz."""
    sim = BatchSim(
        load_robot(cfg.robot), SimCfg(model=ModelCfg(base="fixed"), control_hz=200.0, physics_hz=1000.0)
    )
    model, data = sim.batch.get_model(0), sim.batch.get_data(0)
    before = process_time()
    mujoco.mj_step(model, data, round(cfg.seconds * 1000))
    return process_time() - before


def _start_cpu(cfg: BenchCfg, preset: str, rate: float) -> float:
    """Processor time of a twin that is started and ended at once."""
    before = _children_cpu()
    driver = open_driver(f"twin:{preset}?seed=1", load_robot(cfg.robot), command_hz=rate, lockstep=True)
    driver.connect()
    driver.close()
    return _children_cpu() - before


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def page(cfg: BenchCfg, rows: list[dict[str, object]], slowest: float) -> str:
    """The results as a page."""
    lines = ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows]
    return f"""# Twin: speed

{cfg.robot} held in the air, lock-step over UDP, twin and driver on one core, {cfg.seconds:g} s of robot time; times
real time.

| preset | commands/s | twin, one core | twin + driver, one core | wall clock | twin / bare engine |
| --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}

The slowest twin at {cfg.rates[0]:g} commands/s runs {slowest} times real time on one core (asked: 20). At higher
command rates the work per command, not the physics, sets the pace.
"""


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
