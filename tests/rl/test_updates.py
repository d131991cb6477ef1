"""Updates of PPO and SAC where the right direction is known: bandits, planted advantages, targets, temperature."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from bandit_env import BEST, BanditEnv
from toy_env import ToyEnv

from trueup.core.errors import TrueupError
from trueup.policy.runner import PolicyRunner
from trueup.rl.learner import learner_class
from trueup.rl.losses import gae
from trueup.rl.ppo import Ppo
from trueup.rl.sac import ReplayBuffer, Sac, SquashedActor
from trueup.rl.settings import ALGORITHMS, LearnerCfg, NetCfg, PpoCfg, SacCfg

NET = NetCfg(actor=(16,), critic=(16,), std=0.4)
PPO = PpoCfg(steps=8, minibatches=2, epochs=4, side_by_side=False, net=NET)
SAC = SacCfg(steps=2, hidden=(16,), batch=32, updates=4, warmup=64, buffer=500, learning_rate=1e-2)
ROW = np.zeros((1, 1), np.float32)


def collected(cfg=PPO, env=None) -> Ppo:
    """PPO with a rollout and its advantages, before any update."""
    ppo = Ppo(env or ToyEnv(8), cfg, seed=0)
    ppo.collector.collect(ppo.actor, ppo.rollout, np.random.default_rng(0))
    ppo.compute_advantages()
    return ppo


def test_ppo_finds_the_best_action_of_a_bandit():
    ppo = Ppo(BanditEnv(32), replace(PPO, entropy=0.0), seed=0)
    history = [ppo.iterate() for _ in range(30)]
    assert PolicyRunner(ppo.policy()).act(ROW)[0, 0] == pytest.approx(BEST, abs=0.1)
    assert history[-1]["reward"] > history[0]["reward"]
    assert history[-1]["episode_length"] == 1.0


def test_ppo_moves_the_mean_towards_actions_that_were_better_than_expected():
    ppo = collected(replace(PPO, entropy=0.0))
    rollout = ppo.rollout
    before = ppo.actor.net.forward(rollout.actor[:32]).clone()
    rollout.advantage.copy_((rollout.action - rollout.mean)[:, 0].sign())  # more of the first action pays
    ppo.update(np.random.default_rng(0))
    moved = (ppo.actor.net.forward(rollout.actor[:32]) - before).mean(0)
    assert moved[0] > 0.02
    assert abs(moved[1]) < 0.5 * moved[0]


def test_without_advantages_only_the_entropy_pulls_and_the_noise_grows():
    ppo = collected(replace(PPO, entropy=0.1))
    mean = ppo.actor.net.forward(ppo.rollout.actor[:32]).clone()
    ppo.rollout.advantage.zero_()
    metrics = ppo.update(np.random.default_rng(0))
    assert metrics["std"] > NET.std
    torch.testing.assert_close(ppo.actor.net.forward(ppo.rollout.actor[:32]), mean)


def test_the_critic_comes_to_the_returns():
    ppo = collected(replace(PPO, epochs=60, value_clip=100.0, critic_learning_rate=1e-2))
    ppo.rollout.returns.fill_(1.5)
    ppo.update(np.random.default_rng(0))
    torch.testing.assert_close(ppo.critic.values(ppo.rollout.critic).mean(), torch.tensor(1.5), atol=0.1, rtol=0.0)


def test_advantages_are_those_of_the_rollout_made_even():
    ppo = collected()
    rollout, shape = ppo.rollout, ppo.rollout.reward.shape
    after = torch.tensor(ppo.normalizers["critic"](ppo.stepper.obs.critic))
    advantage, returns = gae(
        rollout.reward, rollout.value.numpy().reshape(shape), ppo.critic.values(after).numpy(), rollout.done, 0.99, 0.95
    )
    np.testing.assert_allclose(rollout.returns.numpy().reshape(shape), returns, rtol=1e-5)
    even = (advantage - advantage.mean()) / advantage.std()
    np.testing.assert_allclose(rollout.advantage.numpy().reshape(shape), even, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "bounds"),
    [((0.1, 0, 2), [0.4, 0.2, 0.1, 0.1]), ((0.1, 2, 2), [0.4, 0.4, 0.1, 0.1])],
)
def test_the_noise_falls_by_the_same_factor_in_each_iteration_of_its_schedule(schedule, bounds):
    ppo = Ppo(BanditEnv(8), replace(PPO, entropy=1.0, noise_schedule=schedule, kl_target=100.0), seed=0)
    found = [ppo.iterate()["std"] for _ in bounds]  # the entropy pushes it against the bound
    assert found == pytest.approx(bounds, rel=1e-4)


def test_the_noise_never_falls_below_its_least():
    ppo = collected(replace(PPO, entropy=-5.0, kl_target=100.0, learning_rate=0.5, net=replace(NET, min_std=0.3)))
    assert ppo.update(np.random.default_rng(0))["std"] == pytest.approx(0.3)


@pytest.mark.medium
def test_sac_finds_the_best_action_of_a_bandit_and_what_actions_are_worth():
    sac = Sac(BanditEnv(16), replace(SAC, warmup=480, buffer=5000), seed=0)  # random actions stay in the buffer
    for _ in range(75):
        metrics = sac.iterate()
    assert PolicyRunner(sac.policy()).act(ROW)[0, 0] == pytest.approx(BEST, abs=0.25)
    assert metrics["alpha"] < SAC.alpha
    action = torch.tensor([[-0.5], [0.25]])  # of limit 2: rewards -(-1 - 0.5)^2 and 0
    values = torch.stack(sac.critic.forward(torch.zeros(2, 1), action)).mean(0)
    torch.testing.assert_close(values, torch.tensor([-2.25, 0.0]), atol=0.4, rtol=0.0)


def test_before_the_warm_up_actions_are_random_over_the_whole_range_and_nothing_is_learned():
    sac = Sac(BanditEnv(16), replace(SAC, steps=4, warmup=65), seed=0)
    start = sac.actor.parameters.flat.clone()
    assert "q_loss" not in sac.iterate()
    torch.testing.assert_close(sac.actor.parameters.flat, start, rtol=0.0, atol=0.0)
    drawn = sac.buffer.columns["action"][:64, 0]
    assert drawn.min() < -0.8
    assert drawn.max() > 0.8
    assert "q_loss" in sac.iterate()


@pytest.mark.parametrize("tau", [0.0, 0.25, 1.0])
def test_the_target_takes_over_a_share_of_the_critic_in_every_gradient_step(tau):
    sac = Sac(BanditEnv(16), replace(SAC, steps=4, updates=1, tau=tau), seed=0)
    start = sac.target.parameters.flat.clone()
    sac.iterate()
    expected = (1.0 - tau) * start + tau * sac.critic.parameters.flat
    torch.testing.assert_close(sac.target.parameters.flat, expected)
    assert not torch.equal(sac.critic.parameters.flat, start)


@pytest.mark.parametrize(("wanted", "rises"), [(-50.0, False), (50.0, True)])
def test_the_temperature_rises_where_the_entropy_is_below_what_is_wanted(wanted, rises):
    sac = Sac(BanditEnv(16), replace(SAC, steps=4, entropy_target=wanted), seed=0)
    sac.iterate()
    assert (sac.alpha > SAC.alpha) == rises


def test_the_density_of_squashed_actions_integrates_to_one():
    actor = SquashedActor(1, 1, (4,), 2001)
    actor.net.initialize(torch.Generator().manual_seed(3))
    noise = torch.linspace(-6.0, 6.0, 2001)[:, None]
    action, log_prob = actor.sample(torch.ones(2001, 1), noise)
    assert float(torch.trapezoid(log_prob.exp(), action[:, 0])) == pytest.approx(1.0, abs=1e-3)


def test_a_buffer_that_is_not_full_gives_only_what_was_added():
    buffer = ReplayBuffer(10, {"x": 1})
    buffer.add({"x": np.array([[1.0], [2.0]], np.float32)})
    assert len(buffer) == 2
    assert set(buffer.sample(50, np.random.default_rng(0))["x"][:, 0].tolist()) == {1.0, 2.0}
    other = ReplayBuffer(10, {"x": 1})
    other.restore(buffer.state())
    assert (other.added, other.columns["x"][:3, 0].tolist()) == (2, [1.0, 2.0, 0.0])


def test_settings_lead_to_their_learner_and_strange_ones_are_refused():
    assert [learner_class(ALGORITHMS[name]()).__name__ for name in ("ppo", "sac", "distill")] == [
        "Ppo",
        "Sac",
        "Distiller",
    ]
    with pytest.raises(TrueupError, match="no learner has settings of type LearnerCfg"):
        learner_class(LearnerCfg())
