"""The mirror of go2-velocity, column by column."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.tasks.task import Actions
from trueup.world.randomization.randomize import Draw

TASK, NAMES = load_task("go2-velocity"), load_robot("go2").spec.joint_names


@pytest.fixture(scope="module")
def env():
    return TaskEnv(TASK, EnvCfg(nenv=1, threads=1))


@pytest.mark.parametrize(
    ("signal", "signs"), [("gyro", (-1, 1, -1)), ("gravity", (1, -1, 1)), ("command", (1, -1, -1))]
)
def test_three_numbers_stay_in_place_and_change_their_signs(env, signal, signs):
    spec = env.observation_spec
    at = spec.slices[[term.signal for term in spec.terms].index(signal)]
    np.testing.assert_array_equal(env.mirror.actor_sign[at], signs)
    np.testing.assert_array_equal(env.mirror.actor_index[at], np.arange(env.nactor)[at])


@pytest.mark.parametrize("signal", ["joint_pos", "joint_vel", "action"])
def test_joints_change_sides_and_hips_their_signs(env, signal):
    spec = env.observation_spec
    at = spec.slices[[term.signal for term in spec.terms].index(signal)]
    side = str.maketrans("LR", "RL")
    for k, name in enumerate(NAMES):
        other = name[0] + name[1].translate(side) + name[2:]  # FL_hip_joint, FR_hip_joint
        assert env.mirror.actor_index[at][k] - np.arange(env.nactor)[at][0] == NAMES.index(other)
        assert env.mirror.actor_sign[at][k] == (-1 if "hip" in name else 1)


def test_the_past_is_mirrored_as_the_present(env):
    width, frames = env.nactor // 3, env.mirror.actor_sign.reshape(3, -1)  # this task sees three frames
    np.testing.assert_array_equal(frames[0], frames[1])
    np.testing.assert_array_equal(env.mirror.actor_index[width:], env.mirror.actor_index[:-width] + width)


def test_the_critics_velocity_changes_its_sideways_part_and_feet_change_sides(env):
    after = env.nactor
    np.testing.assert_array_equal(env.mirror.critic_sign[after : after + 4], [1, -1, 1, 1])  # velocity, height
    np.testing.assert_array_equal(env.mirror.critic_index[after + 4 : after + 8] - after - 4, [1, 0, 3, 2])
    np.testing.assert_array_equal(env.mirror.critic_sign[after + 4 : after + 12], 1)


def test_hidden_strengths_change_sides_and_stay_positive_while_biases_of_hips_change_signs():
    ranges = {
        "kp": Draw(operation="scale", low=0.8, high=1.2, factor=True),
        "encoder_bias": Draw(operation="set", low=-0.02, high=0.02, factor=True),
        "com_offset": Draw(operation="set", low=-0.03, high=0.03, of=("base",), factor=True),
    }
    env = TaskEnv(replace(TASK, randomize=ranges), EnvCfg(nenv=1, threads=1, pushes=False))
    assert env.variation.randomizer.factor_names[:3] == [("kp", 12), ("encoder_bias", 12), ("com_offset", 3)]
    strength, bias, offset = np.split(env.mirror.critic_sign[-27:], [12, 24])
    np.testing.assert_array_equal(strength, 1)
    np.testing.assert_array_equal(bias, [-1, 1, 1] * 4)
    np.testing.assert_array_equal(offset, [1, -1, 1])
    where = env.mirror.critic_index[-27:] - (env.ncritic - 27)
    exchanged = [3, 4, 5, 0, 1, 2, 9, 10, 11, 6, 7, 8]  # front left with front right, rear left with rear right
    np.testing.assert_array_equal(where[:12], exchanged)
    np.testing.assert_array_equal(where[12:24] - 12, exchanged)
    np.testing.assert_array_equal(where[24:], [24, 25, 26])


def test_moving_one_side_only_has_no_mirror():
    task = replace(TASK, actions=Actions(controlled_joints=NAMES[:3]))
    with pytest.raises(TrueupError, match=r"actions move 'FL_hip_joint' but not its counterpart.*symmetric=False"):
        TaskEnv(task, EnvCfg(nenv=1, threads=1, randomize=False, pushes=False))


def test_legs_that_are_moved_in_pairs_are_mirrored_among_themselves():
    rear = tuple(name for name in NAMES if name.startswith("R"))
    task = replace(TASK, actions=Actions(controlled_joints=rear))
    mirror = TaskEnv(task, EnvCfg(nenv=1, threads=1, randomize=False, pushes=False)).mirror
    np.testing.assert_array_equal(mirror.action_index, [3, 4, 5, 0, 1, 2])
    np.testing.assert_array_equal(mirror.action_sign, [-1, 1, 1, -1, 1, 1])
