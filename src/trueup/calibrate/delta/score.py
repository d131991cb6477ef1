"""Replay errors against the horizon: how far simulated robots are from the recorded one after some time."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from trueup.calibrate.delta.shooting import DeltaShooting, Rows
from trueup.core.arrays import FloatArray
from trueup.models.delta_net import DeltaNet
from trueup.robot.model import ModelCfg, compile_model, joint_index
from trueup.world.actuators.target_stages import LearnedDelta

HORIZONS_S = (0.25, 0.5, 1.0)
_MOST = 200  # windows
_LOST_M = 1.0  # error of what blew up, and the most that counts


class HorizonErrors(NamedTuple):
    """Means over windows, at each of `HORIZONS_S`.

    joint_rad   root mean square over joints
    mpjpe_mm    mean distance of bodies relative to the root (E_mpjpe)
    global_mm   mean distance of bodies in the world (E_g-mpjpe); without a free base the same
    """

    joint_rad: tuple[float, ...]
    mpjpe_mm: tuple[float, ...]
    global_mm: tuple[float, ...]


def windows_of(shooting: DeltaShooting, part: tuple[float, float]) -> Rows:
    """Starts of windows of the longest horizon in a part of the logs, at most `_MOST`, evenly spread."""
    steps = round(max(HORIZONS_S) * shooting.tracks.rate_hz)
    rows = shooting.tracks.starts(steps, part)
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(_MOST, len(rows))).astype(np.intp))] if len(rows) else rows


def score(shooting: DeltaShooting, net: DeltaNet | None, starts: Rows) -> HorizonErrors:
    """Errors of windows under a delta action, or without."""
    rate = shooting.tracks.rate_hz
    steps = [round(seconds * rate) for seconds in HORIZONS_S]
    out = shooting.run(starts, max(steps), () if net is None else (LearnedDelta(net),))
    bodies = _Bodies(shooting)
    found = [_at(shooting, out, bodies, starts, step) for step in steps]
    return HorizonErrors(*(tuple(one) for one in zip(*found, strict=True)))


def _at(
    shooting: DeltaShooting, out: dict[str, FloatArray], bodies: _Bodies, starts: Rows, step: int
) -> tuple[float, float, float]:
    """One horizon: joint, root-relative and global error."""
    tracks, rows = shooting.tracks, starts + step
    joints = np.nan_to_num(out["joint_pos"][:, step - 1] - tracks.pos[rows], nan=10.0, posinf=10.0, neginf=-10.0)
    recorded = bodies.qpos(tracks.pos[rows], None if tracks.base_pos is None else tracks.base_pos[rows])
    qpos = np.where(np.isfinite(out["qpos"][:, step - 1]), out["qpos"][:, step - 1], 0.0)
    simulated = bodies.qpos(out["joint_pos"][:, step - 1], qpos[:, :7] if tracks.base_pos is not None else None)
    here, there = bodies.places(recorded), bodies.places(simulated)
    apart = [np.linalg.norm(a - b, axis=2) for a, b in zip(here, there, strict=True)]
    relative, world = (float(np.mean(np.clip(np.nan_to_num(d, nan=_LOST_M), 0.0, _LOST_M))) * 1e3 for d in apart)
    return float(np.sqrt(np.mean(np.clip(joints, -10.0, 10.0) ** 2))), relative, world


class _Bodies:
    """Places of all bodies of a robot by forward kinematics."""

    def __init__(self, shooting: DeltaShooting) -> None:
        is_free = shooting.tracks.base_pos is not None
        self.model = compile_model(shooting.robot, ModelCfg(base="free" if is_free else "fixed"))
        self.index, self.data = joint_index(self.model, shooting.robot), mujoco.MjData(self.model)
        self.root = int(
            self.model.body_rootid[self.model.jnt_bodyid[self.model.joint(shooting.robot.spec.joint_names[0]).id]]
        )

    def qpos(self, joints: FloatArray, base: FloatArray | None) -> FloatArray:
        out = np.tile(self.model.qpos0, (len(joints), 1))
        out[:, self.index.qpos] = np.nan_to_num(joints)
        if base is not None:
            out[:, :7] = base
        return out

    def places(self, qpos: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, nbody, 3): in the frame of the root, and in the world."""
        world, relative = np.empty((2, len(qpos), self.model.nbody - 1, 3))
        for k, row in enumerate(qpos):
            self.data.qpos[:] = row
            mujoco.mj_kinematics(self.model, self.data)
            world[k] = self.data.xpos[1:]
            relative[k] = (self.data.xpos[1:] - self.data.xpos[self.root]) @ self.data.xmat[self.root].reshape(3, 3)
        return relative, world
