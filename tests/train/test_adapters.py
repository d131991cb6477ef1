"""Other people's learners drive our environments: short, real learning."""

import numpy as np
import pytest
import torch

from trueup.rl.settings import NetCfg, PpoCfg
from trueup.tasks.env import EnvCfg
from trueup.tasks.load import load_task, make_env


def _env(nenv=32):
    return make_env(load_task("pendulum-swingup"), EnvCfg(nenv=nenv, threads=1, seed=0))


@pytest.mark.medium
def test_rsl_rl_learns_in_our_environment(tmp_path):
    from rsl_rl.runners import OnPolicyRunner

    from trueup.train.adapters.rsl_rl import RslRlEnv, rsl_rl_config

    torch.manual_seed(0)
    cfg = PpoCfg(steps=16, gamma=0.98, entropy=0.0, net=NetCfg(actor=(64, 64), critic=(64, 64)))
    env = RslRlEnv(_env(64), episode_steps=150)
    runner = OnPolicyRunner(env, rsl_rl_config(cfg), log_dir=None)
    before = [p.clone() for p in runner.alg.actor.parameters()]
    rewards = []
    plain = env.step

    def counted(actions):
        out = plain(actions)
        rewards.append(float(out[1].mean()))
        return out

    env.step = counted
    runner.learn(30)
    assert any(not torch.equal(a, b) for a, b in zip(before, runner.alg.actor.parameters(), strict=True))
    assert np.mean(rewards[-80:]) > np.mean(rewards[:80]) + 0.005


def test_rsl_rl_gets_time_outs_apart_from_ends():
    from trueup.train.adapters.rsl_rl import RslRlEnv

    env = RslRlEnv(_env(16), episode_steps=150)
    obs = env.get_observations()
    assert set(obs.keys()) >= {"policy", "critic"}
    outs = 0
    for _ in range(150):
        _, reward, done, extras = env.step(torch.zeros(16, 1))
        assert reward.dtype == torch.float32
        outs += int(extras["time_outs"].sum())
        assert bool((done.bool() >= extras["time_outs"]).all())
        assert bool((env.episode_length_buf[done.bool()] == 0).all())
    assert outs >= 16


@pytest.mark.medium
def test_stable_baselines3_learns_in_our_environment():
    from stable_baselines3 import PPO

    from trueup.train.adapters.sb3 import Sb3Env

    model = PPO(
        "MlpPolicy", Sb3Env(_env(), action_limit=2.0), n_steps=32, batch_size=256, n_epochs=4, seed=0, device="cpu"
    )
    before = model.policy.state_dict()["action_net.weight"].clone()
    model.learn(4096)
    assert model.num_timesteps >= 4096
    assert not torch.equal(before, model.policy.state_dict()["action_net.weight"])


def test_stable_baselines3_gets_the_final_observation_of_an_episode():
    from trueup.train.adapters.sb3 import Sb3Env

    env, twin = Sb3Env(_env(16)), _env(16)
    env.reset()
    twin.reset()
    action = np.zeros((16, 1), np.float32)
    ended = 0
    for _ in range(150):
        obs, reward, done, infos = env.step(action)
        step = twin.step(action)
        np.testing.assert_array_equal(obs, step.obs.actor)
        np.testing.assert_array_equal(reward, step.reward)
        for k, row in enumerate(step.ended):
            assert done[row]
            assert infos[row]["TimeLimit.truncated"]
            np.testing.assert_array_equal(infos[row]["terminal_observation"], step.last.actor[k])
            ended += 1
    assert ended >= 16
