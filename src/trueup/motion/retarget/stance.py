"""Stance: when a foot stands, and targets in which it then neither slides, sinks nor tilts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.motion.retarget.points import SIDES, KeyPoints, Thing
from trueup.motion.retarget.shape import BodyTargets, Shape
from trueup.motion.rotations import about_z, conjugate, multiply, rotate, rotation_vector, yaw_of

_SLOW_M_S, _NEAR_M = 0.35, 0.05  # of a foot that stands: slower and lower, after scaling
_SHORTEST_S, _GAP_S = 0.1, 0.06
_STEP_M = 0.06  # from a foot to the top of a thing that it stands on


def standing(points: KeyPoints, ground: FloatArray) -> NDArray[np.bool_]:
    """Whether each foot stands, (T, 2), from points scaled to the robot; `ground` (T, 2) is below each ankle."""
    out = np.zeros((len(points), 2), bool)
    for k, side in enumerate(SIDES):
        ankle = points.of(f"{side}_ankle")
        speed = np.linalg.norm(np.gradient(ankle, axis=0), axis=1) * points.rate_hz
        height = ankle[:, 2] - ground[:, k]
        low = height < np.quantile(height, 0.05) + _NEAR_M
        out[:, k] = _cleaned(low & (speed < _SLOW_M_S), points.rate_hz)
    return out


def hold_feet(targets: BodyTargets, shape: Shape) -> tuple[BodyTargets, NDArray[np.bool_]]:
    """Targets with each foot at one place and flat while it stands, and eased in between; and when they stand."""
    source = targets.source
    ground = np.stack([ground_below(source.of(f"{side}_ankle"), source.things) for side in SIDES], axis=1)
    stands = standing(source, ground)
    pos, quat = dict(targets.pos), dict(targets.quat)
    for k, side in enumerate(SIDES):
        name = f"{side}_ankle"
        move, turn = np.zeros_like(pos[name]), np.zeros_like(pos[name])
        for first, last in runs(stands[:, k]):
            rows = slice(first, last)
            place = pos[name][rows].mean(axis=0)
            place[2] = ground[rows, k].mean() + shape.sole_m
            yaw = yaw_of(quat[name][rows])
            flat = about_z(np.arctan2(np.sin(yaw).mean(), np.cos(yaw).mean())[None])
            move[rows] = place - pos[name][rows]
            turn[rows] = rotation_vector(
                multiply(np.broadcast_to(flat, (last - first, 4)), conjugate(quat[name][rows]))
            )
        if stands[:, k].any():
            pos[name] = pos[name] + _between(move, stands[:, k])
            quat[name] = multiply(_turn(_between(turn, stands[:, k])), quat[name])
        pos[name][:, 2] = np.maximum(pos[name][:, 2], _least_height(pos[name], quat[name], ground[:, k], shape, k))
    return replace(targets, pos=pos, quat=quat), stands


def ground_below(at: FloatArray, things: tuple[Thing, ...]) -> FloatArray:
    """Height of the ground, or of the top of a box that lies flat, below points (T, 3)."""
    height = np.zeros(len(at))
    for one in things:
        up = rotate(one.quat, np.tile([0.0, 0.0, 1.0], (len(at), 1)))[:, 2]
        local = rotate(conjugate(one.quat), at - one.pos)
        over = (np.abs(local[:, :2]) <= one.size[:2]).all(axis=1) & (up > 0.99)
        top = one.pos[:, 2] + one.size[2]
        height = np.where(over & (top <= at[:, 2] + _STEP_M), np.maximum(height, top), height)
    return height


def runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First row and the one after the last of every stretch that holds."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _cleaned(flags: NDArray[np.bool_], rate_hz: float) -> NDArray[np.bool_]:
    """Without gaps and stretches that are too short to be steps."""
    out = flags.copy()
    for first, last in runs(~out):
        if last - first <= round(_GAP_S * rate_hz) and first > 0 and last < len(out):
            out[first:last] = True
    for first, last in runs(out):
        if last - first < round(_SHORTEST_S * rate_hz):
            out[first:last] = False
    return out


def _between(values: FloatArray, known: NDArray[np.bool_]) -> FloatArray:
    """Values (T, 3) where known, and in between eased from one known row to the next."""
    at = np.flatnonzero(known)
    rows = np.arange(len(values))
    later = np.minimum(np.searchsorted(at, rows), len(at) - 1)
    earlier = np.maximum(np.searchsorted(at, rows, side="right") - 1, 0)
    span = np.maximum(at[later] - at[earlier], 1)
    s = np.clip((rows - at[earlier]) / span, 0.0, 1.0)[:, None]
    share = s * s * (3.0 - 2.0 * s)
    return (1.0 - share) * values[at[earlier]] + share * values[at[later]]


def _turn(vector: FloatArray) -> FloatArray:
    """Quaternions (T, 4) of rotation vectors (T, 3)."""
    angle = np.linalg.norm(vector, axis=1, keepdims=True)
    axis = vector / np.maximum(angle, 1e-12)
    return np.concatenate([np.cos(0.5 * angle), np.sin(0.5 * angle) * axis], axis=1)


def _least_height(pos: FloatArray, quat: FloatArray, ground: FloatArray, shape: Shape, foot: int) -> FloatArray:
    """Height of the ankle at which the lowest point of the foot touches, (T,)."""
    _, local, radius = shape.tree.feet[foot]
    arms = rotate(np.repeat(quat[:, None], len(local), axis=1), np.broadcast_to(local, (len(pos), *local.shape)))
    out: FloatArray = ground + radius - arms[..., 2].min(axis=1)
    return out
