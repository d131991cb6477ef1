"""Mend what can be mended without another retargeting: first rows that jump, joint limits, height, rate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trueup.motion.bodies import BodyMotion, BodyTree, complete
from trueup.motion.check import check_motion
from trueup.motion.motion import Motion
from trueup.robot.load import Robot

_FIRST_ROWS = 3  # a jump within them is a first pose of something else


def mend_motion(motion: Motion, robot: Robot, tree: BodyTree | None = None) -> tuple[Motion, list[str]]:
    """The mended motion, and in words what was done to it."""
    tree, done = tree or BodyTree(robot), []
    early = [
        one.row for one in check_motion(motion, robot, tree).findings if one.code == "jump" and one.row < _FIRST_ROWS
    ]
    if early:
        drop = max(early) + 1
        motion = motion.cut(start_s=drop / motion.rate_hz)
        done.append(f"dropped the first {drop} rows, which jump")
    low, high = robot.spec.position_low, robot.spec.position_high
    held = np.clip(motion.joint_pos, low, high)
    if (held != motion.joint_pos).any():
        done.append(f"held joints within their limits: {np.abs(held - motion.joint_pos).max():.3f} rad at most")
        motion = complete(replace(motion, joint_pos=held), robot, tree)
    if tree.feet:
        heights = tree.lowest(BodyMotion(motion.body_pos, motion.body_quat)).min(axis=1)
        rise = -float(np.quantile(heights, 0.05))  # single rows may be wrong
        if abs(rise) > 1e-3:
            done.append(f"{'raised' if rise > 0 else 'lowered'} by {abs(rise) * 1e3:.0f} mm, onto the ground")
            shifted = motion.root_pos + np.array([0.0, 0.0, rise])
            motion = complete(replace(motion, root_pos=shifted), robot, tree)
    return motion, done
