"""Cases of contact: a block that falls, rests and slides, and a robot that stands."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.robot.load import load_robot
from trueup.world.config import SimCfg
from trueup.world.engines.choose import Engine, make_sim
from trueup.world.engines.conformance.case import G, Question
from trueup.world.engines.simulation import Simulation

BLOCK = Path(__file__).parent / "rigs" / "block"


def _block(engine: Engine, nsim: int = 1, friction: float = 0.5) -> Simulation:
    sim = make_sim(engine, load_robot(BLOCK), SimCfg(nsim=nsim, threads=1))
    sim.params.set("contact_friction", friction)
    return sim


def _advance(sim: Simulation, seconds: float) -> FloatArray:
    """Poses (nsim, 7) of the bases at the end."""
    for _ in range(round(seconds / sim.control_dt)):
        sim.step(np.zeros((1, 1)))
    pose = sim.motion.of().base_pose
    assert pose is not None
    return pose


def _fall(engine: Engine) -> float:
    sim = _block(engine)
    start = sim.default_qpos.copy()
    start[2] = 1.0
    sim.reset(qpos=start[None])
    return 1.0 - float(_advance(sim, 0.4)[0, 2])


def _slip_angle(engine: Engine) -> float:
    """The tilt, degrees, from which a block slides: more than half of what it would without holding."""
    angles = np.arange(22.0, 31.0, 0.25)
    sim = _block(engine, len(angles))
    sim.params.set("tilt", np.stack([np.zeros_like(angles), np.radians(angles)], axis=1))
    sim.reset()
    moved = np.abs(_advance(sim, 2.0)[:, 0])
    return float(angles[moved > 0.06].min(initial=31.0)) - 0.125


def _block_creep(engine: Engine) -> float:
    """Speed, mm/s, of a block on an incline of half the slope that it can hold."""
    sim = _block(engine)
    sim.params.set("tilt", (0.0, math.atan(0.25)))
    sim.reset()
    first, last = (_advance(sim, seconds)[0, 0] for seconds in (1.0, 4.0))
    return 1e3 * abs(float(last - first)) / 4.0


def _glide(engine: Engine) -> float:
    """Way, m, of a block that starts at 1 m/s."""
    sim = _block(engine)
    speed = np.zeros((1, sim.model.nv))
    _advance(sim, 0.2)
    pose = np.asarray(sim.default_qpos)[None].copy()
    speed[0, 0] = 1.0
    sim.reset(qpos=pose, qvel=speed)
    return float(_advance(sim, 1.0)[0, 0])


def _depth(engine: Engine) -> float:
    """How deep, mm, a block at rest is in the ground."""
    return 1e3 * (0.05 - float(_advance(_block(engine), 1.0)[0, 2]))


def _stand(engine: Engine) -> float:
    """Mean torque, N m, of a go2's calf joints after 3 s in its default pose, stiff and without joint friction."""
    sim = make_sim(engine, load_robot("go2"), SimCfg(threads=1))
    for name, value in {"kp": 100.0, "kd": 2.0, "friction": 0.0}.items():
        sim.params.set(name, value)
    sim.reset()
    for _ in range(150):
        sim.step(sim.robot.spec.default_pose)
    return float(np.abs(sim.joint_torque[0, 2::3]).mean())


CONTACT: dict[str, Question] = {
    "free fall, 0.4 s": Question("m", lambda: 0.5 * G * 0.4**2, _fall),
    "friction cone, block slides from": Question("deg", lambda: math.degrees(math.atan(0.5)), _slip_angle),
    "block on half that slope creeps": Question("mm/s", lambda: 0.0, _block_creep),
    "block slides from 1 m/s, way": Question("m", lambda: 1.0 / (2.0 * 0.5 * G), _glide),
    "block at rest, depth": Question("mm", lambda: 0.0, _depth),
    "go2 stands, torque of calves": Question("N m", lambda: None, _stand),
}
