"""The loop of a run on the pendulum: budgets, records, resuming, Ctrl-C, mishaps."""

import json
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.runner import PolicyRunner
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.tasks.load import load_task, name_object
from trueup.train.config import Budget, RunCfg, read_config
from trueup.train.folder import RunFolder
from trueup.train.train import assess_run, replay_dump, run_env, train, tuned
from trueup.train.verbs import TrainVerb, run_config

NET = NetCfg(actor=(32, 32), critic=(32, 32))
CFG = RunCfg(
    task="pendulum-swingup", seed=3, nenv=32, threads=1, learner=PpoCfg(steps=8, minibatches=2, epochs=2, net=NET)
)
STEP = 32 * 8


def _final(path):
    return RunFolder(path).checkpoints.newest()


def _assert_same(a, b):
    assert a.arrays.keys() == b.arrays.keys()
    for name, value in a.arrays.items():
        np.testing.assert_array_equal(value, b.arrays[name], err_msg=name)


def test_a_run_leaves_config_metrics_board_and_checkpoint(tmp_path):
    outcome = train(CFG, tmp_path, Budget(steps=4 * STEP))
    assert (outcome.reason, outcome.iteration, outcome.steps) == ("steps", 4, 4 * STEP)
    assert read_config(tmp_path / "config.json") == CFG
    rows = RunFolder(tmp_path).read_metrics()
    assert [row["iteration"] for row in rows] == [1, 2, 3, 4]
    assert {"reward", "kl", "learning_rate", "steps_per_s", "reward/swing_up"} <= rows[-1].keys()
    assert list((tmp_path / "tensorboard").iterdir())
    assert _final(tmp_path).facts["steps"] == 4 * STEP


def test_a_resumed_run_equals_an_uninterrupted_one_bit_for_bit(tmp_path):
    train(CFG, tmp_path / "whole", Budget(steps=12 * STEP))
    train(CFG, tmp_path / "parts", Budget(steps=5 * STEP))
    train(CFG, tmp_path / "parts", Budget(steps=12 * STEP), resume=True)
    _assert_same(_final(tmp_path / "whole"), _final(tmp_path / "parts"))
    records = [RunFolder(tmp_path / name).read_metrics() for name in ("whole", "parts")]
    for whole, parts in zip(*records, strict=True):
        assert whole["reward"] == parts["reward"]


def test_a_training_from_another_run_goes_on_with_its_curriculum(tmp_path):
    task = load_task("pendulum-swingup")
    hz = task.rates.control_hz
    name = name_object(replace(task, name="ramped", ramp_s=(16 / hz, 80 / hz)))
    first = replace(CFG, task=name)
    train(first, tmp_path / "first", Budget(steps=4 * STEP))  # 32 control steps of every simulation
    verb = TrainVerb(name, out=tmp_path / "second", nenv=CFG.nenv, threads=1, learner=CFG.learner)
    cfg = run_config(replace(verb, start=tmp_path / "first"))
    assert cfg.trained_s == pytest.approx(32 / hz)
    assert run_env(first, 4, training=True).variation.share == 0.0
    assert run_env(cfg, 4, training=True).variation.share == pytest.approx((32 - 16) / (80 - 16))
    train(cfg, tmp_path / "second", Budget(steps=7 * STEP))
    third = run_config(replace(verb, start=tmp_path / "second"))
    assert third.trained_s == pytest.approx((32 + 56) / hz)
    assert run_env(third, 4, training=True).variation.share == 1.0
    assert run_env(replace(cfg, trained_s=0.0), 4, training=True).variation.share == 1.0, (
        "as a bundle, which tells none"
    )


def test_snapshots_of_the_policy_are_kept_along_the_way_and_thinned(tmp_path):
    train(replace(CFG, nenv=4), tmp_path / "run", Budget(steps=55 * 4 * 8))
    folder = RunFolder(tmp_path / "run")
    assert folder.snapshot_iterations() == [25, 50]
    early, late, last = folder.policy_at(25), folder.policy_at(50), folder.newest_policy()
    assert early.spec == late.spec == last.spec
    assert not np.array_equal(early.actor[0][0], late.actor[0][0])
    one = folder.snapshots.newest()
    for iteration in range(51, 1701):
        folder.keep_snapshot(iteration, lambda: one)
    assert folder.snapshot_iterations() == list(range(100, 1701, 100))  # every 25, then 50, then 100 iterations


def test_a_checkpoint_of_another_version_is_refused_by_name(tmp_path):
    train(CFG, tmp_path, Budget(steps=2 * STEP))
    checkpoints = RunFolder(tmp_path).checkpoints
    found = checkpoints.newest()
    del found.arrays["average/log_std"]
    checkpoints.save(3, found)
    with pytest.raises(TrueupError, match=r"lacks 'average/log_std'.*another version"):
        train(CFG, tmp_path, Budget(steps=4 * STEP), resume=True)


