"""Speed of simulation and drawing on this computer, and estimated times of usual jobs."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from mujoco.batch import Batch

from trueup.robot.load import Robot, load_robot
from trueup.robot.model import add_servos, build_spec, compile_spec, default_qpos
from trueup.view.draw import HEIGHT, WIDTH
from trueup.view.film import film, visual_model

_PHYSICS_SHARE = 0.5  # of a training's time; the rest goes to rewards, observations and learning
_FIT_EVALUATIONS, _FIT_SECONDS = 456, 20.0
_FRAMES = 6


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Physics steps per second on one thread and on all of them; seconds per picture of a film, if known."""

    robot: str
    threads: int
    steps_per_s_one: float
    steps_per_s_all: float
    physics_hz: float
    control_hz: float
    frame_s: float | None = None


@dataclass(frozen=True)
class Cost:
    """Estimated time of a job on this computer, with assumptions."""

    what: str
    seconds: float
    assumes: str


def measure_speed(threads: int, *, robot: str = "go2", seconds: float = 1.5, nsim: int = 128) -> Speed:
    """Step a batch of standing, fidgeting robots for about `seconds` in all."""
    loaded = load_robot(robot)
    spec = build_spec(loaded)
    add_servos(spec, loaded)
    model = compile_spec(spec, loaded)
    return Speed(
        robot=robot,
        threads=threads,
        steps_per_s_one=_steps_per_s(model, loaded, 1, seconds / 2, nsim),
        steps_per_s_all=_steps_per_s(model, loaded, threads, seconds / 2, nsim),
        physics_hz=loaded.spec.physics_hz,
        control_hz=loaded.spec.control_hz,
    )


def measure_frame_s(*, robot: str = "go2") -> float:
    """Seconds per picture of a film of the usual size, from model to file."""
    loaded = load_robot(robot)
    model = visual_model(loaded)
    qpos = np.tile(default_qpos(model, loaded), (_FRAMES, 1))
    with tempfile.TemporaryDirectory() as folder:
        times: list[float] = []
        path = Path(folder) / "frame.mp4"
        film(model, qpos, path, sample_hz=30.0, progress=lambda _: times.append(time.perf_counter()))
    return (times[-1] - times[0]) / (len(times) - 1)  # the first picture also warms up


def estimate_costs(speed: Speed) -> list[Cost]:
    """Estimated times of usual jobs at this speed, with assumptions."""
    substeps = speed.physics_hz / speed.control_hz
    fit_steps = _FIT_EVALUATIONS * _FIT_SECONDS * speed.physics_hz
    control_steps = 900 * _PHYSICS_SHARE * speed.steps_per_s_all / substeps
    every_core = f"{speed.robot}, physics alone, {speed.threads} threads"
    fit = f"{_FIT_EVALUATIONS} evaluations at {speed.physics_hz:g} Hz, {every_core}"
    training = f"train for 15 minutes: {control_steps / 1e6:.2g} million control steps"
    costs = [
        Cost("step 1 million control steps", 1e6 * substeps / speed.steps_per_s_all, every_core),
        Cost("fit 36 parameters to 20 s of log", fit_steps / speed.steps_per_s_all, fit),
        Cost(training, 900.0, f"{speed.robot}, {_PHYSICS_SHARE:.0%} of the time is physics"),
    ]
    if speed.frame_s is not None:
        size = f"{speed.robot}, {WIDTH} x {HEIGHT}, 30 pictures a second"
        costs.insert(0, Cost("film 5 s", 150 * speed.frame_s, size))
    return costs


def _steps_per_s(model: mujoco.MjModel, robot: Robot, threads: int, seconds: float, nsim: int) -> float:
    batch = Batch(model, nsim=nsim, nthread=threads)
    batch.bind("qpos")[:] = default_qpos(model, robot)
    ctrl, rng = batch.bind("ctrl"), np.random.default_rng(0)
    batch.step(nstep=robot.spec.substeps)  # starts the threads
    rounds, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        ctrl[:] = robot.spec.default_pose + rng.normal(0.0, 0.1, ctrl.shape)
        batch.step(nstep=robot.spec.substeps)
        rounds += 1
    return rounds * nsim * robot.spec.substeps / passed
