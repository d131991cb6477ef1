"""PPO learns, repeats itself bit for bit, continues bit for bit, and finds what is not finite."""

import numpy as np
import pytest
import torch
from toy_env import ToyEnv

from trueup.rl.ppo import Ppo
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.rl.stepper import NonFiniteError

NET = NetCfg(actor=(32, 32), critic=(32, 32), std=0.7)
CFG = PpoCfg(steps=16, minibatches=2, epochs=4, net=NET)


def _learn(cfg, iterations, nenv=32, **env):
    ppo = Ppo(ToyEnv(nenv, **env), cfg, seed=1)
    history = [ppo.iterate() for _ in range(iterations)]
    ppo.close()
    return ppo, history


def _same(a, b):
    a, b = a.state(), b.state()
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_it_learns_to_reach_the_origin():
    _, history = _learn(CFG, 40)
    first, last = history[0]["distance"], np.mean([row["distance"] for row in history[-5:]])
    assert last < 0.5 * first


def test_side_by_side_changes_nothing():
    from dataclasses import replace

    both, _ = _learn(CFG, 4)
    one, _ = _learn(replace(CFG, side_by_side=False), 4)
    _same(both, one)


@pytest.mark.parametrize("symmetry", [False, True])
def test_a_restored_learner_continues_bit_for_bit(symmetry):
    from dataclasses import replace

    cfg = replace(CFG, symmetry=symmetry)
    whole, _ = _learn(cfg, 6)
    half, _ = _learn(cfg, 3)
    resumed = Ppo(ToyEnv(32), cfg, seed=1)
    resumed.restore({name: value.copy() for name, value in half.state().items()})
    for _ in range(3):
        resumed.iterate()
    resumed.close()
    _same(whole, resumed)


def test_noise_stays_below_a_bound_that_falls():
    from dataclasses import replace

    _, history = _learn(replace(CFG, entropy=0.1, noise_schedule=(0.2, 1, 4)), 6)
    free, _ = _learn(replace(CFG, entropy=0.1), 6)
    bounds = [0.7 * (0.2 / 0.7) ** min(1.0, max(0, k - 1) / 3) for k in range(6)]
    assert all(row["std"] <= bound + 1e-6 for row, bound in zip(history, bounds, strict=True))
    assert history[-1]["std"] == pytest.approx(0.2, abs=0.02)
    assert float(torch.exp(free.actor.log_std).mean()) > 0.5


def test_seeds_differ():
    a, b = Ppo(ToyEnv(8), CFG, seed=0), Ppo(ToyEnv(8), CFG, seed=1)
    assert not np.array_equal(a.actor.parameters.flat, b.actor.parameters.flat)


def test_time_outs_are_bootstrapped_from_the_final_state():
    ppo = Ppo(ToyEnv(4), PpoCfg(steps=20, minibatches=1, net=NET), seed=0)
    ppo.collector.collect(ppo.actor, ppo.rollout, np.random.default_rng(0))
    plain = ppo.rollout.reward.copy()
    late = np.concatenate(ppo.rollout.timeouts)
    assert len(late) > 0
    ppo.compute_advantages()
    added = (ppo.rollout.reward - plain).reshape(-1)
    assert np.flatnonzero(added).tolist() == sorted(late.tolist())
    import torch

    finals = ppo.critic.values(torch.tensor(np.concatenate(ppo.rollout.finals))).numpy()
    np.testing.assert_allclose(added[late], 0.99 * finals, rtol=1e-4, atol=1e-6)


def test_a_number_that_is_not_finite_is_found_in_its_step():
    ppo = Ppo(ToyEnv(8, poison=21), CFG, seed=0)
    ppo.iterate()
    with pytest.raises(NonFiniteError, match="reward") as found:
        ppo.iterate()
    assert found.value.step == 4
    assert found.value.rows == [3]
    np.testing.assert_array_equal(found.value.before["env/total"], 20)


def test_statistics_are_symmetric_with_symmetry():
    from dataclasses import replace

    ppo, _ = _learn(replace(CFG, symmetry=True), 3)
    mean = ppo.collector.actor_normalizer.mean
    assert mean[0] == pytest.approx(mean[1], abs=1e-12)


def test_a_latent_of_hidden_factors_helps():
    blind, blind_history = _learn(CFG, 40, hidden=1.5)
    net = NetCfg(actor=(32, 32), critic=(32, 32), std=0.7, latent=2, encoder=(16,))
    _, seeing_history = _learn(PpoCfg(steps=16, minibatches=2, epochs=4, net=net), 40, hidden=1.5)

    def end(history):
        return np.mean([row["distance"] for row in history[-5:]])

    assert end(seeing_history) < end(blind_history)
    assert blind.actor.encoder is None


