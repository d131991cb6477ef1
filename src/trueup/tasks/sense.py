"""Sense: fills the Frame from the simulation, with few NumPy calls and none per environment.

Feet and trunk are watched by sensors that the engine evaluates itself; their values belong to the state before the last
physics step, as all derived quantities of a step do.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.policy.chain import Chain, matrices, rotation_error
from trueup.robot.load import Robot
from trueup.robot.shapes import lowest_point
from trueup.tasks.frame import Frame
from trueup.tasks.terrain.ground import Ground
from trueup.world.batch import BatchSim
from trueup.world.motion import Motion

Float32 = NDArray[np.float32]
Rows = slice | NDArray[np.intp]
Fields = dict[str, NDArray[Any]]
_FOUND = 1  # contact sensor: report whether there is a contact, and nothing else


def add_sensors(spec: mujoco.MjSpec, robot: Robot) -> None:
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
    return spec.add_sensor(
        name=f"{geom}_{kind.name}", type=kind, objtype=mujoco.mjtObj.mjOBJ_GEOM, objname=geom
    )


class Sense:
    """Reads one BatchSim into one Frame; `memory` holds what must survive a checkpoint."""

    def __init__(
        self, sim: BatchSim, ground: Ground, naction: int, ncommand: int, chain: Chain | None
    ) -> None:
        self._sim, self.ground, self._chain = sim, ground, chain
        spec, nenv = sim.robot.spec, sim.nsim
        self.nfoot = len(spec.feet) if sim.free_base else 0
        watched = int(np.sum(sim.model.sensor_type == mujoco.mjtSensor.mjSENS_CONTACT))
        self._nbody = watched - self.nfoot if self.nfoot else 0
        self.frame = Frame(
            dt=sim.control_dt,
            joint_low=spec.position_low.astype(np.float32),
            joint_high=spec.position_high.astype(np.float32),
            torque_limit=spec.torque_limit.astype(np.float32),
            default_pose=spec.default_pose.astype(np.float32),
            action=np.zeros((nenv, naction), np.float32),
            last_action=np.zeros((nenv, naction), np.float32),
            command=np.zeros((nenv, ncommand), np.float32),
        )
        self._sensordata = sim.batch.bind("sensordata")
        self._torque = sim.batch.bind("qfrc_actuator")
        self._floating = np.zeros((nenv, self.nfoot), np.bool_)  # foot in the air at the step before
        self.frame.air_time = np.zeros((nenv, self.nfoot), np.float32)
        self.frame.swing_peak = np.zeros((nenv, self.nfoot), np.float32)
        self.frame.duty = np.ones((nenv, self.nfoot), np.float32)
        self._sole = _soles(sim) if self.nfoot else np.zeros(0, np.float32)

    @property
    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint."""
        frame = self.frame
        return {
            "action": frame.action,
            "last_action": frame.last_action,
            "air_time": frame.air_time,
            "swing_peak": frame.swing_peak,
            "duty": frame.duty,
            "floating": self._floating,
        }

    def act(self, action: Float32) -> None:
        """Remember the action that is carried out now."""
        np.copyto(self.frame.last_action, self.frame.action)
        np.copyto(self.frame.action, action)

    def read(self, command: Float32) -> Frame:
        """Bring the frame up to date after a control step."""
        frame = self.frame
        for name, values in self.measure(None).items():
            setattr(frame, name, values)
        frame.command = command
        if self._chain is not None:
            frame.tool_error = tool_error(self._chain, frame.joint_pos, command)
        if self.nfoot:
            self._walk()
        return frame

    def reset(self, ids: NDArray[np.intp], command: Float32) -> None:
        """Begin episodes of rows `ids`, whose simulations have been reset: no past, and the state as it is now."""
        frame = self.frame
        frame.action[ids] = 0.0
        frame.last_action[ids] = 0.0
        frame.air_time[ids] = 0.0
        frame.swing_peak[ids] = 0.0
        frame.duty[ids] = 1.0
        self._floating[ids] = False
        if frame.nenv:  # else nothing has been read yet
            for name, values in self.measure(ids).items():
                getattr(frame, name)[ids] = values
            if self._chain is not None:
                frame.tool_error[ids] = tool_error(self._chain, frame.joint_pos[ids], command[ids])
            if self.nfoot:
                frame.touchdown[ids] = False

    def measure(self, ids: NDArray[np.intp] | None) -> Fields:
        """Fields of the frame that follow from the present state alone, of rows `ids` (None: all)."""
        sim, rows = self._sim, slice(None) if ids is None else ids
        motion = sim.motion.of(ids)
        out: Fields = {
            "joint_pos": motion.joint_pos.astype(np.float32),
            "joint_vel": motion.joint_vel.astype(np.float32),
            "joint_torque": sim.joint_torque[rows].astype(np.float32),
        }
        if sim.free_base:
            out |= self._base(motion)
        if self.nfoot:
            out |= self._feet(rows)
        return out

    def _base(self, motion: Motion) -> Fields:
        assert motion.base_pose is not None
        assert motion.base_vel is not None
        pose = np.ascontiguousarray(motion.base_pose.T, np.float32)
        velocity = np.ascontiguousarray(motion.base_vel.T, np.float32)
        w, x, y, z = pose[3:]
        below = self.ground.below(pose[0], pose[1])
        return {
            "base_spin": np.ascontiguousarray(velocity[3:].T),
            "base_vel": rotate_back((w, x, y, z), velocity[:3]),
            "gravity": motion.gravity.astype(np.float32),
            "base_height": pose[2] - below,
            "heights": self.ground.around(pose[:2], (w, x, y, z), below),
        }

    def _feet(self, rows: Rows) -> Fields:
        n, start = self.nfoot, self.nfoot + self._nbody
        data = self._sensordata[rows]
        x, y, z = (data[:, start + k : start + 3 * n : 3] for k in range(3))
        return {
            "foot_contact": data[:, :n] > 0.0,
            "body_contact": np.any(data[:, n:start] > 0.0, axis=1),
            "foot_height": (z - self._sole).astype(np.float32) - self.ground.below(x, y),
            "foot_vel": data[:, start + 3 * n :].astype(np.float32).reshape(-1, n, 3),
        }

    def _walk(self) -> None:
        """Follow the feet through the air: how long, and how high.

        A step ends when a foot that was in the air touches; its length and height stay readable in that frame.
        """
        frame, contact = self.frame, self.frame.foot_contact
        frame.touchdown = np.logical_and(contact, self._floating)
        swings = self._floating | ~contact  # feet that touched before too have no step
        frame.air_time += np.float32(frame.dt)
        frame.air_time *= swings
        np.maximum(frame.swing_peak, frame.foot_height, out=frame.swing_peak)
        frame.swing_peak *= swings
        frame.duty += np.float32(frame.dt) * (contact - frame.duty)  # forgets within a second
        np.logical_not(contact, out=self._floating)


