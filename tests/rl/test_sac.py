"""SAC learns, continues bit for bit with its buffer, and its derivatives are those of autograd."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_env import ToyEnv

from trueup.policy.runner import PolicyRunner
from trueup.rl.sac import ReplayBuffer, Sac, SquashedActor, TwinCritic
from trueup.rl.settings import SacCfg
from trueup.rl.stepper import NonFiniteError

CFG = SacCfg(steps=4, hidden=(32, 32), batch=64, updates=8, warmup=256, buffer=3000)


def _learn(cfg, iterations, **env):
    sac = Sac(ToyEnv(16, **env), cfg, seed=1)
    return sac, [sac.iterate() for _ in range(iterations)]


def test_it_learns_to_reach_the_origin():
    _, history = _learn(CFG, 80)
    first, last = ([row["distance"] for row in part] for part in (history[4:14], history[-10:]))
    assert np.mean(last) < 0.6 * np.mean(first)
    losses = [row["q_loss"] for row in history if "q_loss" in row]
    assert np.mean(losses[-10:]) < 0.5 * losses[0]


def test_a_restored_learner_continues_bit_for_bit_with_a_buffer_that_went_round():
    cfg = replace(CFG, buffer=300)
    whole, _ = _learn(cfg, 12)
    half, _ = _learn(cfg, 6)
    resumed = Sac(ToyEnv(16), cfg, seed=1)
    resumed.restore({name: value.copy() for name, value in half.state().items()})
    for _ in range(6):
        resumed.iterate()
    a, b = whole.state(), resumed.state()
    assert a.keys() == b.keys()
    assert a["buffer/added"] == 12 * 4 * 16
    assert len(a["buffer/reward"]) == 300
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_its_policy_is_the_actor_without_noise_within_the_limit():
    sac, _ = _learn(CFG, 8)
    obs = sac.stepper.obs
    x = torch.tensor(sac.normalizers["actor"](obs.actor))
    squashed, _ = sac.actor.sample(x, torch.zeros(16, 2))
    action = PolicyRunner(sac.policy())(obs)
    np.testing.assert_allclose(action, CFG.limit * squashed.numpy(), rtol=1e-4, atol=1e-6)
    assert np.abs(action).max() <= CFG.limit


def test_time_outs_are_no_ends_and_the_next_observation_is_the_episodes_last():
    sac = Sac(ToyEnv(4), replace(CFG, steps=1), seed=0)
    step = None
    plain = sac.env.step

    def kept(action):
        nonlocal step
        step = plain(action)
        return step

    sac.env.step = kept
    while step is None or not step.truncated.any():
        sac.iterate()
    rows = sac.buffer.added - 4 + np.flatnonzero(step.truncated)
    assert not sac.buffer.columns["terminated"][rows].any()
    np.testing.assert_array_equal(sac.buffer.columns["next_actor"][rows], step.last.actor[step.truncated[step.ended]])


def test_a_bad_step_is_kept_with_its_state():
    sac = Sac(ToyEnv(16, poison=6), CFG, seed=0)
    sac.iterate()
    with pytest.raises(NonFiniteError, match="reward") as found:
        sac.iterate()
    assert (found.value.step, found.value.rows) == (1, [3])
    assert found.value.before["env/total"] == 5
    assert found.value.before["action"].shape == (16, 2)


def test_the_buffer_overwrites_the_oldest():
    buffer = ReplayBuffer(5, {"x": 1})
    for k in range(0, 9, 3):
        buffer.add({"x": np.arange(k, k + 3, dtype=np.float32)[:, None]})
    assert buffer.columns["x"][:, 0].tolist() == [5, 6, 7, 8, 4]
    drawn = buffer.sample(200, np.random.default_rng(0))["x"]
    assert set(drawn[:, 0].tolist()) == {4, 5, 6, 7, 8}


def test_the_gradients_of_the_actor_are_those_of_autograd():
    torch.manual_seed(0)
    actor, critic = SquashedActor(3, 2, (8,), 5), TwinCritic(4, 2, (8,), 5)
    for net in (actor.net, *critic.nets):
        net.initialize(torch.Generator().manual_seed(1))
    obs, state, noise = torch.randn(5, 3), torch.randn(5, 4), torch.randn(5, 2)
    action, _ = actor.sample(obs, noise)
    q = [value.clone() for value in critic.forward(state, action)]
    actor.backward(-critic.action_gradient(q) / 5, 0.3 / 5)

    flat = actor.parameters.flat.clone().requires_grad_()
    view = actor.parameters.views(flat)

    def net(x, weights):
        for k, (weight, bias) in enumerate(weights):
            x = torch.nn.functional.linear(x, weight, bias)
            x = torch.nn.functional.elu(x) if k == 0 else x
        return x

    out = net(obs, [(view[f"actor/{k}/weight"], view[f"actor/{k}/bias"]) for k in range(2)])
    normal = torch.distributions.Normal(out[:, :2], torch.exp(out[:, 2:]))
    u = out[:, :2] + torch.exp(out[:, 2:]) * noise
    t = torch.tanh(u)
    log_prob = (normal.log_prob(u) - torch.log(1 - t**2)).sum(1)
    values = [net(torch.cat([state, t], 1), list(zip(one.weight, one.bias, strict=True))) for one in critic.nets]
    loss = (0.3 * log_prob - torch.minimum(*values)[:, 0]).mean()
    loss.backward()
    torch.testing.assert_close(actor.parameters.grad, flat.grad, rtol=1e-4, atol=1e-6)
