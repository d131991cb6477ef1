"""PPO (arXiv 1707.06347) for many simulations on few cores: collect a rollout, compute advantages, update.

One iteration is `steps` control steps of every simulation, then `epochs` passes over them in `minibatches` parts. The
actor's learning rate is the same for all of them and adapts, from one iteration to the next, to the KL divergence of
the update. (Adapted after every minibatch, as is common, it swings by a factor of fifty, and most updates do nothing.)
Actor and critic share no parameters, so they learn side by side on two cores; what either computes does not depend on
that.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor

from trueup.policy.net import NetWiring, PolicyNet, read_layers
from trueup.policy.normalizer import Normalizer, read_normalizer
from trueup.rl.collect import Collector, Reflection, Rollout
from trueup.rl.env import Env, State
from trueup.rl.learner import Learner
from trueup.rl.losses import adapted_rate, bootstrap_timeouts, divergence, entropy, gae, policy_loss, value_loss
from trueup.rl.nets.networks import Actor, Critic
from trueup.rl.nets.parameters import GROWTH, Adam, Average
from trueup.rl.settings import PpoCfg

KL_STOP = 4.0  # times `kl_target`: the actor's updates end there


class Ppo(Learner):
    """PPO and the environment it acts in."""

    cfg: PpoCfg

    def __init__(self, env: Env, cfg: PpoCfg, seed: int = 0) -> None:
        super().__init__(env, seed)
        torch.set_num_threads(1)  # the simulator's threads and ours share the cores
        self.cfg, self.learning_rate = cfg, cfg.learning_rate
        self.before = 0  # iterations of the runs that this one goes on from
        self.rollout = Rollout(env, cfg.steps)
        self.batch = -(-cfg.steps * env.nenv // cfg.minibatches)
        rows = max(self.batch, env.nenv)
        self.actor = Actor(env.nactor, env.nprivileged, env.naction, cfg.net, rows)
        self.critic = Critic(env.ncritic, cfg.net, rows)
        generator = torch.Generator().manual_seed(seed)
        self.actor.initialize(generator)
        self.critic.net.initialize(generator)
        self.adams = {"actor": Adam(self.actor.parameters), "critic": Adam(self.critic.parameters)}
        self.average = Average(self.actor.parameters, cfg.average)
        self.collector = Collector(self.stepper)
        self.normalizers = self.collector.normalizers
        self._reflection = Reflection(env.mirror, env.nprivileged) if cfg.symmetry and env.mirror is not None else None
        self._second_core = ThreadPoolExecutor(1, initializer=torch.set_num_threads, initargs=(1,))

    def iterate(self) -> dict[str, float]:
        """Collect a rollout, compute advantages, update both networks."""
        rng = self.draw()
        metrics = self.collector.collect(self.actor, self.rollout, rng)
        self.compute_advantages()
        metrics |= self.update(rng)
        self.average.update()
        self.collector.update_statistics(self.rollout, symmetric=self._reflection is not None)
        self.iteration += 1
        return metrics

    def policy(self) -> PolicyNet:
        """The averaged actor, without its noise."""
        arrays, latent = self.average.arrays(), bool(self.cfg.net.latent)
        return PolicyNet(
            spec=NetWiring(kind="privileged" if latent else "plain"),
            actor=read_layers(arrays, "actor"),
            encoder=read_layers(arrays, "encoder"),
            normalizer=deepcopy(self.normalizers["actor"]),
            privileged_normalizer=deepcopy(self.normalizers["privileged"]) if latent else None,
        )

    def compute_advantages(self) -> None:
        """Values of all states, then advantages and returns.

        Inputs of networks are in torch's own memory: the order of sums in a product may depend on alignment.
        """
        rollout, cfg = self.rollout, self.cfg
        rollout.value.copy_(self.critic.values(rollout.critic))
        after = torch.tensor(self.normalizers["critic"](self.stepper.obs.critic))
        next_value = self.critic.values(after).numpy()
        if rollout.timeouts:
            finals = self.critic.values(torch.tensor(np.concatenate(rollout.finals))).numpy()
            bootstrap_timeouts(rollout.reward, np.concatenate(rollout.timeouts), finals, cfg.gamma)
        value = rollout.value.numpy().reshape(rollout.reward.shape)
        advantage, returns = gae(rollout.reward, value, next_value, rollout.done, cfg.gamma, cfg.lam)
        rollout.returns.numpy()[:] = returns.reshape(-1)
        advantage = (advantage - advantage.mean()) / (advantage.std() + np.float32(1e-8))
        rollout.advantage.numpy()[:] = advantage.reshape(-1)

    def update(self, rng: np.random.Generator) -> dict[str, float]:
        """Update both networks on the rollout."""
        minibatches = self._minibatches(rng)
        if self.cfg.side_by_side:
            waiting = self._second_core.submit(self._update_critic, minibatches)
            metrics = self._update_actor(minibatches)
            return metrics | waiting.result()
        return self._update_actor(minibatches) | self._update_critic(minibatches)

    def _minibatches(self, rng: np.random.Generator) -> list[Tensor]:
        """Indices of the samples of each minibatch, in the order in which they are used."""
        size = len(self.rollout.value)
        return [
            part
            for _ in range(self.cfg.epochs)
            for part in torch.split(torch.from_numpy(rng.permutation(size)), self.batch)
        ]

    def _update_actor(self, minibatches: list[Tensor]) -> dict[str, float]:
        rollout, cfg, actor = self.rollout, self.cfg, self.actor
        if self.iteration < cfg.critic_first:
            return {
                "policy_loss": 0.0,
                "kl": 0.0,
                "clipped": 0.0,
                "updates": 0.0,
                "std": float(actor.log_std.exp().mean()),
            }
        records, kl, max_std = [], 0.0, self._max_std()
        for part in minibatches:
            obs, action, old_mean = (x.index_select(0, part) for x in (rollout.actor, rollout.action, rollout.mean))
            privileged = rollout.privileged.index_select(0, part)
            if self._reflection is not None:
                self._reflection(actor=obs, privileged=privileged, action=action)
                self._reflection(action=old_mean)
            mean = actor.forward(obs, privileged)
            own = slice(0 if self._reflection is None else len(mean) // 2, None)  # samples that are not mirrored
            kl = divergence(old_mean[own], rollout.log_std, mean[own], actor.log_std)
            if kl > KL_STOP * cfg.kl_target:
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
            self.descend("actor", self.learning_rate, cfg.max_gradient)
            actor.clamp_std(max_std)
            records.append(np.array([loss, kl, clipped]))
        loss, _, clipped = np.mean(records, axis=0)
        used, self.learning_rate = self.learning_rate, adapted_rate(self.learning_rate, kl, cfg.kl_target)
        return {
            "policy_loss": float(loss),
            "kl": kl,
            "clipped": float(clipped),
            "updates": float(len(records)),
            "learning_rate": used,
            "entropy": entropy(actor.log_std),
            "std": float(torch.exp(actor.log_std).mean()),
        }

    def _max_std(self) -> float:
        """The noise schedule's bound in this iteration: it falls by the same factor in each."""
        if self.cfg.noise_schedule is None:
            return math.inf
        (std, first, last), start = self.cfg.noise_schedule, self.cfg.net.std
        done = self.before + self.iteration
        share = 1.0 if done >= last else max(0.0, (done - first) / max(1, last - first))
        return float(start * (std / start) ** share)

    def _update_critic(self, minibatches: list[Tensor]) -> dict[str, float]:
        rollout, critic, losses = self.rollout, self.critic, []
        for part in minibatches:
            obs, old, returns = (x.index_select(0, part) for x in (rollout.critic, rollout.value, rollout.returns))
            if self._reflection is not None:
                self._reflection(critic=obs)
            value = critic.forward(obs)
            loss, grad = value_loss(value, old, returns, self.cfg.value_clip)
            critic.net.backward(grad[:, None])
            self.descend("critic", self.cfg.critic_learning_rate, self.cfg.max_gradient)
            losses.append(loss)
        return {"value_loss": float(np.mean(losses))}

    # --- checkpoints ---
    def state(self) -> State:
        more = {"learner/learning_rate": np.array(self.learning_rate), "learner/before": np.array(self.before)}
        return super().state() | self.average.arrays("average/") | more

    def restore(self, state: State) -> None:
        super().restore(state)
        self.learning_rate = float(state["learner/learning_rate"])
        self.average.restore(state, "average/")
        self.before = int(state.get("learner/before", 0))
        self.average.count = self.before + self.iteration

    def start_from(self, state: State) -> None:
        """As every learner; noise schedule and averaging go on where that run was.

        A critic of other hidden factors (another calibration) is taken over without them.
        """
        super().start_from(state)
        earlier, shared = read_normalizer(state, "normalizer/critic"), self.env.ncritic - self.env.nprivileged
        if len(earlier.mean) != self.env.ncritic and len(earlier.mean) >= shared > 0:
            self._take_critic(state, earlier, shared)
        self.learning_rate = float(state["learner/learning_rate"])
        self.average.restore(state, "average/")
        self.before = self.average.count = int(state.get("learner/before", 0)) + int(state["learner/iteration"])

    def _take_critic(self, state: State, earlier: Normalizer, shared: int) -> None:
        """Weights and statistics of the first `shared` columns; the factors, which are the last, begin without any.

        A critic that learns anew misleads the actor for a hundred thousand steps, in which a policy that walked falls.
        """
        first, factors = f"{self.critic.net.prefix}/0/weight", self.stepper.obs.critic[:, shared:]
        for name, view in self.critic.parameters.view.items():
            found = torch.from_numpy(np.asarray(state[f"critic/{name}"], np.float32))
            if name == first:
                view.zero_()
                view[:, :shared] = found[:, :shared]
            else:
                view.copy_(found)
        statistics = self.normalizers["critic"]
        statistics.mean = np.concatenate([earlier.mean[:shared], factors.mean(axis=0)])
        statistics.var = np.concatenate([earlier.var[:shared], factors.var(axis=0)])
        statistics.count = earlier.count

    def start_with(self, net: PolicyNet) -> None:
        """Take over a policy alone, with the statistics of its observations.

        It counts as trained for long: what leaves training is averaged over the whole span from the start.
        """
        arrays = {name: values for name, values in net.arrays().items() if name.startswith("actor/")}
        shapes = {name: tuple(view.shape) for name, view in self.actor.parameters.view.items() if name != "log_std"}
        if {name: values.shape for name, values in arrays.items()} != shapes:
            raise ValueError(f"a network of other sizes: {sorted(shapes.values())}")
        for name, values in arrays.items():
            self.actor.parameters.view[name].copy_(torch.from_numpy(np.array(values, np.float32)))
        self.normalizers["actor"].__dict__.update(deepcopy(net.normalizer).__dict__)
        self.average.flat.copy_(self.actor.parameters.flat)
        self.before = self.average.count = GROWTH * self.cfg.average

    def close(self) -> None:
        """End the second thread."""
        self._second_core.shutdown()
