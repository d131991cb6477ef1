"""Cases of one joint: the built-in pendulum, without gravity where it would be in the way."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import mujoco
import numpy as np
from numpy.typing import ArrayLike

from trueup.core.arrays import FloatArray
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import compile_model
from trueup.world.config import SimCfg
from trueup.world.engines.choose import Engine, make_sim
from trueup.world.engines.conformance.case import G, Question
from trueup.world.engines.simulation import Simulation


def _pendulum() -> Robot:
    return load_robot("pendulum")


def _arm() -> tuple[float, float]:
    """Inertia about the joint without rotor, kg m^2, and the largest torque of gravity, N m."""
    model = compile_model(_pendulum())
    model.dof_armature[:] = 0.0
    data = mujoco.MjData(model)
    data.qpos[0] = 0.5 * math.pi
    mujoco.mj_forward(model, data)
    return float(data.M[0]), abs(float(data.qfrc_bias[0]))


_ROTOR = 0.01  # kg m^2


def _inertia(rotor: float = _ROTOR) -> float:
    return _arm()[0] + rotor


def _joint(
    engine: Engine,
    *,
    hz: float = 1000.0,
    start: tuple[float, float] = (0.0, 0.0),
    robot: Robot | None = None,
    **params: ArrayLike,
) -> Simulation:
    """A pendulum at (position, velocity), without gravity, friction, damping, delay or servo unless told otherwise."""
    sim = make_sim(engine, robot or _pendulum(), SimCfg(threads=1, control_hz=min(hz, 200.0), physics_hz=hz))
    bare = {"kp": 0.0, "kd": 0.0, "damping": 0.0, "friction": 0.0, "armature": _ROTOR, "delay": 0.0}
    for name, value in (bare | {"gravity": (0.0, 0.0, 0.0)} | params).items():
        sim.params.set(name, value)
    sim.reset(qpos=[[start[0]]], qvel=[[start[1]]])
    return sim


def _run(sim: Simulation, seconds: float, target: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Positions and velocities (T,) after every control step."""
    seen = []
    for _ in range(round(seconds / sim.control_dt)):
        sim.step(np.full((1, 1), target))
        seen.append((sim.joint_pos[0, 0], sim.joint_vel[0, 0]))
    return tuple(np.array(seen).T)


def _period(engine: Engine, rotor: float = _ROTOR) -> float:
    sim = _joint(engine, start=(0.1, 0.0), gravity=(0.0, 0.0, -G), armature=rotor)
    pos, _ = _run(sim, 6.0)
    turn = np.flatnonzero((pos[:-1] < 0.0) & (pos[1:] >= 0.0))
    at = turn - pos[turn] / (pos[turn + 1] - pos[turn])
    return float(np.diff(at).mean() * sim.control_dt)


def _exact_period(rotor: float = _ROTOR) -> float:
    return 2.0 * math.pi * math.sqrt(_inertia(rotor) / _arm()[1]) * (1.0 + 0.1**2 / 16.0)


def _held(engine: Engine) -> float:
    sim = _joint(engine, kp=200.0, kd=2.0, gravity=(0.0, 0.0, -G), start=(0.5 * math.pi, 0.0))
    pos, _ = _run(sim, 3.0, 0.5 * math.pi)
    return float(200.0 * (0.5 * math.pi - pos[-1]) / math.sin(pos[-1]))


_DRY = 0.3  # N m


def _creep(engine: Engine) -> float:
    return 1e3 * float(_run(_joint(engine, friction=_DRY, torque_offset=0.8 * _DRY), 5.0)[0][-1])


def _slide(engine: Engine) -> float:
    return float(_run(_joint(engine, friction=_DRY, torque_offset=1.5 * _DRY), 0.2)[1][-1])


def _stop(engine: Engine) -> float:
    return float(_run(_joint(engine, friction=_DRY, start=(0.0, 4.0)), 2.0)[0][-1])


def _damped(engine: Engine) -> float:
    return float(_run(_joint(engine, damping=0.1, start=(0.0, 4.0)), 0.2)[1][-1])


_KP, _KD, _STEP = 10.0, 0.3, 0.2


def _step_response(engine: Engine, hz: float = 1000.0) -> float:
    """Largest distance from the exact answer of a servo to a step, mrad."""
    sim = _joint(engine, kp=_KP, kd=_KD, hz=hz)
    pos, _ = _run(sim, 0.5, _STEP)
    t = sim.control_dt * np.arange(1, len(pos) + 1)
    rate, decay = _KP / _inertia(), 0.5 * _KD / _inertia()
    swing = math.sqrt(rate - decay**2)
    exact = _STEP * (1.0 - np.exp(-decay * t) * (np.cos(swing * t) + decay / swing * np.sin(swing * t)))
    return 1e3 * float(np.abs(pos - exact).max())


_LIMIT, _STALL, _FAST, _RAMP_S = 1.0, 2.0, 8.0, 0.15


def _motor(engine: Engine) -> float:
    robot, knee = _pendulum(), _FAST * (1.0 - _LIMIT / _STALL)
    joint = msgspec.structs.replace(robot.spec.joints[0], torque=_LIMIT, velocity=_FAST, knee_speed=knee)
    robot = replace(robot, spec=msgspec.structs.replace(robot.spec, joints=(joint,)))
    return float(_run(_joint(engine, robot=robot, kp=1e3), _RAMP_S, 3.0)[1][-1])


def _exact_motor() -> float:
    """Full torque up to the knee, then what the line from stall torque to no-load speed leaves."""
    knee = _FAST * (1.0 - _LIMIT / _STALL)
    at = knee * _inertia() / _LIMIT
    return _FAST - (_FAST - knee) * math.exp(-(_RAMP_S - at) * _STALL / (_inertia() * _FAST))


_DELAY_S = 0.0075


def _delay(engine: Engine) -> float:
    """Delay, ms, told from the speed after 20 ms of a spring that acts from then on."""
    sim = _joint(engine, kp=1.0, delay=_DELAY_S)
    _, vel = _run(sim, 0.02, 0.1)
    rate = math.sqrt(1.0 / _inertia())
    return 1e3 * (0.02 - math.asin(float(vel[-1]) / (0.1 * rate)) / rate)


JOINT: dict[str, Question] = {
    "pendulum period": Question("s", _exact_period, _period),
    "period, rotor five times": Question(
        "s", lambda: _exact_period(5.0 * _ROTOR), lambda engine: _period(engine, 5.0 * _ROTOR)
    ),
    "arm held level, torque": Question("N m", lambda: _arm()[1], _held),
    "viscous damping, speed after 0.2 s": Question("rad/s", lambda: 4.0 * math.exp(-0.1 * 0.2 / _inertia()), _damped),
    "dry friction holds 0.8 of it, moved in 5 s": Question("mrad", lambda: 0.0, _creep),
    "dry friction, 1.5 times it, speed after 0.2 s": Question("rad/s", lambda: 0.5 * _DRY * 0.2 / _inertia(), _slide),
    "dry friction stops 4 rad/s, way": Question("rad", lambda: 0.5 * _inertia() * 16.0 / _DRY, _stop),
    "servo's step, worst error, 1000 Hz": Question("mrad", lambda: 0.0, _step_response),
    "servo's step, worst error, 200 Hz": Question("mrad", lambda: 0.0, lambda engine: _step_response(engine, 200.0)),
    "motor's envelope, speed after 0.15 s": Question("rad/s", _exact_motor, _motor),
    "command delay": Question("ms", lambda: 1e3 * _DELAY_S, _delay),
}