def test_the_mirror_exchanges_observations_factors_and_actions_of_half_a_minibatch():
    import torch

    from trueup.rl.collect import Reflection

    reflection = Reflection(ToyEnv(4).mirror, 2)
    obs, factors, action = (torch.arange(8.0).view(4, 2) + 10 * k for k in range(3))
    critic = torch.arange(16.0).view(4, 4)
    reflection(actor=obs, privileged=factors, action=action, critic=critic)
    assert obs.tolist() == [[1, 0], [3, 2], [4, 5], [6, 7]]
    assert factors.tolist() == [[11, 10], [13, 12], [14, 15], [16, 17]]
    assert action.tolist() == [[21, 20], [23, 22], [24, 25], [26, 27]]
    assert critic[0].tolist() == [1, 0, 3, 2]
    assert critic[2].tolist() == [8, 9, 10, 11]


def test_the_actor_stops_when_the_policy_has_moved_far_enough():
    from dataclasses import replace

    ppo = Ppo(ToyEnv(32), replace(CFG, learning_rate=0.05), seed=0)
    metrics = ppo.iterate()
    assert metrics["updates"] < CFG.epochs * CFG.minibatches
    assert metrics["kl"] > 4 * CFG.kl_target
    assert ppo.learning_rate == pytest.approx(0.05 / 1.5)
    ppo.close()


def test_the_learning_rate_is_one_for_an_iteration_and_grows_when_nothing_moves():
    from dataclasses import replace

    ppo = Ppo(ToyEnv(32), replace(CFG, learning_rate=1e-5), seed=0)
    metrics = ppo.iterate()
    assert metrics["learning_rate"] == 1e-5
    assert metrics["updates"] == CFG.epochs * CFG.minibatches
    assert ppo.learning_rate == pytest.approx(1.5e-5)
    ppo.close()


def test_a_policy_that_is_not_symmetric_yet_has_not_moved():
    """What the mirror image is away from the policy is no step of learning, so the actor goes on updating."""
    from dataclasses import replace

    ppo = Ppo(ToyEnv(32), replace(CFG, symmetry=True, learning_rate=1e-5), seed=3)
    ppo.actor.parameters.view["actor/2/bias"].copy_(torch.tensor([3.0, -3.0]))  # left and right pull apart
    metrics = ppo.iterate()
    assert metrics["updates"] == CFG.epochs * CFG.minibatches
    assert metrics["kl"] < CFG.kl_target
    ppo.close()


def test_noise_and_averaging_go_on_where_the_other_run_was():
    from dataclasses import replace

    cfg = replace(CFG, noise_schedule=(0.3, 2, 6))
    first, _ = _learn(cfg, 4)
    second = Ppo(ToyEnv(32), cfg, seed=2)
    second.start_from(first.state())
    assert second._max_std() == first._max_std() == pytest.approx(0.7 * (0.3 / 0.7) ** 0.5)
    assert second.average.count == first.average.count == 4
    second.iterate()
    resumed = Ppo(ToyEnv(32), cfg, seed=2)
    resumed.restore({name: value.copy() for name, value in second.state().items()})
    assert resumed._max_std() == second._max_std() == pytest.approx(0.7 * (0.3 / 0.7) ** 0.75)
    for learner in (second, resumed):
        learner.iterate()
        learner.close()
    _same(second, resumed)
    third = Ppo(ToyEnv(32), cfg, seed=3)
    third.start_from(second.state())
    third.close()
    assert third._max_std() == pytest.approx(0.3), "six iterations in all"


class OneFactor(ToyEnv):
    """Tells the critic one of the two hidden numbers."""

    ncritic, nprivileged = 3, 1

    def _see(self, rows=slice(None)):
        seen = super()._see(rows)
        return seen._replace(critic=seen.critic[:, :3], privileged=seen.privileged[:, :1])


def test_a_critic_of_other_hidden_factors_goes_on_without_them():
    from dataclasses import replace

    cfg = replace(CFG, symmetry=False)
    first, _ = _learn(cfg, 6)
    second = Ppo(OneFactor(32), cfg, seed=2)
    second.start_from(first.state())
    old, new = (learner.normalizers["critic"] for learner in (first, second))
    assert len(new.mean) == 3
    np.testing.assert_array_equal(new.mean[:2], old.mean[:2])
    x = np.random.default_rng(0).uniform(-1, 1, (20, 2)).astype(np.float32)
    usual = np.tile(old.mean[2:].astype(np.float32), (20, 1))  # normalised to zero: counts for nothing
    before = first.critic.values(torch.tensor(old(np.concatenate([x, usual], axis=1))))
    after = second.critic.values(torch.tensor(new(np.concatenate([x, usual[:, :1]], axis=1))))
    np.testing.assert_allclose(after, before, atol=1e-5)
    second.iterate()  # and learns
    second.close()
