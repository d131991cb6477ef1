"""The published form of a delta action: an environment that replays a log, and what leaves training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from weak_robot import SHARE, recorded

from trueup.calibrate.delta.config import DeltaCfg
from trueup.calibrate.delta.delta import learn_delta
from trueup.calibrate.delta.ppo import EPISODE_S, PPO, DeltaEnv, as_delta
from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.score import score
from trueup.core.errors import TrueupError
from trueup.rl.ppo import Ppo
from trueup.robot.load import load_robot


def problem_of(share: float = SHARE, seconds: float = 8.0, **cfg: object) -> DeltaProblem:
    settings = replace(DeltaCfg(windows=200, method="ppo"), **cfg)  # type: ignore[arg-type]
    return DeltaProblem(load_robot("so101"), [recorded("so101", seconds, share)], settings)


def play(env: DeltaEnv, action: np.ndarray) -> tuple[list[float], list[float]]:
    """Rewards and errors of an episode under one action."""
    rewards, errors = [], []
    for _ in range(env.horizon):
        step = env.step(action)
        rewards.append(float(step.reward.mean()))
        errors.append(step.metrics["global_error"])
    return rewards, errors


def test_a_replay_of_the_simulators_own_log_earns_everything_and_noise_less() -> None:
    env = DeltaEnv(problem_of(share=1.0), 8)
    nothing = np.zeros((8, env.naction), np.float32)
    rewards, errors = play(env, nothing)
    assert max(errors) < 1e-3
    disturbed, apart = play(env, nothing + 1.0)
    assert apart[-1] > 10 * errors[-1]
    assert sum(disturbed) < 0.5 * sum(rewards)


def test_the_correction_that_theory_asks_for_earns_more_than_none() -> None:
    """delta = -0.35 (q* - q) as an action, from what the policy itself sees."""
    env = DeltaEnv(problem_of(), 16)
    njoint = len(env.net.spec.joint_names)
    nothing, _ = play(env, np.zeros((16, njoint), np.float32))
    obs, ideal, late = env.reset(), [], 0.0
    for _ in range(env.horizon):
        step = env.step((-(1.0 - SHARE) * obs.actor[:, :njoint] / 0.1).astype(np.float32))
        obs, late = step.obs, step.metrics["global_error"]
        ideal.append(float(step.reward.mean()))
    assert sum(ideal) > sum(nothing)
    assert late < 0.002


def test_episodes_last_a_second_and_begin_in_recorded_states_that_are_fitted_to() -> None:
    problem = problem_of()
    env = DeltaEnv(problem, 16)
    assert env.horizon == round(EPISODE_S * problem.shooting.tracks.rate_hz)
    ended = [len(env.step(np.zeros((16, env.naction), np.float32)).ended) for _ in range(2 * env.horizon)]
    assert [k for k, count in enumerate(ended) if count] == [env.horizon - 1, 2 * env.horizon - 1]
    last = 0.75 * len(problem.shooting.tracks.target)
    assert all(row >= 0 and row + env.horizon <= last for row in env.starts)
    rows = env._rows
    np.testing.assert_allclose(env.sim.joint_pos, problem.shooting.tracks.pos[rows], atol=1e-9)


def test_a_log_without_a_second_to_learn_from_is_refused() -> None:
    with pytest.raises(TrueupError, match="stretch of 1 s"):
        DeltaEnv(problem_of(seconds=5.0, holdout_share=0.8), 4)


def test_what_leaves_training_is_the_policys_mean() -> None:
    """Statistics and scale of actions are folded into the net: the same numbers from raw inputs."""
    env = DeltaEnv(problem_of(joints=("elbow_flex", "wrist_flex")), 8)
    assert env.naction == 2
    ppo = Ppo(env, replace(PPO, steps=env.horizon, average=1), 0)
    ppo.iterate()
    obs = env.reset().actor
    net, policy = as_delta(ppo, env.net), ppo.policy()
    ppo.close()
    from trueup.core.layers import forward

    mean = forward(policy.actor, policy.normalizer(obs.copy()))
    found = net(obs.astype(np.float64))[:, list(net.spec.corrected)]
    np.testing.assert_allclose(found, np.tanh(0.1 * mean), atol=1e-6)


@pytest.mark.medium
def test_it_learns_a_weak_servo_though_slower_than_through_the_linearised_simulator() -> None:
    problem = problem_of(ppo_steps=60_000, rounds=2, hidden=())
    learned, fitted = learn_delta(problem), learn_delta(problem.by("shooting"))
    assert learned.corrected.global_mm[-1] < 0.7 * learned.without.global_mm[-1]
    assert fitted.corrected.global_mm[-1] < learned.corrected.global_mm[-1]
    assert learned.round_seconds[-1] > fitted.round_seconds[-1]
    again = score(problem.shooting, learned.net, problem.scored)
    assert again == learned.corrected
