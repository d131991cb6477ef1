"""The chain of an arm against the engine, and the poses it is asked for."""

import mujoco
import numpy as np
import pytest

from trueup.policy.chain import matrices, rotation_error
from trueup.robot.load import load_robot
from trueup.robot.model import compile_model, joint_index
from trueup.tasks.goals.tool_pose import ToolPoseGoal, arm_chain, reachable_poses
from trueup.tasks.load import EnvCfg, load_task, make_env


@pytest.fixture(scope="module")
def z1():
    robot = load_robot("z1")
    return robot, compile_model(robot)


def test_tool_is_where_the_engine_says(z1):
    robot, model = z1
    data, index = mujoco.MjData(model), joint_index(model, robot)
    joint_pos = np.random.default_rng(0).uniform(robot.spec.position_low, robot.spec.position_high, (20, 7))
    position, rotation = arm_chain(model, robot).tool_pose(joint_pos)
    for row in range(20):
        data.qpos[index.qpos] = joint_pos[row]
        mujoco.mj_kinematics(model, data)
        base = data.body("link00")
        in_base = base.xmat.reshape(3, 3).T @ (data.site("tool").xpos - base.xpos)
        np.testing.assert_allclose(position[row], in_base, atol=1e-12)
        world = base.xmat.reshape(3, 3) @ rotation[row]
        np.testing.assert_allclose(world.ravel(), data.site("tool").xmat, atol=1e-12)


def test_commanded_poses_are_reachable_and_above_the_floor(z1):
    robot, model = z1
    chain = arm_chain(model, robot)
    poses = reachable_poses(chain, robot, robot.spec.joint_names[:6], ToolPoseGoal(table=500), seed=1)
    assert poses.shape == (500, 7)
    assert poses[:, 2].min() > 0.1
    np.testing.assert_allclose(np.linalg.norm(poses[:, 3:], axis=1), 1.0)


def test_the_servo_follows_moving_targets_without_chatter():
    env = make_env(load_task("z1-reach"), EnvCfg(nenv=8, threads=1, seed=0, randomize=False))
    rng, fastest = np.random.default_rng(0), 0.0
    for k in range(40):
        env.step(rng.uniform(-1.0, 1.0, (8, 6)).astype(np.float32))
        if k > 10:
            fastest = max(fastest, float(np.abs(env.sim.joint_vel).mean()))
    assert fastest < 3.0  # rad/s, what targets move at, at most


def test_rotation_error_turns_one_frame_into_the_other():
    quat = np.random.default_rng(2).normal(size=(50, 4))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    goal, now = matrices(quat[:25]), matrices(quat[25:])
    for vector, a, b in zip(rotation_error(goal, now), goal, now, strict=True):
        turn, out = np.zeros(4), np.zeros(9)
        mujoco.mju_axisAngle2Quat(turn, vector / np.linalg.norm(vector), np.linalg.norm(vector))
        mujoco.mju_quat2Mat(out, turn)
        np.testing.assert_allclose(out.reshape(3, 3) @ b, a, atol=1e-9)
