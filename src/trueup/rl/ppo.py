"""PPO (arXiv 1707.06347) for many simulations on few cores: collect, judge, learn; nothing else.

One iteration is `steps` control steps of every copy, then `epochs` passes over them in `minibatches` parts. The actor's
step size is the same for all of them and follows, from one iteration to the next, how far the policy moved. (Changed
after every minibatch, as is common, it swings by a factor of fifty, and most steps move nothing.) Actor and critic
share nothing, so they learn side by side on two cores; what either computes does not depend on that. Every iteration
draws from a generator made from (seed, iteration): a checkpoint needs no random state.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from trueup.rl.collect import Collector, NonFiniteError
from trueup.rl.env import Env, Floats, State
from trueup.rl.gae import bootstrap_timeouts, gae
from trueup.rl.losses import adapted_rate, divergence, entropy, policy_loss, value_loss
from trueup.rl.mirror import Reflection
from trueup.rl.nets.networks import Actor, Critic
from trueup.rl.nets.parameters import Adam, Average, Parameters
from trueup.rl.rollout import Rollout
from trueup.rl.settings import PpoCfg

BRAKE = 4.0  # times the divergence aimed at: far enough for one iteration


class Ppo:
    """A learner and the environment it acts in; `iterate` until satisfied."""

    def __init__(self, env: Env, cfg: PpoCfg, seed: int = 0) -> None:
        torch.set_num_threads(1)  # the simulator's threads and ours share the cores
        self.env, self.cfg, self.seed, self.iteration, self.rate = env, cfg, seed, 0, cfg.rate
        self.steps = cfg.steps
        self.rollout = Rollout(env, cfg.steps)
        self.batch = -(-cfg.steps * env.nenv // cfg.minibatches)
        rows = max(self.batch, env.nenv)
        self.actor = Actor(env.nactor, env.nprivileged, env.naction, cfg.net, rows)
        self.critic = Critic(env.ncritic, cfg.net, rows)
        generator = torch.Generator().manual_seed(seed)
        self.actor.initialize(generator)
        self.critic.initialize(generator)
        self.actor_adam, self.critic_adam = Adam(self.actor.parameters), Adam(self.critic.parameters)
        self.average = Average(self.actor.parameters, cfg.average)
        self.collector = Collector(env)
        self._reflection = (
            Reflection(env.mirror, env.nprivileged) if cfg.symmetry and env.mirror is not None else None
        )
        self._second_core = ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,))

    @property
    def steps_done(self) -> int:
        """Control steps of all copies together."""
        return self.iteration * self.steps * self.env.nenv

    def actions(self, t: int) -> Floats:
        """What was done at step `t` of this iteration."""
        return self.rollout.at(self.rollout.action, t).numpy().copy()

    def iterate(self) -> dict[str, float]:
        """Collect, judge, learn; returns what is worth plotting."""
        rng = np.random.default_rng([self.seed, self.iteration])
        metrics = self.collector.collect(self.actor, self.rollout, rng)
        self.judge()
        metrics |= self.learn(rng)
        self.average.take()
        self.collector.learn_statistics(self.rollout, symmetric=self._reflection is not None)
        self.iteration += 1
        return metrics

    def judge(self) -> None:
        """Values of all states, then advantages and returns.

        What enters a network is in torch's own memory: the order of sums in a product may depend on alignment.
        """
        rollout, cfg, collector = self.rollout, self.cfg, self.collector
        shape = rollout.reward.shape
        rollout.value.copy_(self.critic.values(rollout.critic))
        after = torch.tensor(collector.critic_normalizer(collector.obs.critic))
        next_value = self.critic.values(after).numpy()
        if rollout.timeouts:
            finals = self.critic.values(torch.tensor(np.concatenate(rollout.finals))).numpy()
            bootstrap_timeouts(rollout.reward, np.concatenate(rollout.timeouts), finals, cfg.gamma)
        value = rollout.value.numpy().reshape(shape)
        advantage, returns = gae(rollout.reward, value, next_value, rollout.done, cfg.gamma, cfg.lam)
        rollout.returns.numpy()[:] = returns.reshape(-1)
        advantage = (advantage - advantage.mean()) / (advantage.std() + np.float32(1e-8))
        rollout.advantage.numpy()[:] = advantage.reshape(-1)

    def learn(self, rng: np.random.Generator) -> dict[str, float]:
        """Train both networks on the rollout."""
        parts = self._parts(rng)
        if self.cfg.side_by_side:
            waiting = self._second_core.submit(self._learn_critic, parts)
            metrics = self._learn_actor(parts)
            return metrics | waiting.result()
        return self._learn_actor(parts) | self._learn_critic(parts)

    def _parts(self, rng: np.random.Generator) -> list[Tensor]:
        """Indices of the samples of each minibatch, in the order in which they are learned."""
        size = len(self.rollout.value)
        return [
            part
            for _ in range(self.cfg.epochs)
            for part in torch.split(torch.from_numpy(rng.permutation(size)), self.batch)
        ]

    def _learn_actor(self, parts: list[Tensor]) -> dict[str, float]:
        rollout, cfg, actor = self.rollout, self.cfg, self.actor
        records, kl, most = [], 0.0, self._most_noise()
        for part in parts:
            obs, action, old_mean = (
                x.index_select(0, part) for x in (rollout.actor, rollout.action, rollout.mean)
            )
            privileged = rollout.privileged.index_select(0, part)
            if self._reflection is not None:
                self._reflection.actor(obs, privileged, action, old_mean)
            mean = actor.forward(obs, privileged)
            own = slice(0 if self._reflection is None else len(mean) // 2, None)  # what was really done
            kl = divergence(old_mean[own], rollout.log_std, mean[own], actor.log_std)
            if kl > BRAKE * cfg.kl_target:
                break
            loss, grad_mean, grad_log_std, clipped = policy_loss(
                action,
                rollout.advantage.index_select(0, part),
                rollout.log_prob.index_select(0, part),
                mean,
                actor.log_std,
                clip=cfg.clip,
                entropy_weight=cfg.entropy,
            )
            actor.backward(grad_mean, grad_log_std)
            self._move(actor.parameters, self.actor_adam, self.rate, "the actor's gradient")
            actor.keep_exploring(most)
            records.append(np.array([loss, kl, clipped]))
        loss, _, clipped = np.mean(records, axis=0)
        used, self.rate = self.rate, adapted_rate(self.rate, kl, cfg.kl_target)
        return {
            "policy_loss": float(loss),
            "kl": kl,
            "clipped": float(clipped),
            "updates": float(len(records)),
            "rate": used,
            "entropy": entropy(actor.log_std),
            "std": float(torch.exp(actor.log_std).mean()),
        }

    def _most_noise(self) -> float:
        """The bound of the standard deviation in this iteration: it falls by the same factor every time."""
        if self.cfg.quiet is None:
            return math.inf
        (std, first, last), start = self.cfg.quiet, self.cfg.net.std
        share = min(1.0, max(0.0, (self.iteration - first) / (last - first)))
        return float(start * (std / start) ** share)

    def _learn_critic(self, parts: list[Tensor]) -> dict[str, float]:
        rollout, critic, losses = self.rollout, self.critic, []
        for part in parts:
            obs, old, returns = (
                x.index_select(0, part) for x in (rollout.critic, rollout.value, rollout.returns)
            )
            if self._reflection is not None:
                self._reflection.critic(obs)
            value = critic.forward(obs)
            loss, grad = value_loss(value, old, returns, self.cfg.value_clip)
            critic.net.backward(grad[:, None])
            self._move(critic.parameters, self.critic_adam, self.cfg.critic_rate, "the critic's gradient")
            losses.append(loss)
        return {"value_loss": float(np.mean(losses))}

    def _move(self, parameters: Parameters, adam: Adam, rate: float, what: str) -> None:
        norm = parameters.clip_gradient(self.cfg.max_gradient)
        if not np.isfinite(norm):
            raise NonFiniteError(what, self.rollout.steps, np.empty(0, np.intp))
        adam.step(rate)

    # --- checkpoints ---
    def state(self) -> State:
        """Everything needed to go on bit for bit, as named arrays."""
        out = self.collector.state()
        for name, network, adam in self._learners():
            out |= {f"{name}/{key}": value.numpy() for key, value in network.view.items()}
            out[f"{name}_adam/mean"], out[f"{name}_adam/square"] = adam.mean.numpy(), adam.square.numpy()
            out[f"{name}_adam/steps"] = np.array(adam.steps)
        out |= {f"average/{key}": value.numpy() for key, value in self.average.view.items()}
        return out | {"learner/iteration": np.array(self.iteration), "learner/rate": np.array(self.rate)}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.collector.restore(state)
        for name, network, adam in self._learners():
            for key, view in network.view.items():
                view.copy_(torch.from_numpy(state[f"{name}/{key}"]))
            adam.mean.copy_(torch.from_numpy(state[f"{name}_adam/mean"]))
            adam.square.copy_(torch.from_numpy(state[f"{name}_adam/square"]))
            adam.steps = int(state[f"{name}_adam/steps"])
        self.average.restore(state, int(state["learner/iteration"]))
        self.iteration, self.rate = int(state["learner/iteration"]), float(state["learner/rate"])

    def _learners(self) -> list[tuple[str, Parameters, Adam]]:
        return [
            ("actor", self.actor.parameters, self.actor_adam),
            ("critic", self.critic.parameters, self.critic_adam),
        ]

    def close(self) -> None:
        """End the second thread."""
        self._second_core.shutdown()
