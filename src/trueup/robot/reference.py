"""A robot as the log validator sees it."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from trueup.data.check import check
from trueup.data.check.finding import Report
from trueup.data.files import read_logs
from trueup.data.log import Log, RobotReference
from trueup.robot.load import Robot, load_robot
from trueup.robot.spec import RobotSpec


def log_reference(spec: RobotSpec) -> RobotReference:
    """The facts of a spec that a log can be compared with."""
    return RobotReference(**{field.name: getattr(spec, field.name) for field in fields(RobotReference)})


def check_log(log: Log | str | Path, robot: Robot | str | None = None, *, mapping: str | None = None) -> Report:
    """Check a log, or a file of one, by itself and against a robot; findings come worst first."""
    (given,) = read_logs(log, mapping)
    return check.check_log(given, None if robot is None else log_reference(load_robot(robot).spec))
