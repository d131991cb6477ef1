"""Settle: how far robots sag under their own weight when their servos hold the default pose, simulated.

Stiffness by ~ m g l keeps the sag of robots of the same shape. One with legs that are bent more, or with its weight
over one pair of legs, sags further: it gets as much stiffer as keeps the share of its height that it stands at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.robot.load import Robot
from trueup.tasks.build import with_servo
from trueup.tasks.similar.laws import Laws
from trueup.tasks.similar.servo import give_servo, scale_servo
from trueup.tasks.task import Servo, Task
from trueup.world.batch import BatchSim, SimCfg

FloatArray = NDArray[np.float64]
_TRIED = np.geomspace(1.0, 4.0, 17)
_SETTLE_S, _PHYSICS_HZ = 3.0, 1000.0
_SLACK = 0.01  # of the height
_UPRIGHT = 0.9  # cosine


class Settled(NamedTuple):
    """How much stiffer than ~ m g l, and the shares of their heights at which robot and reference then stand."""

    stiffer: float
    share: float
    reference: float


def settle(task: Task, reference: Robot, robot: Robot, laws: Laws) -> Settled:
    """Find the least stiffness at which a robot stands as the reference does."""
    wanted = float(settled_shares(reference, [task.servo])[0])
    servos = [give_servo(scale_servo(task, laws, float(each)), robot, laws.robot) for each in _TRIED]
    shares = settled_shares(robot, servos)
    enough = np.flatnonzero(shares >= wanted - _SLACK)
    best = int(enough[0]) if len(enough) else int(np.argmax(shares))
    return Settled(float(_TRIED[best]), float(shares[best]), wanted)


def settled_shares(robot: Robot, servos: Sequence[Servo]) -> FloatArray:
    """The share of its standing height that a robot keeps under each servo; 0 if it falls."""
    cfg = SimCfg(nsim=len(servos), threads=1, control_hz=50.0, physics_hz=_PHYSICS_HZ)
    sim = BatchSim(robot, cfg)
    specs = [with_servo(robot, servo).spec for servo in servos]
    for name in ("kp", "kd"):
        sim.params.set(name, np.stack([getattr(spec, name) for spec in specs]))
    sim.params.set("torque_limit", np.stack([spec.torque_limit for spec in specs]))
    sim.reset()
    for _ in range(round(_SETTLE_S / sim.control_dt)):
        sim.step(robot.spec.default_pose)
    height = sim.qpos[:, sim.base_qpos + 2] / robot.spec.base.stand_height
    upright = (sim.motion.of(None).gravity[:, 2] < -_UPRIGHT) & ~sim.diverged
    return np.where(upright, height, 0.0)
