"""SAC, soft actor-critic (arXiv 1801.01290, with the temperature learned as in arXiv 1812.05905).

Policy: u = m(s) + sigma(s) eps, t = tanh(u), action = limit * t; twin critics Q_1, Q_2 of (s, t), with targets that
follow them by `tau`. On minibatches of the replay buffer, with a' drawn from the policy at s':

    y         = r + gamma (1 - terminated) (min_k Qtarget_k(s', t') - alpha log p(t'|s'))
    J_Q       = mean_k (Q_k(s, t) - y)^2
    J_policy  = alpha log p(t|s) - min_k Q_k(s, t)
    J_alpha   = -log(alpha) (log p(t|s) + wanted entropy)
    log p(t|s) = sum_j [ -eps^2/2 - log sigma - log(2 pi)/2 - log(1 - t^2) ]

Time-outs do not count as ends. The critics see what PPO's critic sees. Checkpoints hold the replay buffer, so a resumed
run continues bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor

from trueup.policy.net import NetWiring, PolicyNet, read_layers
from trueup.policy.normalizer import Normalizer
from trueup.rl.env import Env, Floats, State, Step, part
from trueup.rl.learner import Learner
from trueup.rl.losses import HALF_LOG_2PI
from trueup.rl.nets.mlp import Mlp, mlp_shapes
from trueup.rl.nets.parameters import Adam, Parameters
from trueup.rl.settings import SacCfg

_LOG_STD = (-5.0, 2.0)  # bounds of log sigma


class ReplayBuffer:
    """The last `size` transitions, by column; the oldest are overwritten."""

    def __init__(self, size: int, widths: Mapping[str, int]) -> None:
        self.columns: dict[str, Floats] = {k: np.zeros((size, n), np.float32) for k, n in widths.items()}
        self.size, self.added = size, 0

    def __len__(self) -> int:
        return min(self.added, self.size)

    def add(self, transitions: Mapping[str, Floats]) -> None:
        """Append (n, width) of every column."""
        count = len(next(iter(transitions.values())))
        rows = (self.added + np.arange(count)) % self.size
        for name, column in self.columns.items():
            column[rows] = transitions[name]
        self.added += count

    def sample(self, count: int, rng: np.random.Generator) -> dict[str, Floats]:
        """`count` transitions, drawn uniformly with replacement."""
        rows = rng.integers(0, len(self), count)
        return {name: column[rows] for name, column in self.columns.items()}

    def state(self) -> State:
        out: State = {name: column[: len(self)] for name, column in self.columns.items()}
        return out | {"added": np.array(self.added)}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.added = int(state["added"])
        for name, column in self.columns.items():
            column[: len(self)] = state[name]


class SquashedActor:
    """Network that gives m and log sigma, (n, 2 naction)."""

    def __init__(self, nobs: int, naction: int, hidden: tuple[int, ...], rows: int) -> None:
        self.naction, sizes = naction, (nobs, *hidden, 2 * naction)
        self.parameters = Parameters(mlp_shapes("actor", sizes))
        self.net = Mlp(self.parameters, "actor", sizes, rows)

    def sample(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions t (n, naction) in [-1, 1] and log p(t|s) (n,)."""
        out = self.net.forward(obs)
        raw = out[:, self.naction :]
        log_std = raw.clamp(*_LOG_STD)
        spread = torch.exp(log_std).mul_(noise)
        squashed = torch.tanh(out[:, : self.naction] + spread)
        slope = (1.0 - squashed.square()).clamp_(min=1e-6)
        log_prob = -(0.5 * noise.square() + log_std + HALF_LOG_2PI + torch.log(slope)).sum(1)
        self._kept = squashed, slope, spread, log_std == raw
        return squashed, log_prob

    def backward(self, grad_squashed: Tensor, weight: float) -> None:
        """Write the gradients of sum(grad_squashed * t) + weight * sum(log p), after `sample`."""
        squashed, slope, spread, free = self._kept
        grad_mean = grad_squashed * slope + 2.0 * weight * squashed
        grad_log_std = (grad_mean * spread - weight) * free
        self.net.backward(torch.cat([grad_mean, grad_log_std], 1))


