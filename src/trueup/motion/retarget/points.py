"""Key points: where the joints of a person (or of another robot) are over time, by their role, and things around them.

Names of skeletons differ; roles do not: `left_knee` is `LeftLeg` of LAFAN1, `left_knee` of SMPL, `mixamorig:LeftLeg`.
The pelvis is the middle of the hips, the chest the middle of the shoulders, whatever a skeleton calls so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.motion import Motion

SIDES = ("left", "right")
_LIMBS = ("hip", "knee", "ankle", "shoulder", "elbow", "wrist")
NEEDED = tuple(f"{side}_{limb}" for limb in _LIMBS for side in SIDES)
OPTIONAL = ("left_toe", "right_toe", "head")
# of the left side; the first that a skeleton has and no earlier role took
_ALIASES = {
    "hip": ("leftupleg", "lefthip", "leftthigh", "lhip", "lthigh", "lhipjoint", "lefthiprolllink"),
    "knee": ("leftleg", "leftknee", "leftshin", "leftcalf", "lknee", "lshin", "lcalf", "leftkneelink"),
    "ankle": ("leftankle", "lankle", "leftfoot", "lfoot", "leftanklerolllink"),
    "toe": ("lefttoe", "lefttoebase", "ltoe", "leftfoot", "lfoot"),
    "shoulder": ("leftarm", "leftupperarm", "leftshoulder", "lshoulder", "lupperarm", "leftshoulderrolllink"),
    "elbow": ("leftforearm", "leftelbow", "leftlowerarm", "lelbow", "lforearm", "leftelbowlink"),
    "wrist": ("leftwrist", "lwrist", "lefthand", "lhand", "leftwristyawlink"),
}
_HEAD = ("head", "headtop", "headend")


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A box that the body touches or stands on: half sizes (3,), and its pose over time (T, 3), (T, 4)."""

    name: str
    size: FloatArray
    pos: FloatArray
    quat: FloatArray


@dataclass(frozen=True, kw_only=True)
class KeyPoints:
    """`pos` (T, n, 3) in the world, z up, ground at z = 0, one column for each of `names`, which are roles."""

    rate_hz: float
    names: tuple[str, ...]
    pos: FloatArray
    things: tuple[Thing, ...] = ()
    source: str = ""

    def __len__(self) -> int:
        return len(self.pos)

    def of(self, name: str) -> FloatArray:
        """One point over time, (T, 3); the pelvis and the chest are middles."""
        middles = {"pelvis": "hip", "chest": "shoulder"}
        if name in middles:
            left, right = (self.of(f"{side}_{middles[name]}") for side in SIDES)
            return 0.5 * (left + right)
        return self.pos[:, self.names.index(name)]


def key_points(motion: Motion, said: Mapping[str, str] | None = None) -> KeyPoints:
    """Points of a skeleton's motion by their roles; `said`: role -> name in the file, where it is not found alone."""
    given = dict(said or {})
    unknown = [role for role in given if role not in (*NEEDED, *OPTIONAL)]
    if unknown:
        raise TrueupError(f"no key point is called {unknown[0]!r} (known: {', '.join((*NEEDED, *OPTIONAL))})")
    names = {_plain(name): k for k, name in reversed(list(enumerate(motion.body_names)))}
    found: dict[str, int] = {}
    for role in (*NEEDED, *OPTIONAL):
        wanted = (_plain(given[role]),) if role in given else _words(role)
        place = next((names[word] for word in wanted if word in names and names[word] not in found.values()), None)
        if place is not None:
            found[role] = place
        elif role in given or role in NEEDED:
            what = f"{given[role]!r}" if role in given else f"the {role.replace('_', ' ')}"
            raise TrueupError(
                f"finds no {what} among the skeleton's points ({', '.join(motion.body_names[:30])}): name it with "
                f"--points {role}=NAME"
            )
    return KeyPoints(
        rate_hz=motion.rate_hz, names=tuple(found), pos=motion.body_pos[:, list(found.values())], source=motion.source
    )


def _words(role: str) -> tuple[str, ...]:
    if role == "head":
        return _HEAD
    side, limb = role.split("_")
    words = _ALIASES[limb]
    if side == "left":
        return words
    return tuple(re.sub(r"^left|^l", "right" if word[:4] == "left" else "r", word) for word in words)


def _plain(name: str) -> str:
    """A name without prefixes and signs: mixamorig:LeftUpLeg and Left_Up_Leg are the same."""
    return re.sub(r"[^a-z]", "", name.rpartition(":")[2].lower())


def with_things(points: KeyPoints, path: str | Path) -> KeyPoints:
    """The points with the boxes of an npz: `names`, `size` (k, 3) half sizes in m, `pos` (T, k, 3), `quat` (T, k, 4).

    `pos` and `quat` of one row stand still: terrain.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            names = [str(name) for name in file["names"].tolist()]
            size, pos, quat = (np.asarray(file[key], np.float64) for key in ("size", "pos", "quat"))
    except FileNotFoundError:
        raise TrueupError("no such file", file=path) from None
    except Exception as error:  # zipfile, zlib and the parser of array headers raise a dozen kinds
        raise TrueupError(f"needs arrays names, size, pos and quat: {str(error)[:200]}", file=path) from None
    rows, count = len(points), len(names)
    fits = size.shape == (count, 3) and pos.shape[1:] == (count, 3) and quat.shape[1:] == (count, 4)
    if not fits or len(pos) not in (1, rows) or len(quat) != len(pos):
        raise TrueupError(
            f"{count} boxes over {rows} rows need size (k, 3), pos (T, k, 3), quat (T, k, 4) with T 1 or {rows}, found "
            f"{size.shape}, {pos.shape}, {quat.shape}",
            file=path,
        )
    if not all(np.isfinite(part).all() for part in (size, pos, quat)) or (size <= 0).any():
        raise TrueupError("sizes must be positive and all numbers finite", file=path)
    unit = quat / np.linalg.norm(quat, axis=2, keepdims=True)
    whole = (np.broadcast_to(part, (rows, *part.shape[1:])) for part in (pos, unit))
    at, turn = whole
    things = tuple(
        Thing(name=name, size=size[k], pos=at[:, k].copy(), quat=turn[:, k].copy()) for k, name in enumerate(names)
    )
    return replace(points, things=things)
