"""Clean logs with known physics, and ways to spoil them: the validator's test bench.

A clean log is n second-order servos (inertia, PD, Coulomb and viscous friction, gravity-like load, coupling through
accelerations) that hear their command late by 0.5 to 2.5 rows, read by a noisy and quantised encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log, RobotReference

FloatArray = NDArray[np.float64]
EXCITATIONS = ("multisine", "chirp", "steps", "holds", "policy")
JOINT_COUNTS = (1, 6, 12)
RATES = (50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Plan:
    """What a seed stands for."""

    njoint: int
    rate: int
    seconds: float
    excitation: str
    hold: int  # rows that one command lasts
    delay: float  # rows
    torque: bool


@dataclass(frozen=True)
class Sample:
    """A clean log, the robot it comes from, and how it was made."""

    log: Log
    reference: RobotReference
    plan: Plan


def plan_of(seed: int) -> Plan:
    """Cycle through the kinds so that any 15 seeds in a row hold every excitation, rate and joint count."""
    rng = np.random.default_rng(seed + 7000)
    rate = RATES[(seed + seed // 5) % 5]
    excitation = EXCITATIONS[seed % 5]
    hold = max(1, rate // 50) if excitation == "policy" else 1
    seconds = float(rng.uniform(3.0, 20.0)) if rate <= 200 else float(rng.uniform(3.0, 8.0))
    return Plan(
        JOINT_COUNTS[seed % 3], rate, seconds, excitation, hold, float(rng.uniform(0.5, 2.5)), bool(rng.random() < 0.6)
    )


@lru_cache(maxsize=256)
def clean(seed: int, **_: object) -> Sample:
    """The clean log of a seed."""
    return simulate(plan_of(seed), seed)


@lru_cache(maxsize=256)
def clean_as(
    seed: int,
    *,
    njoint: int | None = None,
    rate: int | None = None,
    excitation: str | None = None,
    hold: int | None = None,
    delay: float | None = None,
    torque: bool | None = None,
    seconds: float | None = None,
) -> Sample:
    """The clean log of a seed with parts of its plan replaced."""
    plan = plan_of(seed)
    rate = rate or plan.rate
    excitation = excitation or plan.excitation
    if hold is None:
        hold = max(1, rate // 50) if excitation == "policy" else 1
    return simulate(
        Plan(
            njoint or plan.njoint,
            rate,
            seconds or min(plan.seconds, 20.0 if rate <= 200 else 8.0),
            excitation,
            hold,
            plan.delay if delay is None else delay,
            plan.torque if torque is None else torque,
        ),
        seed,
    )


def _base_targets(plan: Plan, rng: np.random.Generator, rows: int) -> FloatArray:
    """Targets around zero, (rows, n), before feedback."""
    n, t = plan.njoint, np.arange(rows) / plan.rate
    amp = rng.uniform(0.15, 0.45, n)
    phase = rng.uniform(0, 2 * np.pi, n)
    if plan.excitation == "multisine":
        tones = np.geomspace(0.2, rng.uniform(4, 8), 12)
        k = np.arange(12)
        waves = [
            np.sin(2 * np.pi * f * t[:, None] - np.pi * i * i / 12 + phase * (i + 1))
            for i, f in zip(k, tones, strict=True)
        ]
        u = sum(waves) * amp / 3.5
    elif plan.excitation == "chirp":
        top = rng.uniform(4, 8)
        u = (
            amp * np.sin(phase + 2 * np.pi * (0.2 * t + (top - 0.2) * t**2 / (2 * t[-1])))[:, None].reshape(rows, -1)
            if n == 1
            else np.stack(
                [
                    amp[i]
                    * np.sin(phase[i] + 2 * np.pi * (0.2 * t + (top * (1 - 0.03 * i) - 0.2) * t**2 / (2 * t[-1])))
                    for i in range(n)
                ],
                1,
            )
        )
    elif plan.excitation == "steps":
        levels = rng.choice([-1.0, 0.0, 1.0], size=(int(t[-1] / 0.35) + 3, n))
        u = levels[(t / 0.35).astype(int)] * amp
    elif plan.excitation == "holds":
        u = np.empty((rows, n))
        for j in range(n):
            edges = np.cumsum(rng.uniform(0.1, 0.6, int(t[-1] / 0.1) + 5))
            u[:, j] = rng.uniform(-1, 1, len(edges) + 1)[np.searchsorted(edges, t)] * amp[j]
    else:
        f = rng.uniform(1.5, 3.0)
        u = amp * (np.sin(2 * np.pi * f * t[:, None] + phase) + 0.35 * np.sin(4 * np.pi * f * t[:, None] + 2 * phase))
        walk = np.zeros((rows, n))
        for k in range(1, rows):
            walk[k] = walk[k - 1] * (1 - 4 / plan.rate) + rng.normal(0, 0.5, n) * np.sqrt(1 / plan.rate)
        u = u + walk * amp
    return np.asarray(u, np.float64)


def simulate(plan: Plan, seed: int) -> Sample:
    """Run the servos and read the sensors."""
    rng = np.random.default_rng(seed)
    n, rate = plan.njoint, plan.rate
    rows = int(plan.seconds * rate)
    sub = max(2, int(np.ceil(2000 / rate)))
    dt = 1.0 / (rate * sub)
    inertia = rng.uniform(0.02, 0.2, n)
    wn, zeta = rng.uniform(20, 60, n), rng.uniform(0.35, 1.0, n)
    kp, kd = inertia * wn**2, 2 * zeta * wn * inertia
    kd_servo, viscous = kd * 0.7, kd * 0.3
    coulomb, gravity = kp * rng.uniform(0.001, 0.008, n), kp * rng.uniform(0.0, 0.1, n)
    tilt = rng.uniform(0, 2 * np.pi, n)
    couple = rng.uniform(-0.06, 0.06, (n, n)) * np.minimum.outer(inertia, inertia)
    np.fill_diagonal(couple, 0.0)
    centre = rng.uniform(-1.2, 1.2, n)
    mobility = np.linalg.inv(np.diag(inertia) + (couple + couple.T) / 2)

    targets = centre + _base_targets(plan, rng, rows)
    noise, quantum = rng.uniform(2e-4, 1e-3), rng.choice([1e-5, 2e-4, 7.7e-4, 1.5e-3])
    back = int(np.floor(plan.delay * sub))
    q, dq, tau = targets[0].copy(), np.zeros(n), np.zeros(n)
    pos, true_vel, torque = np.empty((rows, n)), np.empty((rows, n)), np.empty((rows, n))
    command = targets[0].copy()
    queue = [command.copy()] * back
    for k in range(rows):
        pos[k], true_vel[k], torque[k] = q, dq, tau
        if plan.excitation == "policy":
            if k % plan.hold == 0:  # a feedback policy reads the noisy state
                seen = q + rng.normal(0, noise, n)
                command = targets[k] - 0.3 * (seen - centre) - 0.01 * dq
        else:
            command = targets[k - k % plan.hold]
        targets[k] = command
        for _ in range(sub):
            queue.append(command)
            heard = queue.pop(0)
            tau = kp * (heard - q) - kd_servo * dq
            load = viscous * dq + coulomb * np.tanh(dq / 0.02) + gravity * np.sin(q + tilt)
            dq = dq + dt * (mobility @ (tau - load))
            q = q + dt * dq
    return _measure(plan, rng, centre, (kp, kd_servo), (noise, float(quantum)), (pos, true_vel, torque, targets))


def _measure(
    plan: Plan,
    rng: np.random.Generator,
    centre: FloatArray,
    gains: tuple[FloatArray, FloatArray],
    sensor: tuple[float, float],
    truth: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> Sample:
    pos, true_vel, torque, targets = truth
    (noise, quantum), (rows, n) = sensor, pos.shape
    read = np.round((pos + rng.normal(0, noise, pos.shape)) / quantum) * quantum
    if rng.random() < 0.5:  # firmware differentiates and filters, 1 kHz inside would be kinder
        raw = np.diff(read, axis=0, prepend=read[:1]) * plan.rate
        keep = np.exp(-2 * np.pi * rng.uniform(25, 60) / plan.rate)
        vel = np.empty_like(raw)
        state = np.zeros(n)
        for k in range(rows):
            state = keep * state + (1 - keep) * raw[k]
            vel[k] = state
    else:
        vel = true_vel + rng.normal(0, 0.02, true_vel.shape)
    time = rng.uniform(0, 1000) + np.arange(rows) / plan.rate + rng.normal(0, 0.01 / plan.rate, rows)
    names = tuple(f"joint{i}" for i in range(n))
    signals = {"joint_pos": read, "joint_vel": vel, "target_pos": targets}
    scale = np.abs(torque).max(axis=0) + 1e-9
    if plan.torque:
        signals["joint_torque"] = torque + rng.normal(0, 0.02, torque.shape) * scale * 0.5
    reach = np.maximum(np.abs(read - centre).max(axis=0), np.abs(targets - centre).max(axis=0))
    reference = RobotReference(
        joint_names=names,
        position_low=centre - reach - rng.uniform(0.05, 0.8, n),
        position_high=centre + reach + rng.uniform(0.05, 0.8, n),
        velocity_limit=np.abs(true_vel).max(axis=0) * rng.uniform(1.3, 3.0, n),
        torque_limit=scale * rng.uniform(1.3, 3.0, n),
        kp=gains[0],
        kd=gains[1],
        default_pose=centre,
        control_hz=plan.rate / plan.hold,
    )
    return Sample(Log(time=time, joint_names=names, signals=signals), reference, plan)
