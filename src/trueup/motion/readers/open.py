"""Any motion file by its name, or a motion of our own making by its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trueup.core.errors import TrueupError, did_you_mean
from trueup.motion.bodies import complete
from trueup.motion.made.make import MADE, make_motion
from trueup.motion.motion import Motion
from trueup.motion.readers.bvh import read_bvh
from trueup.motion.readers.csv_table import read_csv
from trueup.motion.readers.loco_mujoco import read_motion_npz
from trueup.motion.readers.pickled import read_pickled
from trueup.motion.readers.smpl import read_npy
from trueup.robot.load import Robot

SUFFIXES = (".npz", ".npy", ".csv", ".pkl", ".pickle", ".joblib", ".bvh")


@dataclass(frozen=True, kw_only=True)
class ReadCfg:
    """What a file does not say of itself.

    rate_hz  of CSV files, pickles and joint positions that do not name it
    quat     order in CSV files
    name     of the motion in a pickle that holds several
    episode  of a loco-mujoco file
    """

    rate_hz: float | None = None
    quat: Literal["xyzw", "wxyz"] = "xyzw"
    name: str | None = None
    episode: int = 0


def open_motion(reference: str | Path, robot: Robot, cfg: ReadCfg | None = None) -> Motion:
    """A motion of a robot with its body poses: a file, or the name of a made one (`squat`)."""
    text, path, cfg = str(reference), Path(reference), cfg or ReadCfg()
    if text in MADE and not path.exists():
        return make_motion(text, robot)
    motion = read_file(path, robot, cfg)
    if not motion.joint_names:
        raise TrueupError(
            f"is the motion of a skeleton ({len(motion.body_names)} bodies), not of a robot: `trueup motion "
            "retarget` gives it to a robot",
            file=path,
        )
    with _about(path):
        return complete(motion, robot)


def read_file(path: Path, robot: Robot, cfg: ReadCfg) -> Motion:
    """What a file holds, as it is."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        made = did_you_mean(str(path), MADE)
        raise TrueupError(f"no motion {str(path)!r}{made}: a file ({', '.join(SUFFIXES)}) or one of {', '.join(MADE)}")
    if not path.is_file():
        made = "`trueup motion list` names those of trueup's own making"
        raise TrueupError(f"no such motion: name a file that exists ({made})", file=path)
    with _about(path):
        if suffix == ".csv":
            return read_csv(path, robot.spec, cfg.rate_hz, cfg.quat)
        if suffix == ".bvh":
            return read_bvh(path)
        if suffix == ".npz":
            return read_motion_npz(path, cfg.episode, cfg.rate_hz)
        if suffix == ".npy":
            return read_npy(path, cfg.rate_hz)
        return read_pickled(path, robot.spec, cfg.rate_hz, cfg.name)


@contextmanager
def _about(path: Path) -> Iterator[None]:
    """Errors within are about this file: what a stranger's arrays and names may be has no end."""
    try:
        yield
    except TrueupError as error:
        raise error if error.file is not None else TrueupError(error.message, file=path, place=error.place) from None
    except (ValueError, TypeError, LookupError, ArithmeticError, OSError) as error:
        raise TrueupError(f"cannot be read as a motion: {str(error)[:200]}", file=path) from None
