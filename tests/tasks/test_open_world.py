"""One task's world in either engine: the same loop, signals, terminations and metrics."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.tasks.build import build
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.evaluation.evaluate import Played, evaluate
from trueup.tasks.evaluation.open_world import OpenWorld, open_world
from trueup.tasks.load import load_task
from trueup.world.engines.choose import ENGINES
from trueup.world.terrain import TerrainCfg

pytest.importorskip("sapien", reason="the second engine is not installed (extra physx)")

TASK = load_task("go2-velocity")
STILL = replace(TASK, goal=replace(TASK.goal, standing=1.0))  # asks to stand
ENV = EnvCfg(nenv=4, threads=1, seed=3)
SPEC = TaskEnv(TASK, EnvCfg(nenv=1, threads=1)).policy_spec()


def hold(obs: np.ndarray) -> np.ndarray:
    return np.zeros((len(obs), 12), np.float32)


def give_way(obs: np.ndarray) -> np.ndarray:
    action = hold(obs)
    action[:, [0, 3, 6, 9]] = 3.5
    action[:, [1, 4]], action[:, [7, 10]] = 6.0, -6.0
    return action


def play(opened: OpenWorld, policy, seconds: float) -> Played:
    return evaluate(opened.world, policy, SPEC, STILL, opened.goal, seconds)


@pytest.fixture(params=ENGINES)
def opened(request) -> OpenWorld:
    found = open_world(STILL, ENV, request.param)
    found.begin(STILL, ENV)
    return found


def test_a_robot_that_holds_its_pose_stands_and_every_metric_is_known(opened):
    played = play(opened, hold, 1.0)
    assert played.falls == 0
    assert played.unknown == ()
    assert played.mean("velocity_error") < 0.1
    assert 0.0 < played.mean("power") < 30.0
    assert opened.world.frame.foot_contact.all()
    np.testing.assert_allclose(opened.world.frame.base_height, 0.27, atol=0.03)


def test_a_robot_whose_legs_give_way_falls_in_both(opened):
    assert play(opened, give_way, 3.0).falls == 4


def test_episodes_begin_alike_in_both_engines():
    one, other = (open_world(STILL, ENV, engine) for engine in ENGINES)
    for found in (one, other):
        found.begin(STILL, ENV)
    np.testing.assert_allclose(other.sim.joint_pos, one.sim.joint_pos, atol=1e-6)
    for name in ("base_vel", "base_spin", "gravity", "foot_height"):
        np.testing.assert_allclose(
            getattr(other.world.frame, name), getattr(one.world.frame, name), atol=2e-3, err_msg=name
        )
    np.testing.assert_array_equal(one.goal.values, other.goal.values)


def test_the_first_engine_is_the_one_that_environments_have():
    opened, parts = open_world(STILL, ENV), build(STILL, ENV)
    for _ in range(10):
        for sim in (opened.sim, parts.sim):
            sim.step(parts.sim.robot.spec.default_pose)
    np.testing.assert_array_equal(opened.sim.joint_pos, parts.sim.joint_pos)


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["slope_up", "slope_down", "stairs_up", "noise"])
def test_robots_stand_on_the_same_terrain_in_both_engines(kind):
    terrain = TerrainCfg(kinds=(kind,), levels=2, patch_m=4.0)
    task = replace(STILL, terrain=terrain, terminations={})
    env = replace(ENV, level=1)
    heights = []
    for engine in ENGINES:
        found = open_world(task, env, engine)
        found.begin(task, env)
        qpos = np.tile(found.sim.default_qpos, (4, 1))
        qpos[:, :2] = found.sim.scene.terrain.middle(np.ones(4, int), np.zeros(4, int))
        qpos[:, 0] += (0.0, 1.0, 1.2, 1.4)  # outwards, where it rises or falls
        qpos[:, 2] += found.sim.scene.terrain.height_at(*qpos[:, :2].T.astype(np.float32)) + 0.15
        found.sim.params.set("kp", 60.0)
        found.sim.params.set("kd", 2.0)
        found.sim.reset(qpos=qpos)
        for _ in range(30):
            found.world.step(np.tile(found.sim.robot.spec.default_pose, (4, 1)))
        heights.append(found.world.frame.base_height.copy())
        touching = found.world.frame.foot_contact.sum(axis=1)
        assert (touching >= 2).all(), engine
        assert (found.world.frame.foot_height > -0.05).all(), engine  # none sinks in
    np.testing.assert_allclose(heights[1], heights[0], atol=0.03)


def test_feet_that_would_start_below_a_terrain_are_lifted_out():
    task = replace(STILL, terrain=TerrainCfg(kinds=("stairs_up",), levels=2), terminations={})
    found = open_world(task, replace(ENV, level=0), "sapien")
    found.begin(task, replace(ENV, level=0))
    qpos = found.sim.qpos
    qpos[:, 2] -= (0.0, 0.05, 0.1, 0.2)
    found.sim.reset(qpos=qpos)
    found.sense.reset(np.arange(4), found.world.frame.command)
    assert found.world.frame.foot_height.min() > -1e-4
    for _ in range(50):
        found.world.step(np.tile(found.sim.robot.spec.default_pose, (4, 1)))
    assert found.world.frame.foot_height.min() > -0.005
    assert found.world.frame.base_height.min() > 0.2


def test_what_an_engine_cannot_do_is_said(tmp_path):
    with pytest.raises(TrueupError, match="no engine 'bullet': there are mujoco, sapien"):
        open_world(STILL, ENV, "bullet")
    with pytest.raises(TrueupError, match="learned actuator runs in MuJoCo only"):
        open_world(STILL, replace(ENV, actuator=tmp_path), "sapien")
