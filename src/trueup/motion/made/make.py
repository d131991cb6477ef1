"""From the name of a made motion and a robot to the motion."""

from __future__ import annotations

from trueup.core.errors import TrueupError, did_you_mean
from trueup.motion.made.humanoid import PLANS, humanoid_motion
from trueup.motion.made.quadruped import GAITS, quadruped_motion
from trueup.motion.motion import Motion
from trueup.robot.load import Robot

MADE = (*PLANS, *GAITS)


def make_motion(name: str, robot: Robot) -> Motion:
    """Make one of MADE: those of humanoids need two feet, gaits of quadrupeds four."""
    if name not in MADE:
        raise TrueupError(f"no made motion {name!r}{did_you_mean(name, MADE)}")
    wanted, make = (2, humanoid_motion) if name in PLANS else (4, quadruped_motion)
    if not robot.spec.base.floating or len(robot.spec.feet) != wanted:
        raise TrueupError(
            f"{name!r} is a motion for {wanted} feet, robot {robot.spec.name!r} has {len(robot.spec.feet)}"
        )
    return make(name, robot)


def made_motions() -> tuple[str, ...]:
    """Names of the motions that are made here."""
    return MADE
