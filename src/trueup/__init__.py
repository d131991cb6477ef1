"""trueup makes a simulator agree with a robot, trains in it, proves the policy and runs it safely.

Everything the command line does is a function here with the same name. Importing `trueup` itself is light: each name is
loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from trueup._version import __version__
from trueup.core.errors import TrueupError

if TYPE_CHECKING:
    from trueup.calibrate.active.plan import plan_active
    from trueup.data.check.check import check_log
    from trueup.data.files import read_log
    from trueup.data.log import Log
    from trueup.face import calibrate, record, score, train
    from trueup.robot.drafts.init import init_robot
    from trueup.robot.inspection.inspect import inspect_robot
    from trueup.robot.load import Robot, load_robot, zoo_names
    from trueup.robot.spec import RobotSpec
    from trueup.world.batch import BatchSim, SimCfg
    from trueup.world.drop import drop
    from trueup.world.fitted.calibration import read_calibration
    from trueup.world.replay.replay import replay

__all__ = [
    "BatchSim",
    "Log",
    "Robot",
    "RobotSpec",
    "SimCfg",
    "TrueupError",
    "__version__",
    "calibrate",
    "check_log",
    "drop",
    "init_robot",
    "inspect_robot",
    "load_robot",
    "plan_active",
    "read_calibration",
    "read_log",
    "record",
    "replay",
    "score",
    "train",
    "zoo_names",
]

_HOME = {
    "BatchSim": "trueup.world.batch",
    "Log": "trueup.data.log",
    "Robot": "trueup.robot.load",
    "RobotSpec": "trueup.robot.spec",
    "SimCfg": "trueup.world.batch",
    "check_log": "trueup.data.check.check",
    "drop": "trueup.world.drop",
    "init_robot": "trueup.robot.drafts.init",
    "inspect_robot": "trueup.robot.inspection.inspect",
    "load_robot": "trueup.robot.load",
    "plan_active": "trueup.calibrate.active.plan",
    "read_calibration": "trueup.world.fitted.calibration",
    "read_log": "trueup.data.files",
    "replay": "trueup.world.replay.replay",
    "score": "trueup.face",
    "zoo_names": "trueup.robot.load",
}


# stages whose package is also the verb, see `core.verb_package`
_STAGES = frozenset({"calibrate", "record", "train"})


def __getattr__(name: str) -> object:
    if name in _STAGES:
        return importlib.import_module(f"trueup.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'trueup' has no attribute {name!r}")
