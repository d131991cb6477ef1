"""UAN by reinforcement learning, as published (arXiv 2502.10894): PPO on windows of the logs.

In its environment every joint of every window is a row. A row sees the last steps of its own position and velocity
error, and its joint's number as a context; its action is a residual torque. All joints of a window share one simulation
and begin together at a recorded state. Reward, with dq the simulated minus the recorded position:

    r = -1.5 |dq| + 4 exp(-100 dq^2) + 4 exp(-300 dq^2) + 5 exp(-1000 dq^2) + 0.5 exp(-0.5 |a_t - a_{t-1}|)

dq in rad as published, or in multiples of `unit`: the error of a fitted simulator is a few milliradians, where those
kernels are flat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.nets.net_learner import State
from trueup.calibrate.nets.uan.rollout import Rollouts, Rows, no_range, wider, with_range
from trueup.core.arrays import FloatArray
from trueup.core.layers import Layer
from trueup.core.rows import RowRandom
from trueup.models.actuator_net import ActuatorNet, Float32
from trueup.policy.normalizer import EPS
from trueup.rl.env import Obs, Step
from trueup.rl.ppo import Ppo
from trueup.rl.settings import NetCfg, PpoCfg

_UNIT_RAD = 0.05  # the base's error is scaled to the middle of the published kernels
_STD = 0.3  # of the first actions, in torque scales
PUBLISHED = PpoCfg(steps=96, epochs=5, gamma=0.995, lam=0.95, entropy=0.0, kl_target=0.01, critic_learning_rate=5e-4)


def names_of(net: ActuatorNet) -> Float32:
    """(njoint, njoint) one-hot joint numbers as contexts, or (njoint, 0) for a net without contexts."""
    return np.eye(net.spec.njoint, dtype=np.float32)[:, : net.spec.njoint if net.context.shape[1] else 0]


class UanEnv:
    """`nwindow` x `njoint` rows on a batch of windows; one step is one row of the log."""

    mirror = None

    def __init__(
        self, rollouts: Rollouts, blank: ActuatorNet, starts: Rows, unit: FloatArray, seed: int, *, horizon: int
    ) -> None:
        """`unit` (njoint,): rad that count as one in the reward's kernels. The net sees past rows only: taps > 0."""
        self.rollouts, self.blank, self.starts, self._unit = rollouts, blank, starts, unit
        spec, sim = blank.spec, rollouts.sim
        self.control_dt, self.naction, self._horizon = sim.control_dt, 1, horizon
        self.nenv = rollouts.nwindow * spec.njoint
        self._names: Float32 = np.tile(names_of(blank), (rollouts.nwindow, 1))
        self.nactor = spec.ninput + self._names.shape[1]
        self.ncritic, self.nprivileged = self.nactor + 2, 0
        self._random = RowRandom(seed, "uan start", rollouts.nwindow)
        self._rows = np.zeros(rollouts.nwindow, np.intp)
        self._age = 0
        self._action = np.zeros((self.nenv, 1), np.float32)
        group = np.empty(spec.njoint, np.intp)
        for k, joints in enumerate(spec.groups):
            group[list(joints)] = k
        self._mean, self._std = blank.mean[group][:, :, None], blank.std[group][:, :, None]

    def reset(self) -> Obs:
        """Start all windows at random rows."""
        picks = (self._random.uniform(1)[:, 0] * len(self.starts)).astype(np.intp)
        self._rows[:] = self.starts[np.minimum(picks, len(self.starts) - 1)]
        self.rollouts.actuator.seen = []
        self.rollouts.start(self._rows)
        self._age = 0
        self._action[:] = 0.0
        return self._see()

    def step(self, action: Float32) -> Step:
        """Add the torques of all rows for one row of the log."""
        rollouts, limit = self.rollouts, np.array(self.blank.spec.limit)
        wanted = action.reshape(rollouts.nwindow, -1) * self.blank.scale
        rollouts.actuator.held = limit * np.tanh(wanted / limit)
        rollouts.step(self._rows + self._age)
        rollouts.actuator.seen.clear()
        self._age += 1
        error = np.clip(np.nan_to_num(rollouts.error(self._rows + self._age)), -1.0, 1.0)
        reward = uan_reward((error / self._unit).reshape(-1), (action - self._action)[:, 0])
        self._action[:] = action
        over = self._age >= self._horizon
        ended, none = np.arange(self.nenv if over else 0), np.zeros(self.nenv, bool)
        obs = self._see()
        last = Obs(*(part[ended] for part in obs))
        if over:
            obs = self.reset()
        metrics = {"error_mrad": 1e3 * float(np.sqrt((error**2).mean()))}
        return Step(obs, reward, none, none | over, ended, last, metrics)

    def _see(self) -> Obs:
        """Present observation: the history, then the joint's context; the critic also sees the error itself."""
        rollouts, spec = self.rollouts, self.blank.spec
        forward = rollouts.actuator.forward
        past = np.stack([forward.read(age - 1) for age in spec.taps], axis=-1)  # (nsignal, nsim, njoint, ntap)
        inputs = (past.transpose(1, 2, 0, 3) - self._mean) / self._std
        actor = np.concatenate([inputs.reshape(self.nenv, -1), self._names], axis=1).astype(np.float32)
        error = rollouts.error(self._rows + self._age) / self._unit
        velocity = rollouts.sim.joint_vel - rollouts.tracks.vel[self._rows + self._age]
        extra = np.stack([error.reshape(-1), velocity.reshape(-1)], axis=1)
        critic = np.concatenate([actor, np.clip(extra, -50, 50)], axis=1).astype(np.float32)
        return Obs(actor, critic, np.zeros((self.nenv, 0), np.float32))

    def state(self) -> dict[str, NDArray[np.generic]]:
        """State of the random numbers: a resumed training begins new windows."""
        return {"random": self._random.counter.copy()}

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        self._random.counter[...] = state["random"]
        self.reset()


