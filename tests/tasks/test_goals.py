"""Goals that are not velocities: an object's target and a reference motion."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.goals.reference_motion import Clip
from trueup.tasks.load import load_task
from trueup.tasks.zoo.go2_clip import trot_clip
from trueup.world.scene.scene import Object, Scene


def make(name: str, **more) -> TaskEnv:
    return TaskEnv(load_task(name), EnvCfg(**({"nenv": 32, "threads": 1, "stagger": False} | more)))


def idle(env: TaskEnv, steps: int):
    for _ in range(steps):
        step = env.step(np.zeros((env.nenv, env.naction), np.float32))
    return step


# --- objects ---
def test_the_cube_begins_in_its_area_at_rest_and_the_policy_sees_it():
    env = make("so101-push")
    cfg, cube = env.task.goal, env.sim.object_pose("cube")
    assert (cfg.x[0] <= cube[:, 0]).all()
    assert (cube[:, 0] <= cfg.x[1]).all()
    assert np.ptp(cube[:, 0]) > 0.5 * (cfg.x[1] - cfg.x[0])
    at = env.observation_spec.slices[[term.signal for term in env.observation_spec.terms].index("cube_pos")]
    np.testing.assert_allclose(env.obs.actor[:, at], 5.0 * cube[:, :3], atol=1e-5)
    idle(env, 10)
    assert np.abs(env.frame.cube_vel).max() < 0.02


def test_distance_is_that_from_cube_to_target_and_the_arm_can_change_it():
    env = make("so101-push", randomize=False)
    assert env.goal.values.shape == (32, 2)
    expected = np.linalg.norm(env.sim.object_pose("cube")[:, :2] - env.goal.values, axis=1)
    np.testing.assert_allclose(env.task.metrics["object_distance"](env.frame), expected, atol=1e-6)
    before = env.sim.object_pose("cube")[:, :2].copy()
    action = np.tile(np.array([0.0, 1.0, 0.2, 0.0], np.float32), (32, 1))  # lower the arm in front of itself
    for _ in range(40):
        env.step(action)
    moved = np.linalg.norm(env.sim.object_pose("cube")[:, :2] - before, axis=1)
    assert moved.max() > 0.01  # some cubes lay in its way
    assert moved.min() < 0.001  # others did not


def test_mass_and_friction_of_the_cube_are_randomised_and_shown_to_the_critic():
    env = make("so101-push")
    mass = env.sim.params.get("object_mass")
    assert mass.min() < 0.04
    assert mass.max() > 0.06
    assert env.nprivileged == 3  # mass, friction, delay


def test_a_fixed_object_cannot_be_brought_to_a_target():
    wall = Scene(objects=(Object(name="cube", shape="box", size=(0.02,) * 3, free=False),), floor=True)
    with pytest.raises(TrueupError, match="fixed"):
        TaskEnv(replace(load_task("so101-push"), scene=wall), EnvCfg(nenv=1, threads=1))


# --- a reference motion ---
def test_episodes_begin_at_random_phases_in_the_state_of_the_clip():
    env = make("go2-clip", randomize=False)
    robot, n = env.robot.spec, env.robot.spec.njoint
    np.testing.assert_allclose(env.sim.joint_pos, robot.default_pose + env.goal.values[:, :n], atol=1e-6)
    np.testing.assert_allclose(env.sim.joint_vel, env.goal.values[:, n : 2 * n], atol=1e-6)
    assert np.ptp(env.goal._phase) > 25  # of 50 rows
    np.testing.assert_allclose(env.frame.base_vel[:, 0], 0.4, atol=0.03)  # whichever way each robot faces


def test_the_clip_goes_on_with_the_control_steps_and_repeats():
    env = make("go2-clip", nenv=2, randomize=False, pushes=False)
    first = env.goal.values.copy()
    for _ in range(25):  # half a second: one period
        env.goal.advance()
    np.testing.assert_allclose(env.goal.values, first, atol=1e-5)


def test_speeds_of_the_trot_are_those_of_its_positions():
    clip = trot_clip(load_robot("go2").spec)
    thigh = clip.joint_pos[:, 1] - clip.joint_pos[:, 1].mean()  # a cosine of 2 Hz
    expected = -2.0 * np.pi * 2.0 * thigh.max() * np.sin(2.0 * np.pi * np.arange(50) / 50)
    np.testing.assert_allclose(clip.joint_vel[:, 1], expected, atol=0.01)


def test_a_clip_of_another_robot_is_refused():
    short = Clip(50.0, np.zeros((10, 3)), np.zeros((10, 3)), np.zeros(10))
    task = load_task("go2-clip")
    task = replace(task, goal=replace(task.goal, clip=lambda robot: short))
    with pytest.raises(TrueupError, match="joints"):
        TaskEnv(task, EnvCfg(nenv=1, threads=1))
    with pytest.raises(TrueupError, match="base_vel"):
        Clip(50.0, np.zeros((10, 12)), np.zeros((9, 3)), np.zeros(10))


@pytest.mark.parametrize(("task", "robot"), [("z1-reach", "so101"), ("so101-push", "z1"), ("go2-velocity", "z1")])
def test_a_task_on_another_robot_says_in_one_line_what_the_robot_lacks(task, robot):
    with pytest.raises(TrueupError) as caught:
        TaskEnv(replace(load_task(task), robot=robot), EnvCfg(nenv=1, threads=1))
    assert "\n" not in str(caught.value)
