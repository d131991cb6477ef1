"""From a teacher's run to a student's run on disk."""

from dataclasses import replace

import numpy as np
import pytest
from test_trainer import CFG, STEP

from trueup.core.errors import TrueupError
from trueup.policy.mlp import load_policy
from trueup.policy.runner import PolicyRunner
from trueup.rl.distill import Distiller
from trueup.rl.settings import DistillCfg
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.config import Budget, RunCfg, default_learner
from trueup.train.folder import RunFolder
from trueup.train.train import assess_run, make_learner, run_env, train


def _student_cfg(teacher):
    return replace(CFG, teacher=str(teacher), learner=DistillCfg(kind="action", history=5, hidden=(16,)))


def test_a_student_trains_resumes_and_is_assessed(tmp_path):
    train(CFG, tmp_path / "teacher", Budget(steps=3 * STEP))
    cfg = _student_cfg(tmp_path / "teacher")
    train(cfg, tmp_path / "whole", Budget(steps=6 * STEP))
    train(cfg, tmp_path / "parts", Budget(steps=2 * STEP))
    train(cfg, tmp_path / "parts", Budget(steps=6 * STEP), resume=True)
    whole, parts = (RunFolder(tmp_path / name).newest().arrays for name in ("whole", "parts"))
    for name, value in whole.items():
        np.testing.assert_array_equal(value, parts[name], err_msg=name)
    assert assess_run(RunFolder(tmp_path / "whole"), episodes=4).episodes == 4


def test_the_policy_of_a_student_does_what_the_learning_one_does(tmp_path):
    train(CFG, tmp_path / "teacher", Budget(steps=STEP))
    learner = make_learner(_student_cfg(tmp_path / "teacher"))
    assert isinstance(learner, Distiller)
    policy = PolicyRunner(learner.policy(), CFG.nenv)
    assert policy.net.spec.kind == "action"
    obs = learner.stepper.obs
    for t in range(3):
        action = policy(obs)
        np.testing.assert_allclose(action, learner._act(t), rtol=1e-4, atol=1e-6)
        step = learner.env.step(action)
        learner.stepper.obs, learner.last_action, obs = step.obs, action, step.obs


def test_a_teacher_without_latent_cannot_teach_one(tmp_path):
    train(CFG, tmp_path / "teacher", Budget(steps=STEP))
    cfg = replace(CFG, teacher=str(tmp_path / "teacher"), learner=DistillCfg(kind="latent"))
    with pytest.raises(TrueupError, match="--latent"):
        make_learner(cfg)


@pytest.mark.parametrize("kind", ["latent", "action"])
def test_an_exported_student_acts_as_the_one_in_its_checkpoint(tmp_path, kind):
    teacher = replace(
        CFG, randomize=True, learner=replace(CFG.learner, net=replace(CFG.learner.net, latent=2)), task="z1-reach"
    )
    train(teacher, tmp_path / "teacher", Budget(steps=STEP))
    cfg = replace(teacher, teacher=str(tmp_path / "teacher"), learner=DistillCfg(kind=kind, history=5, hidden=(16,)))
    train(cfg, tmp_path / "student", Budget(steps=2 * STEP))
    folder = RunFolder(tmp_path / "student")
    exported, policy = load_policy(folder.policy, nrow=3), PolicyRunner(folder.newest_policy(), 3)
    env = make_env(load_task("z1-reach"), EnvCfg(nenv=3, threads=1))
    obs = env.reset()
    for k in range(8):
        action = policy(obs)
        np.testing.assert_array_equal(exported.act(obs.actor), action)
        obs = env.step(action).obs
        if k == 4:
            policy.restart(np.array([1]))
            exported.restart(np.array([1]))


def test_students_meet_whole_ranges_at_once():
    task = "go2-velocity"
    plain = RunCfg(task=task, nenv=2, threads=1, learner=default_learner(task))
    student = replace(plain, teacher="somewhere", learner=DistillCfg())
    assert run_env(plain, 2, training=True).variation.share == 0.0
    assert run_env(student, 2, training=True).variation.share == 1.0