def test_threads_do_not_change_the_outcome(tmp_path):
    train(CFG, tmp_path / "one", Budget(steps=3 * STEP))
    train(replace(CFG, threads=2), tmp_path / "two", Budget(steps=3 * STEP))
    _assert_same(_final(tmp_path / "one"), _final(tmp_path / "two"))


def test_records_of_lost_iterations_are_not_doubled(tmp_path):
    train(CFG, tmp_path, Budget(steps=3 * STEP))
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(metrics.read_text() + json.dumps({"iteration": 4, "steps": 0}) + '\n{"itera')
    train(CFG, tmp_path, Budget(steps=5 * STEP), resume=True)
    assert [row["iteration"] for row in RunFolder(tmp_path).read_metrics()] == [1, 2, 3, 4, 5]


def test_ctrl_c_saves_and_ends(tmp_path):
    def press(progress):
        if progress.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)

    outcome = train(CFG, tmp_path, Budget(steps=100 * STEP), show=press)
    assert (outcome.reason, outcome.iteration) == ("interrupted", 2)
    assert _final(tmp_path).facts["iteration"] == 2


def test_time_spent_before_counts(tmp_path):
    train(CFG, tmp_path, Budget(steps=2 * STEP))
    spent = _final(tmp_path).facts["elapsed_s"]
    outcome = train(CFG, tmp_path, Budget(minutes=spent / 60 / 2), resume=True)
    assert (outcome.reason, outcome.iteration) == ("minutes", 2)


def test_a_run_is_not_written_over(tmp_path):
    train(CFG, tmp_path, Budget(steps=STEP))
    with pytest.raises(TrueupError, match="--resume"):
        train(CFG, tmp_path, Budget(steps=STEP))


def test_a_run_without_end_or_task_is_refused(tmp_path):
    with pytest.raises(TrueupError, match="--minutes"):
        train(CFG, tmp_path, Budget())
    with pytest.raises(TrueupError, match="pendulum-swingup"):
        train(replace(CFG, task="pendulum-swingupp"), tmp_path, Budget(steps=1))
    with pytest.raises(TrueupError, match="no run here"):
        train(CFG, tmp_path / "none", Budget(steps=1), resume=True)


def test_a_state_that_goes_bad_is_dumped_and_shown_again(tmp_path, monkeypatch):
    """A reward that is not finite once a simulation has made 13 steps: found in that step, kept, seen again."""
    from trueup.tasks.env import TaskEnv

    reward = TaskEnv._reward

    def poisoned(self):
        values, metrics = reward(self)
        values[self._steps == 13] = np.nan
        return values, metrics

    monkeypatch.setattr(TaskEnv, "_reward", poisoned)
    with pytest.raises(TrueupError, match="not finite") as found:
        train(CFG, tmp_path, Budget(steps=100 * STEP))
    assert "--replay" in str(found.value)
    rows = json.loads((tmp_path / "nan" / "manifest.json").read_text())["facts"]["rows"]
    assert replay_dump(tmp_path / "nan") == [f"reward: rows {rows}"]


def test_size_and_threads_are_chosen_and_recorded(tmp_path):
    chosen = tuned(replace(CFG, nenv=0, threads=0))
    assert chosen.nenv in (512, 1024, 2048)
    assert chosen.threads >= 1
    assert tuned(CFG) == CFG


@pytest.mark.medium
def test_training_swings_the_pendulum_up(tmp_path):
    from trueup.train.config import default_learner

    cfg = RunCfg(task="pendulum-swingup", nenv=128, threads=1, learner=default_learner("pendulum-swingup"))
    train(cfg, tmp_path, Budget(steps=70_000, save_s=600.0))
    result = assess_run(RunFolder(tmp_path), episodes=20)
    assert result.score > 0.7
    assert result.falls == 0
    assert result.reaches(0.7)
    assert not result.reaches(0.99)


def test_the_policy_of_ppo_is_its_actor_without_noise(tmp_path):
    import torch

    from trueup.rl.ppo import Ppo

    env = run_env(CFG, 8)
    ppo = Ppo(env, CFG.learner, 0)
    ppo.iterate()
    obs = env.reset()
    expected = ppo.actor.forward(torch.tensor(ppo.collector.actor_normalizer(obs.actor)), torch.empty(8, 0)).numpy()
    np.testing.assert_allclose(PolicyRunner(ppo.policy())(obs), expected, rtol=1e-4, atol=1e-6)
    ppo.close()


def test_a_run_leaves_a_policy_for_the_robot(tmp_path):
    from trueup.policy.mlp import load_policy

    train(CFG, tmp_path, Budget(steps=2 * STEP))
    policy = load_policy(tmp_path / "policy")
    assert (policy.spec.task, policy.spec.control_hz) == ("pendulum-swingup", 25.0)
    obs = run_env(CFG, 8).reset()
    expected = PolicyRunner(RunFolder(tmp_path).newest_policy())(obs)
    np.testing.assert_array_equal(policy.act(obs.actor), expected)
