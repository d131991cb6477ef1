"""Recorder: what every row of trials did, so that any of them can be filmed and read as a log afterwards."""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.log import Log
from trueup.evaluate.trials.world import TrialWorld


class TrialRecorder:
    """Keeps positions, velocities, targets, torques and readings of all rows after each control step."""

    def __init__(self, world: TrialWorld) -> None:
        self.world = world
        self._kept: dict[str, list[FloatArray]] = {}
        self.push()

    def push(self) -> None:
        """Keep what is now."""
        world, sim = self.world, self.world.sim
        seen = sim.sensors.peek(None)
        now = {
            "qpos": sim.qpos,
            "joint_pos": seen.joint_pos,
            "joint_vel": seen.joint_vel,
            "joint_torque": sim.joint_torque,
            "target_pos": world.target,
        }
        motion = sim.motion.of(None)
        if motion.base_pose is not None and motion.base_vel is not None and seen.gyro is not None:
            pose = motion.base_pose
            now |= {"base_pos": pose[:, :3], "base_quat": pose[:, 3:], "base_vel": motion.base_vel[:, :3]}
            now["imu_gyro"] = seen.gyro
        for name, values in now.items():
            self._kept.setdefault(name, []).append(values.astype(np.float32))

    def qpos(self, row: int) -> FloatArray:
        """Positions (T, nq) of one row, the start included."""
        return np.array([rows[row] for rows in self._kept["qpos"]], np.float64)

    def log(self, row: int, meta: dict[str, object]) -> Log:
        """One row as a log: state at each instant and the target that was in force from then on."""
        signals = {
            name: np.array([rows[row] for rows in kept], np.float64)
            for name, kept in self._kept.items()
            if name != "qpos"
        }
        targets = signals["target_pos"]
        signals["target_pos"] = np.concatenate([targets[1:], targets[-1:]])
        time: FloatArray = self.world.control_dt * np.arange(len(targets), dtype=np.float64)
        return Log(time=time, joint_names=self.world.robot.joint_names, signals=signals, meta=meta)
