"""Context: the inputs shared by all stages of a loop: robot, driver, task, budgets, workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trueup.core.arrays import sha256_of_file
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.own_code import is_own_code
from trueup.evaluate.exam import shipped_for
from trueup.evaluate.scenarios.suite import read_suite
from trueup.hardware.drivers.open import check_reference, same_twin
from trueup.loop.fingerprint import fingerprint
from trueup.loop.verbs import Budgets, LoopVerb
from trueup.loop.workspace import Workspace
from trueup.robot.load import Robot, load_robot
from trueup.robot.spec import spec_to_toml
from trueup.tasks.load import load_task, task_names
from trueup.tasks.task import Task
from trueup.train.folder import RunFolder

# tasks that are not named after their robot
_TASKS = {"so101": "so101-push", "z1": "z1-reach", "pendulum": "pendulum-swingup"}


def check_recordings(logs: Sequence[Path]) -> None:
    """Refuse recordings that are not there, are no .mcap files, or have the same name."""
    names = [one.name for one in logs]
    if gone := [one for one in logs if not one.is_file()]:
        near = did_you_mean(gone[0].name, (one.name for one in gone[0].parent.glob("*.mcap")))
        raise TrueupError(f"no such recording{near}", file=gone[0])
    if odd := [one for one in logs if one.suffix != ".mcap"]:
        raise TrueupError("recordings of the loop are .mcap files: `trueup data import` makes them", file=odd[0])
    if twice := [one for one in names if names.count(one) > 1]:
        told = f"two of the recordings are called {twice[0]!r}: give them names of their own"
        raise TrueupError(told, place="--logs")


@dataclass(frozen=True, kw_only=True)
class Context:
    """Context of one loop, from which its stages are built."""

    asked: LoopVerb
    budgets: Budgets
    workspace: Workspace

    @cached_property
    def robot(self) -> Robot:
        return load_robot(self.asked.robot)

    @cached_property
    def robot_words(self) -> tuple[str, ...]:
        """The robot as an argument of verbs: a built-in's name or your own robot's folder."""
        return (self.asked.robot if self.robot.built_in else str(Path(self.asked.robot).resolve()),)

    @cached_property
    def robot_facts(self) -> dict[str, str]:
        """Facts that define the robot; a change of any runs every stage again."""
        return {"name": self.robot.spec.name, "model": self.robot.model_sha256, "spec": spec_to_toml(self.robot.spec)}

    @cached_property
    def task(self) -> str:
        """The requested task, FILE.py with its absolute path; else the robot's own."""
        if self.asked.task is None:
            name = self.robot.spec.name
            return _TASKS.get(name, f"{name}-velocity")
        if is_own_code(self.asked.task):
            file, _, function = self.asked.task.rpartition(":")
            return f"{Path(file).resolve()}:{function}" if file.endswith(".py") else self.asked.task
        return self.asked.task

    def check(self) -> None:
        """Refuse what cannot be: a robot, driver, task, recording or run that there is not. Writes nothing."""
        if self.asked.logs:
            check_recordings(self.asked.logs)
        else:
            check_reference(self.asked.driver)
        spec = self.robot.spec
        if self.asked.task is None and self.task not in task_names():
            told = f"no shipped task is for {spec.name!r}, so the loop does not know what to train"
            how = "write one of your own (docs/tasks.md): --task FILE.py:FUNCTION"
            if self.is_legged:
                written = f"`trueup task init {self.asked.robot} --like go2-velocity --out mine.py` writes one"
                how = f"{written}, then --task mine.py:{spec.name}_velocity"
            raise TrueupError(f"{told}; {how}", place="--task")
        trained = self.trained
        if self.suite:
            read_suite(self.suite, (trained.robot, trained.name))
        if self.asked.start is not None:
            RunFolder(self.asked.start).newest_policy()

    @cached_property
    def task_facts(self) -> dict[str, str]:
        """Name of the task, and the hash of its file if it has one."""
        file, _, function = self.task.rpartition(":")
        return {"task": function or self.task} | ({"file": sha256_of_file(Path(file))} if file.endswith(".py") else {})

    @property
    def is_twin(self) -> bool:
        return not self.asked.logs and bool(same_twin(self.asked.driver))

    @property
    def is_legged(self) -> bool:
        return self.robot.spec.base.floating and bool(self.robot.spec.feet)

    @cached_property
    def trained(self) -> Task:
        """The task, for this robot."""
        return load_task(self.task, None if self.robot.built_in else self.robot_words[0])

    @cached_property
    def shipped(self) -> str:
        """Name of the shipped suite that tests the task; "": none does."""
        try:
            return shipped_for(self.trained)
        except TrueupError:
            return ""

    @property
    def walks(self) -> bool:
        """Whether the task commands velocities of a legged robot."""
        return self.is_legged and self.shipped == "locomotion"

    @property
    def nenv(self) -> int:
        """Number of simulations of a training; 0: the default of the task's learner."""
        return 0 if self.trained.learner.nenv else self.budgets.nenv

    @cached_property
    def suite(self) -> str:
        """Scenarios of evaluation and gate; "": the whole suite of the task, required for a robot that is no twin."""
        if self.asked.scenarios is not None:
            own = Path(self.asked.scenarios)
            return str(own.resolve()) if own.suffix else self.asked.scenarios
        return self.budgets.suite if self.is_twin and self.walks else ""

    @property
    def suite_facts(self) -> dict[str, str]:
        """Name of the scenarios, and the hash of their file if they have one."""
        own = {"scenarios": sha256_of_file(Path(self.suite))} if Path(self.suite).suffix else {}
        return {"suite": Path(self.suite).name} | own

    @property
    def unproven(self) -> str:
        """Why there is no evaluation and no gate; "": there are."""
        if self.suite or self.shipped:
            return ""
        return f"no shipped scenarios test {self.trained.name!r}; write some and name them: --scenarios FILE"

    @cached_property
    def start_facts(self) -> dict[str, str]:
        """Hash of the networks that the first round begins with."""
        if self.asked.start is None:
            return {}
        return {"start": fingerprint(RunFolder(self.asked.start).policy)}

    def train_steps(self, round_: int) -> int:
        """Control steps of a round's training."""
        if round_ == 1:
            return self.asked.train_steps or self.budgets.train_steps
        return self.asked.more_steps or self.budgets.more_steps

    def driver(self, base: str = "fixed") -> str:
        """The driver's reference; for a twin with the given base, in lock-step."""
        if not self.is_twin:
            if not self.asked.attended:
                told = f"{self.asked.driver!r} is no twin, and the loop moves a robot only while somebody stands by"
                raise TrueupError(f"{told}: --attended; or give recordings that there are: --logs", place="--driver")
            return self.asked.driver
        plain = same_twin(self.asked.driver).replace("&base=free", "")
        held = "&base=free" if base == "free" and self.robot.spec.base.floating else ""
        return f"{plain}{held}&lockstep=1"

    def folder(self, round_: int, stage: str) -> Path:
        return self.workspace.folder(round_, stage).resolve()

    def logs(self, round_: int) -> list[Path]:
        """Recordings of a round's fit: of this round and of earlier ones."""
        if self.asked.logs:
            named = [one.name for one in self.asked.logs]
            return [self.folder(1, "record") / one for one in named[: len(named) - self.held_out]]
        return [self.folder(k, "record") / "air.mcap" for k in range(1, round_ + 1)]

    def unseen(self) -> list[Path]:
        """Given recordings that are held out from the fit."""
        if not self.asked.logs:
            return []
        named = [one.name for one in self.asked.logs]
        return [self.folder(1, "record") / one for one in named[len(named) - self.held_out :]]

    @property
    def held_out(self) -> int:
        """Number of given recordings that are held out; of a single one `calibrate` holds out its end."""
        return -(-len(self.asked.logs) // 4) if len(self.asked.logs) > 1 else 0

    def fit(self, round_: int) -> Path:
        """The calibration of a round."""
        return self.folder(round_, "calibrate") / "fit"
