"""A robot as the log validator sees it."""

from __future__ import annotations

from trueup.data.log import Reference
from trueup.robot.spec import RobotSpec


def log_reference(spec: RobotSpec) -> Reference:
    """The facts of a spec that a log can be compared with."""
    return Reference(
        joint_names=spec.joint_names,
        position_low=spec.position_low,
        position_high=spec.position_high,
        velocity_limit=spec.velocity_limit,
        torque_limit=spec.torque_limit,
        kp=spec.kp,
        kd=spec.kd,
        default_pose=spec.default_pose,
        control_hz=spec.control_hz,
    )
