"""UAN by gradient: the engine rolls out, and a linear model of the joints carries the error back to the net's torques.

Each iteration runs windows from recorded states under the present net, takes the squared position error after a
warm-up, in units of the base simulator's error, and moves the weights by Adam. Windows at the end of every log are held
out: the weights that did best there are the result, the base itself (a net of zeros) among the candidates.

Only the derivative of a rollout is modelled: around the motion, with the servo's own gains,

    M dv/dt = dtau - Kp dq - (Kd + D) dv,    dq/dt = v        (M of the window's pose, exact over one step of the net)

so that x_{t+1} = A x_t + B tau_t in deviations x = (dq, dv). The net feeds back too: tau_t depends on signals at t,
t - 1, ... The adjoint runs backwards through both,

    mu_t = B' lambda_{t+1},    lambda_t = dL/dx_t + A' lambda_{t+1} + sum_k C' J_{t+k,k}' mu_{t+k}

J_{t,k} the net's derivative with respect to signals k steps old, C the signals' derivative with respect to x; mu_t is
dL/dtau_t. Dry friction is left out of A: it only makes the true derivative smaller where a joint sticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from trueup.calibrate.nets.net_learner import NetLearner, State
from trueup.calibrate.nets.uan.rollout import Rollouts, Rows, SignalRange, joint_inertia
from trueup.models.actuator_net import ActuatorNet, Float32, NetSpec
from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GradientCfg:
    """Settings of the descent.

    rate   of Adam at the start; a cosine schedule takes it to a fiftieth
    decay  of the weights
    check_every  iterations between evaluations on the held-out windows
    """

    iterations: int = 240
    rate: float = 3e-3
    decay: float = 1e-2
    check_every: int = 20


class StartRows(NamedTuple):
    """Start rows of windows to draw from and of held-out windows; rows of the warm-up."""

    train: Rows
    held: Rows
    warm_up: int


class GradientTrainer:
    """Learns a residual net; `iterate` until `done`. `unit` (njoint,) rad: what an error is measured in."""

    def __init__(
        self, rollouts: Rollouts, learner: NetLearner, windows: StartRows, unit: FloatArray, cfg: GradientCfg, seed: int
    ) -> None:
        self.rollouts, self.learner, self.windows = rollouts, learner, windows
        self.unit, self.cfg, self.seed, self.iteration = unit, cfg, seed, 0
        self.best, self.best_loss = learner.copy(), np.inf
        self.range = SignalRange(learner.net.spec)

    @property
    def progress(self) -> float:
        """Share that is done."""
        return self.iteration / self.cfg.iterations

    @property
    def done(self) -> bool:
        return self.iteration >= self.cfg.iterations

    def iterate(self) -> float:
        """One step; returns the loss of its windows."""
        cfg, rollouts = self.cfg, self.rollouts
        if self.iteration % cfg.check_every == 0:
            self.check()
        rng = np.random.default_rng([self.seed, self.iteration])
        rows = np.sort(rng.choice(self.windows.train, rollouts.nwindow))
        rollout = rollouts.run(self.learner.actuator(), rows)
        self.range.widen(*rollout.range())
        inputs = rollout.inputs(self.learner.net.spec)
        loss, loss_grad = self._loss(rollout.error, len(inputs))
        torque_grad = self._torque_gradient(rows, inputs, loss_grad)
        falling = 0.5 * (1.0 + np.cos(np.pi * self.iteration / cfg.iterations))
        rate = cfg.rate * (0.02 + 0.98 * falling)
        flat = inputs.reshape(-1, *inputs.shape[2:])
        self.learner.step(flat, torque_grad.reshape(len(flat), -1), rate, cfg.decay)
        self.iteration += 1
        if self.done:
            self.check()
        return loss

    def check(self) -> float:
        """Loss of the held-out windows; the best weights so far are remembered."""
        size, rows = self.rollouts.nwindow, self.windows.held
        count = -(-len(rows) // size)  # batches of one size, the last filled with repeats
        error = [
            self.rollouts.run(self.learner.actuator(), batch).error
            for batch in np.split(np.resize(rows, count * size), count)
        ]
        loss = float(np.mean((np.concatenate(error)[:, self.windows.warm_up :] / self.unit) ** 2))
        if loss < self.best_loss:
            self.best_loss, self.best = loss, self.learner.copy()
        return loss

    def result(self) -> ActuatorNet:
        """The net with the best weights so far."""
        return self.learner.actuator(self.best)

    def _loss(self, error: FloatArray, steps: int) -> tuple[float, FloatArray]:
        """Mean squared error in units, and its gradient by position at each step of the net."""
        warm_up, length = self.windows.warm_up, error.shape[1]
        judged = error[:, warm_up:] / self.unit
        grad = np.zeros((steps + 1, *error[:, 0].shape))
        at = np.round((np.arange(warm_up, length) + 1) * steps / length).astype(np.intp)
        np.add.at(grad, at, (2.0 / judged.size * judged / self.unit).transpose(1, 0, 2))
        return float((judged**2).mean()), grad

    def _torque_gradient(self, rows: Rows, inputs: Float32, loss_grad: FloatArray) -> FloatArray:
        sim, learner, tracks = self.rollouts.sim, self.learner, self.rollouts.tracks
        dt = self.rollouts.actuator.every * sim.physics_dt
        flat = inputs.reshape(-1, *inputs.shape[2:])
        net_grad = learner.input_gradient(flat).reshape(inputs.shape)
        linear = linear_joints(sim, tracks.pos[rows + self.rollouts.length // 2], dt)
        seen = state_of_signals(learner.net.spec, sim.params.get("kp"), sim.params.get("kd"))
        return torque_gradient(linear, loss_grad, net_grad, seen, learner.net.spec.taps)

    def state(self) -> State:
        """What a resumed training needs."""
        return {
            **self.learner.state(),
            "iteration": np.array(self.iteration),
            "best": self.best,
            "best_loss": np.array(self.best_loss),
            "range": self.range.state(),
        }

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.learner.restore(state)
        self.iteration, self.best_loss = int(state["iteration"]), float(state["best_loss"])
        self.best = np.array(state["best"], np.float32)
        self.range.restore(state["range"])


class LinearJoints(NamedTuple):
    """One step of the net in deviations from the motion, per window: A (n, 2 nj, 2 nj), B (n, 2 nj, nj)."""

    a: FloatArray
    b: FloatArray


def linear_joints(sim: BatchSim, joint_pos: FloatArray, dt: float) -> LinearJoints:
    """Linear models around poses (nwindow, njoint) of a batch as it is set now."""
    nwindow, nj = joint_pos.shape
    kp, kd, damping = sim.params.get("kp"), sim.params.get("kd"), sim.params.get("damping")
    out = np.zeros((nwindow, 3 * nj, 3 * nj))
    for k, inertia in enumerate(joint_inertia(sim, joint_pos)):
        inverse = np.linalg.inv(inertia)
        out[k, :nj, nj : 2 * nj] = np.eye(nj)
        out[k, nj : 2 * nj, :nj] = -inverse * kp[k]
        out[k, nj : 2 * nj, nj : 2 * nj] = -inverse * (kd[k] + damping[k])
        out[k, nj : 2 * nj, 2 * nj :] = inverse
    step: FloatArray = expm(out * dt)  # type: ignore[no-untyped-call]
    return LinearJoints(a=step[:, : 2 * nj, : 2 * nj], b=step[:, : 2 * nj, 2 * nj :])


def state_of_signals(spec: NetSpec, kp: FloatArray, kd: FloatArray) -> FloatArray:
    """C: derivative of each signal with respect to (q, v), (nsignal, 2, nwindow, njoint)."""
    one = np.ones_like(kp)
    table = {
        "pos_error": (-one, 0 * one),
        "vel": (0 * one, one),
        "vel_error": (0 * one, -one),
        "command": (0 * one, 0 * one),
        "servo_torque": (-kp, -kd),
    }
    return np.array([table[name] for name in spec.signals])


def torque_gradient(
    linear: LinearJoints, loss_grad: FloatArray, net_grad: NDArray[np.float32], c: FloatArray, taps: tuple[int, ...]
) -> FloatArray:
    """dL/dtau (K, nwindow, njoint).

    loss_grad  (K + 1, nwindow, njoint) dL/dq at each step of the net, the last after the end
    net_grad   (K, nwindow, njoint, nsignal, ntap) J
    """
    steps, nwindow, nj = net_grad.shape[:3]
    mu = np.zeros((steps, nwindow, nj))
    fed_back = np.zeros((steps + 1, 2, nwindow, nj))  # gradient that later torques send to earlier states
    adjoint = np.zeros((nwindow, 2 * nj))
    adjoint[:, :nj] = loss_grad[steps]
    ages = np.array(taps)
    a_t, b_t = linear.a.transpose(0, 2, 1), linear.b.transpose(0, 2, 1)
    for t in range(steps - 1, -1, -1):
        mu[t] = (b_t @ adjoint[:, :, None])[:, :, 0]
        by_age = np.einsum("wjsk,sxwj->kxwj", net_grad[t] * mu[t][:, :, None, None], c)
        reached = ages <= t  # older signals are of before the start
        fed_back[t - ages[reached]] += by_age[reached]
        adjoint = (a_t @ adjoint[:, :, None])[:, :, 0]
        adjoint[:, :nj] += loss_grad[t] + fed_back[t, 0]
        adjoint[:, nj:] += fed_back[t, 1]
    return mu
