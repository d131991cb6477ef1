"""The built-in tasks: their own terms on frames made by hand, and what their docstrings claim."""

import re
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import compile_model, joint_index
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.load import load_task, make_env, task_names
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.task import error_metric
from trueup.tasks.zoo import g1_velocity, go2_clip, so101_push


# --- so101-push ---
def pushing(cube, target, velocity=(0.0, 0.0, 0.0), tool=(0.0, 0.0, 0.0)):
    f = Frame(1, {}, None)
    f.cube_pos, f.cube_vel = np.array([cube], np.float32), np.array([velocity], np.float32)
    f.asked, f.tool_pos = np.array([target], np.float32), np.array([tool], np.float32)
    return f


def test_the_distance_of_a_cube_is_that_over_the_ground():
    np.testing.assert_allclose(so101_push.object_distance(pushing((0.2, 0.0, 0.9), (0.23, 0.04))), [0.05], rtol=1e-5)


@pytest.mark.parametrize(
    ("velocity", "wanted"),
    [
        ((0.05, 0.0, 0.0), 0.5),
        ((-0.02, 0.0, 0.0), -0.2),
        ((0.0, 0.3, 0.0), 0.0),
        ((9.0, 0, 0), 1.0),
        ((-9.0, 0, 0), -1.0),
    ],
)
def test_pushing_on_is_the_speed_towards_the_target(velocity, wanted):
    frame = pushing((0.2, 0.0, 0.02), (0.3, 0.0), velocity)
    np.testing.assert_allclose(so101_push.pushes_on(frame), [wanted], atol=1e-6)


def test_pushing_on_fades_within_two_centimetres_of_the_target():
    frame = pushing((0.29, 0.0, 0.02), (0.3, 0.0), (0.05, 0.0, 0.0))
    np.testing.assert_allclose(so101_push.pushes_on(frame), [0.25], rtol=1e-4)  # 1 cm away: half


def test_the_tool_belongs_behind_the_cube_as_seen_from_the_target():
    behind = (0.165, 0.0, 0.02)  # 3.5 cm from the middle of a cube whose target lies ahead
    assert so101_push.tool_from_behind(pushing((0.2, 0, 0.02), (0.3, 0.0), tool=behind))[0] < 1e-6
    other = so101_push.tool_from_behind(pushing((0.2, 0, 0.02), (0.2, 0.1), tool=behind))
    np.testing.assert_allclose(other, [np.hypot(0.035, 0.035)], rtol=1e-5)


@pytest.mark.parametrize("tip", ["jaw_fixed_tip", "jaw_moving"])
def test_a_cube_touches_the_tips_of_the_jaws(tip):
    """Light collisions leave shapes out; through the tips an arm would reach without moving anything."""
    sim = build(load_task("so101-push"), EnvCfg(nenv=1, threads=1)).sim
    data = mujoco.MjData(sim.model)
    data.qpos[:] = sim.default_qpos
    mujoco.mj_forward(sim.model, data)
    data.joint("cube").qpos[:3] = data.geom(tip).xpos - np.array([0.0, 0.0, 0.02])  # upper face at mid-tip
    mujoco.mj_forward(sim.model, data)
    pairs = [{sim.model.geom(int(k)).name for k in contact.geom} for contact in data.contact]
    assert {tip, "cube"} in pairs


def test_looking_behind_the_cube_leaves_the_cube_where_it_is():
    frame = pushing((0.2, 0, 0.02), (0.3, 0.0))
    so101_push.tool_from_behind(frame)
    np.testing.assert_allclose(frame.cube_pos, [[0.2, 0.0, 0.02]], rtol=1e-6)


@pytest.mark.parametrize(
    ("cube", "away"),
    [((0.3, 0.3, 0.02), False), ((0.35, 0.3, 0.02), True), ((0.2, 0.0, 0.16), True), ((0.2, 0.0, -0.16), True)],
)
def test_a_cube_out_of_reach_or_off_the_ground_ends_the_episode(cube, away):
    assert so101_push.pushed_away(pushing(cube, (0.2, 0.0)))[0] == away


