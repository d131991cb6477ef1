"""A robot as the log validator sees it."""

from __future__ import annotations

from pathlib import Path

from trueup.data.check import check
from trueup.data.check.finding import Report
from trueup.data.files import read_logs
from trueup.data.log import Log, Reference
from trueup.robot.load import Robot, load_robot
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


def check_log(log: Log | str | Path, robot: Robot | str | None = None, *, mapping: str | None = None) -> Report:
    """Check a log, or a file of one, by itself and against a robot; findings come worst first."""
    (given,) = read_logs(log, mapping)
    return check.check_log(given, None if robot is None else log_reference(load_robot(robot).spec))
