"""Context: what all stages of a loop know: robot, driver, task, budgets, workspace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trueup.core.arrays import sha256_of_file
from trueup.core.errors import TrueupError
from trueup.core.own_code import is_own_code
from trueup.hardware.drivers.open import same_twin
from trueup.loop.verbs import Budgets, LoopVerb
from trueup.loop.workspace import Workspace
from trueup.robot.load import Robot, load_robot
from trueup.robot.spec import spec_to_toml

# the task of a robot whose name alone does not tell it
_TASKS = {"so101": "so101-push", "z1": "z1-reach", "pendulum": "pendulum-swingup"}


@dataclass(frozen=True, kw_only=True)
class Context:
    """One loop; everything a stage is made from."""

    asked: LoopVerb
    budgets: Budgets
    workspace: Workspace

    @cached_property
    def robot(self) -> Robot:
        return load_robot(self.asked.robot)

    @cached_property
    def robot_words(self) -> tuple[str, ...]:
        """How verbs name the robot: a built-in by its name, one's own by its folder."""
        return (self.asked.robot if self.robot.built_in else str(Path(self.asked.robot).resolve()),)

    @cached_property
    def robot_facts(self) -> dict[str, str]:
        """What makes the robot what it is; a change of either makes every stage new."""
        return {"name": self.robot.spec.name, "model": self.robot.model_sha256, "spec": spec_to_toml(self.robot.spec)}

    @cached_property
    def task(self) -> str:
        """What is asked for, FILE.py with its whole path; else the robot's own."""
        if self.asked.task is None:
            name = self.robot.spec.name
            return _TASKS.get(name, f"{name}-velocity")
        if is_own_code(self.asked.task):
            file, _, function = self.asked.task.rpartition(":")
            return f"{Path(file).resolve()}:{function}" if file.endswith(".py") else self.asked.task
        return self.asked.task

    @cached_property
    def task_facts(self) -> dict[str, str]:
        """Name of the task, and the hash of its file if it is one's own."""
        file, _, function = self.task.rpartition(":")
        return {"task": function or self.task} | ({"file": sha256_of_file(Path(file))} if file.endswith(".py") else {})

    @property
    def is_twin(self) -> bool:
        return bool(same_twin(self.asked.driver))

    @property
    def is_legged(self) -> bool:
        return self.robot.spec.base.floating and bool(self.robot.spec.feet)

    @property
    def suite(self) -> str:
        """Scenarios of evaluation and gate; "": the whole suite of the task, which a robot that is no twin is owed."""
        return self.budgets.suite if self.is_twin and self.is_legged else ""

    def train_steps(self, round_: int) -> int:
        """Control steps of a round's training."""
        if round_ == 1:
            return self.asked.train_steps or self.budgets.train_steps
        return self.asked.more_steps or self.budgets.more_steps

    def driver(self, base: str = "fixed") -> str:
        """The driver's reference; a twin with its body held as asked, in lock-step."""
        if not self.is_twin:
            if not self.asked.attended:
                told = f"{self.asked.driver!r} is no twin, and the loop moves a robot only while somebody stands by"
                raise TrueupError(
                    f"{told}: --attended, or stop before it: --until verify", place="--driver"
                )
            return self.asked.driver
        plain = same_twin(self.asked.driver).replace("&base=free", "")
        held = "&base=free" if base == "free" and self.robot.spec.base.floating else ""
        return f"{plain}{held}&lockstep=1"

    def folder(self, round_: int, stage: str) -> Path:
        return self.workspace.folder(round_, stage).resolve()

    def fit(self, round_: int) -> Path:
        """The calibration of a round."""
        return self.folder(round_, "calibrate") / "fit"
