"""A task whose joints are driven by a learned actuator."""

from pathlib import Path

import numpy as np
import pytest
from made_nets import made_net

from trueup.core.errors import TrueupError
from trueup.models.actuator_file import save_actuator
from trueup.tasks.build import EnvCfg
from trueup.tasks.load import load_task, make_env


@pytest.fixture
def folder(tmp_path) -> Path:
    save_actuator(made_net(taps=tuple(range(20)), hidden=(16, 16)), tmp_path)
    return tmp_path


def test_a_learned_actuator_drives_the_task_and_its_guard_is_a_metric(folder):
    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=4, threads=1, actuator=folder))
    plain = make_env(load_task("go2-velocity"), EnvCfg(nenv=4, threads=1))
    for _ in range(5):
        step = env.step(np.ones((4, 12), np.float32))
        plain.step(np.ones((4, 12), np.float32))
    assert 0.0 < step.metrics["actuator_outside"] <= 1.0
    assert np.abs(env.sim.joint_pos - plain.sim.joint_pos).max() > 1e-3


def test_a_checkpoint_of_it_goes_on_bit_for_bit(folder):
    cfg = EnvCfg(nenv=6, threads=1, actuator=folder)
    env, again = (make_env(load_task("go2-velocity"), cfg) for _ in range(2))
    actions = np.random.default_rng(0).normal(size=(20, 6, 12)).astype(np.float32)
    for action in actions[:10]:
        env.step(action)
    again.restore(env.state())
    for action in actions[10:]:
        one, other = env.step(action), again.step(action)
        np.testing.assert_array_equal(one.obs.actor, other.obs.actor)
        np.testing.assert_array_equal(one.reward, other.reward)


def test_an_actuator_of_another_robot_is_refused(folder):
    with pytest.raises(TrueupError, match="of 'go2'"):
        make_env(load_task("z1-reach"), EnvCfg(nenv=2, threads=1, actuator=folder))
