"""Figures of a legged robot made up for a test."""

from __future__ import annotations

from trueup.tasks.similar.figures import JointFigures, RobotFigures


def figures(**changes: object) -> RobotFigures:
    """A robot of 10 kg on legs of 0.3 m, twelve joints of three kinds."""
    joint = JointFigures(kind=0, torque=20.0, inertia=0.02, damping=0.1, kp=30.0, kd=0.5)
    plain: dict[str, object] = {
        "name": "a", "base": "base", "mass": 10.0, "leg": 0.3, "stand_height": 0.3, "lightest": 0.01,
        "joints": {f"j{k}": joint._replace(kind=k % 3) for k in range(12)}, "others": (), "feet": 4, "rotors": True,
        "forward": True, "diagonal": True, "trunk": True,
    }  # fmt: skip
    return RobotFigures(**(plain | changes))
