"""How a robot stands: the branches that leave its base, the shapes it stands on. For drafting a spec."""

from __future__ import annotations

import mujoco
import numpy as np

# As plain numbers: `in` asks the enum, which never equals an element of an array.
HINGE, SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)


def branch_sizes(model: mujoco.MjModel, base: int) -> list[int]:
    """Number of joints on each branch that leaves the base and what is welded to it."""
    root = model.body_weldid[base]
    count: dict[int, int] = {}
    for joint in np.flatnonzero(np.isin(model.jnt_type, (HINGE, SLIDE))):
        body = int(model.jnt_bodyid[joint])
        while body and model.body_weldid[model.body_parentid[body]] != root:
            body = int(model.body_parentid[body])
        count[body] = count.get(body, 0) + 1
    return list(count.values())


def find_feet(model: mujoco.MjModel, joints: list[int], low: dict[int, float]) -> list[int]:
    """The lowest shape of each last moving part that comes near the ground.

    low  height of the lowest point of every shape that can touch something
    """
    moving = {int(model.body_weldid[model.jnt_bodyid[joint]]) for joint in joints}
    carriers = {int(model.body_weldid[model.body_parentid[body]]) for body in moving}
    ground = min(low.values(), default=0.0)
    feet = []
    for body in sorted(moving - carriers):
        shapes = [
            geom
            for geom in low
            if model.body_weldid[model.geom_bodyid[geom]] == body and model.geom(geom).name
        ]
        if shapes:
            lowest = min(shapes, key=lambda geom: low[geom])
            if low[lowest] - ground < 0.02 + 0.15 * abs(ground):
                feet.append(lowest)
    return feet


def ground_geoms(model: mujoco.MjModel, base: int, feet: list[int], solid: list[int]) -> list[int]:
    """Every solid shape on the parts that carry feet, and on the base; none without feet (then all are kept)."""
    if not feet:
        return []
    weld = model.body_weldid[model.geom_bodyid]
    parts = {int(weld[geom]) for geom in feet} | {int(model.body_weldid[base])}
    return [geom for geom in solid if int(weld[geom]) in parts and model.geom(geom).name]
