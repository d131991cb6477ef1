"""Gradient of a rollout's error with respect to the net's torques, by a linear model of the joints.

The rollout itself is the engine's. Only its derivative is modelled: around the motion, with the servo's own gains,

    M dv/dt = dtau - Kp dq - (Kd + D) dv,    dq/dt = v        (M of the window's pose, exact over one step of the net)

so that x_{t+1} = A x_t + B tau_t in deviations x = (dq, dv). The net feeds back too: tau_t depends on signals at t,
t - 1, ... The adjoint runs backwards through both,

    mu_t = B' lambda_{t+1},    lambda_t = dL/dx_t + A' lambda_{t+1} + sum_k C' J_{t+k,k}' mu_{t+k}

J_{t,k} the net's derivative with respect to signals k steps old, C the signals' derivative with respect to x; mu_t is
dL/dtau_t. Dry friction is left out of A: it only makes the true derivative smaller where a joint sticks.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from trueup.models.actuator_net import NetSpec
from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]


class LinearJoints(NamedTuple):
    """One step of the net in deviations from the motion, per window: A (n, 2 nj, 2 nj), B (n, 2 nj, nj)."""

    a: FloatArray
    b: FloatArray


def linear_joints(sim: BatchSim, joint_pos: FloatArray, dt: float) -> LinearJoints:
    """Linear models around poses (nwindow, njoint) of a batch as it is set now."""
    nwindow, nj = joint_pos.shape
    model, data, dof = sim.model, mujoco.MjData(sim.model), sim.index.dof
    armature, damping = (sim.params.get(name) for name in ("armature", "damping"))
    kp, kd = (sim.gains.get(name) for name in ("kp", "kd"))
    out = np.zeros((nwindow, 3 * nj, 3 * nj))
    full = np.zeros((model.nv, model.nv))
    for k in range(nwindow):
        data.qpos[:] = sim.default_qpos
        data.qpos[sim.index.qpos] = joint_pos[k]
        mujoco.mj_forward(model, data)
        mujoco.mj_fullM(model, data, full)
        inertia = full[np.ix_(dof, dof)] + np.diag(armature[k] - model.dof_armature[dof])
        easy = np.linalg.inv(inertia)
        out[k, :nj, nj : 2 * nj] = np.eye(nj)
        out[k, nj : 2 * nj, :nj] = -easy * kp[k]
        out[k, nj : 2 * nj, nj : 2 * nj] = -easy * (kd[k] + damping[k])
        out[k, nj : 2 * nj, 2 * nj :] = easy
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
    linear: LinearJoints,
    loss_grad: FloatArray,
    net_grad: NDArray[np.float32],
    c: FloatArray,
    taps: tuple[int, ...],
) -> FloatArray:
    """dL/dtau (K, nwindow, njoint).

    loss_grad  (K + 1, nwindow, njoint) dL/dq at each step of the net, the last after the end
    net_grad   (K, nwindow, njoint, nsignal, ntap) J
    """
    steps, nwindow, nj = net_grad.shape[:3]
    mu = np.zeros((steps, nwindow, nj))
    waiting = np.zeros((steps + 1, 2, nwindow, nj))  # what later torques ask of earlier states
    behind = np.zeros((nwindow, 2 * nj))
    behind[:, :nj] = loss_grad[steps]
    ages = np.array(taps)
    a_t, b_t = linear.a.transpose(0, 2, 1), linear.b.transpose(0, 2, 1)
    for t in range(steps - 1, -1, -1):
        mu[t] = (b_t @ behind[:, :, None])[:, :, 0]
        asked = np.einsum("wjsk,sxwj->kxwj", net_grad[t] * mu[t][:, :, None, None], c)
        reached = ages <= t  # older signals are of before the start
        waiting[t - ages[reached]] += asked[reached]
        behind = (a_t @ behind[:, :, None])[:, :, 0]
        behind[:, :nj] += loss_grad[t] + waiting[t, 0]
        behind[:, nj:] += waiting[t, 1]
    return mu
