"""A person of points, since no recording of one ships with the project: taller than the robot, with other proportions.

`enlarged` gives a robot's motion to the person, bone by bone, with the flaws of motion capture planted: feet that slide
and sink, noise. `lifting` lifts a box; `stepping` steps onto a low box and down on the other side.
"""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.motion.motion import Motion
from trueup.motion.retarget.points import NEEDED, SIDES, KeyPoints, Thing, key_points

RATE_HZ = 50.0
# m: a person of 1.75 m
_LENGTHS = {"thigh": 0.43, "shin": 0.42, "trunk": 0.52, "hips": 0.09, "shoulders": 0.19, "upper": 0.30, "lower": 0.26}
_BONES = (
    ("hip", "knee", "thigh"),
    ("knee", "ankle", "shin"),
    ("shoulder", "elbow", "upper"),
    ("elbow", "wrist", "lower"),
)
_ANKLE_M = 0.08


def enlarged(motion: Motion, *, slide_m_s: float = 0.0, sink_m: float = 0.0, noise_m: float = 0.0) -> KeyPoints:
    """The motion with a person's lengths; everything drifts sideways at `slide_m_s` and stands `sink_m` too low."""
    robot = key_points(motion)
    legs = [np.linalg.norm(robot.of(f"left_{a}") - robot.of(f"left_{b}"), axis=1) for a, b, _ in _BONES[:2]]
    scale = (_LENGTHS["thigh"] + _LENGTHS["shin"]) / float(np.median(np.sum(legs, axis=0)))
    ankles = np.minimum(robot.of("left_ankle")[:, 2], robot.of("right_ankle")[:, 2]).min()
    hips = scale * robot.of("pelvis")
    hips[:, 2] += _ANKLE_M - scale * ankles
    across = _unit(robot.of("left_hip") - robot.of("right_hip"))
    wide = _unit(robot.of("left_shoulder") - robot.of("right_shoulder"))
    chest = hips + _LENGTHS["trunk"] * _unit(robot.of("chest") - robot.of("pelvis"))
    pos = {}
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        pos[f"{side}_hip"] = hips + sign * _LENGTHS["hips"] * across
        pos[f"{side}_shoulder"] = chest + sign * _LENGTHS["shoulders"] * wide
        for above, below, bone in _BONES:
            way = _unit(robot.of(f"{side}_{below}") - robot.of(f"{side}_{above}"))
            pos[f"{side}_{below}"] = pos[f"{side}_{above}"] + _LENGTHS[bone] * way
    time = np.arange(len(motion))[:, None, None] / motion.rate_hz
    noise = noise_m * np.random.default_rng(0).normal(size=(len(motion), len(NEEDED), 3))
    flaws = noise + np.array([0.0, slide_m_s, 0.0]) * time - np.array([0.0, 0.0, sink_m])
    return KeyPoints(rate_hz=motion.rate_hz, names=NEEDED, pos=_stacked(pos) + flaws, source=motion.source)


def lifting(seconds: float = 4.0) -> KeyPoints:
    """A box of 0.36 x 0.3 x 0.3 m between the palms, 6 cm from the wrists, from hip to chest height and to the left."""
    time = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    share = 0.5 - 0.5 * np.cos(np.pi * np.clip((time - 0.5) / (seconds - 1.0), 0.0, 1.0))
    box = np.stack([0.42 + 0 * time, 0.12 * share, 0.85 + 0.4 * share], axis=1)
    pos = _standing(len(time))
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        wrist = box + np.array([-0.05, sign * 0.24, 0.0])
        pos[f"{side}_wrist"] = wrist
        pos[f"{side}_elbow"] = _bent(
            pos[f"{side}_shoulder"], wrist, ("upper", "lower"), np.array([0.0, sign * 0.6, -1.0])
        )
    turn = np.tile([1.0, 0, 0, 0], (len(time), 1))
    thing = Thing(name="box", size=np.array([0.15, 0.18, 0.15]), pos=box, quat=turn)
    return KeyPoints(rate_hz=RATE_HZ, names=NEEDED, pos=_stacked(pos), things=(thing,), source="lifting")


