"""One evaluation loop on batched physics and on a twin behind its driver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.open import open_driver
from trueup.robot.load import load_robot
from trueup.tasks.build import build
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.evaluation.evaluate import Played, evaluate
from trueup.tasks.evaluation.worlds import DriverWorld, SimWorld, World
from trueup.tasks.load import load_task

TASK = load_task("go2-velocity")
STILL = replace(TASK, goal=replace(TASK.goal, standing=1.0))  # asks to stand
SPEC = TaskEnv(TASK, EnvCfg(nenv=1, threads=1)).policy_spec()


@pytest.fixture(autouse=True)
def _own_state_folder(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def hold(obs: np.ndarray) -> np.ndarray:
    """Stay in the default pose."""
    return np.zeros((len(obs), 12), np.float32)


def give_way(obs: np.ndarray) -> np.ndarray:
    """Fold the front legs and stretch the rear ones: the robot rolls over."""
    action = np.zeros((len(obs), 12), np.float32)
    action[:, [0, 3, 6, 9]] = 3.5
    action[:, [1, 4]], action[:, [7, 10]] = 6.0, -6.0
    return action


def play(world: World, policy, seconds: float) -> Played:
    return evaluate(world, policy, SPEC, STILL, build(STILL, EnvCfg(nenv=world.nrow, threads=1, seed=3)).goal, seconds)


def simulated(nrow: int = 2) -> SimWorld:
    parts = build(STILL, EnvCfg(nenv=nrow, threads=1))
    return SimWorld(parts.sim, parts.sense)


def test_a_simulation_that_stands_keeps_standing_and_every_metric_is_known() -> None:
    played = play(simulated(), hold, 1.0)
    assert played.falls == 0
    assert played.unknown == ()
    assert played.standing.shape == played.metrics["velocity_error"].shape == (50, 2)
    assert played.mean("velocity_error") < 0.1
    assert 0.0 < played.mean("power") < 30.0
    assert not played.commands.any()


def test_a_row_that_falls_is_counted_once_and_stays_down() -> None:
    played = play(simulated(), give_way, 3.0)
    assert played.falls == 2
    falls = np.diff(played.standing.astype(int), axis=0)
    assert (falls <= 0).all()


def test_a_saved_simulation_goes_on_as_before() -> None:
    world, target = simulated(), np.tile(load_robot("go2").spec.default_pose, (2, 1))
    world.step(target)
    kept = world.save()
    world.step(target + 0.1)
    first = world.frame.joint_pos.copy()
    world.restore(kept)
    world.step(target + 0.1)
    np.testing.assert_array_equal(world.frame.joint_pos, first)


@pytest.mark.medium
def test_the_same_policy_runs_on_a_twin_behind_its_driver() -> None:
    robot = load_robot("go2")
    driver = open_driver("twin:ideal?lockstep=1&seed=4&base=free", robot, command_hz=SPEC.control_hz)
    driver.connect()
    try:
        world = DriverWorld(robot.spec, [driver], np.array(SPEC.kp), np.array(SPEC.kd), 1.0 / SPEC.control_hz)
        played = play(world, hold, 1.0)
        with pytest.raises(TrueupError, match="only simulations"):
            world.save()
    finally:
        driver.close()
    assert played.falls == 0
    assert "velocity_error" in played.unknown  # a robot does not measure its velocity
    assert "turn_error" in played.metrics
    here = play(simulated(1), hold, 1.0)
    assert played.mean("power") == pytest.approx(here.mean("power"), abs=5.0)
    assert played.mean("turn_error") == pytest.approx(here.mean("turn_error"), abs=0.05)
