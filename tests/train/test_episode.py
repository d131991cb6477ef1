"""One episode of a policy, step by step."""

import numpy as np
import pytest

from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.train.play.episode import Episode, load_episode, record_episode


def _trot(strides=6, steps=20) -> Episode:
    """Two feet on the ground for half of a stride each, the second half a stride later."""
    k = np.arange(strides * steps) % steps
    contact = np.stack([k < 10, (k + 10) % steps < 10], axis=1)
    empty = np.zeros((len(k), 0), np.float32)
    action = np.cumsum(np.full((len(k), 3), 0.5, np.float32), axis=0)
    return Episode(
        dt=0.02, names=(), asked=empty, measured=empty, feet=("left", "right"), contact=contact, action=action
    )


def test_a_trot_has_duty_factors_of_a_half_and_opposite_phases():
    episode = _trot()
    np.testing.assert_allclose(episode.duty(), 0.5)
    assert episode.phase() == pytest.approx([0.0, 0.5])


def test_the_change_of_actions_is_that_of_a_ramp():
    np.testing.assert_allclose(_trot().action_change(), 0.5)


def test_feet_that_never_lift_have_no_phase():
    still = _trot()
    still.contact[:] = True
    assert still.phase() == [None, None]


def test_an_episode_names_the_goals_columns_and_comes_back_from_its_file(tmp_path):
    env = TaskEnv(load_task("go2-velocity"), EnvCfg(nenv=1, threads=1, randomize=False, pushes=False, stagger=False))

    class Still:
        def __call__(self, obs):
            return np.zeros((1, env.naction), np.float32)

        def restart(self, ids):
            pass

    episode = record_episode(env, Still(), 0.4)
    assert episode.names[0] == "forward, m/s"
    assert episode.asked.shape == episode.measured.shape == (20, 3)
    assert episode.contact.shape == (20, 4)
    again = load_episode(episode.save(tmp_path / "episode.npz"))
    assert (again.names, again.feet, again.dt) == (episode.names, episode.feet, episode.dt)
    np.testing.assert_array_equal(again.measured, episode.measured)
