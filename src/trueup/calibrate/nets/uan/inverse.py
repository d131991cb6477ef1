"""The torque that the base simulator is missing, found from its errors: the targets that a net is trained on.

Whole logs are replayed with a torque series added to the servo, and the series is corrected by the error it leaves
(iterative learning control), through the inverse of a linear model of the joints in the frequency domain,

    G(w) = (-w^2 M + i w (Kd + D) + Kp)^-1,    dtau = -(G' G + r)^-1 G' e

The ridge r weighs the encoder's noise against plausible torques. What the net then learns by regression is the part of
that torque which its inputs explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.nets.uan.rollout import NetRollout, Rollouts, Rows, joint_inertia
from trueup.models.actuator_net import ActuatorNet, Float32

FloatArray = NDArray[np.float64]
_TOP_HZ = 30.0  # above, an encoder shows noise only
_PAD_S = 1.0


@dataclass(frozen=True, kw_only=True)
class MissingTorque:
    """Per track: inputs (K, njoint, nsignal, ntap) to train on, torque (K, njoint) that was missing.

    before, after  replays without the torque and with it
    """

    inputs: list[Float32]
    torque: list[FloatArray]
    before: NetRollout
    after: NetRollout


def missing_torque(
    rollouts: Rollouts, net: ActuatorNet, starts: Rows, rounds: int, *, corrected: bool = True
) -> MissingTorque:
    """Correct the replays under a net that begin at `starts`, one per track, each of the rollouts' length.

    corrected  inputs are those along the corrected motion; else those of the motion as the net makes it
    """
    spec, actuator = net.spec, rollouts.actuator
    steps = round(rollouts.length * rollouts.sim.substeps / actuator.every)
    at = np.minimum(np.arange(steps) * rollouts.length // steps, rollouts.length - 1)
    torque = np.zeros((steps, len(starts), spec.njoint))
    most = np.array(spec.limit) if spec.limit else np.inf
    actuator.added = None
    found = before = rollouts.run(net, starts)
    for _ in range(rounds):
        torque = np.clip(torque + _correction(rollouts, found.error).transpose(1, 0, 2)[at], -most, most)
        actuator.added = torque
        found = rollouts.run(net, starts)
    actuator.added = None
    inputs = (found if corrected else before).inputs(spec).swapaxes(0, 1)
    return MissingTorque(
        inputs=[np.ascontiguousarray(part) for part in inputs],
        torque=list(torque.transpose(1, 0, 2)),
        before=before,
        after=found,
    )


def _correction(rollouts: Rollouts, error: FloatArray) -> FloatArray:
    """Torques (nwindow, L, njoint) whose effect would cancel errors (nwindow, L, njoint), by the linear model."""
    sim, rate, length = rollouts.sim, rollouts.tracks.rate_hz, error.shape[1]
    pad = round(_PAD_S * rate)
    spectrum = np.fft.rfft(np.pad(error, ((0, 0), (pad, pad), (0, 0)), mode="edge"), axis=1)
    frequency = np.fft.rfftfreq(length + 2 * pad, 1.0 / rate)
    used = frequency <= min(_TOP_HZ, 0.4 * rate)
    out = np.zeros_like(spectrum)
    stiffness, damping = sim.params.get("kp"), sim.params.get("kd") + sim.params.get("damping")
    inertia = joint_inertia(sim, np.tile(sim.default_qpos[sim.index.qpos], (sim.nsim, 1)))
    omega = 2.0 * np.pi * frequency[used][:, None, None]
    plausible = (stiffness.mean(axis=0) * np.sqrt((error**2).mean(axis=(0, 1)))) ** 2
    ridge = np.diag(rollouts.noise**2 / np.maximum(plausible, 1e-12))
    for k in range(len(error)):
        g = np.linalg.inv(-(omega**2) * inertia[k] + 1j * omega * np.diag(damping[k]) + np.diag(stiffness[k]))
        g_h = g.conj().transpose(0, 2, 1)
        out[k, used] = -np.linalg.solve(g_h @ g + ridge, g_h @ spectrum[k, used][:, :, None])[:, :, 0]
    return np.fft.irfft(out, length + 2 * pad, axis=1)[:, pad : pad + length]
