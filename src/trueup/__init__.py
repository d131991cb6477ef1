"""trueup makes a simulator agree with a robot, trains in it, proves the policy and runs it safely.

Everything the command line does is a function here with the same name. Importing `trueup` itself is light: each name is
loaded when it is first used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trueup._version import __version__
from trueup.core.errors import TrueupError

if TYPE_CHECKING:
    from trueup.calibrate.active.plan import plan_active
    from trueup.calibrate.export import export_calibration
    from trueup.data.files import read_log, write_log_file
    from trueup.data.import_table import import_logs
    from trueup.data.log import Log
    from trueup.data.mcap.recover import recover
    from trueup.face import calibrate, check_log, play, record, score, train
    from trueup.policy.mlp import load_policy
    from trueup.robot.drafts.init import init_robot
    from trueup.robot.inspection.inspect import inspect_robot
    from trueup.robot.load import Robot, load_robot, zoo_names
    from trueup.robot.spec import RobotSpec
    from trueup.tasks.load import load_task, task_names
    from trueup.tasks.similar.init import init_task
    from trueup.world.batch import BatchSim, SimCfg
    from trueup.world.drop import drop
    from trueup.world.fitted.calibration import read_calibration
    from trueup.world.replay.replay import replay
    from trueup.world.scene.scene import Scene

# name -> module, loaded when the name is first used
_HOME = {
    "BatchSim": "trueup.world.batch",
    "Log": "trueup.data.log",
    "Robot": "trueup.robot.load",
    "RobotSpec": "trueup.robot.spec",
    "Scene": "trueup.world.scene.scene",
    "SimCfg": "trueup.world.batch",
    "check_log": "trueup.face",
    "drop": "trueup.world.drop",
    "export_calibration": "trueup.calibrate.export",
    "import_logs": "trueup.data.import_table",
    "init_robot": "trueup.robot.drafts.init",
    "init_task": "trueup.tasks.similar.init",
    "inspect_robot": "trueup.robot.inspection.inspect",
    "load_policy": "trueup.policy.mlp",
    "load_robot": "trueup.robot.load",
    "load_task": "trueup.tasks.load",
    "plan_active": "trueup.calibrate.active.plan",
    "play": "trueup.face",
    "read_calibration": "trueup.world.fitted.calibration",
    "read_log": "trueup.data.files",
    "recover": "trueup.data.mcap.recover",
    "replay": "trueup.world.replay.replay",
    "score": "trueup.face",
    "task_names": "trueup.tasks.load",
    "write_log_file": "trueup.data.files",
    "zoo_names": "trueup.robot.load",
}
# stages whose package is also the verb, see `core.verb_package`
_STAGES = ("calibrate", "record", "train")

__all__ = [
    "BatchSim",
    "Log",
    "Robot",
    "RobotSpec",
    "Scene",
    "SimCfg",
    "TrueupError",
    "__version__",
    "calibrate",
    "check_log",
    "drop",
    "export_calibration",
    "import_logs",
    "init_robot",
    "init_task",
    "inspect_robot",
    "load_policy",
    "load_robot",
    "load_task",
    "plan_active",
    "play",
    "read_calibration",
    "read_log",
    "record",
    "recover",
    "replay",
    "score",
    "task_names",
    "train",
    "write_log_file",
    "zoo_names",
]


def verb(name: str) -> Callable[..., Any]:
    """The function that a stage's package runs when it is called."""
    function: Callable[..., Any] = getattr(importlib.import_module("trueup.face"), name)
    return function


def __getattr__(name: str) -> object:
    if name in _STAGES:
        return importlib.import_module(f"trueup.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'trueup' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
