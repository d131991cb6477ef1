"""For users of rsl_rl: the same environments behind its VecEnv (rsl-rl-lib 5.5).

    from rsl_rl.runners import OnPolicyRunner
    runner = OnPolicyRunner(RslRlEnv(make_env(load_task("go2-velocity"))), rsl_rl_config(), log_dir)

Observation groups are `policy`, `critic` and, where there are any, `privileged`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from rsl_rl.env import VecEnv
from tensordict import TensorDict
from torch import Tensor

from trueup.rl.env import Env, Obs
from trueup.rl.settings import PpoCfg


class RslRlEnv(VecEnv):
    """An Env behind rsl_rl's interface. The task itself truncates episodes; `episode_length_buf` only reports."""

    def __init__(self, env: Env, episode_steps: int = 1000) -> None:
        self.env = env
        self.num_envs, self.num_actions = env.nenv, env.naction
        self.max_episode_length = episode_steps
        self.episode_length_buf = torch.zeros(env.nenv, dtype=torch.long)
        self.device = "cpu"
        self.cfg: dict[str, Any] = {}
        self._obs = groups(env.reset())

    def get_observations(self) -> TensorDict:
        return self._obs

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Any]]:
        """One control step; rsl_rl bootstraps where `time_outs` says so."""
        step = self.env.step(np.array(actions.detach().numpy(), np.float32, order="C"))
        self._obs = groups(step.obs)
        done = torch.from_numpy(step.terminated | step.truncated)
        self.episode_length_buf += 1
        self.episode_length_buf[done] = 0
        extras = {"time_outs": torch.from_numpy(step.truncated.copy()), "log": dict(step.metrics)}
        return self._obs, torch.from_numpy(step.reward.copy()), done.long(), extras


def rsl_rl_config(cfg: PpoCfg | None = None) -> dict[str, Any]:
    """rsl_rl's configuration with the values of a PpoCfg."""
    cfg = cfg or PpoCfg()
    gaussian = {"class_name": "GaussianDistribution", "init_std": cfg.net.std, "std_type": "log"}

    def model(hidden: tuple[int, ...], distribution: dict[str, Any] | None) -> dict[str, Any]:
        return {
            "class_name": "MLPModel",
            "hidden_dims": list(hidden),
            "activation": "elu",
            "obs_normalization": True,
            "distribution_cfg": distribution,
        }

    return {
        "num_steps_per_env": cfg.steps,
        "save_interval": 100_000,
        "obs_groups": {"actor": ["policy"], "critic": ["critic"]},
        "actor": model(cfg.net.actor, gaussian),
        "critic": model(cfg.net.critic, None),
        "algorithm": {
            "class_name": "PPO",
            "num_learning_epochs": cfg.epochs,
            "num_mini_batches": cfg.minibatches,
            "clip_param": cfg.clip,
            "gamma": cfg.gamma,
            "lam": cfg.lam,
            "entropy_coef": cfg.entropy,
            "learning_rate": cfg.learning_rate,
            "max_grad_norm": cfg.max_gradient,
            "use_clipped_value_loss": True,
            "schedule": "adaptive",
            "desired_kl": cfg.kl_target,
            "rnd_cfg": None,
            "symmetry_cfg": None,
        },
        "logger": "tensorboard",
        "multi_gpu": None,
    }


def groups(obs: Obs) -> TensorDict:
    """Observations by group."""
    found: dict[str, NDArray[np.float32]] = {"policy": obs.actor, "critic": obs.critic}
    if obs.privileged.shape[1]:
        found["privileged"] = obs.privileged
    tensors = {name: torch.from_numpy(values.copy()) for name, values in found.items()}
    return TensorDict(tensors, batch_size=[len(obs.actor)])
