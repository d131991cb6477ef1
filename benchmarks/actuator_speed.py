"""Speed of simulations with a learned actuator in the loop, and what training costs: part `speed` of `actuators.py`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from parts import ACTUATORS, table

from trueup.calibrate.actuator.rungs import rung_named
from trueup.models.actuator_file import load_actuator
from trueup.robot.load import load_robot
from trueup.tasks.build import with_servo
from trueup.tasks.env import EnvCfg
from trueup.tasks.load import load_task, make_env
from trueup.world.actuators.net_actuator import NetActuator, with_net
from trueup.world.batch import BatchSim, SimCfg

if TYPE_CHECKING:
    from actuators import BenchCfg

Numbers = dict[str, object]
TASK = "go2-velocity"
SIZES = (256, 1024)
REPETITIONS, STEPS = 7, 20


def speed_part(cfg: BenchCfg) -> tuple[Numbers, str]:
    """Bare physics and the task, with the engine's actuators and with the UAN of the first twin."""
    folder = cfg.runs / f"harmonic-{cfg.seeds[0]}" / "ladder" / "rungs" / "uan"

    def one(key: str) -> Numbers:
        nsim = int(key)
        return {"physics": _physics(nsim, folder), "task": _task(nsim, folder)}

    runs = ACTUATORS.each("speed", [str(size) for size in SIZES], one, fresh=cfg.fresh)
    rows = [
        (f"{key} go2, {what}", *(f"{found[name]:,.0f}" for name in ("engine", "net")), f"{found['ratio']:.2f}")
        for key, run in runs.items()
        for what, found in run.items()
    ]
    ratio = min(run["physics"]["ratio"] for run in runs.values())
    text = f"""## Speed

go2 walking on the ground (control 50 Hz, physics 200 Hz), control steps per second, median of {REPETITIONS} alternating
repetitions; bare physics, and the whole task with observations and rewards. Asked: at least 0.5.

{table(("simulation", "engine actuators", "UAN in the loop", "ratio"), rows)}

{_times()}
"""
    return {"uan_speed_ratio": ratio}, text


def _times() -> str:
    """Training times of the ladder on a twin that has most rungs, if there is one."""
    runs = ACTUATORS.load()["runs"].get("harmonic", {})
    if not runs:
        return ""
    seed, first = max(runs.items(), key=lambda item: len(item[1]["rungs"]))
    rows = [
        (rung_named(name).title, facts["count"], f"{facts['cpu_s']:.1f}", f"{facts['fit_s']:.1f}")
        for name, facts in first["rungs"].items()
        if "cpu_s" in facts
    ]
    head = ("rung", "numbers fitted", "CPU s", "wall s (machine shared)")
    return f"Training time of each rung on 60 s of a go2 (twin `harmonic`, seed {seed}):\n\n{table(head, rows)}"


def _physics(nsim: int, folder: Path) -> Numbers:
    task, net = load_task(TASK), load_actuator(folder)
    robot = with_servo(load_robot(task.robot), task.servo)
    cfg = SimCfg(nsim=nsim)
    engine = BatchSim(robot, cfg)
    learned = BatchSim(robot, with_net(cfg, net), NetActuator(net))
    assert isinstance(learned.substep_model, NetActuator)
    learned.substep_model.prepare(learned)
    rng = np.random.default_rng(0)
    moves = 0.1 * rng.standard_normal((STEPS, nsim, robot.spec.njoint))

    def steps(sim: BatchSim) -> Callable[[], None]:
        def run() -> None:
            sim.reset()
            for move in moves:
                sim.step(robot.spec.default_pose + move)

        return run

    return _compare(steps(engine), steps(learned), nsim)


def _task(nsim: int, folder: Path) -> Numbers:
    task = load_task(TASK)
    plain = EnvCfg(nenv=nsim, randomize=False, pushes=False)
    engine, learned = make_env(task, plain), make_env(task, replace(plain, actuator=folder))
    rng = np.random.default_rng(0)
    actions = 0.2 * rng.standard_normal((STEPS, nsim, engine.naction)).astype(np.float32)

    def steps(env: object) -> Callable[[], None]:
        def run() -> None:
            env.reset()  # type: ignore[attr-defined]
            for action in actions:
                env.step(action)  # type: ignore[attr-defined]

        return run

    return _compare(steps(engine), steps(learned), nsim)


def _compare(engine: Callable[[], None], net: Callable[[], None], nsim: int) -> Numbers:
    """Control steps per second of both, taken in turn, so that a busy machine slows both."""
    times: dict[str, list[float]] = {"engine": [], "net": []}
    for _ in range(REPETITIONS + 1):
        for name, run in (("engine", engine), ("net", net)):
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    rate = {name: nsim * STEPS / float(np.median(found[1:])) for name, found in times.items()}
    ratio = float(np.median(np.array(times["engine"][1:]) / np.array(times["net"][1:])))
    return {**rate, "ratio": ratio}