class TwinCritic:
    """Q_1 and Q_2 of (observation, action)."""

    def __init__(self, nobs: int, naction: int, hidden: tuple[int, ...], rows: int) -> None:
        self.nobs, sizes = nobs, (nobs + naction, *hidden, 1)
        self.parameters = Parameters(mlp_shapes("q0", sizes) | mlp_shapes("q1", sizes))
        self.nets = [Mlp(self.parameters, name, sizes, rows) for name in ("q0", "q1")]

    def forward(self, obs: Tensor, action: Tensor) -> list[Tensor]:
        """Q_1 and Q_2, (n,) each; buffers."""
        joined = torch.cat([obs, action], 1)
        return [net.forward(joined)[:, 0] for net in self.nets]

    def action_gradient(self, q: list[Tensor]) -> Tensor:
        """d min(Q_1, Q_2)/d action (n, naction), after the `forward` that gave `q`; overwrites gradients."""
        first = (q[0] <= q[1]).float()
        grads = [
            net.backward(share[:, None], to_input=True)[:, self.nobs :].clone()
            for net, share in zip(self.nets, (first, 1.0 - first), strict=True)
        ]
        return grads[0] + grads[1]


class Sac(Learner):
    """SAC and the environment it acts in."""

    cfg: SacCfg

    def __init__(self, env: Env, cfg: SacCfg, seed: int = 0) -> None:
        super().__init__(env, seed)
        torch.set_num_threads(1)
        self.cfg = cfg
        rows = max(cfg.batch, env.nenv)
        self.actor = SquashedActor(env.nactor, env.naction, cfg.hidden, rows)
        self.critic = TwinCritic(env.ncritic, env.naction, cfg.hidden, rows)
        self.target = TwinCritic(env.ncritic, env.naction, cfg.hidden, rows)
        self.temperature = Parameters({"log_alpha": (1,)})
        generator = torch.Generator().manual_seed(seed)
        for net in (self.actor.net, *self.critic.nets):
            net.initialize(generator)
        self.target.parameters.flat.copy_(self.critic.parameters.flat)
        self.temperature.flat[0] = math.log(cfg.alpha)
        self.adams = {
            "actor": Adam(self.actor.parameters),
            "critic": Adam(self.critic.parameters),
            "temperature": Adam(self.temperature),
        }
        widths = {"actor": env.nactor, "critic": env.ncritic, "action": env.naction, "reward": 1, "terminated": 1}
        self.buffer = ReplayBuffer(cfg.buffer, widths | {"next_actor": env.nactor, "next_critic": env.ncritic})
        self.normalizers = {"actor": Normalizer(env.nactor), "critic": Normalizer(env.ncritic)}

    @property
    def alpha(self) -> float:
        """Temperature: the weight of the entropy."""
        return math.exp(float(self.temperature.flat[0]))

    def iterate(self) -> dict[str, float]:
        """Collect `steps` control steps into the buffer, then do `updates` gradient steps."""
        rng = self.draw()
        self.stepper.begin()
        for _ in range(self.cfg.steps):
            actor, critic = self.stepper.obs.actor.copy(), self.stepper.obs.critic.copy()
            action = self._explore(rng)
            self._store(actor, critic, action, self.stepper.step(self.cfg.limit * action))
        metrics = self.stepper.metrics()
        if self.buffer.added >= self.cfg.warmup:
            records = [self._update(rng) for _ in range(self.cfg.updates)]
            metrics |= {name: float(np.mean([row[name] for row in records])) for name in records[0]}
        self.iteration += 1
        return metrics

    def policy(self) -> PolicyNet:
        """limit * tanh(m(s)): the actor without its noise."""
        *layers, (weight, bias) = read_layers(self.actor.parameters.arrays(), "actor")
        mean = (weight[: self.env.naction], bias[: self.env.naction])
        return PolicyNet(
            spec=NetWiring(squash=self.cfg.limit), actor=(*layers, mean), normalizer=deepcopy(self.normalizers["actor"])
        )

    def _explore(self, rng: np.random.Generator) -> Floats:
        shape = (self.env.nenv, self.env.naction)
        if self.buffer.added < self.cfg.warmup:
            return rng.uniform(-1.0, 1.0, shape).astype(np.float32)
        obs = torch.tensor(self.normalizers["actor"](self.stepper.obs.actor))
        return self.actor.sample(obs, _noise(rng, shape))[0].numpy()

    def _store(self, actor: Floats, critic: Floats, action: Floats, step: Step) -> None:
        """Add a transition of every simulation; where an episode ended, the next observation is its last."""
        next_actor, next_critic = step.obs.actor.copy(), step.obs.critic.copy()
        next_actor[step.ended], next_critic[step.ended] = step.last.actor, step.last.critic
        self.normalizers["actor"].update(actor)
        self.normalizers["critic"].update(critic)
        self.buffer.add(
            {
                "actor": actor,
                "critic": critic,
                "action": action,
                "reward": step.reward[:, None],
                "terminated": step.terminated[:, None].astype(np.float32),
                "next_actor": next_actor,
                "next_critic": next_critic,
            }
        )

    def _update(self, rng: np.random.Generator) -> dict[str, float]:
        """One gradient step of critics, actor and temperature."""
        batch = self.buffer.sample(self.cfg.batch, rng)
        for name, column in batch.items():
            if (view := name.removeprefix("next_")) in self.normalizers:
                batch[name] = self.normalizers[view](column)
        data = {name: torch.tensor(column) for name, column in batch.items()}
        shape = (self.cfg.batch, self.env.naction)
        q_loss = self._update_critic(data, _noise(rng, shape))
        policy_loss, entropy = self._update_actor(data, _noise(rng, shape))
        self.temperature.grad[0] = entropy - self.cfg.entropy_target * self.env.naction
        self.descend("temperature", self.cfg.learning_rate)
        self.target.parameters.flat.lerp_(self.critic.parameters.flat, self.cfg.tau)
        return {"q_loss": q_loss, "policy_loss": policy_loss, "entropy": entropy, "alpha": self.alpha}

    def _update_critic(self, data: dict[str, Tensor], noise: Tensor) -> float:
        next_action, log_prob = self.actor.sample(data["next_actor"], noise)
        next_q = torch.minimum(*self.target.forward(data["next_critic"], next_action))
        alive = 1.0 - data["terminated"][:, 0]
        wanted = data["reward"][:, 0] + self.cfg.gamma * alive * (next_q - self.alpha * log_prob)
        errors = [q - wanted for q in self.critic.forward(data["critic"], data["action"])]
        for net, error in zip(self.critic.nets, errors, strict=True):
            net.backward((error * (2.0 / len(error)))[:, None])
        self.descend("critic", self.cfg.learning_rate)
        return float(sum(error.square().mean() for error in errors)) / 2.0

    def _update_actor(self, data: dict[str, Tensor], noise: Tensor) -> tuple[float, float]:
        """Returns the loss and the entropy of the policy."""
        action, log_prob = self.actor.sample(data["actor"], noise)
        q = [value.clone() for value in self.critic.forward(data["critic"], action)]
        self.actor.backward(-self.critic.action_gradient(q) / len(action), self.alpha / len(action))
        self.descend("actor", self.cfg.learning_rate)
        return float((self.alpha * log_prob - torch.minimum(*q)).mean()), -float(log_prob.mean())

    # --- checkpoints ---
    def state(self) -> State:
        out = super().state() | self.target.parameters.arrays("target/")
        return out | {f"buffer/{name}": values for name, values in self.buffer.state().items()}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.target.parameters.restore(state, "target/")
        self.buffer.restore(part(state, "buffer/"))


def _noise(rng: np.random.Generator, shape: tuple[int, int]) -> Tensor:
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32))