def stepping(height_m: float = 0.12) -> KeyPoints:
    """Up onto a box and down on its other side, one foot after the other; arms hang."""
    swing, rest = 0.6, 0.2
    places = [(0, 0.45, height_m), (1, 0.45, height_m), (0, 0.95, 0.0), (1, 0.95, 0.0)]
    time = np.arange(round((len(places) * (swing + rest) + 1.0) * RATE_HZ) + 1) / RATE_HZ
    feet, now, at = np.zeros((len(time), 2, 3)), 0.5, np.zeros((2, 2))
    for foot, x, z in places:
        share = np.clip((time - now) / swing, 0.0, 1.0)
        ease = share * share * (3.0 - 2.0 * share)
        feet[:, foot, 0] += (x - at[foot, 0]) * ease
        feet[:, foot, 2] += (z - at[foot, 1]) * ease + 0.15 * np.sin(np.pi * share) ** 2
        at[foot], now = (x, z), now + swing + rest
    pos = _standing(len(time), feet)
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        down = np.array([0.05, sign * 0.08, -1.0])
        pos[f"{side}_elbow"] = pos[f"{side}_shoulder"] + _LENGTHS["upper"] * _unit(down)
        pos[f"{side}_wrist"] = pos[f"{side}_elbow"] + _LENGTHS["lower"] * _unit(down + np.array([0.3, 0.0, 0.0]))
    place, turn = np.tile([0.45, 0.0, 0.5 * height_m], (len(time), 1)), np.tile([1.0, 0, 0, 0], (len(time), 1))
    thing = Thing(name="step", size=np.array([0.22, 0.4, 0.5 * height_m]), pos=place, quat=turn)
    return KeyPoints(rate_hz=RATE_HZ, names=NEEDED, pos=_stacked(pos), things=(thing,), source="stepping")


def _standing(rows: int, feet: FloatArray | None = None) -> dict[str, FloatArray]:
    """Legs and trunk over feet (T, 2, 3) relative to where they stand."""
    feet = np.zeros((rows, 2, 3)) if feet is None else feet
    low = np.minimum(feet[:, 0, 2], feet[:, 1, 2])
    kernel = np.ones(15) / 15
    low = np.convolve(np.pad(low, 7, mode="edge"), kernel, mode="valid")
    hips = np.stack([feet[:, :, 0].mean(axis=1), np.zeros(rows), _ANKLE_M + 0.80 + low], axis=1)
    pos = {}
    for k, (side, sign) in enumerate(zip(SIDES, (1.0, -1.0), strict=True)):
        pos[f"{side}_hip"] = hips + np.array([0.0, sign * _LENGTHS["hips"], 0.0])
        pos[f"{side}_ankle"] = np.array([0.0, sign * 0.1, _ANKLE_M]) + feet[:, k]
        ahead = np.array([1.0, 0.0, 0.0])
        pos[f"{side}_knee"] = _bent(pos[f"{side}_hip"], pos[f"{side}_ankle"], ("thigh", "shin"), ahead)
        pos[f"{side}_shoulder"] = hips + np.array([0.0, sign * _LENGTHS["shoulders"], _LENGTHS["trunk"]])
    return pos


def _bent(above: FloatArray, below: FloatArray, bones: tuple[str, str], out: FloatArray) -> FloatArray:
    """Where two bones from `above` to `below` (T, 3) meet, bent towards `out`."""
    a, b = (_LENGTHS[bone] for bone in bones)
    way = below - above
    span = np.minimum(np.linalg.norm(way, axis=1, keepdims=True), a + b - 1e-6)
    along = (a * a - b * b + span * span) / (2.0 * span)
    unit = _unit(way)
    side = _unit(out - (unit @ out)[:, None] * unit)
    return above + along * unit + np.sqrt(np.maximum(a * a - along * along, 0.0)) * side


def _stacked(pos: dict[str, FloatArray]) -> FloatArray:
    return np.stack([pos[name] for name in NEEDED], axis=1)


def _unit(vectors: FloatArray) -> FloatArray:
    out: FloatArray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return out
