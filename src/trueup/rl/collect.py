"""Acting: the policy drives the environment for an iteration and fills a rollout."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from trueup.policy.normalizer import Normalizer
from trueup.rl.env import Env, Floats, Obs, State, Step
from trueup.rl.losses import log_prob
from trueup.rl.mirror import factor_mirror
from trueup.rl.nets.networks import Actor
from trueup.rl.rollout import STATISTICS_EVERY, Rollout


class NonFiniteError(ArithmeticError):
    """A number that is not finite, found in the step where it appeared."""

    def __init__(self, what: str, step: int, rows: NDArray[np.intp]) -> None:
        self.what, self.step, self.rows = what, step, rows
        super().__init__(f"{what} is not finite at step {step} of the iteration, rows {rows[:8].tolist()}")


class Collector:
    """Holds where the environment stands between iterations: observations and running episodes."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self.actor_normalizer, self.critic_normalizer = Normalizer(env.nactor), Normalizer(env.ncritic)
        self.privileged_normalizer = Normalizer(env.nprivileged)
        self.obs: Obs = env.reset()
        self.episode_return, self.episode_length = np.zeros(env.nenv), np.zeros(env.nenv, np.int64)
        self.noise = np.empty((env.nenv, env.naction), np.float32)

    def collect(self, actor: Actor, rollout: Rollout, rng: np.random.Generator) -> dict[str, float]:
        """Fill `rollout`; returns means of the environment's metrics and of the episodes that ended."""
        rollout.restart()
        rollout.log_std.copy_(actor.log_std)
        std, sums, ended = torch.exp(actor.log_std), dict[str, float](), list[tuple[float, float]]()
        for t in range(rollout.steps):
            self._see(rollout, t)
            action = rollout.at(rollout.action, t)
            mean = actor.forward(rollout.at(rollout.actor, t), rollout.at(rollout.privileged, t))
            rng.standard_normal(out=self.noise, dtype=np.float32)
            torch.addcmul(mean, torch.from_numpy(self.noise), std, out=action)
            rollout.at(rollout.mean, t).copy_(mean)
            rollout.at(rollout.log_prob, t).copy_(log_prob(action, mean, actor.log_std))
            numbers = action.numpy().copy()
            check_finite("the policy's action", numbers, t)
            step = self.env.step(numbers)
            ended += self._take(step, rollout, t)
            for name, number in step.metrics.items():
                sums[name] = sums.get(name, 0.0) + number
        means = {name: number / rollout.steps for name, number in sums.items()}
        return {"reward": float(rollout.reward.mean()), **means, **_episodes(ended)}

    def _see(self, rollout: Rollout, t: int) -> None:
        k, rest = divmod(t, STATISTICS_EVERY)
        if rest == 0:
            rollout.raw_actor[k], rollout.raw_critic[k] = self.obs.actor, self.obs.critic
        rollout.at(rollout.actor, t).numpy()[:] = self.actor_normalizer(self.obs.actor)
        rollout.at(rollout.critic, t).numpy()[:] = self.critic_normalizer(self.obs.critic)
        rollout.at(rollout.privileged, t).numpy()[:] = self.privileged_normalizer(self.obs.privileged)

    def _take(self, step: Step, rollout: Rollout, t: int) -> list[tuple[float, float]]:
        check_finite("the reward", step.reward, t)
        check_finite("the actor's observation", step.obs.actor, t)
        check_finite("the critic's observation", step.obs.critic, t)
        rollout.reward[t], rollout.done[t] = step.reward, step.terminated | step.truncated
        self.obs = step.obs
        self.episode_return += step.reward
        self.episode_length += 1
        rows = step.ended
        if not len(rows):
            return []
        late = step.truncated[rows] & ~step.terminated[rows]
        if late.any():
            rollout.add_timeouts(t, rows[late], self.critic_normalizer(step.last.critic[late]))
        episodes = list(zip(self.episode_return[rows], self.episode_length[rows], strict=True))
        self.episode_return[rows], self.episode_length[rows] = 0.0, 0
        return episodes

    def learn_statistics(self, rollout: Rollout, *, symmetric: bool) -> None:
        """Take an iteration's observations into the running statistics; what was collected stays as it was seen."""
        self.actor_normalizer.update(rollout.raw_actor.reshape(-1, self.env.nactor))
        self.critic_normalizer.update(rollout.raw_critic.reshape(-1, self.env.ncritic))
        if self.env.nprivileged:
            self.privileged_normalizer.update(self.obs.privileged)
        mirror = self.env.mirror
        if symmetric and mirror is not None:
            make_symmetric(self.actor_normalizer, mirror.actor_index, mirror.actor_sign)
            make_symmetric(self.critic_normalizer, mirror.critic_index, mirror.critic_sign)
            make_symmetric(self.privileged_normalizer, *factor_mirror(mirror, self.env.nprivileged))

    def state(self) -> State:
        """Everything needed to go on bit for bit."""
        out: State = {f"env/{name}": value for name, value in self.env.state().items()}
        out |= {f"obs/{name}": getattr(self.obs, name) for name in _VIEWS}
        for name in _VIEWS:
            out |= {
                f"normalizer/{name}/{key}": value for key, value in self._normalizer(name).state().items()
            }
        return out | {"episode/return": self.episode_return, "episode/length": self.episode_length}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.env.restore(part(state, "env/"))
        self.obs = Seen(**part(state, "obs/"))  # type: ignore[arg-type]
        for name in _VIEWS:
            self._normalizer(name).restore(part(state, f"normalizer/{name}/"))  # type: ignore[arg-type]
        self.episode_return = np.array(state["episode/return"], np.float64)
        self.episode_length = np.array(state["episode/length"], np.int64)

    def _normalizer(self, name: str) -> Normalizer:
        found: Normalizer = getattr(self, f"{name}_normalizer")
        return found


_VIEWS = ("actor", "critic", "privileged")


class Seen:
    """Observations from a checkpoint."""

    def __init__(self, actor: Floats, critic: Floats, privileged: Floats) -> None:
        self.actor, self.critic, self.privileged = actor, critic, privileged


def part(state: State, prefix: str) -> State:
    """The entries whose name starts with `prefix`, without it."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}


def check_finite(what: str, values: Floats, step: int) -> None:
    """Raise NonFiniteError if a row holds a number that is not finite."""
    if np.isfinite(values).all():
        return
    bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
    raise NonFiniteError(what, step, np.flatnonzero(bad))


def make_symmetric(normalizer: Normalizer, index: NDArray[np.intp], sign: Floats) -> None:
    """Statistics of what was seen together with its mirror image."""
    mean, var = sign * normalizer.mean[index], normalizer.var[index]
    normalizer.var = 0.5 * (normalizer.var + var) + (0.5 * (normalizer.mean - mean)) ** 2
    normalizer.mean = 0.5 * (normalizer.mean + mean)


def _episodes(ended: list[tuple[float, float]]) -> dict[str, float]:
    if not ended:
        return {}
    returns, lengths = np.array(ended).T
    return {"episode_return": float(returns.mean()), "episode_length": float(lengths.mean())}