def uan_reward(off: FloatArray, change: NDArray[np.floating]) -> Float32:
    """Reward (rows,) of position errors and changes of action, as published."""
    kernels = sum(weight * np.exp(-rate * off**2) for weight, rate in ((4.0, 100.0), (4.0, 300.0), (5.0, 1000.0)))
    reward = -1.5 * np.abs(off) + kernels + 0.5 * np.exp(-0.5 * np.abs(change))
    return np.asarray(reward, np.float32)


class RlTrainer:
    """Learns a residual net by PPO; `iterate` until `done`. An episode is as long as an iteration's rollout."""

    def __init__(
        self,
        rollouts: Rollouts,
        blank: ActuatorNet,
        starts: Rows,
        unit: FloatArray,
        ppo: PpoCfg,
        iterations: int,
        seed: int,
    ) -> None:
        self.blank, self.iterations = blank, iterations
        self.env = UanEnv(rollouts, blank, starts, unit / _UNIT_RAD, seed, horizon=ppo.steps)
        net = NetCfg(actor=blank.hidden, critic=blank.hidden, std=_STD)
        self.ppo = Ppo(self.env, replace(ppo, net=net), seed)
        self.range = no_range(blank.spec)

    @property
    def progress(self) -> float:
        """Share that is done."""
        return self.ppo.iteration / self.iterations

    @property
    def done(self) -> bool:
        return self.ppo.iteration >= self.iterations

    def iterate(self) -> None:
        """Collect rollouts, compute advantages, update."""
        self.ppo.iterate()
        self.range = wider(self.range, self.env.rollouts.actuator.forward.read(0).transpose(1, 2, 0))

    def result(self) -> ActuatorNet:
        """The mean action as a net; the learner's own normalisation is folded into the first layer."""
        norm, actor = self.ppo.collector.actor_normalizer, self.ppo.actor.net
        mean, std = norm.mean, np.sqrt(norm.var) + EPS
        layers: list[Layer] = [
            (w.numpy().copy(), b.numpy().copy()) for w, b in zip(actor.weight, actor.bias, strict=True)
        ]
        weight = layers[0][0] / std
        layers[0] = (weight.astype(np.float32), (layers[0][1] - weight @ mean).astype(np.float32))
        layers_of_all = (tuple(layers),) * len(self.blank.spec.groups)
        return with_range(replace(self.blank, layers=layers_of_all, context=names_of(self.blank)), self.range)

    def state(self) -> State:
        """What a resumed training needs."""
        return {**self.ppo.state(), "range": self.range}

    def restore(self, state: State) -> None:
        """Continue from `state`; windows begin anew."""
        self.ppo.restore({name: value for name, value in state.items() if name != "range"})
        self.range = np.array(state["range"], np.float32)
