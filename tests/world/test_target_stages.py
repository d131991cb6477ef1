"""Stages of the action chain between a policy's targets and the physics."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.world.actuators.target_stages import ConstantDelta
from trueup.world.batch import BatchSim, SimCfg

Z1 = load_robot("z1")
BIAS = np.linspace(-0.05, 0.05, Z1.spec.njoint)


class Recent:
    """Adds a share of the target before: a stage with a past."""

    def __init__(self, nsim: int) -> None:
        self.last = np.zeros((nsim, Z1.spec.njoint))

    def __call__(self, targets, sim):
        out = targets + 0.1 * (self.last - targets)
        self.last[:] = targets
        return out

    def reset(self, sim, ids):
        rows = slice(None) if ids is None else ids
        self.last[rows] = sim.joint_pos[rows]

    def memory(self):
        return {"last": self.last}


def make(stages=(), bias: float | np.ndarray = 0.0) -> BatchSim:
    sim = BatchSim(Z1, SimCfg(nsim=2, threads=1), target_stages=stages)
    sim.params.set("encoder_bias", bias)
    sim.reset()
    return sim


def test_a_constant_delta_action_cancels_a_planted_encoder_bias():
    """A servo that reads q + bias holds q = target - bias; a delta of +bias brings the arm where it should be."""
    healthy, biased, mended = make(), make(bias=BIAS), make([ConstantDelta(BIAS)], BIAS)
    for k in range(100):
        target = Z1.spec.default_pose + 0.2 * np.sin(0.05 * k)
        for sim in (healthy, biased, mended):
            sim.step(target)
    assert np.abs(biased.joint_pos - healthy.joint_pos).max() > 0.04
    np.testing.assert_allclose(mended.joint_pos, healthy.joint_pos, atol=1e-4)


def test_whole_sequences_go_through_the_stages_too():
    targets = Z1.spec.default_pose + 0.1 * np.random.default_rng(0).normal(size=(2, 20, Z1.spec.njoint))
    stepped, rolled = make([ConstantDelta(0.05)]), make([ConstantDelta(0.05)])
    out = rolled.rollout(targets)["qpos"]
    for t in range(20):
        stepped.step(targets[:, t])
    np.testing.assert_allclose(out[:, -1], stepped.qpos, atol=1e-12)
    assert np.abs(make().rollout(targets)["qpos"] - out).max() > 0.01


def test_a_stage_with_a_past_continues_bit_for_bit():
    sim = make([Recent(2)])
    rng = np.random.default_rng(1)
    targets = Z1.spec.default_pose + 0.1 * rng.normal(size=(10, 2, Z1.spec.njoint))
    for target in targets[:5]:
        sim.step(target)
    kept = sim.state()
    for target in targets[5:]:
        sim.step(target)
    other = make([Recent(2)])
    other.restore(kept)
    for target in targets[5:]:
        other.step(target)
    np.testing.assert_array_equal(other.qpos, sim.qpos)


def test_a_task_brings_its_own_stages():
    task = load_task("z1-reach")
    plain = TaskEnv(task, EnvCfg(nenv=2, threads=1, randomize=False))
    shifted = TaskEnv(replace(task, target_stages=(ConstantDelta(0.1),)), EnvCfg(nenv=2, threads=1, randomize=False))
    for env in (plain, shifted):
        for _ in range(30):
            env.step(np.zeros((2, env.naction), np.float32))
    assert np.abs(shifted.sim.joint_pos - plain.sim.joint_pos).max() > 0.05


def test_offsets_that_are_not_finite_are_refused():
    with pytest.raises(TrueupError, match="finite"):
        ConstantDelta([0.0, np.nan])
