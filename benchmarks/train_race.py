"""Three learners on one task: ours, rsl_rl's PPO driving our environment, Stable-Baselines3's with its own processes.

Each learns in slices of wall clock; between slices, with the clock stopped, its policy without noise is assessed in the
same simulations. Time to a score counts learning alone.
"""

from __future__ import annotations

import contextlib
import io
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch

from trueup.policy.runner import PolicyRunner
from trueup.rl.env import Floats, Obs
from trueup.rl.ppo import Ppo
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task, make_env
from trueup.train.config import default_learner
from trueup.train.play.assess import assess


@dataclass
class RaceCfg:
    """`score` is the mean of the task's score (1 is perfect tracking) at which the clock stops."""

    task: str = "go2-velocity"
    score: float = 0.8
    minutes: float = 20.0
    slice_s: float = 15.0
    episodes: int = 50
    seconds: float = 10.0
    nenv: int = 512
    threads: int = 0
    processes: int = 8


@dataclass
class Contender:
    """`learn` for about some seconds and return the control steps made; `act` without noise."""

    learn: Callable[[float], int]
    act: Callable[[Obs], Floats]

    def __call__(self, obs: Obs) -> Floats:
        return self.act(obs)

    def restart(self, rows: object) -> None:
        """Contenders remember nothing."""


def race(name: str, cfg: RaceCfg, seed: int = 0) -> dict[str, object]:
    """Run one contender until it reaches the score or its time is up."""
    torch.set_num_threads(1)
    contender = CONTENDERS[name](cfg, seed)
    task, spent, steps, curve = load_task(cfg.task), 0.0, 0, []
    env = make_env(task, EnvCfg(nenv=cfg.episodes, seed=99, randomize=False, pushes=False, stagger=False))
    reached = None
    while spent < 60 * cfg.minutes and reached is None:
        start = time.perf_counter()
        steps += contender.learn(cfg.slice_s)
        spent += time.perf_counter() - start
        result = assess(env, contender, task.score, cfg.seconds)
        curve.append([round(spent, 1), steps, round(result.score, 4), result.falls, result.error])
        print(name, curve[-1], flush=True)
        reached = spent / 60 if result.score >= cfg.score else None
    return {"minutes": reached, "spent_minutes": spent / 60, "steps_per_s": steps / spent, "curve": curve}


def _ours(cfg: RaceCfg, seed: int) -> Contender:
    ppo = Ppo(_env(cfg, seed), default_learner(cfg.task), seed)

    def learn(seconds: float) -> int:
        before, end = ppo.steps_done, time.perf_counter() + seconds
        while time.perf_counter() < end:
            ppo.iterate()
        return ppo.steps_done - before

    return Contender(learn, lambda obs: PolicyRunner(ppo.policy())(obs))


def _rsl_rl(cfg: RaceCfg, seed: int) -> Contender:
    from rsl_rl.runners import OnPolicyRunner

    from trueup.train.adapters.rsl_rl import RslRlEnv, groups, rsl_rl_config

    torch.manual_seed(seed)
    ppo = default_learner(cfg.task)
    with contextlib.redirect_stdout(io.StringIO()):
        runner = OnPolicyRunner(RslRlEnv(_env(cfg, seed)), rsl_rl_config(ppo), log_dir=None)

    def learn(seconds: float) -> int:
        steps, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            with contextlib.redirect_stdout(io.StringIO()):
                runner.learn(1)
            steps += ppo.steps * cfg.nenv
        return steps

    def act(obs: Obs) -> Floats:
        with torch.inference_mode():
            return runner.get_inference_policy()(groups(obs)).numpy().copy()

    return Contender(learn, act)


def _sb3(cfg: RaceCfg, seed: int) -> Contender:
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize

    ours = default_learner(cfg.task)
    makers = [_Maker(cfg.task, seed, k) for k in range(cfg.processes)]
    envs = VecNormalize(SubprocVecEnv(makers), gamma=ours.gamma)
    kwargs = {"net_arch": list(ours.net.actor), "log_std_init": math.log(ours.net.std)}
    model = PPO("MlpPolicy", envs, seed=seed, device="cpu", gamma=ours.gamma, policy_kwargs=kwargs)

    def learn(seconds: float) -> int:
        before, end = model.num_timesteps, time.perf_counter() + seconds
        while time.perf_counter() < end:
            model.learn(model.n_steps * cfg.processes, reset_num_timesteps=False)
        return model.num_timesteps - before

    return Contender(learn, lambda obs: model.predict(envs.normalize_obs(obs.actor), deterministic=True)[0])


CONTENDERS = {"trueup": _ours, "rsl_rl": _rsl_rl, "sb3": _sb3}


def _env(cfg: RaceCfg, seed: int) -> TaskEnv:
    return make_env(
        load_task(cfg.task),
        EnvCfg(nenv=cfg.nenv, threads=cfg.threads, seed=seed, randomize=False, pushes=False, training=True),
    )


class _Maker:
    """Makes one environment in a process of its own."""

    def __init__(self, task: str, seed: int, row: int) -> None:
        self.task, self.seed, self.row = task, seed, row

    def __call__(self) -> gymnasium.Env[Any, Any]:
        torch.set_num_threads(1)
        cfg = EnvCfg(
            nenv=1, threads=1, seed=self.seed, first_row=self.row, randomize=False, pushes=False, training=True
        )
        return _One(make_env(load_task(self.task), cfg))


class _One(gymnasium.Env[Any, Any]):
    """One copy of a task as a Gymnasium environment."""

    def __init__(self, env: TaskEnv) -> None:
        self.env = env
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (env.nactor,), np.float32)
        self.action_space = gymnasium.spaces.Box(-10.0, 10.0, (env.naction,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Floats, dict[str, Any]]:
        return self.env.obs.actor[0].copy(), {}  # a row that ended has begun anew already

    def step(self, action: Floats) -> tuple[Floats, float, bool, bool, dict[str, Any]]:
        step = self.env.step(np.asarray(action, np.float32)[None])
        seen = step.last.actor[0] if len(step.ended) else step.obs.actor[0]
        return seen.copy(), float(step.reward[0]), bool(step.terminated[0]), bool(step.truncated[0]), {}
