"""Feet that follow a clock: swings, contacts and heights by hand; the clock in environment, mirror and checkpoint."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.terms.gait import Gait, InStep, SwingPath

GAIT = Gait(offsets=(0.0, 0.5), stance=0.6)


def at(*phases, command=(0.5, 0.0, 0.0), contact=(True, True), height=(0.0, 0.0)):
    """A biped at these phases of its clock."""
    f, rows = Frame(len(phases), {}, None), len(phases)
    f.phase = np.array(phases)
    f.command = np.tile(np.array(command, np.float32), (rows, 1))
    f.foot_contact = np.tile(contact, (rows, 1))
    f.foot_height = np.tile(np.array(height, np.float32), (rows, 1))
    return f


def test_each_foot_swings_at_the_end_of_its_own_period():
    expected = [[0, 0], [0, 0.25], [0, 0.75], [0, 0], [0.25, 0], [0.75, 0]]
    np.testing.assert_allclose(GAIT.swing(at(0.0, 0.2, 0.4, 0.5, 0.7, 0.9)), expected, atol=1e-6)


def test_who_is_asked_to_stand_swings_no_foot():
    assert not GAIT.swing(at(0.2, 0.7, command=(0.0, 0.0, 0.0))).any()


def test_a_gait_may_go_on_where_the_command_is_to_stand():
    always = replace(GAIT, always=True)
    np.testing.assert_allclose(always.swing(at(0.2, command=(0.0, 0.0, 0.0))), [[0.0, 0.25]], atol=1e-6)


@pytest.mark.parametrize(
    ("contact", "expected"), [((True, True), 0.5), ((False, True), 1.0), ((True, False), 0.0), ((False, False), 0.5)]
)
def test_feet_are_paid_for_the_ground_in_stance_and_the_air_in_swing(contact, expected):
    assert InStep(GAIT)(at(0.7, contact=contact))[0] == expected  # the left foot's turn


def test_both_feet_belong_on_the_ground_when_standing():
    asked = {"command": (0.0, 0.0, 0.0)}
    assert InStep(GAIT)(at(0.7, **asked))[0] == 1.0
    assert InStep(GAIT)(at(0.7, contact=(False, True), **asked))[0] == 0.5


def test_a_swing_is_highest_in_its_middle():
    path = SwingPath(GAIT, height_m=0.1, width_m=0.05)
    assert path(at(0.8, height=(0.1, 0.0)))[0] == pytest.approx(1.0)
    assert path(at(0.7, height=(0.05, 0.0)))[0] == pytest.approx(1.0)  # a quarter of the swing: sin^2 = 1/2
    assert path(at(0.8))[0] == pytest.approx(0.5 * (np.exp(-4.0) + 1.0))
    assert path(at(0.55, height=(0.05, 0.0)))[0] == pytest.approx(0.5 * (np.exp(-1.0) + 1.0))  # up in stance


# --- in the environment ---
def make(**options):
    return make_env(load_task("g1-velocity"), EnvCfg(nenv=4, threads=1, seed=2, stagger=False, **options))


def clock(env):
    """Columns of the clock in the newest frame."""
    return env.obs.actor[:, -2:]


def test_the_observed_clock_passes_a_period_in_the_steps_of_clock_s():
    env = make(randomize=False, pushes=False)
    action = np.zeros((4, env.naction), np.float32)
    np.testing.assert_allclose(clock(env), [[0.0, 1.0]] * 4, atol=1e-6)
    for _ in range(10):  # of 40 in 0.8 s
        env.step(action)
    np.testing.assert_allclose(clock(env), [[1.0, 0.0]] * 4, atol=1e-6)
    assert env.frame.phase == pytest.approx([0.25] * 4)


def test_rewards_see_the_phase_at_which_the_action_was_chosen():
    task = load_task("g1-velocity")
    seen = []

    def note(frame):
        seen.append(frame.phase[0])
        return np.zeros(frame.nenv, np.float32)

    task = replace(task, rewards=dict(task.rewards) | {"note": task.rewards["gait"]._replace(function=note)})
    env = make_env(task, EnvCfg(nenv=2, threads=1, stagger=False))
    for _ in range(3):
        env.step(np.zeros((2, env.naction), np.float32))
    assert seen == pytest.approx([0.0, 0.025, 0.05])


def test_a_new_episode_begins_a_new_period():
    env = make()
    for _ in range(150):  # left to itself a humanoid falls
        step = env.step(np.zeros((4, env.naction), np.float32))
        if len(step.ended):
            np.testing.assert_allclose(clock(env)[step.ended], [[0.0, 1.0]] * len(step.ended), atol=1e-6)
            assert not env.frame.phase[step.ended].any()
            return
    raise AssertionError("none has fallen")


def test_the_clock_of_a_mirror_image_is_half_a_period_ahead():
    env = make()
    at = env.observation_spec.slices[-1]
    assert env.observation_spec.terms[-1].signal == "clock"
    np.testing.assert_array_equal(env.mirror.actor_sign[at], [-1, -1])
    np.testing.assert_array_equal(env.mirror.actor_index[at], np.arange(at.start, at.stop))


def test_a_checkpoint_keeps_the_phase():
    env, other = make(), make()
    for _ in range(7):
        env.step(np.zeros((4, env.naction), np.float32))
    other.restore(env.state())
    one, two = (each.step(np.zeros((4, each.naction), np.float32)) for each in (env, other))
    np.testing.assert_array_equal(one.obs.actor, two.obs.actor)
    np.testing.assert_array_equal(one.reward, two.reward)
    assert other.frame.phase == pytest.approx([0.2] * 4)
