"""Assessments: every control step counts, and what is measured is what was done."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.tasks.evaluation.measure import Measure
from trueup.tasks.goals.velocity import VelocityGoal
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.play.assess import assess

QUIET = {"threads": 1, "randomize": False, "pushes": False, "stagger": False}


class Still:
    """Keeps the default pose."""

    def __init__(self, env):
        self._action = np.zeros((env.nenv, env.naction), np.float32)
        self.restarted = []

    def __call__(self, obs):
        return self._action

    def restart(self, rows):
        self.restarted.append(list(rows))


def test_metrics_are_means_over_every_step():
    metrics = {"clock": lambda frame: np.zeros(frame.nenv, np.float32)}
    env = make_env(replace(load_task("pendulum-swingup"), metrics=metrics), EnvCfg(nenv=2, **QUIET))
    metrics["clock"] = lambda frame: np.full(frame.nenv, float(env._clock[0]), np.float32)
    result = assess(env, Still(env), env.task.score, seconds=20 * env.control_dt)
    assert result.metrics["clock"] == pytest.approx(9.5)  # of steps 0 to 19


def test_a_policy_begins_anew_and_is_told_which_episodes_end():
    env = make_env(load_task("pendulum-swingup"), EnvCfg(nenv=2, **QUIET))
    policy = Still(env)
    assess(env, policy, env.task.score, seconds=3 * env.control_dt)
    assert policy.restarted == [[0, 1], [], [], []]
    assert env.watch is None


@pytest.mark.medium
def test_a_robot_that_stands_hardly_moves():
    task = replace(load_task("go2-velocity"), goal=VelocityGoal(standing=1.0))
    env = make_env(task, EnvCfg(nenv=2, **QUIET))
    result = assess(env, Still(env), task.score, seconds=2.0)
    assert result.falls == 0
    assert result.rest_speed < 0.02
    assert result.rest_joint_speed < 0.05
    assert 0.0 <= result.power_w < 20.0
    assert result.error < 0.1


def test_rest_and_power_are_computed_by_hand():
    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=2, **QUIET))
    measure, frame = Measure(env), env._sense.frame
    env.goal.values[:] = np.array([[0, 0, 0], [0, 0, 0.5]], np.float32)
    frame.command_age = np.array([1.5, 1.5], np.float32)
    frame.base_vel = np.array([[0.03, 0.04, 9.0], [1.0, 1.0, 1.0]], np.float32)
    frame.joint_vel = np.array([[0.2] * 12, [5.0] * 12], np.float32)
    frame.joint_torque = np.array([[-1.0] * 12, [2.0] * 12], np.float32)
    measure(frame)
    assert measure.at_rest == pytest.approx((0.05, 0.2))
    assert measure.means["power"] == pytest.approx((12 * 0.2 + 12 * 10.0) / 2)
    frame.command_age = np.array([0.5, 0.5], np.float32)
    frame.base_vel = np.full((2, 3), 7.0, np.float32)
    measure(frame)
    assert measure.at_rest[0] == pytest.approx(0.05)  # asked for less than a second: not yet at rest
