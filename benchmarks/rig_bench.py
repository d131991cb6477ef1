"""A test bench of one axis, integrated in plain Python: a second computation that shares nothing with our simulator.

A motor under a PD servo moves a load, rigidly or through gears. With u the delayed target, b the encoder's bias and q
the motor's position (what the encoder sits on):

    tau = kp (u - q - b) - kd v
    rigid    (I_m + I_l) dv/dt = tau - d v - friction - gravity(q)
    geared    I_m dv/dt = tau - d v - friction - s,    I_l dw/dt = s - gravity(p)

    s         k e + k3 e^3 + c de/dt + h z with e = q - p beyond the play of the gears; z is the hysteresis of
              Bouc and Wen, dz/dt = (de/dt)(1 - |z| ...)/width
    friction  Coulomb f; with `load_friction` mu it is f + mu |s|; with `bristle` that of LuGre (Canudas de Wit 1995)

Semi-implicit Euler at 20 kHz; Coulomb friction takes from the speed what it can, down to a stop, so that sticking is
exact. What the robot reports is sampled at the rate of the commands, with noise and steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log
from trueup.robot.excitation.plan import Plan
from trueup.robot.spec import RobotSpec

FloatArray = NDArray[np.float64]
FINE_HZ = 20_000.0
SETTLE_S = 1.0  # held before the recording begins


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Everything that moves the axis; SI units, rad or m.

    gravity     largest force of gravity on the load: times sin(p) where it swings, constant where it is lifted
    stiffness   of the gears; 0: rigid, and then neither play nor hysteresis nor friction of load
    play        end to end
    bristle     deflection at which Coulomb friction is reached; 0: Coulomb friction alone
    """

    motor: float
    load: float
    gravity: float
    swings: bool
    damping: float
    friction: float
    kp: float
    kd: float
    delay_s: float
    bias: float
    stiffness: float = 0.0
    hardening: float = 0.0
    gear_damping: float = 0.0
    play: float = 0.0
    hysteresis: float = 0.0
    hysteresis_width: float = 1.0
    load_friction: float = 0.0
    bristle: float = 0.0
    stiction: float = 0.0
    stribeck_vel: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Sensors:
    """Standard deviations of noise, and steps, of position and velocity."""

    position_noise: float
    position_step: float
    velocity_noise: float


def record_bench(bench: Bench, spec: RobotSpec, plan: Plan, sensors: Sensors, rng: np.random.Generator) -> Log:
    """Play a plan on the bench; the log says the spec's gains, whatever the servo's are."""
    rate = round(1.0 / plan.dt)
    before = round(SETTLE_S * rate)
    target = np.concatenate([np.full(before, plan.target_pos[0, 0]), plan.target_pos[:, 0]])
    states = np.array((_rigid if bench.stiffness == 0.0 else _geared)(bench, _sent(target, rate, bench.delay_s), rate))
    position, velocity = states[before:].T
    position = position + bench.bias + sensors.position_noise * rng.standard_normal(len(position))
    position = sensors.position_step * np.round(position / sensors.position_step)
    velocity = velocity + sensors.velocity_noise * rng.standard_normal(len(velocity))
    signals = {
        "joint_pos": position[:, None],
        "joint_vel": velocity[:, None],
        "target_pos": plan.target_pos,
        "target_kp": np.broadcast_to(spec.kp, plan.target_pos.shape).copy(),
        "target_kd": np.broadcast_to(spec.kd, plan.target_pos.shape).copy(),
    }
    meta: dict[str, object] = {"source": "bench", "robot": spec.name}
    return Log(time=plan.time, joint_names=spec.joint_names, signals=signals, meta=meta)


def _sent(target: FloatArray, rate: int, delay_s: float) -> list[float]:
    """The target that the servo has at every fine step."""
    per = round(FINE_HZ / rate)
    late = np.arange(len(target) * per) - round(delay_s * FINE_HZ)
    return list(target[np.maximum(late, 0) // per])


def _rigid(bench: Bench, sent: list[float], rate: int) -> list[tuple[float, float]]:
    """Motor and load as one body; states at the start of every command."""
    dt, per = 1.0 / FINE_HZ, round(FINE_HZ / rate)
    inertia, weight, swings = bench.motor + bench.load, bench.gravity, bench.swings
    kp, drag, dry, bias = bench.kp, bench.kd + bench.damping, bench.friction, bench.bias
    stiff = dry / bench.bristle if bench.bristle else 0.0
    soft = 0.4 * 2.0 * math.sqrt(stiff * inertia)
    q = sent[0] - bias - (0.0 if swings else weight / kp)
    v = z = 0.0
    out = []
    for i, u in enumerate(sent):
        if i % per == 0:
            out.append((q, v))
        force = kp * (u - q - bias) - drag * v - (weight * math.sin(q) if swings else weight)
        if stiff:
            most = dry + bench.stiction * math.exp(-((v / bench.stribeck_vel) ** 2))
            dz = v - stiff * abs(v) / most * z
            force -= stiff * z + soft * dz
            z += dt * dz
            v += dt * force / inertia
        else:
            v += dt * force / inertia
            v = math.copysign(max(0.0, abs(v) - dt * dry / inertia), v)
        q += dt * v
    return out


def _geared(bench: Bench, sent: list[float], rate: int) -> list[tuple[float, float]]:
    """Motor and load on two sides of the gears; states of the motor."""
    dt, per = 1.0 / FINE_HZ, round(FINE_HZ / rate)
    motor, load, weight, swings = bench.motor, bench.load, bench.gravity, bench.swings
    kp, drag, dry, bias = bench.kp, bench.kd + bench.damping, bench.friction, bench.bias
    k, k3, c, half = bench.stiffness, bench.hardening, bench.gear_damping, 0.5 * bench.play
    q = p = sent[0] - bias - (0.0 if swings else weight / kp)
    v = w = z = 0.0
    out = []
    for i, u in enumerate(sent):
        if i % per == 0:
            out.append((q, v))
        e, rate_e = q - p, v - w
        beyond = e - half if e > half else e + half if e < -half else 0.0
        through = k * beyond + k3 * beyond**3 + (c * rate_e if beyond or not half else 0.0)
        if bench.hysteresis:
            z += dt / bench.hysteresis_width * (rate_e - abs(rate_e) * z)
            through += bench.hysteresis * z
        v += dt * (kp * (u - q - bias) - drag * v - through) / motor
        v = math.copysign(max(0.0, abs(v) - dt * (dry + bench.load_friction * abs(through)) / motor), v)
        w += dt * (through - (weight * math.sin(p) if swings else weight)) / load
        q, p = q + dt * v, p + dt * w
    return out
