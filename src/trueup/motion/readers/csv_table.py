"""CSV as retargeting tools write it: root position, root quaternion x y z w, joints in the robot's order; no header."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import numpy as np

from trueup.core.errors import TrueupError
from trueup.motion.motion import Motion
from trueup.robot.spec import RobotSpec

QuatOrder = Literal["xyzw", "wxyz"]
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:hz|fps)", re.IGNORECASE)


def read_csv(path: Path, spec: RobotSpec, rate_hz: float | None, quat: QuatOrder = "xyzw") -> Motion:
    """Read a table of 7 + njoint columns; the rate may stand in the file's name (`_60hz`)."""
    lines = path.read_text(errors="replace").splitlines()
    names = _header(lines[0]) if lines else None
    rows = _numbers(lines[1:] if names else lines, path, 2 if names else 1)
    joints = tuple(names[7:]) if names else spec.joint_names
    if rows.shape[1] != 7 + len(joints):
        raise TrueupError(
            f"has {rows.shape[1]} columns; robot {spec.name!r} needs 7 of the root and {len(joints)} of its joints: "
            "name the robot the file was made for",
            file=path,
        )
    found = _RATE.search(path.name)
    rate = rate_hz or (float(found[1]) if found else None)
    if rate is None:
        raise TrueupError("does not say its rate: give --rate", file=path)
    turn = rows[:, [6, 3, 4, 5]] if quat == "xyzw" else rows[:, 3:7]
    return Motion(
        rate_hz=rate, root_pos=rows[:, :3], root_quat=turn, joint_names=joints, joint_pos=rows[:, 7:], source=path.name
    )


def _header(line: str) -> list[str] | None:
    """Column names, if the first line has any."""
    cells = [cell.strip().strip('"') for cell in line.split(",")]
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return cells
    return None


def _numbers(lines: list[str], path: Path, first: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rows: list[list[float]] = []
    for number, line in enumerate(lines, first):
        if not line.strip():
            continue
        try:
            rows.append([float(cell) for cell in line.split(",")])
        except ValueError:
            raise TrueupError("holds something that is no number", file=path, place=f"line {number}") from None
        if len(rows[-1]) != len(rows[0]):
            what = f"{len(rows[-1])} columns, {len(rows[0])} before"
            raise TrueupError(f"has {what}", file=path, place=f"line {number}")
    if len(rows) < 2:
        raise TrueupError("has fewer than two rows", file=path)
    return np.array(rows)
