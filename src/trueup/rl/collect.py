"""Collecting: PPO's policy drives the environment for an iteration and fills a rollout of T steps of N simulations."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueup.policy.normalizer import Normalizer
from trueup.rl.env import Env, Floats, Mirror, Step
from trueup.rl.losses import log_prob
from trueup.rl.nets.networks import Actor
from trueup.rl.stepper import Stepper

STATISTICS_EVERY = 4  # steps between observations that count in the statistics: neighbours are nearly alike


@dataclass
class Rollout:
    """Samples of an iteration, flattened to (T N, ...) for learning; NumPy views of the same memory are (T, N, ...).

    actor, critic, privileged  normalised observations, as the networks saw them
    mean, log_prob, log_std    of the policy that acted
    raw_actor, raw_critic      observations of every fourth step before normalisation, for the running statistics
    timeouts                   places in (T N,) where an episode was truncated, with critic observations of its end
    """

    env: Env
    steps: int
    timeouts: list[NDArray[np.intp]] = field(default_factory=list)
    finals: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        env, size = self.env, self.steps * self.env.nenv
        self.actor = torch.empty(size, env.nactor)
        self.critic = torch.empty(size, env.ncritic)
        self.privileged = torch.empty(size, env.nprivileged)
        self.action, self.mean = torch.empty(size, env.naction), torch.empty(size, env.naction)
        self.log_std = torch.empty(env.naction)
        self.log_prob, self.value = torch.empty(size), torch.empty(size)
        self.advantage, self.returns = torch.empty(size), torch.empty(size)
        self.reward: Floats = np.empty((self.steps, env.nenv), np.float32)
        self.done = np.empty((self.steps, env.nenv), bool)
        kept = -(-self.steps // STATISTICS_EVERY)
        self.raw_actor: Floats = np.empty((kept, env.nenv, env.nactor), np.float32)
        self.raw_critic: Floats = np.empty((kept, env.nenv, env.ncritic), np.float32)

    def at(self, tensor: Tensor, t: int) -> Tensor:
        """Rows of step `t`, a view."""
        return tensor[t * self.env.nenv : (t + 1) * self.env.nenv]

    def restart(self) -> None:
        """Begin the next iteration."""
        self.timeouts.clear()
        self.finals.clear()


class Collector:
    """Collects rollouts and keeps the running statistics of observations: `actor`, `critic` and `privileged`."""

    def __init__(self, stepper: Stepper) -> None:
        self.env, self.stepper = stepper.env, stepper
        widths = {"actor": self.env.nactor, "critic": self.env.ncritic, "privileged": self.env.nprivileged}
        self.normalizers = {name: Normalizer(width) for name, width in widths.items()}
        self.noise = np.empty((self.env.nenv, self.env.naction), np.float32)

    @property
    def actor_normalizer(self) -> Normalizer:
        return self.normalizers["actor"]

    def collect(self, actor: Actor, rollout: Rollout, rng: np.random.Generator) -> dict[str, float]:
        """Fill `rollout`; returns means of the environment's metrics and of the episodes that ended."""
        rollout.restart()
        self.stepper.begin()
        rollout.log_std.copy_(actor.log_std)
        std = torch.exp(actor.log_std)
        for t in range(rollout.steps):
            self._observe(rollout, t)
            action = rollout.at(rollout.action, t)
            mean = actor.forward(rollout.at(rollout.actor, t), rollout.at(rollout.privileged, t))
            rng.standard_normal(out=self.noise, dtype=np.float32)
            torch.addcmul(mean, torch.from_numpy(self.noise), std, out=action)
            rollout.at(rollout.mean, t).copy_(mean)
            rollout.at(rollout.log_prob, t).copy_(log_prob(action, mean, actor.log_std))
            self._store(self.stepper.step(action.numpy()), rollout, t)
        return self.stepper.metrics()

    def _observe(self, rollout: Rollout, t: int) -> None:
        obs, (k, rest) = self.stepper.obs, divmod(t, STATISTICS_EVERY)
        if rest == 0:
            rollout.raw_actor[k], rollout.raw_critic[k] = obs.actor, obs.critic
        for name, normalizer in self.normalizers.items():
            rollout.at(getattr(rollout, name), t).numpy()[:] = normalizer(getattr(obs, name))

    def _store(self, step: Step, rollout: Rollout, t: int) -> None:
        rollout.reward[t], rollout.done[t] = step.reward, step.terminated | step.truncated
        late = step.truncated[step.ended] & ~step.terminated[step.ended]
        if late.any():
            rollout.timeouts.append(t * self.env.nenv + step.ended[late])
            rollout.finals.append(self.normalizers["critic"](step.last.critic[late]))

    def update_statistics(self, rollout: Rollout, *, symmetric: bool) -> None:
        """Take an iteration's observations into the running statistics; the rollout stays as it was normalised."""
        self.normalizers["actor"].update(rollout.raw_actor.reshape(-1, self.env.nactor))
        self.normalizers["critic"].update(rollout.raw_critic.reshape(-1, self.env.ncritic))
        if self.env.nprivileged:
            self.normalizers["privileged"].update(self.stepper.obs.privileged)
        if symmetric and self.env.mirror is not None:
            rules = mirror_rules(self.env.mirror, self.env.nprivileged)
            for name, normalizer in self.normalizers.items():
                make_symmetric(normalizer, *rules[name])


def make_symmetric(normalizer: Normalizer, index: NDArray[np.intp], sign: Floats) -> None:
    """Make the statistics those of the observations together with their mirror images."""
    mean, var = sign * normalizer.mean[index], normalizer.var[index]
    normalizer.var = 0.5 * (normalizer.var + var) + (0.5 * (normalizer.mean - mean)) ** 2
    normalizer.mean = 0.5 * (normalizer.mean + mean)


def mirror_rules(mirror: Mirror, nprivileged: int) -> dict[str, tuple[NDArray[np.intp], Floats]]:
    """Index and sign by name; the hidden factors are the last columns of the critic's observations."""
    start = len(mirror.critic_index) - nprivileged
    factors = mirror.critic_index[start:] - start, mirror.critic_sign[start:]
    return {"actor": mirror[:2], "critic": mirror[2:4], "action": mirror[4:], "privileged": factors}


class Reflection:
    """Mirrors the first half of the rows of a minibatch in place, for robots that have a left and a right.

    This costs nothing and teaches both sides at once (data augmentation of arXiv 2403.04359, without making batches
    larger).
    """

    def __init__(self, mirror: Mirror, nprivileged: int) -> None:
        rules = mirror_rules(mirror, nprivileged).items()
        self._rules = {name: (torch.as_tensor(index), torch.as_tensor(sign)) for name, (index, sign) in rules}

    def __call__(self, **parts: Tensor) -> None:
        """Normalised observations of `actor` and `critic`, the hidden factors `privileged`, and `action`."""
        for name, values in parts.items():
            index, sign = self._rules[name]
            half = values[: len(values) // 2]
            half.copy_(half[:, index].mul_(sign))
