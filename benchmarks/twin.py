"""How fast twins run in lock-step, over the real socket, against robot time.

    python benchmarks/twin.py [--seconds 20]

Twin and driver are pinned to one core. Every figure is the median of several repetitions, the twin's worst one beside
it: robot seconds per second of
processor time (the twin's process alone; twin and driver together) and of wall clock, and the twin's processor time
against plain steps of MuJoCo for the same robot right before: machines are shared, and the last is the one that
depends least on the others. Ends with an error when the slowest twin at the first rate misses what is asked.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import mujoco
import numpy as np
import tyro
from results import publish

from trueup.hardware.driver import Command
from trueup.hardware.drivers.open import twin_options
from trueup.hardware.drivers.twin import TwinDriver
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

ASKED = 20.0  # times real time, at the first rate


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    robot: str = "go2"
    presets: tuple[str, ...] = ("ideal", "pace", "payload", "mild", "harmonic", "worn")
    rates: tuple[float, ...] = (200.0, 500.0)
    seconds: float = 20.0
    """Of robot time, over all repetitions."""
    repeats: int = 8


def main(cfg: BenchCfg) -> None:
    os.sched_setaffinity(0, {_idlest_core()})  # the twin inherits it
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # sealed truths of a benchmark are nobody's business
    rows = [measure(cfg, preset, rate) for rate in cfg.rates for preset in cfg.presets]
    first = [row for row in rows if row["rate_hz"] == cfg.rates[0]]
    slowest = {name: min(float(str(row[name])) for row in first) for name in ("twin", "twin_worst", "both", "wall")}
    numbers: dict[str, object] = {"asked": ASKED, "slowest_at_first_rate": slowest, "robot": cfg.robot, "rows": rows}
    publish("twin", numbers, page(cfg, rows, slowest))
    if slowest["twin"] < ASKED:
        sys.exit(f"the slowest twin runs {slowest['twin']} times real time, asked are {ASKED:g}")


def _idlest_core() -> int:
    """The core that other work leaves alone the most (Linux)."""

    def idle(core: int) -> int:
        lines = Path("/proc/stat").read_text().splitlines()
        return next(int(line.split()[4]) for line in lines if line.startswith(f"cpu{core} "))

    cores = sorted(os.sched_getaffinity(0))
    before = [idle(core) for core in cores]
    time.sleep(1.0)
    return max(zip(cores, before, strict=True), key=lambda pair: idle(pair[0]) - pair[1])[0]


def measure(cfg: BenchCfg, preset: str, rate: float) -> dict[str, object]:
    """Drive one twin by sines and time it."""
    robot = load_robot(cfg.robot)
    count = round(cfg.seconds * rate / cfg.repeats)
    commands = [_command(robot, k) for k in range(count)]
    with TwinDriver(robot, twin_options(f"{preset}?seed=1&lockstep=1&hz={rate:g}")) as driver:
        _drive(driver, commands[: round(0.2 * rate)])
        runs = [(_engine_cpu(cfg, count / rate), *_drive(driver, commands)) for _ in range(cfg.repeats)]
    seconds = count / rate
    bare, twin, own, wall = np.array(runs).T
    return {
        "preset": preset,
        "rate_hz": rate,
        "twin": _median(seconds / twin),
        "twin_worst": round(float((seconds / twin).min()), 1),
        "both": _median(seconds / (twin + own)),
        "wall": _median(seconds / wall),
        "core_share": round(float(np.median((twin + own) / wall)), 2),
        "twin_over_bare_engine": round(float(np.median(twin / bare)), 2),
    }


def _median(values: np.ndarray) -> float:
    return round(float(np.median(values)), 1)


def _command(robot: Robot, k: int) -> Command:
    spec, zero = robot.spec, np.zeros(robot.spec.njoint)
    target = spec.default_pose + 0.1 * np.sin(0.02 * k + np.arange(spec.njoint))
    return Command(target_pos=target, target_vel=zero, kp=spec.kp, kd=spec.kd, torque=zero)


def _drive(driver: TwinDriver, commands: list[Command]) -> tuple[float, float, float]:
    """Return processor time of the twin and of the driver, and wall clock."""
    driver.read()
    twin, own, wall = _cpu_of(driver.twin_pid), process_time(), perf_counter()
    for command in commands:
        driver.write(command)
        driver.read()
    return _cpu_of(driver.twin_pid) - twin, process_time() - own, perf_counter() - wall


def _cpu_of(pid: int) -> float:
    """Processor time of a running process's main thread, to the nanosecond (Linux)."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) * 1e-9


def _engine_cpu(cfg: BenchCfg, seconds: float) -> float:
    """Processor time of the bare engine for the same robot time at 1 kHz."""
    sim = BatchSim(load_robot(cfg.robot), SimCfg(model=ModelCfg(base="fixed"), control_hz=200.0, physics_hz=1000.0))
    model, data = sim.batch.get_model(0), sim.batch.get_data(0)
    before = process_time()
    mujoco.mj_step(model, data, round(seconds * 1000))
    return process_time() - before


def page(cfg: BenchCfg, rows: list[dict[str, object]], slowest: dict[str, float]) -> str:
    """The results as a page."""
    lines = ["| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows]
    return f"""# Twin: speed

{cfg.robot} held in the air, lock-step over UDP, twin and driver pinned to one core; times real time, the median
of {cfg.repeats} repetitions of {cfg.seconds / cfg.repeats:g} s of robot time each.

| preset | commands/s | twin, one core | its worst | twin + driver | wall clock | share of the core | / bare engine |
| --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}

The slowest twin at {cfg.rates[0]:g} commands/s, the default of `trueup record`, runs {slowest["twin"]} times real time
on one core (asked: {ASKED:g}; in the worst repetition {slowest["twin_worst"]}); together with its driver
{slowest["both"]}, by the wall clock {slowest["wall"]}.
At higher command rates the work per command, not the physics, sets the pace. A share of the core below about 0.9 says
that other work ran on it meanwhile, which also makes processor time dearer.
"""


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
