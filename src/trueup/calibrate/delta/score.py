"""Replay errors against the horizon: how far simulated robots are from the recorded one after some time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup.calibrate.delta.shooting import DeltaShooting, Rows
from trueup.core.arrays import FloatArray
from trueup.models.delta_net import DeltaNet
from trueup.motion.bodies import BodyTree
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


def thinned(rows: Rows) -> Rows:
    """At most `_MOST` of the starts of windows, evenly spread."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(_MOST, len(rows))).astype(np.intp))] if len(rows) else rows


def score(shooting: DeltaShooting, net: DeltaNet | None, starts: Rows) -> HorizonErrors:
    """Errors of windows under a delta action, or without."""
    return score_run(
        shooting, shooting.run(starts, longest(shooting), () if net is None else (LearnedDelta(net),)), starts
    )


def longest(shooting: DeltaShooting) -> int:
    """Control steps of the longest horizon."""
    return round(max(HORIZONS_S) * shooting.tracks.rate_hz)


def score_run(shooting: DeltaShooting, out: dict[str, FloatArray], starts: Rows) -> HorizonErrors:
    """Errors of what any model of the robot did from rows `starts`, (n, steps, ...)."""
    rate = shooting.tracks.rate_hz
    steps = [round(seconds * rate) for seconds in HORIZONS_S]
    bodies = _Bodies(shooting)
    found = [_at(shooting, out, bodies, starts, step) for step in steps]
    return HorizonErrors(*(tuple(one) for one in zip(*found, strict=True)))


def _at(
    shooting: DeltaShooting, out: dict[str, FloatArray], bodies: _Bodies, starts: Rows, step: int
) -> tuple[float, float, float]:
    """One horizon: joint, root-relative and global error."""
    tracks, rows = shooting.tracks, starts + step
    joints = np.nan_to_num(out["joint_pos"][:, step - 1] - tracks.pos[rows], nan=10.0, posinf=10.0, neginf=-10.0)
    qpos = np.where(np.isfinite(out["qpos"][:, step - 1]), out["qpos"][:, step - 1], 0.0)
    here = bodies.places(tracks.pos[rows], None if tracks.base_pos is None else tracks.base_pos[rows])
    there = bodies.places(out["joint_pos"][:, step - 1], qpos[:, :7] if bodies.is_free else None)
    apart = [np.linalg.norm(a - b, axis=2) for a, b in zip(here, there, strict=True)]
    relative, world = (float(np.mean(np.clip(np.nan_to_num(d, nan=_LOST_M), 0.0, _LOST_M))) * 1e3 for d in apart)
    return float(np.sqrt(np.mean(np.clip(joints, -10.0, 10.0) ** 2))), relative, world


class _Bodies:
    """Places of all bodies of a robot by forward kinematics."""

    def __init__(self, shooting: DeltaShooting) -> None:
        self.tree, self.is_free = BodyTree(shooting.robot), shooting.tracks.base_pos is not None

    def places(self, joints: FloatArray, base: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """(n, nbody, 3): in the frame of the root, and in the world."""
        joints = np.nan_to_num(joints)
        zero, one = np.zeros((len(joints), 3)), np.tile((1.0, 0.0, 0.0, 0.0), (len(joints), 1))
        relative = np.asarray(self.tree.place(zero, one, joints).pos, np.float64)
        if base is None:
            return relative, relative
        return relative, np.asarray(self.tree.place(base[:, :3], base[:, 3:], joints).pos, np.float64)
