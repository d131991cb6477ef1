"""Tool poses: the table they are drawn from."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from given_random import GivenRandom

from trueup.core.errors import TrueupError
from trueup.policy.chain import matrices
from trueup.robot.load import load_robot
from trueup.robot.model import compile_model
from trueup.tasks.goals.goal import GoalPlace
from trueup.tasks.goals.tool_pose import ToolPoseGoal, arm_chain, reachable_poses
from trueup.tasks.load import load_task
from trueup.tasks.task import error_label

CFG = ToolPoseGoal(table=8, hold_s=(3.0, 5.0))


@pytest.fixture(scope="module")
def z1():
    robot = load_robot("z1")
    return robot, compile_model(robot)


def started(z1, *draws, cfg=CFG):
    robot, model = z1
    sim = SimpleNamespace(
        nsim=2, control_dt=0.04, robot=robot, model=model, cfg=SimpleNamespace(seed=5)
    )  # all that it reads of a simulation
    return cfg.start(GoalPlace(sim, robot.spec.joint_names[:6], GivenRandom(2, *draws)))


def test_a_number_from_zero_to_one_chooses_a_row_of_the_table(z1):
    robot, model = z1
    goal = started(z1, [[0.0], [0.0]], [[0.3], [0.999]])
    goal.reset(np.arange(2))
    table = reachable_poses(arm_chain(model, robot), robot, robot.spec.joint_names[:6], CFG, seed=5)
    np.testing.assert_allclose(goal.values, table[[2, 7]], atol=1e-6)  # 0.3 and 0.999 of 8 rows


def test_a_pose_is_held_for_its_time(z1):
    goal = started(z1, [[0.0], [1.0]], [[0.0], [0.0]], [[0.0]], [[0.9]])
    goal.reset(np.arange(2))
    first = goal.values.copy()
    for _ in range(74):  # 3 s at 25 Hz are 75 steps
        goal.advance()
    np.testing.assert_array_equal(goal.values, first)
    goal.advance()
    assert (goal.values[0] != first[0]).any()
    np.testing.assert_array_equal(goal.values[1], first[1])


def test_without_a_span_every_pose_is_that_of_the_middle_of_the_ranges(z1):
    robot, model = z1
    spec, chain = robot.spec, arm_chain(model, robot)
    cfg = replace(CFG, span=0.0, floor_m=-10.0)
    poses = reachable_poses(chain, robot, spec.joint_names[:6], cfg, seed=0)
    middle = 0.5 * (spec.position_low + spec.position_high)
    middle[6] = spec.default_pose[6]  # the gripper is not moved
    position, rotation = chain.tool_pose(middle[None])
    np.testing.assert_allclose(poses[:, :3], np.tile(position, (8, 1)), atol=1e-12)
    np.testing.assert_allclose(matrices(poses[:1, 3:]), rotation, atol=1e-9)


def test_joints_that_are_not_moved_keep_the_default_pose(z1):
    robot, model = z1
    chain = arm_chain(model, robot)
    poses = reachable_poses(chain, robot, (), replace(CFG, floor_m=-10.0), seed=0)
    position, _ = chain.tool_pose(robot.spec.default_pose[None])
    np.testing.assert_allclose(poses[:, :3], np.tile(position, (8, 1)), atol=1e-12)


def test_a_floor_above_the_arms_reach_is_told(z1):
    robot, model = z1
    with pytest.raises(TrueupError, match=r"only 0 of 32 poses.*above 5.0 m"):
        reachable_poses(arm_chain(model, robot), robot, ("joint1",), replace(CFG, floor_m=5.0), seed=0)


def test_a_joint_off_its_bodys_origin_makes_no_chain():
    robot = load_robot("z1")
    model = compile_model(robot)
    model.jnt_pos[model.joint("joint2").id] = [0.0, 0.0, 0.1]
    with pytest.raises(TrueupError, match="one joint at the body's origin"):
        arm_chain(model, robot)


def test_its_error_is_the_settled_distance():
    assert error_label(load_task("z1-reach")) == "settled distance, m"
