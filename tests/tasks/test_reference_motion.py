"""A clip that is followed: its speeds, the phase of each row, and the states in which episodes begin."""

import numpy as np
import pytest
from given_random import GivenRandom

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.robot.load import load_robot
from trueup.tasks.goals.goal import GoalPlace
from trueup.tasks.goals.reference_motion import Clip, ReferenceMotionGoal
from trueup.world.batch import BatchSim, SimCfg

SWING = np.array([[0.0], [1.0], [0.0], [-1.0]])  # four rows of one joint
ROWS = 4


def clip(rate_hz=25.0, joint_pos=SWING, base=(0.4, 0.1, 0.2), height=0.3):
    rows = len(joint_pos)
    return Clip(rate_hz, joint_pos, np.tile(base, (rows, 1)), np.full(rows, height))


@pytest.fixture(scope="module")
def pendulum():
    return BatchSim(load_robot("pendulum"), SimCfg(nsim=2, threads=1, control_hz=50.0, physics_hz=200.0))


@pytest.fixture(scope="module")
def go2():
    return BatchSim(load_robot("go2"), SimCfg(nsim=2, threads=1))


def followed(sim, random, given=None):
    made = clip() if given is None else given
    return ReferenceMotionGoal(clip=lambda robot: made).start(GoalPlace(sim, (), random))


def test_speeds_are_central_differences_around_the_period():
    np.testing.assert_allclose(clip(rate_hz=10.0).joint_vel[:, 0], [10.0, 0.0, -10.0, 0.0])


def test_the_command_is_joints_from_the_default_pose_their_speeds_and_the_base(pendulum):
    goal = followed(pendulum, GivenRandom(2, [[0.25], [0.0]]))
    goal.reset(np.arange(2))
    pose = pendulum.robot.spec.default_pose[0]
    np.testing.assert_allclose(goal.values[0], [1.0 - pose, 0.0, 0.4, 0.1, 0.2, 0.3], atol=1e-6)
    np.testing.assert_allclose(goal.values[1], [0.0 - pose, 25.0, 0.4, 0.1, 0.2, 0.3], atol=1e-6)
    assert goal.ncommand == 6


def test_between_rows_the_values_are_in_proportion_and_the_last_leads_to_the_first(pendulum):
    goal = followed(pendulum, GivenRandom(2, [[2.25 / ROWS], [3.5 / ROWS]]))
    goal.reset(np.arange(2))
    pose = pendulum.robot.spec.default_pose[0]
    np.testing.assert_allclose(goal.values[:, 0] + pose, [-0.25, -0.5], atol=1e-6)


def test_a_control_step_goes_on_by_its_share_of_the_clips_rate(pendulum):
    goal = followed(pendulum, GivenRandom(2, [[0.0], [0.5]]))
    goal.reset(np.arange(2))
    pose = pendulum.robot.spec.default_pose[0]
    seen = []
    for _ in range(4):  # 0.02 s at 25 Hz: half a row each
        goal.advance()
        seen.append(goal.values[:, 0] + pose)
    np.testing.assert_allclose(seen, [[0.5, -0.5], [1.0, -1.0], [0.5, -0.5], [0.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(goal.age, 0.08, rtol=1e-5)


def test_a_new_episode_draws_a_phase_for_its_own_row_only(pendulum):
    goal = followed(pendulum, GivenRandom(2, [[0.0], [0.0]], [[0.25]]))
    goal.reset(np.arange(2))
    goal.advance()
    goal.reset(np.array([1]))
    pose = pendulum.robot.spec.default_pose[0]
    np.testing.assert_allclose(goal.values[:, 0] + pose, [0.5, 1.0], atol=1e-6)
    np.testing.assert_allclose(goal.age, [0.02, 0.0], rtol=1e-5)


def test_a_bolted_robot_begins_with_joints_and_speeds_of_the_clip(pendulum):
    goal = followed(pendulum, GivenRandom(2, [[0.25], [0.0]]))
    goal.reset(np.arange(2))
    qpos, qvel = np.full((2, pendulum.model.nq), 9.0), np.full((2, pendulum.model.nv), 9.0)
    goal.adjust_start(np.arange(2), qpos, qvel)
    np.testing.assert_allclose(qpos[:, 0], [1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(qvel[:, 0], [0.0, 25.0], atol=1e-5)


def test_a_free_robot_begins_with_the_clips_velocity_along_its_own_heading(go2):
    joints = np.tile(go2.robot.spec.default_pose, (2, 1))
    goal = followed(go2, GivenRandom(2, [[0.0], [0.0]]), clip(joint_pos=joints))
    goal.reset(np.arange(2))
    qpos, qvel = np.tile(go2.default_qpos, (2, 1)), np.zeros((2, go2.model.nv))
    at, dof = go2.base_qpos, go2.base_dof
    qpos[1, at + 3 : at + 7] = np.sqrt(0.5) * np.array([1.0, 0.0, 0.0, 1.0])  # a quarter turn to the left
    goal.adjust_start(np.arange(2), qpos, qvel)
    np.testing.assert_allclose(qvel[0, dof : dof + 3], [0.4, 0.1, 0.0], atol=1e-6)
    np.testing.assert_allclose(qvel[1, dof : dof + 3], [-0.1, 0.4, 0.0], atol=1e-6)
    np.testing.assert_allclose(qvel[:, dof + 3 : dof + 6], [[0.0, 0.0, 0.2]] * 2, atol=1e-6)
    np.testing.assert_allclose(qpos[:, at + 2], 0.3, atol=1e-6)


def test_its_course_is_the_velocity_of_the_base(pendulum):
    goal = followed(pendulum, RowRandom(0, "command", 2))
    goal.reset(np.arange(2))
    np.testing.assert_allclose(goal.course(), [[0.4, 0.1, 0.2]] * 2, rtol=1e-6)


def test_it_cannot_be_held_and_has_no_sliders(pendulum):
    goal = followed(pendulum, RowRandom(0, "command", 2))
    with pytest.raises(TrueupError, match="goes on by itself"):
        goal.hold(np.zeros(6))
    assert goal.sliders == ()


def test_it_goes_on_from_its_memory(pendulum):
    goal, other = (followed(pendulum, RowRandom(0, "command", 2)) for _ in range(2))
    goal.reset(np.arange(2))
    goal.advance()
    for name, values in other.memory().items():
        values[...] = goal.memory()[name]
    np.testing.assert_array_equal(goal.values, other.values)
    for each in (goal, other):
        each.advance()
        each.reset(np.array([0]))
    np.testing.assert_array_equal(goal.values, other.values)


def test_one_row_is_no_motion():
    with pytest.raises(TrueupError, match="two rows or more"):
        clip(joint_pos=np.zeros((1, 1)))


@pytest.mark.parametrize("height", [np.zeros(3), np.zeros((4, 1))])
def test_the_base_needs_one_height_a_row(height):
    with pytest.raises(TrueupError, match="base_height"):
        Clip(25.0, SWING, np.zeros((4, 3)), height)
