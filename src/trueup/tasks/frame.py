"""Frame: the state of all environments after a control step, as rewards and terminations see it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Bool = NDArray[np.bool_]


def _none() -> Float32:
    return np.zeros((0, 0), np.float32)


@dataclass(slots=True)
class Frame:
    """Arrays (nenv, ...) float32; what a robot does not have (a base, feet, a tool) is empty.

    dt             control step, s
    joint_*        position rad, velocity rad/s, servo torque N m of the last physics step
    joint_low, joint_high, torque_limit   (njoint,) of the robot
    action, last_action                   (nenv, naction) now and one step before
    command        (nenv, ncommand) as the policy sees it: eased, if the task says so
    asked          (nenv, ncommand) as it was given
    command_age    (nenv,) s since the command was given
    base_vel, base_spin, gravity          (nenv, 3) in the base frame: m/s, rad/s, unit vector
    base_height    (nenv,) above the ground below it, m
    foot_contact, touchdown               (nenv, nfoot) bool: touches now; first touched in this step
    foot_height    (nenv, nfoot) of the sole above the ground, m
    foot_vel       (nenv, nfoot, 3) world frame, m/s
    air_time       (nenv, nfoot) s since the foot left the ground; at touchdown the length of the step just ended
    swing_peak     (nenv, nfoot) highest sole since the foot left the ground, m; readable until the step after touchdown
    duty           (nenv, nfoot) share of the last second or so in which the foot touched
    body_contact   (nenv,) bool: the trunk touches something
    tool_error     (nenv, 6) command pose minus tool pose: m, rotation vector
    heights        (nenv, k) ground around the base relative to the ground below it, m
    """

    dt: float
    joint_pos: Float32 = field(default_factory=_none)
    joint_vel: Float32 = field(default_factory=_none)
    joint_torque: Float32 = field(default_factory=_none)
    joint_low: Float32 = field(default_factory=_none)
    joint_high: Float32 = field(default_factory=_none)
    torque_limit: Float32 = field(default_factory=_none)
    default_pose: Float32 = field(default_factory=_none)
    action: Float32 = field(default_factory=_none)
    last_action: Float32 = field(default_factory=_none)
    command: Float32 = field(default_factory=_none)
    asked: Float32 = field(default_factory=_none)
    command_age: Float32 = field(default_factory=_none)
    base_vel: Float32 = field(default_factory=_none)
    base_spin: Float32 = field(default_factory=_none)
    gravity: Float32 = field(default_factory=_none)
    base_height: Float32 = field(default_factory=_none)
    foot_contact: Bool = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    touchdown: Bool = field(default_factory=lambda: np.zeros((0, 0), np.bool_))
    foot_height: Float32 = field(default_factory=_none)
    foot_vel: Float32 = field(default_factory=_none)
    air_time: Float32 = field(default_factory=_none)
    swing_peak: Float32 = field(default_factory=_none)
    duty: Float32 = field(default_factory=_none)
    body_contact: Bool = field(default_factory=lambda: np.zeros(0, np.bool_))
    tool_error: Float32 = field(default_factory=_none)
    heights: Float32 = field(default_factory=_none)

    @property
    def nenv(self) -> int:
        return len(self.joint_pos)
