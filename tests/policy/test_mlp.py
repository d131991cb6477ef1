"""A policy on disk: there and back, against torch, and what is refused."""

import itertools

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.mlp import MlpPolicy, PolicySpec, load_policy
from trueup.policy.normalizer import Normalizer
from trueup.tasks.load import EnvCfg, load_task, make_env


def make(seed=0):
    env = make_env(load_task("pendulum-swingup"), EnvCfg(nenv=1, threads=1))
    rng = np.random.default_rng(seed)
    spec = PolicySpec(
        task="pendulum-swingup", robot="pendulum", control_hz=25.0, kp=(0.5,), kd=(0.02,),
        observation=env.observation_spec, action=env.action_spec,
    )  # fmt: skip
    sizes = [env.nactor, 16, 8, env.naction]
    layers = [(rng.normal(size=(m, n)), rng.normal(size=m)) for n, m in itertools.pairwise(sizes)]
    normalizer = Normalizer(env.nactor)
    normalizer.update(rng.normal(2.0, 3.0, (500, env.nactor)))
    return MlpPolicy(spec, layers, normalizer), rng.normal(size=(50, env.nactor)).astype(np.float32)


def test_a_policy_comes_back_from_disk_as_it_was(tmp_path):
    policy, obs = make()
    policy.save(tmp_path)
    back = load_policy(tmp_path)
    assert back.spec == policy.spec
    np.testing.assert_array_equal(back(obs), policy(obs))
    assert back(obs).dtype == np.float32


def test_inference_is_what_torch_computes():
    torch = pytest.importorskip("torch")
    policy, obs = make()
    x = torch.from_numpy(policy.normalizer(obs))
    for k, (weight, bias) in enumerate(policy.layers):
        x = torch.nn.functional.linear(x, torch.from_numpy(weight), torch.from_numpy(bias))
        x = torch.nn.functional.elu(x) if k < 2 else x
    np.testing.assert_allclose(policy(obs), x.numpy(), atol=1e-5)


def test_statistics_are_those_of_all_that_was_seen():
    rng = np.random.default_rng(1)
    values = rng.normal(5.0, 2.0, (1000, 3))
    normalizer = Normalizer(3)
    for part in np.array_split(values, 7):
        normalizer.update(part)
    np.testing.assert_allclose(normalizer.mean, values.mean(axis=0))
    np.testing.assert_allclose(normalizer.var, values.var(axis=0))


@pytest.mark.parametrize("name", ["policy.json", "policy.safetensors"])
def test_damaged_or_missing_files_are_refused_by_name(tmp_path, name):
    policy, _ = make()
    policy.save(tmp_path)
    (tmp_path / name).write_bytes(b"\x00" * 20)
    with pytest.raises(TrueupError, match=name):
        load_policy(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(TrueupError, match=name):
        load_policy(tmp_path)


def test_weights_of_another_size_or_not_finite_are_refused(tmp_path):
    policy, _ = make()
    with pytest.raises(TrueupError, match="do not fit"):
        MlpPolicy(policy.spec, policy.layers[1:], policy.normalizer)
    policy.layers[0][0][0, 0] = np.nan
    with pytest.raises(TrueupError, match="not finite"):
        MlpPolicy(policy.spec, policy.layers, policy.normalizer)
