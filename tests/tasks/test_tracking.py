"""Tracking: starts in the motion's own state, what is asked, sets, adaptive starts, the shrinking distance, mirror."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.motion.made.make import make_motion
from trueup.motion.motion import write_motion
from trueup.motion.rotations import about_z, multiply, rotate
from trueup.policy.action import ActionSpec
from trueup.policy.foreign.layout import Layout
from trueup.policy.observation import ObservationSpec, Term
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.foreign import with_layout
from trueup.tasks.load import load_task
from trueup.tasks.task import Start
from trueup.tasks.terms.tracking import near_error
from trueup.train.config import with_motions
from trueup.world.sensors import SensorCfg

NAMES = load_robot("g1").spec.joint_names


def exact(name="g1-track", **changes):
    """The task without noise."""
    return replace(load_task(name), start=Start(), sensors=SensorCfg(), **changes)


def env_of(task, nenv=4, **cfg):
    return TaskEnv(task, EnvCfg(nenv=nenv, threads=1, randomize=False, pushes=False, stagger=False, **cfg))


@pytest.fixture(scope="module")
def env():
    return env_of(exact())


def test_an_episode_begins_in_the_motions_first_row_and_ends_with_its_last(env):
    env.reset()
    reference = env.goal.reference
    np.testing.assert_allclose(env.sim.joint_pos[0], reference.joint_pos[0], atol=1e-6)
    np.testing.assert_array_equal(env.goal.at, 1)
    np.testing.assert_allclose(env.goal.values[0, :29], reference.held[1] - env.frame.default_pose, atol=1e-6)
    assert env.goal.values[0, -1] == pytest.approx(1 / (len(reference.phase) - 1))
    short = env_of(exact("g1-track:arm_raise"), nenv=1)
    steps = 0
    while not len(short.step(np.zeros((1, 29), np.float32)).ended):
        steps += 1
    assert steps <= len(short.goal.reference.phase) - 2


def test_no_action_asks_the_servos_for_what_holds_the_reference(env):
    env.reset()
    asked = env.goal.values[:, :29] + env.frame.default_pose
    env.step(np.zeros((4, 29), np.float32))
    np.testing.assert_allclose(env._target, asked, atol=1e-6)


def test_errors_are_nought_where_the_robot_is_its_reference(env):
    env.reset()
    env.goal.at -= 1  # the state is that of the row before the one that is asked for
    frame = env.frame
    frame.forget()
    assert np.abs(frame.body_gap).max() < 1e-5
    assert frame.body_turn.max() < 1e-2
    assert np.abs(frame.reference_ahead).max() < 1e-5
    np.testing.assert_allclose(frame.reference_turn[0], [1, 0, 0, 1, 0, 0], atol=1e-5)
    env.goal.at += 1
    frame.forget()


def test_a_reference_that_stands_where_the_robot_does_forgives_drift_but_not_height_or_pose(env):
    env.reset()
    sim, goal, frame = env.sim, env.goal, env.frame
    at, joint = sim.base_qpos, int(sim.index.qpos[3])
    before = sim.qpos.copy()
    goal.at -= 1
    turned = about_z(np.full(4, 0.7))
    sim.qpos[:, at : at + 3] = rotate(turned, sim.qpos[:, at : at + 3]) + np.array([0.4, -0.3, 0.0])
    sim.qpos[:, at + 3 : at + 7] = multiply(turned, sim.qpos[:, at + 3 : at + 7])
    sim.qpos[1, at + 2] += 0.05
    sim.qpos[2, joint] += 0.2
    sim.motion.forget()
    frame.forget()
    near, far = (np.linalg.norm(gap, axis=2) for gap in (frame.body_gap_near, frame.body_gap))
    assert far[0].min() > 0.3
    assert near[0].max() < 1e-5
    np.testing.assert_allclose(near[1], 0.05, atol=1e-5)
    assert near[2].max() > 0.02
    np.testing.assert_allclose(near_error(frame), near.mean(axis=1), rtol=1e-5)
    sim.qpos[:] = before
    goal.at += 1
    sim.motion.forget()
    frame.forget()


def test_a_set_of_motions_is_one_task_and_training_begins_anywhere_in_it():
    env = env_of(exact("g1-track:squat,arm_raise,kick"), nenv=256, training=True, seed=3)
    reference = env.goal.reference
    assert len(reference.first) == 3
    assert set(reference.motion[env.goal.at].tolist()) == {0, 1, 2}
    assert len(np.unique(env.goal.at)) > 100
    rows = env.goal.at - 1
    np.testing.assert_allclose(env.sim.joint_pos, reference.joint_pos[rows], atol=1e-6)
    fixed = env_of(exact("g1-track:squat,arm_raise,kick"), nenv=6)
    np.testing.assert_array_equal(fixed.goal.at, np.tile(reference.first + 1, 2))


def test_training_begins_more_often_shortly_before_where_episodes_failed():
    env = env_of(exact(), nenv=256, training=True, seed=3)
    goal, width = env.goal, 20
    near = [np.mean(np.abs(goal.at - 131) <= width)]
    goal.at[:40] = 130
    goal.ended(np.arange(40), np.ones(40, bool))
    env.reset()
    near.append(np.mean(np.abs(goal.at - 121) <= width))
    assert near[0] < 0.3
    assert near[1] > 0.45


def test_the_distance_that_ends_an_episode_shrinks_with_success_and_grows_with_failure():
    env = env_of(exact(), nenv=8, training=True)
    goal = env.goal
    assert goal.limit[0] == pytest.approx(0.5)
    for _ in range(200):
        goal.ended(np.arange(8), np.zeros(8, bool))
    assert goal.limit[0] == pytest.approx(0.25)
    goal.ended(np.arange(8), np.ones(8, bool))
    assert goal.limit[0] > 0.25
    fixed = env_of(exact(), nenv=1)
    fixed.goal.ended(np.arange(1), np.zeros(1, bool))
    assert np.isinf(fixed.goal.limit[0])  # as it is measured: by the mean distance alone


def test_the_critic_sees_what_the_actor_does_not(env):
    task = env.task
    hidden = {term.signal for term in task.observations.critic} - {term.signal for term in task.observations.actor}
    assert {"base_vel", "base_height", "reference_ahead"} <= hidden
    assert env.ncritic > env.nactor


@pytest.mark.parametrize("name", ["g1-track:side_step", "g1_23-track:kick", "go2-track"])
def test_the_mirror_of_an_observation_is_the_observation_of_the_mirrored_robot(name):
    """Rows 0 and 1 are mirror images of each other in a mirrored motion."""
    env = env_of(exact(name), nenv=2)
    goal, mirror = env.goal, env.mirror
    n = env.robot.spec.njoint
    joints, sign = mirror.actor_index[:n], mirror.actor_sign[:n]  # the command's first part
    np.testing.assert_array_equal(np.sort(joints), np.arange(n))
    np.testing.assert_array_equal(mirror.actor_index[joints], np.arange(n))  # twice is as before
    row = 40
    state = goal.reference.held[row] - env.frame.default_pose
    goal.values[0] = goal._rows[row]
    reflected = goal.values[:1, mirror.actor_index[: goal.ncommand]] * mirror.actor_sign[: goal.ncommand]
    np.testing.assert_allclose(reflected[0, :n], (state[joints] * sign), atol=1e-6)
    assert reflected[0, -1] == goal.values[0, -1]  # phase
    np.testing.assert_allclose(reflected[0, -4:-1], goal.values[0, -4:-1] * [1, -1, 1])  # gravity
    # bodies: with the joints mirrored, each body is at the mirrored place of its counterpart
    at_rest = (np.zeros((2, 3)), np.tile([1.0, 0, 0, 0], (2, 1)))
    pose = np.stack([state, state[joints] * sign]) + env.frame.default_pose
    placed = goal.tree.place(*at_rest, pose).pos[:, goal.tracked]
    width = 3 * len(goal.tracked)
    start = env.nactor + 3 + 1  # behind base velocity and height
    index = mirror.critic_index[start : start + width] - start
    flipped = placed[0].ravel()[index] * mirror.critic_sign[start : start + width]
    np.testing.assert_allclose(flipped, placed[1].ravel(), atol=2e-3)


def their_layout():
    """As whole-body tracking policies are laid out: joints in an order of their own, the reference as they see it."""
    order = NAMES[::-1]
    signals = ("reference", "reference_rotation", "gyro", "joint_pos", "joint_vel", "action")
    return Layout(
        format="rl_sar",
        name="theirs",
        control_hz=50.0,
        kp=(40.0,) * 29,
        kd=(2.0,) * 29,
        observation=ObservationSpec(
            joint_names=order,
            default_pose=(0.1,) * 29,
            terms=tuple(Term(name) for name in signals),
            ncommand=3,
            naction=29,
            widths={"reference": 58, "reference_rotation": 6},
        ),
        action=ActionSpec(joint_names=order, default_pose=(0.1,) * 29, controlled_joints=order, scale=(0.25,) * 29),
    )


def test_a_policy_of_others_sees_the_reference_in_its_own_order():
    env = env_of(with_layout(exact("g1-track:arm_raise"), their_layout()), nenv=2)
    reference, at = env.goal.reference, env.goal.at[0]
    seen = env.obs.actor[0]
    assert env.nactor == 58 + 6 + 3 + 3 * 29
    np.testing.assert_allclose(seen[:29], reference.joint_pos[at][::-1], atol=1e-6)
    np.testing.assert_allclose(seen[29:58], reference.joint_vel[at][::-1], atol=1e-6)
    np.testing.assert_allclose(seen[58:64], [1, 0, 0, 1, 0, 0], atol=0.02)
    step = env.step(np.zeros((2, 29), np.float32))
    np.testing.assert_allclose(env._target[0], 0.1, atol=1e-9)  # no residual: their own default pose
    np.testing.assert_allclose(step.obs.actor[0, :29], reference.joint_pos[at + 1][::-1], atol=1e-6)


def test_a_policy_that_follows_a_motion_does_not_fit_a_task_of_velocities():
    with pytest.raises(TrueupError, match="g1-track:MOTION"):
        with_layout(load_task("g1-velocity"), their_layout())


def test_a_motion_from_a_file_is_followed_at_the_tasks_rate(tmp_path):
    robot = load_robot("go2")
    write_motion(make_motion("trot", robot).resampled(30.0), tmp_path / "slow.npz")
    env = env_of(exact(f"go2-track:{tmp_path / 'slow.npz'}"), nenv=1)
    assert len(env.goal.reference.phase) == pytest.approx(len(make_motion("trot", robot)), abs=2)


def test_motions_may_be_named_one_by_one_or_with_commas(tmp_path):
    file = write_motion(make_motion("kick", load_robot("g1")), tmp_path / "mine.npz")
    assert with_motions("g1-track", ("squat", "walk")) == "g1-track:squat,walk"
    assert with_motions("g1-track", ("squat,walk", str(file))) == f"g1-track:squat,walk,{file.absolute()}"
    assert with_motions("g1-track", ()) == "g1-track"
    with pytest.raises(TrueupError, match="follows no motion"):
        with_motions("g1-velocity", ("squat",))
