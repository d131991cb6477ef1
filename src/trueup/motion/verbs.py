"""Configs of `trueup motion import|retarget|check|play|list`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from trueup.core.files import OutFile


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a motion file does not say of itself."""

    robot: str = "g1"  # Robot whose joints it has; g1_23 for published motions without wrists.
    rate: float | None = None  # Rows per second, for files that do not say it.
    quat: Literal["xyzw", "wxyz"] = "xyzw"  # Order of quaternions in CSV files.
    name: str | None = None  # Which motion of a pickle that holds several.
    episode: int = 0  # Which episode of a loco-mujoco file.


@dataclass(frozen=True, kw_only=True)
class ImportMotionVerb(Source):
    """Bring a motion into the one format that training takes.

    In: CSV (root, quaternion, joints), a pickle or joblib file of ASAP, PHC or a retargeting tool (nothing in it is
    run), an npz of loco-mujoco, or the name of a made motion. Out: an npz with joints, root, body poses and contacts.
    A skeleton (BVH, SMPL joint positions) is imported as bodies without joints.
    """

    motion: tyro.conf.Positional[str]  # File, or a made motion: `trueup motion list`.
    out: OutFile  # File to write (.npz).
    start: float = 0.0  # Seconds to leave out at the beginning.
    end: float | None = None  # Time of the last row, s.
    resample: float | None = None  # Rows per second of the result; default: as it is.
    mend: bool = False  # Drop first rows that jump, hold joints within limits, put it on the ground.


@dataclass(frozen=True, kw_only=True)
class RetargetVerb(Source):
    """Give the motion of a person, or of another robot, to a robot.

    In: a BVH skeleton, SMPL joint positions (npy, npz) or any motion with named bodies; with --things boxes that it
    touches or stands on. Out: an npz for training, and how good it is before and after: foot skate, penetration,
    limits, collisions. Feet are held where they stand, joints keep to their limits of position and speed, and the robot
    keeps off itself. With things the mesh between body, things and ground is kept, so that hands stay where they touch.
    """

    motion: tyro.conf.Positional[str]  # File of a skeleton or a motion.
    out: OutFile  # File to write (.npz).
    of: str | None = None  # Robot whose motion the file holds, where it has joints; default: a skeleton.
    points: tuple[str, ...] = ()  # Names that are not found alone: left_wrist=HandL right_wrist=HandR ...
    things: Path | None = None
    """Boxes: an npz with names, size (k, 3) half sizes in m, pos (T, k, 3), quat (T, k, 4); T may be 1."""
    mesh: bool | None = None  # Keep the interaction mesh; default: where there are things.
    hold: bool = True  # Hold feet while they stand.
    limits: bool = True  # Keep to limits of position and speed.
    collisions: bool = True  # Keep off itself and off things.
    steps: int = 2  # Of inverse kinematics in each row.
    start: float = 0.0  # Seconds to leave out at the beginning.
    end: float | None = None  # Time of the last row, s.
    json: bool = False  # Print one JSON object.


@dataclass(frozen=True, kw_only=True)
class CheckMotionVerb(Source):
    """Check a motion: jumps, foot skate, penetration, limits, speeds, order of quaternions.

    In: a motion file or the name of a made motion. Out: findings, worst first, with what to do; exit code 1 if the
    motion is not usable.
    """

    motion: tyro.conf.Positional[str]  # File or made motion.
    json: bool = False  # Print one JSON object.


@dataclass(frozen=True, kw_only=True)
class PlayMotionVerb(Source):
    """Watch a motion: kinematics only, no physics.

    In: a motion file or the name of a made motion. Out: a page with a live 3D view, in which it can be stopped, slowed
    down and moved to any time; or a film (--film).
    """

    motion: tyro.conf.Positional[str]  # File or made motion.
    film: OutFile | None = None  # Write a film here (.mp4 or .gif) instead of opening the live view.
    seconds: float | None = None  # Time after which the live view ends (default: at Ctrl-C).
    host: str = "127.0.0.1"  # Address the page is served at; 0.0.0.0 lets other computers look on.
    port: int = 8080  # Port the page is served at; the next free one if it is taken.


@dataclass(frozen=True, kw_only=True)
class MotionsVerb:
    """List the motions that trueup makes itself.

    Out: name, robot, length and what it is.
    """
