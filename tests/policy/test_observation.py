"""Observations: the environment's are those of the robot, row by row."""

import json
import subprocess
import sys

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.policy.action import ActionMap, JointOrder
from trueup.policy.observation import ObservationBuilder, ObservationSpec, Term
from trueup.policy.reading import History, Reading, gravity_in_body
from trueup.tasks.load import EnvCfg, load_task, make_env


def reading_from_log(log, row, joint_names):
    """Row `row` of a log as one reading, joints in the order of `joint_names`."""
    order, at = log.with_joint_order(joint_names), slice(row, row + 1)
    return Reading(
        joint_pos=order["joint_pos"][at],
        joint_vel=order["joint_vel"][at],
        gyro=order["imu_gyro"][at] if "imu_gyro" in order else None,
        gravity=gravity_in_body(order["imu_quat"][at]) if "imu_quat" in order else None,
    )


@pytest.mark.medium
@pytest.mark.parametrize("name", ["pendulum-swingup", "go2-velocity", "g1-velocity", "z1-reach"])
@pytest.mark.parametrize("history", [1, 3])
def test_observation_on_the_robot_equals_that_of_the_environment(name, history):
    from dataclasses import replace

    task = load_task(name)
    task = replace(task, observations=replace(task.observations, history=history), sensors=type(task.sensors)())
    env = make_env(task, EnvCfg(nenv=2, threads=1, seed=1, stagger=False, pushes=False, randomize=False))
    rng, rows = np.random.default_rng(0), []

    def note(obs, action):
        sim = env.sim
        quat = sim.qpos[1, sim.base_qpos + 3 : sim.base_qpos + 7] if sim.free_base else np.array([1.0, 0, 0, 0])
        gyro = sim.qvel[1, sim.base_dof + 3 : sim.base_dof + 6] if sim.free_base else np.zeros(3)
        command = env.goal.values[1].copy()
        rows.append((sim.joint_pos[1].copy(), sim.joint_vel[1].copy(), quat.copy(), gyro.copy(), command, action, obs))

    note(env.reset().actor[1], np.zeros(env.naction, np.float32))
    for _ in range(6):
        action = rng.normal(0.0, 0.3, (2, env.naction)).astype(np.float32)
        note(env.step(action).obs.actor[1], action[1])
    spec = msgspec.json.decode(msgspec.json.encode(env.observation_spec), type=ObservationSpec)
    names = tuple(reversed(spec.joint_names))  # the robot lists its joints in another order
    joint_pos, joint_vel, quat, gyro = (np.array([row[k] for row in rows]) for k in range(4))
    log = Log(
        time=np.arange(len(rows)) * env.control_dt,
        joint_names=names,
        signals={"joint_pos": joint_pos[:, ::-1], "joint_vel": joint_vel[:, ::-1], "imu_quat": quat, "imu_gyro": gyro},
    )
    builder = ObservationBuilder(spec)
    for k, row in enumerate(rows):
        reading = reading_from_log(log, k, spec.joint_names)
        build = builder.restart if k == 0 else builder.step
        found = build(reading, row[4][None], row[5][None])
        assert found.dtype == np.float32
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found[0], row[6])


def test_the_order_of_joints_is_undone_exactly():
    rng = np.random.default_rng(0)
    names = tuple(f"j{k}" for k in range(12))
    for _ in range(20):
        order = JointOrder(names, tuple(rng.permutation(names).tolist()))
        values = rng.normal(size=(3, 12))
        np.testing.assert_array_equal(order.to_robot(order.to_policy(values)), values)
        np.testing.assert_array_equal(order.to_policy(order.to_robot(values)), values)
    with pytest.raises(TrueupError, match="j99"):
        JointOrder(names, (*names[:11], "j99"))


