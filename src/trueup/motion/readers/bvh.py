"""BVH: a skeleton of offsets and Euler angles, as LAFAN1 and motion capture give it, into body poses.

A skeleton is no robot: its motion has bodies and no joints, and is retargeted before it can be followed. Y up becomes
z up, centimetres become metres where the skeleton says so by its size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.motion import Motion
from trueup.motion.rotations import about_axis, multiply, rotate

_AXES = {"X": np.array([1.0, 0, 0]), "Y": np.array([0, 1.0, 0]), "Z": np.array([0, 0, 1.0])}
_Z_UP = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0])  # a quarter turn about x: y up to z up
_TALLEST_M = 3.0
MOST_BYTES = 100_000_000


@dataclass
class _Node:
    name: str
    parent: int
    offset: FloatArray = field(default_factory=lambda: np.zeros(3))
    channels: tuple[str, ...] = ()
    first: int = 0


def read_bvh(path: Path, up: str = "y", scale: float | None = None) -> Motion:
    """Poses of all joints of a BVH file; `scale` to metres, None: by the skeleton's size."""
    if path.stat().st_size > MOST_BYTES:
        raise TrueupError("is larger than 100 MB", file=path)
    words = path.read_text(errors="replace").split()
    try:
        middle = words.index("MOTION")
        nodes = _hierarchy(words[:middle])
        count, step_s = int(words[middle + 2]), float(words[middle + 5])
        channels = sum(len(node.channels) for node in nodes)
        rows = np.array(words[middle + 6 : middle + 6 + count * channels], float).reshape(count, channels)
    except (ValueError, IndexError) as error:
        raise TrueupError(f"is no BVH file: {error}", file=path) from None
    if not nodes or step_s <= 0:
        raise TrueupError("is no BVH file: no skeleton, or no frame time", file=path)
    pos, quat = _placed(nodes, rows)
    if up == "y":
        turn = np.broadcast_to(_Z_UP, quat.shape)
        pos, quat = rotate(turn, pos), multiply(turn, quat)
    if scale is None:
        scale = 0.01 if np.ptp(pos[0], axis=0).max() > _TALLEST_M else 1.0
    pos = scale * pos
    return Motion(
        rate_hz=1.0 / step_s,
        root_pos=pos[:, 0].copy(),
        root_quat=quat[:, 0].copy(),
        body_names=tuple(node.name for node in nodes),
        body_pos=pos,
        body_quat=quat,
        source=path.name,
    )


def _hierarchy(words: list[str]) -> list[_Node]:
    nodes: list[_Node] = []
    above: list[int] = []
    used, k = 0, 0
    while k < len(words):
        word = words[k]
        if word in ("ROOT", "JOINT", "End"):
            name = f"{nodes[above[-1]].name}_end" if word == "End" else words[k + 1]
            nodes.append(_Node(name, above[-1] if above else -1))
            k += 2
        elif word == "{":
            above.append(len(nodes) - 1)
            k += 1
        elif word == "}":
            above.pop()
            k += 1
        elif word == "OFFSET":
            nodes[-1].offset = np.array(words[k + 1 : k + 4], float)
            k += 4
        elif word == "CHANNELS":
            n = int(words[k + 1])
            nodes[-1].channels, nodes[-1].first = tuple(words[k + 2 : k + 2 + n]), used
            used += n
            k += 2 + n
        else:
            k += 1
    return nodes


def _placed(nodes: list[_Node], rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Positions (T, n, 3) and rotations (T, n, 4), in the file's own axes and units."""
    pos, quat = np.zeros((len(rows), len(nodes), 3)), np.zeros((len(rows), len(nodes), 4))
    quat[..., 0] = 1.0
    for k, node in enumerate(nodes):
        local, turn = np.tile(node.offset, (len(rows), 1)), quat[:, k].copy()
        for c, channel in enumerate(node.channels):
            values = rows[:, node.first + c]
            if channel.endswith("position"):
                local[:, "XYZ".index(channel[0])] = values
            else:
                turn = multiply(turn, about_axis(_AXES[channel[0]], np.radians(values)))
        if node.parent < 0:
            pos[:, k], quat[:, k] = local, turn
        else:
            above = quat[:, node.parent]
            pos[:, k] = pos[:, node.parent] + rotate(above, local)
            quat[:, k] = multiply(above, turn)
    return pos, quat
