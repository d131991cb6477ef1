"""Any learner through the same `train`: settings on disk and on the command line, SAC on the pendulum."""

from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.mlp import load_policy
from trueup.rl.learner import learner_class
from trueup.rl.settings import ALGORITHMS, DistillCfg, PpoCfg, SacCfg
from trueup.train.config import Budget, RunCfg, default_learner, read_config, with_options, write_config
from trueup.train.folder import RunFolder
from trueup.train.play.play import open_run
from trueup.train.train import assess_run, train

SAC = SacCfg(hidden=(16,), batch=32, updates=2, warmup=64, buffer=200)
CFG = RunCfg(task="pendulum-swingup", seed=3, nenv=8, threads=1, learner=SAC)
STEP = 8 * SAC.steps


@pytest.mark.parametrize("cfg", ALGORITHMS.values())
def test_every_kind_of_settings_has_its_learner_and_comes_back_from_disk(tmp_path, cfg):
    assert hasattr(learner_class(cfg()), "policy")
    assert ALGORITHMS[cfg().algorithm] is cfg
    run = RunCfg(task="pendulum-swingup", learner=replace(cfg(), nenv=7))
    (tmp_path / "config.json").write_text(write_config(run))
    assert read_config(tmp_path / "config.json") == run


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"task": "x", "ppo": {}}', "earlier version"),
        ('{"task": "x", "learner": {"algorithm": "dreamer"}}', "no learner 'dreamer'"),
        ('{"task": "x", "learner": 3}', "no learner 'None'"),
    ],
)
def test_a_config_without_a_known_learner_is_refused(tmp_path, text, message):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(TrueupError, match=message):
        read_config(tmp_path / "config.json")


def test_options_replace_settings_of_any_learner():
    assert with_options(PpoCfg(), {"net.latent": 8, "symmetry": True}) == PpoCfg(
        symmetry=True, net=replace(PpoCfg().net, latent=8)
    )
    assert with_options(SacCfg(), {"tau": "0.01", "hidden": [8, 8]}) == SacCfg(tau=0.01, hidden=(8, 8))
    with pytest.raises(TrueupError, match="sac has no option 'symmetry'"):
        with_options(SacCfg(), {"symmetry": True})
    with pytest.raises(TrueupError, match="ppo has no option 'net.latnt' .did you mean 'latent'"):
        with_options(PpoCfg(), {"net.latnt": 8})
    with pytest.raises(TrueupError, match="cannot take"):
        with_options(PpoCfg(), {"gamma": "high"})


def test_a_task_keeps_its_own_settings_for_its_own_algorithm():
    assert default_learner("pendulum-swingup", "ppo").gamma == 0.98 == default_learner("pendulum-swingup").gamma
    assert default_learner("pendulum-swingup", "sac") == SacCfg()
    with pytest.raises(TrueupError, match="did you mean 'sac'"):
        default_learner("pendulum-swingup", "sacc")


def test_sac_resumes_bit_for_bit_exports_and_is_assessed(tmp_path):
    train(CFG, tmp_path / "whole", Budget(steps=12 * STEP))
    train(CFG, tmp_path / "parts", Budget(steps=5 * STEP))
    train(CFG, tmp_path / "parts", Budget(steps=12 * STEP), resume=True)
    whole, parts = (RunFolder(tmp_path / name).newest() for name in ("whole", "parts"))
    assert whole.arrays.keys() == parts.arrays.keys()
    for name, value in whole.arrays.items():
        np.testing.assert_array_equal(value, parts.arrays[name], err_msg=name)
    assert whole.facts["policy"] == {"kind": "plain", "steps": 0, "squash": SAC.limit}
    env, policy = open_run(tmp_path / "whole")
    obs = env.reset()
    np.testing.assert_array_equal(load_policy(tmp_path / "whole" / "policy").act(obs.actor), policy(obs))
    assert assess_run(RunFolder(tmp_path / "whole"), episodes=2).episodes == 2


def test_a_student_imitates_a_teacher_of_any_learner_but_not_without_one(tmp_path):
    train(CFG, tmp_path / "teacher", Budget(steps=2 * STEP))
    student = replace(CFG, learner=DistillCfg(kind="action", history=3, hidden=(8,)))
    with pytest.raises(TrueupError, match="--teacher"):
        train(student, tmp_path / "student", Budget(steps=STEP))
    train(replace(student, teacher=str(tmp_path / "teacher")), tmp_path / "student", Budget(steps=STEP))
    assert RunFolder(tmp_path / "student").newest_policy().spec.kind == "action"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_sac_swings_the_pendulum_up(tmp_path):
    """The score that PPO's test asks for, in a minute of one core: `trueup train pendulum-swingup --learner sac`."""
    cfg = RunCfg(task="pendulum-swingup", threads=1, learner=default_learner("pendulum-swingup", "sac"), nenv=16)
    train(cfg, tmp_path, Budget(steps=30_000, save_s=600.0))
    result = assess_run(RunFolder(tmp_path), episodes=20)
    assert result.score > 0.7
    assert result.falls == 0
