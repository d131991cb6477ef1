"""UAN by reinforcement, as published (arXiv 2502.10894): PPO on windows of the logs, every joint a row."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.nets.uan.data import Rows
from trueup.calibrate.nets.uan.env import UanEnv
from trueup.calibrate.nets.uan.rollout import Rollouts
from trueup.models.actuator_net import ActuatorNet, Float32, Layer
from trueup.policy.normalizer import EPS
from trueup.rl.ppo import Ppo
from trueup.rl.settings import NetCfg, PpoCfg

FloatArray = NDArray[np.float64]
State = dict[str, NDArray[np.generic]]
_UNIT_RAD = 0.05  # what the base leaves is brought to the middle of the published kernels


@dataclass(frozen=True, kw_only=True)
class RlCfg:
    """Settings as published; horizon in steps. `std` of the first actions, in torque scales."""

    iterations: int = 200
    horizon: int = 96
    epochs: int = 5
    gamma: float = 0.995
    lam: float = 0.95
    kl_target: float = 0.01
    critic_rate: float = 5e-4
    std: float = 0.3


class RlTrainer:
    """Learns a residual net by PPO; `iterate` until `done`."""

    def __init__(
        self, rollouts: Rollouts, blank: ActuatorNet, starts: Rows, unit: FloatArray, cfg: RlCfg, seed: int
    ) -> None:
        self.blank, self.cfg = blank, cfg
        self.env = UanEnv(rollouts, blank, starts, unit / _UNIT_RAD, seed, horizon=cfg.horizon)
        net = NetCfg(actor=blank.hidden, critic=blank.hidden, std=cfg.std)
        ppo = PpoCfg(
            steps=cfg.horizon,
            epochs=cfg.epochs,
            gamma=cfg.gamma,
            lam=cfg.lam,
            entropy=0.0,
            kl_target=cfg.kl_target,
            critic_learning_rate=cfg.critic_rate,
            net=net,
        )
        self.ppo = Ppo(self.env, ppo, seed)
        shape = (blank.spec.njoint, len(blank.spec.signals))
        self.low: Float32 = np.full(shape, np.inf, np.float32)
        self.high: Float32 = np.full(shape, -np.inf, np.float32)
        self.metrics: dict[str, float] = {}

    @property
    def progress(self) -> float:
        """Share that is done."""
        return self.ppo.iteration / self.cfg.iterations

    @property
    def done(self) -> bool:
        return self.ppo.iteration >= self.cfg.iterations

    def iterate(self) -> None:
        """Collect a rollout, compute advantages, update."""
        self.metrics = self.ppo.iterate()
        newest = self.env.rollouts.actuator.forward.read(0).transpose(1, 2, 0)
        self.low = np.minimum(self.low, newest.min(axis=0))
        self.high = np.maximum(self.high, newest.max(axis=0))

    def result(self) -> ActuatorNet:
        """The mean action as a net; the learner's own normalisation is folded into the first layer."""
        norm, actor = self.ppo.collector.actor_normalizer, self.ppo.actor.net
        mean, std = norm.mean, np.sqrt(norm.var) + EPS
        layers: list[Layer] = [
            (w.numpy().copy(), b.numpy().copy()) for w, b in zip(actor.weight, actor.bias, strict=True)
        ]
        weight = layers[0][0] / std
        layers[0] = (weight.astype(np.float32), (layers[0][1] - weight @ mean).astype(np.float32))
        context = np.eye(self.blank.spec.njoint, dtype=np.float32)
        if not self.blank.context.shape[1]:
            context = context[:, :0]
        return replace(self.blank, layers=(tuple(layers),) * len(self.blank.spec.groups), context=context)

    def state(self) -> State:
        """What a resumed training needs."""
        return {**self.ppo.state(), "range": np.stack([self.low, self.high])}

    def restore(self, state: State) -> None:
        """Go on from `state`; windows begin anew."""
        self.ppo.restore({name: value for name, value in state.items() if name != "range"})
        self.low, self.high = np.array(state["range"], np.float32)
