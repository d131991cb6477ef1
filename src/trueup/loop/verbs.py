"""Configs of `trueup loop` and `trueup board`, and the budgets of the short and the full loop."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from trueup.core.files import OutFolder

StageName = Literal["record", "check", "calibrate", "ladder", "train", "evaluate", "verify", "deploy", "gap"]
STAGES: tuple[StageName, ...] = (
    "record", "check", "calibrate", "ladder", "train", "evaluate", "verify", "deploy", "gap",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Budget of a round in steps and counts, not minutes: the outcome must not depend on the clock.

    tie           which joints share a value in the fit
    train_steps   of the first round; `more_steps`: of every later one, which continues from the last policy
    trials        of each scenario; `suite`: scenarios for walking twins, "": the whole suite of the task
    worlds        number of simulated robots of the gate's prediction
    deploy_s      of every run on the last rung
    save_s        between checkpoints of a training
    """

    record_s: float
    windows: int
    tie: str
    iterations: int
    rungs: str
    train_steps: int
    more_steps: int
    nenv: int
    trials: int
    suite: str
    worlds: int
    deploy_s: float
    second: str
    save_s: float = 15.0


SHORT = Budgets(
    record_s=16.0, windows=10, tie="none", iterations=12, rungs="pd,delay", train_steps=1_250_000, more_steps=750_000,
    nenv=512, trials=40, suite="locomotion_short", worlds=8, deploy_s=8.0, second="none",
)  # fmt: skip
FULL = Budgets(
    record_s=40.0, windows=40, tie="none", iterations=40, rungs="all", train_steps=6_000_000, more_steps=6_000_000,
    nenv=512, trials=100, suite="", worlds=60, deploy_s=20.0, second="sapien",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LoopVerb:
    """Run the whole loop in a workspace: record, calibrate, train, prove, deploy, diagnose, refit, and round again.

    In: a robot, its driver, and a task. Out: WORKSPACE with every artifact of every round, chained by hash,
    and index.html, its report. A stage whose inputs are unchanged is skipped; after a stop or kill, the same
    command continues. A robot that is no twin is moved with --attended only.
    """

    robot: tyro.conf.Positional[str]  # Built-in name, or your robot's folder or spec.
    driver: str = "twin:harmonic"  # As of `trueup record`; a twin is run in lock-step.
    logs: tuple[Path, ...] = ()
    """Recordings of the robot, in place of recording it: the last quarter of them is held out and diagnosed, nothing is
    moved, and there is one round."""
    params: str = "pace"  # Parameters to fit, as of `trueup calibrate --params`.
    task: str | None = None  # Name of a task, or FILE.py:FUNCTION; default: ROBOT-velocity, or what the robot has.
    scenarios: str | None = None
    """A suite's file or the name of a shipped one, for evaluation and gate; default: as suits the task."""
    start: Path | None = None  # A run of `trueup train` whose policy the first round continues from.
    workspace: OutFolder | None = None  # Default: loops/ROBOT-DRIVER.
    rounds: int | None = None  # Number of rounds; default: 2, with --until 1.
    from_: Annotated[StageName | None, tyro.conf.arg(name="from")] = None  # Run this stage and all after it again.
    from_round: int | None = None  # The round of --from; default: the newest that has that stage.
    until: StageName | None = None  # Stop after this stage of the last round.
    full: bool = False  # The budgets of real work (hours) instead of the short ones (minutes).
    train_steps: int | None = None  # Control steps of the first round's training; default: by the budget.
    more_steps: int | None = None  # The same for every later round, which continues from the last policy.
    seed: int = 0  # Of everything random.
    threads: int = 0  # Physics threads; 0: all cores. They do not change results.
    attended: bool = False  # Let the loop move a real robot; a person must stand by.
    page: bool = True  # Write WORKSPACE/index.html.
    films: bool = True  # With films.

    @property
    def last_round(self) -> int:
        """The last requested round."""
        if self.logs:
            return 1
        return self.rounds if self.rounds is not None else 2 if self.until is None else 1


@dataclass(frozen=True, kw_only=True)
class BoardVerb:
    """Serve the page of a workspace, written again whenever a stage ends.

    In: a workspace of `trueup loop`, running or done. Out: a page in the browser, until Ctrl-C.
    """

    workspace: tyro.conf.Positional[Path]  # Folder of `trueup loop`.
    port: int = 8095  # 0 takes a free one.
    host: str = "127.0.0.1"  # Address to listen on.
