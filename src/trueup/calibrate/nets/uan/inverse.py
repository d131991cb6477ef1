"""The torque that the base simulator lacks, found from its errors: where a net's learning starts from.

Whole logs are replayed with a torque series added to the servo, and the series is corrected by the error it leaves
(iterative learning), through the inverse of a linear model of the joints in the frequency domain,

    G(w) = (-w^2 M + i w (Kd + D) + Kp)^-1,    dtau = -(G' G + r)^-1 G' e

r weighs what the encoder's noise would ask for against what is plausible. What the net then learns by regression is
the part of that torque which its inputs explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.nets.uan.rollout import Rollouts, Rows
from trueup.models.actuator_net import ActuatorNet, Float32
from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]
_TOP_HZ = 30.0  # above, an encoder shows noise only
_PAD_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Lacking:
    """Per track: signals (K, njoint, nsignal, ntap) that the net is taught on, torque (K, njoint) that was lacking.

    error  (ntrack, L, njoint) before any correction, rad
    low, high  (njoint, nsignal) of the signals, before and after
    """

    inputs: list[Float32]
    torque: list[FloatArray]
    error: FloatArray
    low: Float32
    high: Float32


def lacking_torque(
    rollouts: Rollouts, net: ActuatorNet, starts: Rows, rounds: int, *, corrected: bool = True
) -> Lacking:
    """Correct the replays under a net that begin at `starts`, one per track, each of the rollouts' length.

    corrected  the signals are those along the corrected motion; else those of the motion as the net makes it
    """
    spec, actuator = net.spec, rollouts.actuator
    steps = round(rollouts.length * rollouts.sim.substeps / actuator.every)
    at = np.minimum(np.arange(steps) * rollouts.length // steps, rollouts.length - 1)
    torque = np.zeros((steps, len(starts), spec.njoint))
    most = np.array(spec.limit) if spec.limit else np.inf
    actuator.added = None
    found = rollouts.run(net, starts)
    before = found
    for _ in range(rounds):
        change = _inverse(rollouts.sim, found.error, rollouts.tracks.rate_hz, rollouts.tracks.noise)
        torque = np.clip(torque + change.transpose(1, 0, 2)[at], -most, most)
        actuator.added = torque
        found = rollouts.run(net, starts)
    actuator.added = None
    taps = spec.depth + np.arange(steps)[:, None] - np.array(spec.taps)
    ends = [(s.min(axis=(0, 2)).T, s.max(axis=(0, 2)).T) for s in (before.signals, found.signals)]
    inputs = (
        (found if corrected else before).signals[taps].transpose(3, 0, 4, 2, 1)
    )  # (track, K, joint, signal, tap)
    return Lacking(
        inputs=[np.ascontiguousarray(part) for part in inputs],
        torque=list(torque.transpose(1, 0, 2)),
        error=before.error,
        low=np.minimum(ends[0][0], ends[1][0]),
        high=np.maximum(ends[0][1], ends[1][1]),
    )


def _inverse(sim: BatchSim, error: FloatArray, rate: float, noise: FloatArray) -> FloatArray:
    """Torques (nwindow, L, njoint) whose effect would cancel errors (nwindow, L, njoint), by the linear model."""
    length = error.shape[1]
    pad = round(_PAD_S * rate)
    spectrum = np.fft.rfft(np.pad(error, ((0, 0), (pad, pad), (0, 0)), mode="edge"), axis=1)
    frequency = np.fft.rfftfreq(length + 2 * pad, 1.0 / rate)
    used = frequency <= min(_TOP_HZ, 0.4 * rate)
    out = np.zeros_like(spectrum)
    stiffness, damping = sim.gains.get("kp"), sim.gains.get("kd") + sim.params.get("damping")
    inertia = _inertia(sim)
    omega = 2.0 * np.pi * frequency[used][:, None, None]
    plausible = (stiffness.mean(axis=0) * np.sqrt((error**2).mean(axis=(0, 1)))) ** 2
    ridge = np.diag(noise**2 / np.maximum(plausible, 1e-12))
    for k in range(len(error)):
        g = np.linalg.inv(-(omega**2) * inertia[k] + 1j * omega * np.diag(damping[k]) + np.diag(stiffness[k]))
        g_h = g.conj().transpose(0, 2, 1)
        out[k, used] = -np.linalg.solve(g_h @ g + ridge, g_h @ spectrum[k, used][:, :, None])[:, :, 0]
    return np.fft.irfft(out, length + 2 * pad, axis=1)[:, pad : pad + length]


def _inertia(sim: BatchSim) -> FloatArray:
    """Joint-space inertia (nsim, njoint, njoint) in the default pose, with the armature that is set."""
    model, data, dof = sim.model, mujoco.MjData(sim.model), sim.index.dof
    data.qpos[:] = sim.default_qpos
    mujoco.mj_forward(model, data)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    extra = sim.params.get("armature") - model.dof_armature[dof]
    return full[np.ix_(dof, dof)] + extra[:, :, None] * np.eye(len(dof))
