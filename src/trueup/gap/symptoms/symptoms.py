"""`tu.symptoms`: from recordings of a policy on a robot to symptoms with causes and a changed task file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.gap.symptoms.bounds import BoundsReference
from trueup.gap.symptoms.finding import Looked, Symptom, SymptomTable, write_table
from trueup.gap.symptoms.measures import measure_all
from trueup.gap.symptoms.reference import ReferenceCfg, simulate
from trueup.gap.symptoms.rules import RULES, SymptomRule
from trueup.gap.symptoms.run import Run, of_log, read_run
from trueup.gap.symptoms.task_file import write_task_file
from trueup.gap.symptoms.whole_runs import whole_runs
from trueup.policy.bundle.bundle import PolicyBundle, is_bundle, load_bundle
from trueup.robot.load import Robot, load_robot
from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.world.fitted.calibration import read_calibration

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class SymptomsCfg:
    """Settings of `symptoms`.

    bundle    the policy that ran; default: the one that the recording names, if it is still there
    task      that it was trained for; default: the one that the bundle names
    params    calibration that simulated robots are made with
    command   held throughout, for logs that do not tell what was asked: (ncommand,)
    robots    simulated, of each kind; 0: bounds of the robot's limits alone
    """

    bundle: str | Path | PolicyBundle | None = None
    task: str | Task | None = None
    params: str | Path | None = None
    command: tuple[float, ...] | None = None
    out: str | Path | None = None
    robots: int = 32
    seed: int = 0
    threads: int = 1
    progress: Progress = field(default=lambda text: None, repr=False)


def symptoms(
    logs: Sequence[str | Path | Log | Run], robot: str | Robot | None = None, **options: object
) -> SymptomTable:
    """Find symptoms in recordings of a policy on a robot, their usual causes, and the changes of training.

    logs     folders of `trueup deploy`, policy.rows, logs, or runs
    robot    name, folder or Robot; default: as the recording says

    Options are the fields of `SymptomsCfg`. With `out` symptoms.json is written there, and a task file for
    `trueup train` where there are symptoms.
    """
    cfg = SymptomsCfg(**options)  # type: ignore[arg-type]
    if not logs:
        raise TrueupError("symptoms need a recording: a folder of `trueup deploy` or a log")
    known = robot if isinstance(robot, Robot) else load_robot(robot or _robot_of(logs[0]))
    command = None if cfg.command is None else np.array(cfg.command, np.float64)
    runs = [_open(one, known, command) for one in logs]
    bundle, notes = _bundle(cfg, runs)
    task, source = _task(cfg, bundle)
    if task is None:
        notes.append("without the policy's task there is no task file: name it with --task")
    told: dict[str, Symptom] = {}
    looked: dict[tuple[str, str], Looked] = {}
    for group in _groups(runs):
        cfg.progress(f"{len(group)} runs, {_asked(group[0])}")
        symptoms_, seen = judge(_reference(group, known, bundle, task, cfg))
        for one in symptoms_:
            told.setdefault(one.name, one)
        for each in seen:
            key = (each.name, each.quantity)
            looked[key] = each if key not in looked or each.told else looked[key]
    table = SymptomTable(
        robot=known.spec.name, runs=tuple(run.name for run in runs), symptoms=tuple(told.values()),
        looked=tuple(looked.values()), reference=cfg.robots if bundle is not None and task is not None else 0,
        task=source, notes=tuple(notes),
    )  # fmt: skip
    return table if cfg.out is None else _written(table, task, source, cfg.out)


def judge(reference: BoundsReference) -> tuple[list[Symptom], list[Looked]]:
    """Apply every rule to one group of runs with the same command."""
    told, looked = whole_runs(reference)
    for rule in RULES:
        symptom, seen = _judged(rule, reference)
        told += [symptom] if symptom is not None else []
        looked.append(seen)
    return told, looked


def _judged(rule: SymptomRule, reference: BoundsReference) -> tuple[Symptom | None, Looked]:
    value, bound = reference.typical(rule.quantity), rule.bound(reference)
    known = np.isfinite(value) and bound is not None
    beyond = known and bound is not None and (value < bound.value if rule.below else value > bound.value)
    seen = Looked(
        name=rule.name, quantity=rule.quantity, unit=rule.unit, value=value if np.isfinite(value) else None,
        bound=None if bound is None else bound.value, told=bool(beyond),
    )  # fmt: skip
    if not beyond or bound is None:
        return None, seen
    task = reference.task
    symptom = Symptom(
        name=rule.name, quantity=rule.quantity, unit=rule.unit, value=value, bound=bound.value, bound_from=bound.origin,
        below=rule.below, runs=reference.values(rule.quantity), cause=rule.cause, change=rule.change,
        evidence=rule.seen.format(value=value, bound=bound.value),
        changes=() if task is None else tuple(rule.mend(task, value)),
    )  # fmt: skip
    return symptom, seen


def _reference(
    group: list[Run], robot: Robot, bundle: PolicyBundle | None, task: Task | None, cfg: SymptomsCfg
) -> BoundsReference:
    runs = {run.name: found for run, found in zip(group, measure_all(group, robot), strict=True)}
    if bundle is None or task is None or cfg.robots == 0:
        return BoundsReference(runs=runs, task=task)
    fit = None if cfg.params is None else read_calibration(cfg.params)
    how = ReferenceCfg(robots=cfg.robots, seed=cfg.seed, threads=cfg.threads, fit=fit)
    longest = max(group, key=lambda run: run.seconds)
    drawn = measure_all(simulate(bundle, task, longest, how, drawn=True), robot)
    same = measure_all(simulate(bundle, task, longest, how, drawn=False), robot) if len(group) > 1 else []
    return BoundsReference(runs=runs, drawn=drawn, same=same, task=task)


def _groups(runs: list[Run]) -> list[list[Run]]:
    """Runs grouped by command."""
    out: dict[str, list[Run]] = {}
    for k, run in enumerate(runs):
        same = [name for name in out if any(run.name == one.name for one in out[name])]
        out.setdefault(_asked(run), []).append(replace(run, name=f"{run.name} ({k + 1})") if same else run)
    return list(out.values())


def _asked(run: Run) -> str:
    """Command in the middle of a run as text, equal for equal commands."""
    if run.command is None or not len(run.command):
        return "command unknown"
    middle: FloatArray = np.median(run.command, axis=0)
    return "command " + " ".join(f"{value:.2f}" for value in middle + 0.0)


def _open(one: str | Path | Log | Run, robot: Robot, command: FloatArray | None) -> Run:
    if isinstance(one, Run):
        return one
    return of_log(one, robot, name="log", command=command) if isinstance(one, Log) else read_run(one, robot, command)


def _robot_of(one: str | Path | Log | Run) -> str:
    from trueup.data.files import read_log
    from trueup.hardware.policy_rows import FILE, read_rows

    if isinstance(one, str | Path):
        path = Path(one)
        rows = path / FILE if path.is_dir() else path.with_name(FILE)
        if rows.is_file():
            return read_rows(rows).header.robot
        one = read_log(path)
    log = one.log if isinstance(one, Run) else one
    if not log.meta.get("robot"):
        raise TrueupError("this log does not name its robot: name it with --robot")
    return str(log.meta["robot"])


def _bundle(cfg: SymptomsCfg, runs: list[Run]) -> tuple[PolicyBundle | None, list[str]]:
    if isinstance(cfg.bundle, PolicyBundle):
        return cfg.bundle, []
    place = cfg.bundle or next((run.bundle for run in runs if run.bundle is not None), None)
    if cfg.bundle is None and (place is None or not is_bundle(place)):
        return None, ["the policy's bundle is not at hand, so nothing was simulated: bounds are the robot's limits and "
                      "those of `trueup evaluate`; name it with --bundle"]  # fmt: skip
    return load_bundle(str(place)), []


def _task(cfg: SymptomsCfg, bundle: PolicyBundle | None) -> tuple[Task | None, str]:
    if isinstance(cfg.task, Task):
        return cfg.task, cfg.task.name
    name = cfg.task or (bundle.passport.policy.task if bundle is not None else "")
    return (load_task(name), name) if name else (None, "")


def _written(table: SymptomTable, task: Task | None, source: str, out: str | Path) -> SymptomTable:
    import msgspec

    if task is not None and any(one.changes for one in table.symptoms):
        table = msgspec.structs.replace(table, task_file=write_task_file(table.symptoms, task, source, out))
    write_table(table, out)
    return table
