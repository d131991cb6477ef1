"""Learned rungs: which trainer makes which net, on the simulator that `pace` has fitted, and what they predict.

Trainers need torch, which takes seconds to load: they are imported when one is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.actuator.rungs import Rung, UanMethod
from trueup.calibrate.fit.fit import Progress
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What a net learns from.

    base    calibration of the simulator around it
    state   folder for the state of a training under way; None: not kept
    """

    robot: Robot
    logs: Sequence[Log]
    base: Calibration
    physics_hz: float
    seed: int
    uan_method: UanMethod
    state: Path | None
    resume: bool
    progress: Progress


def training_of(rung: Rung, uan_method: UanMethod) -> str:
    """Settings of a learned rung's training, as text; "" for others."""
    if rung.kind == "residual":
        from trueup.calibrate.nets.uan.uan import UanCfg

        return repr(UanCfg(method=uan_method))
    if rung.kind == "torque":
        from trueup.calibrate.actuator.actuator_fit import FORMS

        return repr(FORMS[rung.net])  # type: ignore[index]
    return ""


def train_net(rung: Rung, lesson: Lesson) -> ActuatorNet:
    """Train the net of a rung; raises KeyboardInterrupt when stopped."""
    if rung.kind == "residual":
        from trueup.calibrate.nets.uan.uan import UanCfg, train_uan

        return train_uan(
            lesson.robot,
            lesson.logs,
            lesson.base,
            UanCfg(method=lesson.uan_method, physics_hz=lesson.physics_hz, seed=lesson.seed),
            lesson.progress,
            folder=lesson.state,
            resume=lesson.resume,
        )
    from trueup.calibrate.actuator.actuator_fit import FORMS, train_supervised

    cfg = replace(FORMS[rung.net], seed=lesson.seed)  # type: ignore[index]
    return train_supervised(lesson.robot, lesson.logs, lesson.base, cfg, lesson.progress)


def torque_left(net: ActuatorNet, log: Log) -> FloatArray:
    """(T, njoint) measured torque that a torque net does not predict from the log's own motion, N m."""
    from trueup.calibrate.actuator.actuator_fit import make_samples

    samples = make_samples([log], net.spec)
    return net(samples.inputs.astype(np.float64)) - samples.torque