# --- g1-velocity ---
def walking(height=0.78, contact=(True, False), command=(0.5, 0.0, 0.0), down=-1.0, touches=False):
    f = Frame(1, {}, None)
    f.base_height = np.array([height], np.float32)
    f.foot_contact = np.array([contact])
    f.command = np.array([command], np.float32)
    f.gravity = np.array([[0.0, 0.0, down]], np.float32)
    f.body_contact = np.array([touches])
    return f


@pytest.mark.parametrize(
    ("frame", "falls"),
    [
        (walking(), 0.0),
        (walking(height=0.44), 1.0),
        (walking(height=0.46), 0.0),
        (walking(down=-0.4), 1.0),
        (walking(touches=True), 1.0),
    ],
)
def test_a_humanoid_falls_by_tilting_touching_or_sinking(frame, falls):
    assert g1_velocity.fall(frame)[0] == falls
    assert g1_velocity.upright(frame)[0] == 1.0 - falls


def test_joints_of_a_group_are_told_by_their_distance_from_the_pose():
    f = Frame(1, {}, None)
    f.default_pose = np.array([0.1, 0.2, 0.3], np.float32)
    f.joint_pos = np.array([[0.2, 9.0, 0.0]], np.float32)
    np.testing.assert_allclose(g1_velocity.Away((0, 2))(f), [0.4], rtol=1e-5)
    task = load_task("g1-velocity")
    assert [len(task.rewards[name].function.joints) for name in ("hips", "waist")] == [4, 3]


def test_a_humanoid_walks_with_legs_and_waist():
    task = load_task("g1-velocity")
    assert not [name for name in task.actions.controlled_joints if not re.search("hip|knee|ankle|waist", name)]
    assert len(task.actions.controlled_joints) == 15


def test_a_humanoid_steps_and_falls_when_it_is_left_to_itself():
    env = make_env(load_task("g1-velocity"), EnvCfg(nenv=4, threads=1, seed=1, stagger=False))
    fell = np.zeros(4, bool)
    for _ in range(150):
        step = env.step(np.zeros((4, 15), np.float32))
        fell |= step.terminated
        assert np.isfinite(step.reward).all()
        assert np.isfinite(step.obs.actor).all()
    assert fell.all()


# --- go2-clip ---
def following(joints=0.0, speed=(0.0, 0.0)):
    """A robot of four joints whose clip asks for 0.1 rad from the default pose and 0.4 m/s ahead."""
    f = Frame(1, {}, None)
    f.default_pose = np.full(4, 0.5, np.float32)
    f.joint_pos = np.full((1, 4), 0.6 + joints, np.float32)
    f.asked = np.array([[0.1] * 4 + [7.0] * 4 + [0.4, 0.0, 5.0, 9.0]], np.float32)
    f.base_vel = np.array([[0.4 + speed[0], speed[1], 3.0]], np.float32)
    return f


def test_a_robot_that_is_where_the_clip_is_has_no_error_and_full_reward():
    frame = following()
    assert go2_clip.pose_error(frame)[0] < 1e-6
    assert go2_clip.speed_error(frame)[0] < 1e-6
    np.testing.assert_allclose([go2_clip.follow_pose(frame), go2_clip.follow_base(frame)], 1.0, rtol=1e-6)


def test_rewards_for_following_fall_with_squared_errors():
    np.testing.assert_allclose(go2_clip.pose_error(following(joints=-0.2)), [0.2], rtol=1e-5)
    np.testing.assert_allclose(go2_clip.follow_pose(following(joints=-0.2)), [np.exp(-5.0 * 4 * 0.04)], rtol=1e-5)
    frame = following(speed=(0.03, -0.04))
    np.testing.assert_allclose(go2_clip.speed_error(frame), [0.05], rtol=1e-4)
    np.testing.assert_allclose(go2_clip.follow_base(frame), [np.exp(-10.0 * 0.0025)], rtol=1e-5)


