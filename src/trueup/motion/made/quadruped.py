"""Gaits of a quadruped: trot and pace, from a stand to a stand.

Feet stand still on the ground and swing to where the next stance has its middle below the hip; legs follow by inverse
kinematics.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.motion.bodies import BodyTree
from trueup.motion.made.ease import bump, ease
from trueup.motion.made.legs import Legs
from trueup.motion.motion import Motion
from trueup.robot.load import Robot

RATE_HZ = 50.0
# which legs swing together, by the two letters that their names begin with
GAITS: Mapping[str, tuple[tuple[str, str], tuple[str, str]]] = {
    "trot": (("FL", "RR"), ("FR", "RL")),
    "pace": (("FL", "RL"), ("FR", "RR")),
}
_PERIOD_S, _SPEED, _HEIGHT_M, _SECONDS, _RAMP_S = 0.5, 0.4, 0.06, 5.0, 1.0
_DUTY = {"trot": 0.5, "pace": 0.6}


def quadruped_motion(name: str, robot: Robot) -> Motion:
    """A gait as a motion of a robot with four point feet."""
    tree, spec = BodyTree(robot), robot.spec
    legs = Legs(tree, flat=False)
    time = np.arange(round(_SECONDS * RATE_HZ) + 1) / RATE_HZ
    speed = _SPEED * (ease(time, 0.3, 0.3 + _RAMP_S) - ease(time, time[-1] - 0.8 - _RAMP_S, time[-1] - 0.8))
    ahead = np.concatenate([[0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) / RATE_HZ)])
    stand = np.array([[0.0, 0.0, spec.base.stand_height]])
    places, _ = legs.feet(tree.place(stand, np.array([[1.0, 0, 0, 0]]), spec.default_pose[None]))
    first = GAITS[name][0]
    feet = np.tile(places[0], (len(time), 1, 1))
    for k, foot in enumerate(spec.feet):
        phase = 0.0 if foot.startswith(first) else 0.5
        feet[:, k] += _swings(time, ahead, phase, _DUTY[name])
    root_pos = np.stack([ahead, np.zeros_like(ahead), np.full_like(ahead, spec.base.stand_height)], axis=1)
    root_quat = np.tile([1.0, 0.0, 0.0, 0.0], (len(time), 1))
    joints = np.tile(spec.default_pose, (len(time), 1))
    joints = legs.reach((root_pos, root_quat), joints, feet, np.zeros((len(time), len(spec.feet), 4)))
    return legs.motion(name, RATE_HZ, (root_pos, root_quat), joints)


def _swings(time: FloatArray, ahead: FloatArray, phase: float, duty: float) -> FloatArray:
    """Way (T, 3) of a foot from where it stands at first; it swings in a share `1 - duty` of every period."""
    out = np.zeros((len(time), 3))
    swing_s, at = (1.0 - duty) * _PERIOD_S, 0.0
    start = 0.3 + phase * _PERIOD_S
    while start + swing_s < time[-1] - 0.3:
        middle = min(start + swing_s + 0.5 * duty * _PERIOD_S, time[-1])  # of the stance that follows
        place = float(np.interp(middle, time, ahead))
        out[:, 0] += (place - at) * ease(time, start, start + swing_s)
        out[:, 2] += _HEIGHT_M * bump(time, start, start + swing_s)
        at, start = place, start + _PERIOD_S
    return out
