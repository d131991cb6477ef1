"""Policies that were really trained, through the one evaluation loop: in simulation and on a twin behind its driver."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from trueup.hardware.drivers.open import open_driver
from trueup.policy.mlp import MlpPolicy
from trueup.robot.load import load_robot
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.evaluation.evaluate import Played, evaluate
from trueup.tasks.evaluation.worlds import DriverWorld, SimWorld, World
from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.tasks.terms import rewards as r
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.play.play import TrainedRun
from trueup.train.train import train


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def trained(task: str, steps: int, nenv: int, folder: Path) -> MlpPolicy:
    cfg = RunCfg(task=task, threads=1, nenv=nenv, learner=default_learner(task))
    return TrainedRun(path=folder, outcome=train(cfg, folder, Budget(steps=steps, save_s=600.0))).policy()


def play(world: World, policy: MlpPolicy, task: Task, seconds: float, command=()) -> Played:
    if task.name == "pendulum-swingup":  # a swing to begin with: hanging at rest it shows the policy nothing
        for _ in range(10):
            world.step(np.array([[0.3]]))
    goal = build(task, EnvCfg(nenv=world.nrow, threads=1)).goal
    goal.reset(np.arange(world.nrow))
    goal.hold(np.array([command], np.float32))
    goal.reset = lambda ids: None  # type: ignore[method-assign]  # what is held stays
    return evaluate(world, policy.act, policy.spec, task, goal, seconds)


def in_simulation(policy: MlpPolicy, task: Task, seconds: float, command=()) -> Played:
    parts = build(task, EnvCfg(nenv=1, threads=1))
    return play(SimWorld(parts.sim, parts.sense), policy, task, seconds, command)


def on_a_twin(policy: MlpPolicy, task: Task, reference: str, seconds: float, command=()) -> Played:
    """In a process of its own, in lock-step."""
    spec, robot = policy.spec, load_robot(policy.spec.robot)
    driver = open_driver(reference, robot, command_hz=spec.control_hz, lockstep=True)
    driver.connect()
    try:
        world = DriverWorld(robot.spec, [driver], np.array(spec.kp), np.array(spec.kd), 1.0 / spec.control_hz)
        return play(world, policy, task, seconds, command)
    finally:
        driver.close()


@pytest.mark.medium
def test_a_pendulum_trained_in_simulation_swings_up_on_a_twin_too(tmp_path) -> None:
    policy = trained("pendulum-swingup", 70_000, 64, tmp_path / "run")
    task = replace(load_task("pendulum-swingup"), metrics={"height": r.swing_up})
    for played in (in_simulation(policy, task, 8.0), on_a_twin(policy, task, "twin:pace?seed=3", 8.0)):
        height = played.metrics["height"][:, 0]
        assert height[0] < 0.1  # it hangs
        assert height[-100:].min() > 0.75  # it is held up, within 60 degrees of upright


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_go2_trained_in_simulation_walks_on_a_twin_too(tmp_path) -> None:
    """It goes ahead, turns left and does not fall, and needs as much power, within a third, in both worlds."""
    policy = trained("go2-velocity", 900_000, 512, tmp_path / "run")
    task, asked = load_task("go2-velocity"), (0.5, 0.0, 0.5)
    here = in_simulation(policy, task, 10.0, asked)
    there = on_a_twin(policy, task, "twin:ideal?seed=3&base=free", 10.0, asked)
    assert here.falls == there.falls == 0
    assert "velocity_error" in there.unknown  # a robot does not measure its velocity
    assert here.mean("velocity_error") < 0.25
    assert here.mean("turn_error") < 0.3
    assert there.mean("turn_error") < 0.3
    assert there.mean("power") == pytest.approx(here.mean("power"), rel=0.33)
