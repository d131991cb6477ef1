"""Feet and trunk in MuJoCo: contacts, places and speeds from sensors that the engine evaluates itself.

A foot is a geom of `spec.feet`. Where other contact geoms are fixed to the same part, it is a sole of several points:
it touches where any of them does, and its place and speed are those of the point that the spec names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.robot.load import Robot
from trueup.robot.shapes import lowest_point

Float32 = NDArray[np.float32]
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
        if name in feet and len(_sole(spec, robot, name)) > 1:
            found.objtype, found.objname = mujoco.mjtObj.mjOBJ_XBODY, _part(spec.geom(name).parent)
    for name in feet:
        _sensor(spec, kinds.mjSENS_FRAMEPOS, name)
    for name in feet:
        _sensor(spec, kinds.mjSENS_FRAMELINVEL, name)


class FootSensors:
    """Reads the sensors that `add_foot_sensors` made from live sensor data (nsim, nsensordata)."""

    def __init__(
        self, model: mujoco.MjModel, feet: Sequence[str], default_qpos: NDArray[Any], data: NDArray[Any]
    ) -> None:
        self._count, self._data = len(feet), data
        watched = int(np.sum(model.sensor_type == mujoco.mjtSensor.mjSENS_CONTACT))
        self._trunk_end = watched if self._count else 0
        self.sole = soles(model, feet, default_qpos)

    def contact(self, rows: Rows) -> NDArray[np.bool_]:
        out: NDArray[np.bool_] = self._data[rows, : self._count] > 0.0
        return out

    def trunk_contact(self, rows: Rows) -> NDArray[np.bool_]:
        return np.any(self._data[rows, self._count : self._trunk_end] > 0.0, axis=1)

    def position(self, rows: Rows) -> tuple[NDArray[Any], ...]:
        data, start = self._data[rows], self._trunk_end
        return tuple(data[:, start + k : start + 3 * self._count : 3] for k in range(3))

    def velocity(self, rows: Rows) -> Float32:
        start = self._trunk_end + 3 * self._count
        values = self._data[rows, start : start + 3 * self._count]
        return values.astype(np.float32).reshape(-1, self._count, 3)


def soles(model: mujoco.MjModel, feet: Sequence[str], default_qpos: NDArray[Any]) -> Float32:
    """How far below the frame of its shape each foot ends in the default pose (m); a ball's radius in any pose."""
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos
    mujoco.mj_kinematics(model, data)
    ids = [model.geom(name).id for name in feet]
    return np.array([data.geom_xpos[foot][2] - lowest_point(model, data, foot) for foot in ids], np.float32)


def _trunk(spec: mujoco.MjSpec, robot: Robot) -> list[str]:
    """Contact geoms that no foot is fixed to: what must not touch the ground."""
    feet = {_part(spec.geom(name).parent) for name in robot.spec.feet}
    return [name for name in robot.spec.contact_geoms if _part(spec.geom(name).parent) not in feet]


def _sole(spec: mujoco.MjSpec, robot: Robot, foot: str) -> set[str]:
    """A foot and the contact geoms that are fixed to the same part."""
    part = _part(spec.geom(foot).parent)
    return {foot, *(name for name in robot.spec.contact_geoms if _part(spec.geom(name).parent) == part)}


def _part(body: mujoco.MjsBody) -> str:
    """The moving part that a body is fixed to, by the name of its own body."""
    while not body.joints and body.parent is not None and body.parent.name != "world":
        body = body.parent
    return str(body.name)


def _sensor(spec: mujoco.MjSpec, kind: mujoco.mjtSensor, geom: str) -> mujoco.MjsSensor:
    return spec.add_sensor(name=f"{geom}_{kind.name}", type=kind, objtype=mujoco.mjtObj.mjOBJ_GEOM, objname=geom)