def _soles(sim: BatchSim) -> Float32:
    """How far below the frame of its shape each foot ends in the default pose (m); a ball's radius in any pose."""
    data = mujoco.MjData(sim.model)
    data.qpos[:] = sim.default_qpos
    mujoco.mj_kinematics(sim.model, data)
    feet = [sim.model.geom(name).id for name in sim.robot.spec.feet]
    return np.array(
        [data.geom_xpos[foot][2] - lowest_point(sim.model, data, foot) for foot in feet], np.float32
    )


def rotate_back(quat: tuple[Float32, ...], vectors: Float32) -> Float32:
    """World vectors (3, n) in the body frame, (n, 3): v - w t + q x t with t = 2 q x v."""
    w, x, y, z = quat
    a, b, c = vectors
    tx, ty, tz = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    out = np.empty((len(x), 3), np.float32)
    out[:, 0] = a - w * tx + (y * tz - z * ty)
    out[:, 1] = b - w * ty + (z * tx - x * tz)
    out[:, 2] = c - w * tz + (x * ty - y * tx)
    return out


def tool_error(chain: Chain, joint_pos: NDArray[np.floating], command: Float32) -> Float32:
    """Command pose (n, 7) minus tool pose: position and rotation vector, (n, 6)."""
    position, rotation = chain.tool_pose(joint_pos)
    turn = rotation_error(matrices(command[:, 3:7]), rotation)
    return np.concatenate([command[:, :3] - position, turn], axis=1).astype(np.float32)