def test_legs_of_a_diagonal_move_together_and_neighbours_half_a_period_apart():
    spec = load_robot("go2").spec
    clip = go2_clip.trot_clip(spec)
    away = {name: clip.joint_pos[:, k] - spec.default_pose[k] for k, name in enumerate(spec.joint_names)}
    for part in ("thigh_joint", "calf_joint"):
        front, other, rear = (away[f"{leg}_{part}"] for leg in ("FL", "FR", "RR"))
        np.testing.assert_allclose(front, rear, atol=1e-9)
        np.testing.assert_allclose(front, np.roll(other, 25), atol=1e-9)
        assert np.ptp(front) > 0.1


def test_the_thigh_swings_as_far_as_the_ground_travels_in_half_a_period():
    spec = load_robot("go2").spec
    clip = go2_clip.trot_clip(spec)
    swing = np.ptp(clip.joint_pos[:, spec.joint_names.index("FL_thigh_joint")])
    assert 0.3 * swing == pytest.approx(0.4 * 0.25)  # leg times angle, speed times half a period
    assert len(clip.joint_pos) / clip.rate_hz == pytest.approx(0.5)


def test_calves_only_fold_and_hips_stay():
    spec = load_robot("go2").spec
    clip = go2_clip.trot_clip(spec)
    for k, name in enumerate(spec.joint_names):
        away = clip.joint_pos[:, k] - spec.default_pose[k]
        if "calf" in name:
            assert away.max() < 1e-12
            assert away.min() == pytest.approx(-0.5, abs=0.01)
        elif "hip" in name:
            assert not away.any()


# --- pendulum-swingup ---
def test_the_motor_of_the_pendulum_is_too_weak_to_hold_its_load_out_level():
    robot, task = load_robot("pendulum"), load_task("pendulum-swingup")
    model = compile_model(robot)
    data = mujoco.MjData(model)
    data.qpos[joint_index(model, robot).qpos] = np.pi / 2
    mujoco.mj_forward(model, data)
    needed = abs(data.qfrc_bias[joint_index(model, robot).dof[0]])
    assert needed == pytest.approx(0.74, abs=0.005)
    assert task.servo.torque == 0.5 < needed


# --- all of them ---
@pytest.mark.parametrize("name", task_names())
def test_a_task_is_known_by_its_own_name_and_measures_the_error_of_its_goal(name):
    task = load_task(name)
    assert task.name == name
    assert task.goal.error is None or error_metric(task) == task.goal.error[0]


@pytest.mark.parametrize("name", task_names())
def test_costs_have_negative_weights_and_the_score_a_positive_one(name):
    task = load_task(name)
    assert task.rewards[task.score].weight > 0.0
    costs = {
        "tilt",
        "energy",
        "action_rate",
        "joint_speed",
        "joint_limits",
        "fall",
        "collision",
        "slip",
        "tool_distance",
    }
    assert all(reward.weight < 0.0 for key, reward in task.rewards.items() if key in costs)


@pytest.mark.parametrize("name", task_names())
def test_physics_runs_in_whole_steps_of_control(name):
    rates = load_task(name).rates
    assert (rates.physics_hz / rates.control_hz).is_integer()


def test_rough_ground_is_shown_to_the_critic_and_with_a_map_to_the_actor():
    plain, rough, mapped = (load_task(f"go2-velocity{end}") for end in ("", "-rough", "-rough-map"))
    assert plain.terrain is None
    assert rough.terrain is not None
    seen = [[term.signal for term in task.observations.actor] for task in (plain, rough, mapped)]
    assert seen[0] == seen[1] == seen[2][:-1]
    assert seen[2][-1] == "heights"
    assert [term.signal for term in rough.observations.critic][-1] == "heights"
    assert rough.rewards == plain.rewards


def test_a_score_that_is_no_reward_is_refused():
    with pytest.raises(TrueupError, match="'go2-velocity': score 'speed' is not one of its rewards"):
        replace(load_task("go2-velocity"), score="speed")