def test_targets_lie_about_the_default_pose_and_stay_within_limits():
    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=1, threads=1))
    mapping = ActionMap(env.action_spec)
    small = np.full((4, 12), 0.1, np.float32)
    np.testing.assert_allclose(mapping.target(small) - env.robot.spec.default_pose, 0.25 * small, atol=1e-6)
    target = mapping.target(np.full((4, 12), 100.0))
    assert (target <= env.robot.spec.position_high).all()


def test_relative_actions_move_the_target_and_leave_other_joints():
    env = make_env(load_task("z1-reach"), EnvCfg(nenv=1, threads=1))
    mapping = ActionMap(env.action_spec)
    before = np.repeat(env.robot.spec.default_pose[None], 4, axis=0)
    after = mapping.target(np.full((4, 6), 0.5), before)
    np.testing.assert_allclose(after[:, :6] - before[:, :6], 0.06)
    np.testing.assert_array_equal(after[:, 6], before[:, 6])  # the gripper is not moved
    np.testing.assert_allclose(mapping.target(np.full((4, 6), 9.0), before)[:, 0], 0.12)
    with pytest.raises(TrueupError, match="targets before"):
        mapping.target(np.zeros((1, 6)))


def test_history_keeps_the_last_frames_oldest_first():
    history = History(2, 3, 1)
    history.fill(np.array([[1.0], [2.0]], np.float32))
    history.push(np.array([[3.0], [4.0]], np.float32))
    np.testing.assert_array_equal(history.push(np.array([[5.0], [6.0]], np.float32)), [[1, 3, 5], [2, 4, 6]])
    np.testing.assert_array_equal(history.fill(np.array([[9.0]], np.float32), np.array([1])), [[9, 9, 9]])
    np.testing.assert_array_equal(history.frames[0, :, 0], [1, 3, 5])


def test_a_command_is_followed_at_its_pace_from_zero():
    spec = ObservationSpec(
        joint_names=("a",),
        default_pose=(0.0,),
        terms=(Term("command"),),
        ncommand=2,
        naction=1,
        command_step=(0.5, 0.1),
    )
    builder, nothing = ObservationBuilder(spec, 2), np.zeros((2, 1), np.float32)
    reading = Reading(joint_pos=nothing, joint_vel=nothing)
    asked = np.array([[1.2, -0.15], [-0.4, 0.0]], np.float32)
    found = [builder.restart(reading, asked, nothing)]
    found += [builder.step(reading, asked, nothing) for _ in range(3)]
    np.testing.assert_allclose(np.array(found)[:, 0], [[0.0, 0.0], [0.5, -0.1], [1.0, -0.15], [1.2, -0.15]], atol=1e-6)
    np.testing.assert_allclose(found[-1][1], asked[1], atol=1e-6)
    one = Reading(joint_pos=nothing[:1], joint_vel=nothing[:1])
    builder.restart(one, asked[:1], nothing[:1], np.array([0]))  # a new episode begins at zero; the other goes on
    np.testing.assert_allclose(builder.command, [[0.0, 0.0], asked[1]], atol=1e-6)
    with pytest.raises(ValueError, match="command_step"):
        msgspec.structs.replace(spec, command_step=(0.5,))


def test_a_missing_sensor_is_named():
    spec = ObservationSpec(joint_names=("a",), default_pose=(0.0,), terms=(Term("gyro"),), ncommand=0, naction=1)
    log = Log(
        time=np.zeros(1), joint_names=("a",), signals={"joint_pos": np.zeros((1, 1)), "joint_vel": np.zeros((1, 1))}
    )
    with pytest.raises(TrueupError, match="gyro"):
        ObservationBuilder(spec).step(reading_from_log(log, 0, ("a",)), np.zeros((1, 0)), np.zeros((1, 1)))


def test_a_policy_starts_without_engine_or_learner():
    code = (
        "import pkgutil, importlib, sys, json, trueup.policy as p\n"
        "[importlib.import_module(m.name) for m in pkgutil.iter_modules(p.__path__, 'trueup.policy.')]\n"
        "print(json.dumps(sorted({'mujoco', 'torch', 'scipy'} & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
