"""`run_loop`: all stages of all rounds in their order, with the page kept up to date."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from trueup.core.documents import read_json
from trueup.core.errors import TrueupError
from trueup.core.files import make_folder, write_atomic
from trueup.hardware.drivers.open import same_twin
from trueup.loop.compare import Comparison, RoundFigures, compare, round_figures
from trueup.loop.context import Context
from trueup.loop.stage import Stage, Tell, run_stage
from trueup.loop.stages import act, learn, measure
from trueup.loop.verbs import FULL, SHORT, STAGES, Budgets, LoopVerb, StageName
from trueup.loop.workspace import ASKED, Workspace

_MAKE: dict[StageName, Callable[[Context, int], Stage]] = {
    "record": measure.record,
    "check": measure.check,
    "calibrate": measure.calibrate,
    "ladder": measure.ladder,
    "train": learn.train,
    "evaluate": learn.evaluate,
    "verify": learn.verify,
    "deploy": act.deploy,
    "gap": act.gap,
}
COMPARISON = "comparison.json"


@dataclass(frozen=True, kw_only=True)
class Looped:
    """State of a loop.

    figures      of every round that was on the robot
    comparison   of the last round with the first; None with fewer than two
    """

    workspace: Workspace
    figures: dict[int, RoundFigures]
    comparison: Comparison | None


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """The request of a workspace: fixed but for the fields after `task`."""

    robot: str
    driver: str
    task: str
    source: str
    full: bool
    rounds: int
    logs: tuple[str, ...] = ()
    params: str = "pace"
    scenarios: str | None = None


def context_of(asked: LoopVerb, budgets: Budgets | None = None) -> Context:
    """Context of a loop; refuses a workspace of another robot, driver or task."""
    if asked.last_round < 1:
        raise TrueupError(f"a loop has at least one round, found --rounds {asked.rounds}")
    if asked.from_round is not None and asked.from_ is None:
        raise TrueupError("--from-round says of which round --from is meant: name a stage with --from")
    loop = Context(asked=asked, budgets=budgets or (FULL if asked.full else SHORT), workspace=Workspace(where(asked)))
    loop.check()
    workspace = loop.workspace
    driver = "recordings" if asked.logs else same_twin(asked.driver) or asked.driver
    wanted = {"robot": loop.robot.spec.name, "driver": driver, "task": loop.task}
    file = workspace.path / ASKED
    found = asdict(read_json(file, _Asked, "workspace")) if file.exists() else wanted
    for key, value in wanted.items():
        if found[key] != value:
            told = f"this workspace is about {key} {found[key]!r}, and {value!r} was asked for"
            raise TrueupError(f"{told}; choose another --workspace", file=file)
    make_folder(workspace.path)
    how = {"source": loop.robot_words[0], "full": asked.full, "rounds": asked.last_round}
    how |= {"logs": [str(one.resolve()) for one in asked.logs], "params": asked.params, "scenarios": asked.scenarios}
    write_atomic(file, json.dumps(wanted | how, indent=1) + "\n")
    return loop


def where(asked: LoopVerb) -> Path:
    """The folder of the workspace."""
    name = f"{Path(asked.robot).name}-{'logs' if asked.logs else asked.driver}".translate(
        str.maketrans(":?&=/@", "------")
    )
    return Path(asked.workspace or Path("loops") / name)


class TimeAhead(NamedTuple):
    """Expected times, s: of a stage, and of it together with all that follow."""

    stage_s: float
    whole_s: float


def estimate(asked: LoopVerb, stage: Stage) -> TimeAhead:
    """How long a stage and all that follow it will take, at the pace that this computer showed in those before it."""
    expected, times = _expected(asked), Workspace(where(asked)).times
    at = list(expected).index((stage.round, stage.name))
    done = {key: times(*key).seconds for key in list(expected)[:at]}
    budget = sum(expected[key] for key, seconds in done.items() if seconds)
    pace = min(5.0, max(0.2, sum(done.values()) / budget)) if budget else 1.0
    left = list(expected.values())[at:]
    return TimeAhead(pace * left[0], pace * sum(left))


@lru_cache(maxsize=1)
def _expected(asked: LoopVerb) -> dict[tuple[int, str], float]:
    """Budgets of all stages that are asked for, in their order, s."""
    loop = Context(asked=asked, budgets=FULL if asked.full else SHORT, workspace=Workspace(where(asked)))
    stages = [stage_of(loop, name, k) for k in range(1, asked.last_round + 1) for name in _names(asked, k)]
    return {(one.round, one.name): 0.0 if one.absent else one.budget_s for one in stages}


def opened(path: Path) -> Context:
    """The loop of a workspace, as requested."""
    file = path / ASKED
    if not file.exists():
        raise TrueupError(f"is no workspace of `trueup loop`: {ASKED} is missing", file=path)
    facts = read_json(file, _Asked, "workspace")
    asked = LoopVerb(
        robot=facts.source, driver=facts.driver, task=facts.task, workspace=path, full=facts.full, rounds=facts.rounds,
        logs=tuple(map(Path, facts.logs)), params=facts.params, scenarios=facts.scenarios,
    )  # fmt: skip
    return Context(asked=asked, budgets=FULL if asked.full else SHORT, workspace=Workspace(path))


def run_loop(
    asked: LoopVerb,
    tell: Tell,
    on_change: Callable[[Context], None] = lambda loop: None,
    budgets: Budgets | None = None,
) -> Looped:
    """Run the stages that are not done; `on_change` is called after each; `budgets` replace the named ones."""
    loop = context_of(asked, budgets)
    with _locked(loop.workspace.path):
        _forget(loop)
        for round_ in range(1, asked.last_round + 1):
            for name in _names(asked, round_):
                before = loop.workspace.manifest(round_, name)
                if run_stage(loop.workspace, stage_of(loop, name, round_), tell) != before:
                    on_change(loop)
        looped = standing(loop)
        if looped.comparison is not None:
            write_atomic(loop.workspace.path / COMPARISON, msgspec.json.encode(asdict(looped.comparison)))
        on_change(loop)
    return looped


def stage_of(loop: Context, name: StageName, round_: int) -> Stage:
    """A stage of a round, built from the present context."""
    return _MAKE[name](loop, round_)


def standing(loop: Context) -> Looped:
    """Figures and comparison of the finished rounds."""
    figures: dict[int, RoundFigures] = {}
    for round_ in loop.workspace.rounds():
        if loop.workspace.manifest(round_, "deploy") is not None:
            found = round_figures(loop.robot, loop.folder(round_, "deploy"), loop.budgets.deploy_s)
            figures |= {} if found is None else {round_: found}
    ends = (min(figures), max(figures)) if len(figures) > 1 else None
    return Looped(
        workspace=loop.workspace,
        figures=figures,
        comparison=None if ends is None else compare(figures[ends[0]], figures[ends[1]]),
    )


def _names(asked: LoopVerb, round_: int) -> tuple[StageName, ...]:
    """Stages of a round; the last one ends with `until`."""
    return STAGES if asked.until is None or round_ < asked.last_round else STAGES[: STAGES.index(asked.until) + 1]


def _forget(loop: Context) -> None:
    """For `--from STAGE`: run that stage and those after it again; later rounds where their inputs change."""
    name, chosen = loop.asked.from_, loop.asked.from_round
    if name is None:
        return
    having = [k for k in loop.workspace.rounds() if loop.workspace.manifest(k, name) is not None]
    if chosen is not None and chosen not in having:
        done = ", ".join(map(str, having)) or "none"
        raise TrueupError(f"--from {name} --from-round {chosen}: rounds that have done {name} are {done}")
    for later in STAGES[STAGES.index(name) :] if having else ():
        shutil.rmtree(loop.workspace.folder(chosen or having[-1], later), ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One loop in a workspace at a time; the system frees the lock of a loop that was killed."""
    with (path / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise TrueupError("another loop is running in this workspace", file=path) from None
        yield
