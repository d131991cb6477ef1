"""Worlds behind drivers and in simulation, and what the evaluation loop asks of them."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from fake_driver import FakeDriver

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.tasks.build import build
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.evaluation.evaluate import Played, evaluate
from trueup.tasks.evaluation.worlds import MEASURED, DriverWorld, SimWorld
from trueup.tasks.load import load_task
from trueup.tasks.sensing.signals import SIGNALS
from trueup.tasks.task import Task

SPEC = load_robot("so101").spec
N = SPEC.njoint
KP, KD = np.full(N, 7.0), np.full(N, 0.3)
ROLLED = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])  # a quarter turn about x


def with_imu(state):
    return replace(state, imu_quat=ROLLED, imu_gyro=np.array([0.1, 0.2, 0.3]), imu_acc=np.zeros(3))


def arms(count=2, **more) -> tuple[DriverWorld, list[FakeDriver]]:
    drivers = [FakeDriver(SPEC, start=SPEC.default_pose + 0.1 * k, **more) for k in range(count)]
    return DriverWorld(SPEC, drivers, KP, KD, 0.02), drivers


# --- behind drivers ---
def test_each_driver_is_one_row_and_is_read_where_it_is() -> None:
    world, _ = arms()
    assert world.nrow == 2
    np.testing.assert_allclose(world.reading().joint_pos, [SPEC.default_pose, SPEC.default_pose + 0.1])
    np.testing.assert_allclose(world.frame.joint_pos, world.reading().joint_pos, atol=1e-6)
    assert world.frame.dt == 0.02


def test_a_step_commands_positions_under_the_policys_gains() -> None:
    world, drivers = arms()
    targets = np.stack([SPEC.default_pose + 0.2, SPEC.default_pose - 0.2])
    world.step(targets)
    for driver, target in zip(drivers, targets, strict=True):
        (command,) = driver.written
        np.testing.assert_allclose(command.target_pos, target)
        np.testing.assert_array_equal(command.kp, KP)
        np.testing.assert_array_equal(command.kd, KD)
        assert not command.target_vel.any()
        assert not command.torque.any()


def test_after_a_step_the_frame_tells_the_new_state() -> None:
    world, drivers = arms()
    before = world.frame.joint_pos.copy()
    world.step(np.tile(SPEC.default_pose + 0.3, (2, 1)))
    assert (world.frame.joint_pos != before).any()
    np.testing.assert_allclose(world.frame.joint_pos, [driver.pos for driver in drivers], atol=1e-6)
    np.testing.assert_allclose(world.frame.joint_vel, [driver.vel for driver in drivers], atol=1e-5)


def test_targets_for_another_number_of_robots_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        arms()[0].step(np.tile(SPEC.default_pose, (3, 1)))


def test_a_robot_without_imu_tells_neither_rates_nor_gravity() -> None:
    reading = arms()[0].reading()
    assert reading.gyro is None
    assert reading.gravity is None


def test_an_imu_tells_rates_and_the_direction_of_gravity() -> None:
    world, _ = arms(spoil=with_imu)
    np.testing.assert_allclose(world.reading().gyro, [[0.1, 0.2, 0.3]] * 2)
    np.testing.assert_allclose(world.reading().gravity, [[0.0, -1.0, 0.0]] * 2, atol=1e-12)  # its left side is up
    np.testing.assert_allclose(world.frame.gravity, [[0.0, -1.0, 0.0]] * 2, atol=1e-6)
    np.testing.assert_allclose(world.frame.base_spin, [[0.1, 0.2, 0.3]] * 2, rtol=1e-6)


def test_what_a_robot_does_not_measure_is_no_signal_of_its_world() -> None:
    with pytest.raises(AttributeError, match="base_vel"):
        _ = arms()[0].frame.base_vel


def test_measured_signals_have_the_units_and_mirror_rules_of_simulated_ones() -> None:
    world, _ = arms(spoil=with_imu)
    for name, one in MEASURED.items():
        assert (one.unit, one.mirror) == (SIGNALS[name].unit, SIGNALS[name].mirror)
        np.testing.assert_array_equal(one.read(world, np.array([1])), getattr(world.frame, name)[1:])


def test_a_robot_can_be_neither_saved_nor_put_back() -> None:
    world, _ = arms(1)
    for ask in (world.save, lambda: world.restore({})):
        with pytest.raises(TrueupError, match="only simulations can"):
            ask()


# --- in simulation ---
def pendulums(nrow: int = 2) -> SimWorld:
    parts = build(load_task("pendulum-swingup"), EnvCfg(nenv=nrow, threads=1))
    return SimWorld(parts.sim, parts.sense)


def test_a_reset_puts_every_simulation_into_the_default_pose_at_rest() -> None:
    world = pendulums()
    for _ in range(5):
        world.step(np.full((2, 1), 2.0))
    assert np.abs(world.frame.joint_vel).max() > 0.1
    world.reset()
    np.testing.assert_allclose(world.frame.joint_pos, [world.robot.default_pose] * 2, atol=1e-6)
    np.testing.assert_array_equal(world.frame.joint_vel, 0.0)


def test_what_was_restored_is_read_at_once() -> None:
    world = pendulums()
    kept, before = world.save(), world.frame.joint_pos.copy()
    world.step(np.full((2, 1), 2.0))
    assert (world.frame.joint_pos != before).all()
    world.restore(kept)
    np.testing.assert_array_equal(world.frame.joint_pos, before)


def test_the_policy_sees_what_the_sensors_say() -> None:
    world = pendulums()
    world.step(np.full((2, 1), 1.0))
    np.testing.assert_allclose(world.reading().joint_pos, world.frame.joint_pos, atol=1e-6)  # this task adds no noise
    assert world.reading().gyro is None


# --- the loop ---
def arm_task(**changes) -> Task:
    """so101 in the air: targets are the default pose plus half the action."""
    task = load_task("pendulum-swingup")
    plain = {"robot": "so101", "servo": replace(task.servo, kp=None, kd=None, torque=None)}
    actions = replace(task.actions, scale=0.5, clip=10.0)
    terms = tuple(term for term in task.observations.actor if term.signal != "joint_angle")
    observations = replace(task.observations, actor=terms)
    return replace(task, **(plain | {"actions": actions, "observations": observations} | changes))


def play(world, act, task: Task, seconds: float, spec=None) -> Played:
    env = TaskEnv(task, EnvCfg(nenv=world.nrow, threads=1))
    return evaluate(world, act, spec or env.policy_spec(), task, env.goal, seconds)


def always(value: float):
    return lambda obs: np.full((len(obs), N), value, np.float32)


def test_actions_reach_the_robot_as_targets_about_the_default_pose() -> None:
    world, drivers = arms()
    play(world, always(0.2), arm_task(), 0.1)
    assert [len(driver.written) for driver in drivers] == [5, 5]  # 0.1 s in steps of 0.02 s
    for command in drivers[1].written:
        expected = np.clip(SPEC.default_pose + 0.1, SPEC.position_low, SPEC.position_high)
        np.testing.assert_allclose(command.target_pos, expected, atol=1e-6)


def test_a_policy_with_joints_in_another_order_moves_the_same_joints() -> None:
    task = arm_task()
    spec = TaskEnv(task, EnvCfg(nenv=1, threads=1)).policy_spec()
    back = tuple(reversed(SPEC.joint_names))

    def turned(part, *names):
        return msgspec.structs.replace(part, joint_names=back, **{n: tuple(reversed(getattr(part, n))) for n in names})

    spec = msgspec.structs.replace(
        spec,
        observation=turned(spec.observation, "default_pose"),
        action=turned(spec.action, "default_pose", "low", "high", "controlled_joints", "scale"),
    )
    world, (driver,) = arms(1)
    seen = []

    def act(obs):
        seen.append(obs.copy())
        action = np.zeros((1, N), np.float32)
        action[0, 0] = 0.1  # the last joint of the robot
        return action

    driver.pos[0] += 0.2
    world.reset()
    play(world, act, task, 0.02, spec)
    np.testing.assert_allclose(driver.written[0].target_pos[:-1], SPEC.default_pose[:-1], atol=1e-6)
    assert driver.written[0].target_pos[-1] == pytest.approx(SPEC.default_pose[-1] + 0.05, abs=1e-6)
    joints = seen[0][0, :N] / 0.3  # the scale of this term
    np.testing.assert_allclose(joints, [0.0] * (N - 1) + [0.2], atol=1e-5)


def test_terms_see_the_action_of_this_step_and_of_the_one_before() -> None:
    numbers = iter([1.0, 3.0, 3.0])
    task = arm_task(metrics={"rate": lambda f: np.square(f.action - f.last_action).sum(axis=1)})
    played = play(arms(1)[0], lambda obs: np.full((1, N), next(numbers), np.float32), task, 0.06)
    np.testing.assert_allclose(played.metrics["rate"][:, 0], [N * 1.0, N * 4.0, 0.0], rtol=1e-6)


def test_metrics_that_a_world_cannot_measure_are_named_and_left_out() -> None:
    metrics = {"drift": lambda f: f.base_vel[:, 0], "speed": lambda f: np.abs(f.joint_vel).sum(axis=1)}
    ends = {"fallen": lambda f: f.gravity[:, 2] > -0.5, "trunk_down": lambda f: f.body_contact}
    task = arm_task(metrics=metrics, terminations=ends)
    played = play(arms(1, spoil=with_imu)[0], always(0.0), task, 0.06)
    assert played.unknown == ("trunk_down", "drift")
    assert set(played.metrics) == {"speed", "power"}
    assert played.falls == 1  # what it can measure does end it: it lies on its side


def test_a_task_that_never_ends_leaves_everyone_standing() -> None:
    played = play(arms()[0], always(0.0), arm_task(), 0.06)
    assert played.standing.shape == (3, 2)
    assert played.standing.all()


def test_a_row_that_fell_stays_fallen_though_it_gets_up() -> None:
    steps = iter(range(100))

    def down(frame):
        """True in the second of the calls that count; the first is a trial of whether it can be measured."""
        return np.array([next(steps) == 2, False])

    played = play(arms()[0], always(0.0), arm_task(terminations={"down": down}), 0.08)
    np.testing.assert_array_equal(played.standing[:, 0], [True, False, False, False])
    assert played.standing[:, 1].all()
    assert played.falls == 1


def test_power_is_the_sum_of_torque_times_speed() -> None:
    world, drivers = arms(1)
    played = play(world, always(0.5), arm_task(), 0.02)
    (state,) = world.states
    expected = np.abs(state.joint_torque * state.joint_vel).sum()
    assert expected > 0.0
    np.testing.assert_allclose(played.metrics["power"], [[expected]], rtol=1e-5)
    assert len(drivers[0].written) == 1


def test_a_mean_counts_steps_before_the_fall_only() -> None:
    played = Played(
        standing=np.array([[True, True], [True, False], [True, False]]),
        metrics={"error": np.array([[1.0, 2.0], [3.0, 100.0], [4.0, 100.0]], np.float32)},
        commands=np.zeros((3, 2, 0), np.float32),
        unknown=(),
    )
    assert played.mean("error") == pytest.approx((1 + 3 + 4 + 2) / 4)
    assert played.falls == 1


def test_distances_of_arms_that_are_asked_at_different_times_are_kept_for_every_row() -> None:
    """One arm has just been asked for another pose when the other has settled."""
    task = load_task("z1-reach")
    task = replace(task, goal=replace(task.goal, hold_s=(1.6, 2.4), table=8))
    parts = build(task, EnvCfg(nenv=3, threads=1))
    played = play(SimWorld(parts.sim, parts.sense), lambda obs: np.zeros((3, 6), np.float32), task, 2.6)
    assert played.metrics["settled_distance"].shape == (65, 3)
    assert np.isfinite(played.mean("settled_distance"))
