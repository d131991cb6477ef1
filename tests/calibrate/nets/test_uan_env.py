"""UAN's environment: the published reward by hand, rows that begin together, what the net will see."""

from dataclasses import replace

import numpy as np
from residual_logs import residual_log

from trueup.calibrate.nets.uan.rl import PUBLISHED, RlTrainer, UanEnv, uan_reward
from trueup.calibrate.nets.uan.rollout import make_tracks
from trueup.calibrate.nets.uan.uan import UanCfg, make_uan_problem
from trueup.robot.load import load_robot

PENDULUM = load_robot("pendulum")
CFG = UanCfg(method="rl", hidden=(8, 8), windows=4, window_s=0.4, warm_up_s=0.1, steps=5)


def made():
    tracks = make_tracks(PENDULUM, [residual_log(PENDULUM, seed=0, seconds=6.0)])
    return make_uan_problem(PENDULUM, tracks, None, CFG)


def test_the_reward_is_the_published_one():
    got = uan_reward(np.array([0.0, 0.1]), np.array([0.0, 2.0]))
    far = -0.15 + 4 * np.exp(-1) + 4 * np.exp(-3) + 5 * np.exp(-10) + 0.5 * np.exp(-1)
    np.testing.assert_allclose(got, [13.5, far], rtol=1e-5)


def test_windows_end_together_and_begin_anew():
    problem = made()
    env = UanEnv(problem.rollouts, problem.blank, problem.starts, problem.unit, 0, horizon=3)
    assert env.reset().actor.shape == (4, env.nactor)
    action = np.zeros((4, 1), np.float32)
    steps = [env.step(action) for _ in range(4)]
    assert [len(step.ended) for step in steps] == [0, 0, 4, 0]
    assert steps[2].truncated.all()
    assert not steps[2].terminated.any()
    assert len(steps[2].last.critic) == 4


def test_the_net_says_what_the_policy_would_on_what_it_saw():
    problem = made()
    trainer = RlTrainer(*problem, replace(PUBLISHED, steps=12), 2, 0)
    while not trainer.done:
        trainer.iterate()
    net, env, ppo = trainer.result(), trainer.env, trainer.ppo
    seen = env.reset()
    norm = ppo.collector.actor_normalizer(seen.actor)
    import torch

    action = ppo.actor.forward(torch.tensor(norm), torch.empty(4, 0)).numpy()[:, 0]
    limit = np.array(net.spec.limit)
    torque = limit * np.tanh(action * problem.blank.scale / limit)
    forward = problem.rollouts.actuator.forward
    past = np.stack([forward.read(age - 1) for age in net.spec.taps], axis=-1).transpose(1, 2, 0, 3)
    np.testing.assert_allclose(net(past.astype(float))[:, 0], torque, rtol=1e-3, atol=1e-5)
