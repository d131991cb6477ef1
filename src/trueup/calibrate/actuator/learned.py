"""Learned rungs: which trainer makes which net, on the simulator that `pace` has fitted."""

from __future__ import annotations

from collections.abc import Sequence

from trueup.calibrate.fit import Progress
from trueup.calibrate.result import Calibration
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet
from trueup.robot.load import Robot


def train_torque(
    robot: Robot,
    logs: Sequence[Log],
    base: Calibration,
    form: str,
    physics_hz: float,
    seed: int,
    progress: Progress,
) -> ActuatorNet:
    """A model of the motor's torque, from measured torque."""
    raise TrueupError(f"no trainer for {form!r} yet: choose other --rungs, for example parametric")


def train_residual(
    robot: Robot,
    logs: Sequence[Log],
    base: Calibration,
    form: str,
    physics_hz: float,
    seed: int,
    progress: Progress,
) -> ActuatorNet:
    """A torque added to the servo's, from positions alone."""
    raise TrueupError(f"no trainer for {form!r} yet: choose other --rungs, for example parametric")
