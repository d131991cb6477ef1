"""Motion: what a body does over time, in one format for all sources.

On disk an npz without objects: `schema`, `robot`, `source`, `rate_hz`, names and arrays as below. A skeleton that has
not been retargeted has bodies and no joints.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.documents import read_npz
from trueup.core.errors import TrueupError
from trueup.core.files import replacing
from trueup.motion.rotations import continuous, spin

SCHEMA = 1
_NAMES = ("joint_names", "body_names", "foot_names")
_ARRAYS = {"joint_pos": 2, "root_pos": 2, "root_quat": 2, "body_pos": 3, "body_quat": 3, "contacts": 2}


@dataclass(frozen=True, kw_only=True)
class Motion:
    """T rows at `rate_hz`; quaternions are w x y z, positions in the world, z up, the ground at z = 0.

    joint_pos   (T, njoint) rad, in the order of `joint_names`
    root_pos, root_quat   (T, 3) m and (T, 4) of the base
    body_pos, body_quat   (T, nbody, 3) and (T, nbody, 4); may be left out: `bodies.complete` computes them
    contacts    (T, nfoot) whether each foot stands on the ground
    """

    rate_hz: float
    root_pos: FloatArray
    root_quat: FloatArray
    joint_names: tuple[str, ...] = ()
    joint_pos: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    body_names: tuple[str, ...] = ()
    body_pos: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 3)))
    body_quat: FloatArray = field(default_factory=lambda: np.zeros((0, 0, 4)))
    foot_names: tuple[str, ...] = ()
    contacts: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), bool))
    robot: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        rows = len(self.root_pos)
        shapes = {
            "root_pos": (rows, 3),
            "root_quat": (rows, 4),
            "joint_pos": (rows, len(self.joint_names)),
            "body_pos": (rows, len(self.body_names), 3),
            "body_quat": (rows, len(self.body_names), 4),
            "contacts": (rows, len(self.foot_names)),
        }
        for name, shape in shapes.items():
            found = getattr(self, name)
            if 0 in shape[1:] and found.size == 0:
                continue
            if found.shape != shape:
                raise TrueupError(f"a motion of {rows} rows needs {name} of shape {shape}, found {found.shape}")
            if not np.isfinite(found).all():
                row = int(np.argwhere(~np.isfinite(found))[0, 0])
                raise TrueupError(f"{name} is not finite in row {row}: mend or cut the motion there")
        if rows < 2 or not 0 < self.rate_hz < 1e5:
            raise TrueupError(f"a motion needs two rows or more and a rate, found {rows} rows at {self.rate_hz} Hz")

    def __len__(self) -> int:
        return len(self.root_pos)

    @property
    def seconds(self) -> float:
        return (len(self) - 1) / self.rate_hz

    @cached_property
    def joint_vel(self) -> FloatArray:
        """(T, njoint) by central differences, rad/s."""
        return np.gradient(self.joint_pos, axis=0) * self.rate_hz if len(self.joint_names) else self.joint_pos

    @cached_property
    def root_vel(self) -> FloatArray:
        """(T, 3) in the world, m/s."""
        return np.gradient(self.root_pos, axis=0) * self.rate_hz

    @cached_property
    def root_spin(self) -> FloatArray:
        """(T, 3) in the world, rad/s."""
        return spin(self.root_quat, self.rate_hz)

    def cut(self, start_s: float = 0.0, end_s: float | None = None) -> Motion:
        """The rows between two times."""
        first = round(start_s * self.rate_hz)
        last = len(self) if end_s is None else round(end_s * self.rate_hz) + 1
        rows: dict[str, Any] = {k: getattr(self, k)[first:last] for k in _ARRAYS if getattr(self, k).size}
        return replace(self, **rows)

    def resampled(self, rate_hz: float) -> Motion:
        """The same motion at another rate: linear between rows, rotations the shorter way; bodies are left out."""
        at = np.arange(int(np.floor(self.seconds * rate_hz + 1e-9)) + 1) * self.rate_hz / rate_hz
        low = np.minimum(at.astype(np.intp), len(self) - 2)
        share = (at - low)[:, None]
        quat = continuous(self.root_quat)
        mixed = [(1 - share) * x[low] + share * x[low + 1] for x in (self.root_pos, quat, self.joint_pos) if x.size]
        unit = mixed[1] / np.linalg.norm(mixed[1], axis=1, keepdims=True)
        joints = mixed[2] if len(mixed) > 2 else self.joint_pos
        about = {"robot": self.robot, "source": self.source, "joint_names": self.joint_names}
        rows: dict[str, Any] = {"root_pos": mixed[0], "root_quat": unit, "joint_pos": joints}
        return Motion(rate_hz=rate_hz, **about, **rows)  # type: ignore[arg-type]


def write_motion(motion: Motion, path: str | Path) -> Path:
    """Write a motion as npz, whole or not at all."""
    texts = {name: np.array(getattr(motion, name), dtype=np.str_) for name in _NAMES}
    about = {"schema": np.array(SCHEMA), "robot": np.array(motion.robot), "source": np.array(motion.source)}
    arrays = {name: np.asarray(getattr(motion, name)) for name in _ARRAYS}
    with replacing(path) as file:
        np.savez_compressed(file, **about, rate_hz=np.array(motion.rate_hz), **texts, **arrays)  # type: ignore[arg-type]
    return Path(path)


def read_motion(path: str | Path) -> Motion:
    """Read a motion that `write_motion` wrote; nothing is unpickled."""
    return motion_of(read_npz(path, "motion"), path)


def motion_of(arrays: dict[str, NDArray[Any]], path: str | Path) -> Motion:
    """A motion from the arrays of a file."""
    missing = {"schema", "rate_hz", "root_pos", "root_quat", "joint_pos"} - set(arrays)
    if missing:
        raise TrueupError(
            f"is no motion of this format: {sorted(missing)[0]!r} is missing; `trueup motion import` makes one",
            file=path,
        )
    kinds = {name: bool if name == "contacts" else np.float64 for name in _ARRAYS}
    try:
        if int(arrays["schema"]) != SCHEMA:
            raise TrueupError(f"schema {arrays['schema']} is not known to this version (it reads {SCHEMA})")
        names: dict[str, Any] = {name: tuple(arrays[name].tolist()) for name in _NAMES if name in arrays}
        rows = {name: arrays[name].astype(kind) for name, kind in kinds.items() if name in arrays}
        about = {name: str(arrays.get(name, "")) for name in ("robot", "source")}
        return Motion(rate_hz=float(arrays["rate_hz"]), **names, **rows, **about)  # type: ignore[arg-type]
    except (TrueupError, ValueError, TypeError) as error:
        raise TrueupError(str(error), file=path) from None
