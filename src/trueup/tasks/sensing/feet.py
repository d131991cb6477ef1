"""Feet: contacts, places and speeds from the engine's own sensors, and each foot's way through the air."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.robot.load import Robot
from trueup.robot.shapes import lowest_point
from trueup.tasks.sensing.signals import Float32
from trueup.world.batch import BatchSim

if TYPE_CHECKING:
    from trueup.tasks.sensing.frame import Frame

Rows = slice | NDArray[np.intp]
_FOUND = 1  # contact sensor: report whether there is a contact, and nothing else


def add_foot_sensors(spec: mujoco.MjSpec, robot: Robot) -> None:
    """Let the engine watch contacts of trunk and feet, and position and velocity of the feet."""
    feet = robot.spec.feet
    body = _trunk(spec, robot) if feet else []
    kinds = mujoco.mjtSensor
    for name in (*feet, *body):
        found = _sensor(spec, kinds.mjSENS_CONTACT, name)
        found.intprm[:3] = (_FOUND, 0, 1)
    for name in feet:
        _sensor(spec, kinds.mjSENS_FRAMEPOS, name)
    for name in feet:
        _sensor(spec, kinds.mjSENS_FRAMELINVEL, name)


class Feet:
    """Reads the sensors that `add_foot_sensors` made, and follows feet between touchdowns; nothing without feet.

    What is followed is shown in a frame: touchdown, air_time, swing_peak, duty.
    """

    def __init__(self, sim: BatchSim, frame: Frame) -> None:
        self._count = len(sim.robot.spec.feet) if sim.free_base else 0
        watched = int(np.sum(sim.model.sensor_type == mujoco.mjtSensor.mjSENS_CONTACT))
        self._trunk_end = watched if self._count else 0
        self._data: NDArray[Any] = sim.batch.bind("sensordata")
        self.sole = _soles(sim) if self._count else np.zeros(0, np.float32)
        shape = (sim.nsim, self._count)
        self._floating = np.zeros(shape, np.bool_)  # in the air at the step before
        self._touchdown = frame.touchdown = np.zeros(shape, np.bool_)
        self._air_time = frame.air_time = np.zeros(shape, np.float32)
        self._swing_peak = frame.swing_peak = np.zeros(shape, np.float32)
        self._duty = frame.duty = np.ones(shape, np.float32)

    # --- now ---
    def contact(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each foot touches something."""
        out: NDArray[np.bool_] = self._data[rows, : self._count] > 0.0
        return out

    def trunk_contact(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether the trunk touches something, (n,)."""
        return np.any(self._data[rows, self._count : self._trunk_end] > 0.0, axis=1)

    def position(self, rows: Rows) -> tuple[NDArray[Any], ...]:
        """x, y, z of the feet in the world, (n, nfoot) each."""
        data, start = self._data[rows], self._trunk_end
        return tuple(data[:, start + k : start + 3 * self._count : 3] for k in range(3))

    def velocity(self, rows: Rows) -> Float32:
        """Of the feet in the world, (n, nfoot, 3)."""
        start = self._trunk_end + 3 * self._count
        values = self._data[rows, start : start + 3 * self._count]
        return values.astype(np.float32).reshape(-1, self._count, 3)

    # --- through the air ---
    @property
    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint."""
        followed = {"air_time": self._air_time, "swing_peak": self._swing_peak, "duty": self._duty}
        return {**followed, "floating": self._floating}

    def follow(self, frame: Frame) -> None:
        """Follow the feet through the air: how long, and how high.

        A step ends when a foot that was in the air touches; its length and height stay readable in that frame.
        """
        if not self._count:
            return
        contact, dt = frame.foot_contact, np.float32(frame.dt)
        np.logical_and(contact, self._floating, out=self._touchdown)
        swings = self._floating | ~contact  # feet that touched before too have no step
        self._air_time += dt
        self._air_time *= swings
        np.maximum(self._swing_peak, frame.foot_height, out=self._swing_peak)
        self._swing_peak *= swings
        self._duty += dt * (contact - self._duty)  # forgets within a second
        np.logical_not(contact, out=self._floating)

    def reset(self, ids: NDArray[np.intp]) -> None:
        """Episodes of rows `ids` begin."""
        for followed in (self._air_time, self._swing_peak, self._floating, self._touchdown):
            followed[ids] = 0
        self._duty[ids] = 1.0


def _trunk(spec: mujoco.MjSpec, robot: Robot) -> list[str]:
    """Contact geoms that no foot is fixed to: what must not touch the ground."""
    feet = {_part(spec.geom(name).parent) for name in robot.spec.feet}
    return [name for name in robot.spec.contact_geoms if _part(spec.geom(name).parent) not in feet]


def _part(body: mujoco.MjsBody) -> str:
    """The moving part that a body is fixed to, by the name of its own body."""
    while not body.joints and body.parent is not None and body.parent.name != "world":
        body = body.parent
    return str(body.name)


def _sensor(spec: mujoco.MjSpec, kind: mujoco.mjtSensor, geom: str) -> mujoco.MjsSensor:
    return spec.add_sensor(name=f"{geom}_{kind.name}", type=kind, objtype=mujoco.mjtObj.mjOBJ_GEOM, objname=geom)


def _soles(sim: BatchSim) -> Float32:
    """How far below the frame of its shape each foot ends in the default pose (m); a ball's radius in any pose."""
    data = mujoco.MjData(sim.model)
    data.qpos[:] = sim.default_qpos
    mujoco.mj_kinematics(sim.model, data)
    feet = [sim.model.geom(name).id for name in sim.robot.spec.feet]
    return np.array([data.geom_xpos[foot][2] - lowest_point(sim.model, data, foot) for foot in feet], np.float32)
