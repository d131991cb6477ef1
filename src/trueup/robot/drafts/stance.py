"""How a robot stands: the branches that leave its base, the shapes it stands on. For drafting a spec."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.robot.shapes import lowest_place

FloatArray = NDArray[np.float64]

# As plain numbers: `in` asks the enum, which never equals an element of an array.
HINGE, SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
_SOLE_M = 0.01  # shapes that end this close above a foot's lowest point belong to its sole


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


def last_parts(model: mujoco.MjModel, joints: list[int]) -> list[int]:
    """The moving parts (by their weld body) that carry no other: feet, hands, tools."""
    moving = {int(model.body_weldid[model.jnt_bodyid[joint]]) for joint in joints}
    carriers = {int(model.body_weldid[model.body_parentid[body]]) for body in moving}
    return sorted(moving - carriers)


def find_feet(model: mujoco.MjModel, joints: list[int], low: dict[int, float]) -> list[int]:
    """The lowest shape of each last moving part that comes near the ground.

    low  height of the lowest point of every shape that can touch something
    """
    ground = min(low.values(), default=0.0)
    feet = []
    for body in last_parts(model, joints):
        shapes = [geom for geom in low if model.body_weldid[model.geom_bodyid[geom]] == body and model.geom(geom).name]
        if shapes:
            lowest = min(shapes, key=lambda geom: low[geom])
            if low[lowest] - ground < 0.02 + 0.15 * abs(ground):
                feet.append(lowest)
    return feet


def in_order(data: mujoco.MjData, feet: list[int]) -> list[int]:
    """Four feet as front left, front right, rear left, rear right (x forward, y left); others as they are."""
    if len(feet) != 4:
        return feet
    by_x = sorted(feet, key=lambda foot: -float(data.geom_xpos[foot][0]))
    pairs = (by_x[:2], by_x[2:])
    return [foot for pair in pairs for foot in sorted(pair, key=lambda foot: -float(data.geom_xpos[foot][1]))]


def ground_geoms(model: mujoco.MjModel, base: int, feet: list[int], low: dict[int, float]) -> list[int]:
    """The shapes of the base, and those of the parts with feet that reach as low as the foot itself.

    None without feet (then all are kept). Shins are left out: one that brushes the ground is no fall.
    """
    if not feet:
        return []
    weld = model.body_weldid[model.geom_bodyid]
    sole = {int(weld[foot]): low[foot] for foot in feet}
    trunk = int(model.body_weldid[base])
    return [
        geom
        for geom in low
        if model.geom(geom).name
        and (int(weld[geom]) == trunk or low[geom] < sole.get(int(weld[geom]), -np.inf) + _SOLE_M)
    ]


def stance_load(model: mujoco.MjModel, data: mujoco.MjData, feet: list[int]) -> FloatArray:
    """Torques (nv,) that hold the pose while the feet share the weight evenly: gravity - J^T f. `data` is evaluated."""
    load: FloatArray = data.qfrc_bias.copy()
    jacobian = np.zeros((3, model.nv))
    share = float(model.body_mass.sum() * np.linalg.norm(model.opt.gravity)) / max(len(feet), 1)
    for foot in feet:
        place = lowest_place(model, data, foot)
        mujoco.mj_jac(model, data, jacobian, None, place, int(model.geom_bodyid[foot]))
        load -= share * jacobian[2]
    return load
