"""Every built-in task trains and continues bit for bit, with randomisation, pushes, terrain and ADR at work."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.rl.settings import NetCfg, PpoCfg
from trueup.tasks.load import task_names
from trueup.train.config import Budget, RunCfg
from trueup.train.folder import RunFolder
from trueup.train.train import assess_run, train

PPO = PpoCfg(steps=6, minibatches=2, epochs=1, net=NetCfg(actor=(32,), critic=(32,)))
STEP = 8 * 6


def _same_in_parts(cfg, tmp_path):
    train(cfg, tmp_path / "whole", Budget(steps=10 * STEP))
    train(cfg, tmp_path / "parts", Budget(steps=4 * STEP))
    train(cfg, tmp_path / "parts", Budget(steps=10 * STEP), resume=True)
    whole, parts = (RunFolder(tmp_path / name).newest().arrays for name in ("whole", "parts"))
    for name, value in whole.items():
        np.testing.assert_array_equal(value, parts[name], err_msg=name)


@pytest.mark.medium
@pytest.mark.parametrize("task", task_names())
def test_it_continues_bit_for_bit(tmp_path, task):
    cfg = RunCfg(task=task, seed=2, nenv=8, threads=1, learner=replace(PPO, symmetry=task.startswith(("go2", "g1"))))
    _same_in_parts(cfg, tmp_path)


@pytest.mark.medium
def test_ranges_that_grow_and_a_latent_continue_bit_for_bit(tmp_path):
    ppo = replace(PPO, net=replace(PPO.net, latent=4), symmetry=True)
    _same_in_parts(RunCfg(task="go2-velocity", nenv=8, threads=1, adr=True, learner=ppo), tmp_path)


@pytest.mark.medium
@pytest.mark.parametrize("randomize", [False, True])
def test_a_walking_task_is_assessed_nominal_and_randomised(tmp_path, randomize, monkeypatch):
    monkeypatch.setattr("trueup.train.train.load_task", _short)
    train(RunCfg(task="go2-velocity", nenv=8, threads=1, learner=PPO), tmp_path, Budget(steps=STEP))
    result = assess_run(RunFolder(tmp_path), episodes=4, randomize=randomize)
    assert result.error > 0.0
    assert 0 <= result.falls <= 4
    assert not result.reaches(0.01)


def _short(name, robot=None):
    from trueup.tasks.load import load_task

    task = load_task(name, robot)
    return replace(task, rates=replace(task.rates, episode_s=1.0))
