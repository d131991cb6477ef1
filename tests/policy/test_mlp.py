"""A policy on disk: there and back, against torch, and what is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.mlp import MlpPolicy, PolicySpec, load_policy
from trueup.policy.net import NetWiring, PolicyNet
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
    layers = tuple(
        (rng.normal(size=(m, n)).astype(np.float32), rng.normal(size=m).astype(np.float32))
        for n, m in itertools.pairwise(sizes)
    )
    normalizer = Normalizer(env.nactor)
    normalizer.update(rng.normal(2.0, 3.0, (500, env.nactor)))
    net = PolicyNet(spec=NetWiring(), actor=layers, normalizer=normalizer)
    return MlpPolicy(spec, net), rng.normal(size=(50, env.nactor)).astype(np.float32)


def test_a_policy_comes_back_from_disk_as_it_was(tmp_path):
    policy, obs = make()
    policy.save(tmp_path)
    back = load_policy(tmp_path)
    assert back.spec == policy.spec
    np.testing.assert_array_equal(back.act(obs), policy.act(obs))
    assert back.act(obs).dtype == np.float32


def test_inference_is_what_torch_computes():
    torch = pytest.importorskip("torch")
    policy, obs = make()
    x = torch.from_numpy(policy.net.normalizer(obs))
    for k, (weight, bias) in enumerate(policy.net.actor):
        x = torch.nn.functional.linear(x, torch.from_numpy(weight), torch.from_numpy(bias))
        x = torch.nn.functional.elu(x) if k < 2 else x
    np.testing.assert_allclose(policy.act(obs), x.numpy(), atol=1e-5)


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
        MlpPolicy(policy.spec, replace(policy.net, actor=policy.net.actor[1:]))
    policy.net.actor[0][0][0, 0] = np.nan
    with pytest.raises(TrueupError, match="not finite"):
        MlpPolicy(policy.spec, policy.net)


def test_the_kind_is_declared_and_must_fit_the_weights(tmp_path):
    policy, _ = make()
    for spec in (NetWiring(kind="action", steps=3), NetWiring(kind="latent", steps=3), NetWiring(steps=2)):
        with pytest.raises(TrueupError, match="do not fit"):
            MlpPolicy(policy.spec, replace(policy.net, spec=spec))
    with pytest.raises(TrueupError, match="hidden factors"):
        MlpPolicy(policy.spec, replace(policy.net, spec=NetWiring(kind="privileged")))


def test_a_squashed_policy_stays_within_its_limit_there_and_back(tmp_path):
    plain, obs = make()
    policy = MlpPolicy(plain.spec, replace(plain.net, spec=NetWiring(squash=1.5)))
    policy.save(tmp_path)
    np.testing.assert_allclose(load_policy(tmp_path).act(obs), 1.5 * np.tanh(plain.act(obs)), rtol=1e-6)
