"""RunCfg and Budget: all inputs of a run, recorded with it, and its end.

A task and a robot that were given as Python objects are recorded by name (`task_reference`, `robot_reference`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from trueup.core.documents import read_json, to_json
from trueup.core.errors import TrueupError, did_you_mean, found_instead
from trueup.policy.foreign.layout import Layout
from trueup.rl.settings import LearnerCfg, PpoCfg, settings_of
from trueup.robot.load import Robot, load_robot
from trueup.tasks.load import load_task, name_object, task_maker
from trueup.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class RunCfg:
    """Determines, with the code, every parameter that training produces; a resumed run uses the recorded RunCfg.

    task           name, FILE.py:FUNCTION, or object:NAME of a Task object that only its own process has
    nenv, threads  0: measured at the start, then recorded; threads do not change results
    robot          name or folder of a robot to train on in place of the task's own; the same joints
    params         params.json of a calibration: everything fitted is drawn from its posterior
    posterior      False: the calibration's estimate in every simulation instead of draws
    actuator       folder of a learned actuator that drives the joints
    delta          folder of a delta action that corrects the targets (`trueup calibrate delta`); not deployed
    randomize      draw the task's ranges and push; `adr`: let ranges grow with success
    learner        settings of the learner; their type selects it
    teacher        folder of the run whose policy teaches a student (`DistillCfg`)
    start          folder of the run whose networks this one begins with; the same task, joints and learner. Or a bundle
    trained_s      simulated time of the runs that it continues: ranges and late costs start as far as they were then
    layout         of a bundle that was trained elsewhere: its observations and actions
    """

    task: str
    seed: int = 0
    nenv: int = 0
    threads: int = 0
    robot: str | None = None
    params: str | None = None
    posterior: bool = True
    actuator: str | None = None
    delta: str | None = None
    randomize: bool = True
    adr: bool = False
    learner: LearnerCfg = field(default_factory=PpoCfg)
    teacher: str | None = None
    start: str | None = None
    trained_s: float = 0.0
    layout: Layout | None = None


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When a run ends, and intervals of work that does not change its outcome; times include those before a resume.

    minutes, steps   whichever comes first; steps are control steps of all simulations together
    target           stop when an assessment, made every minute, reaches it; with `past_target` only record it
    save_s           between checkpoints
    film_minutes     between films, and one at the end; 0: none
    assessed         an assessment and a page follow: `minutes` holds them too
    """

    minutes: float | None = None
    steps: int | None = None
    target: float | None = None
    past_target: bool = False
    save_s: float = 30.0
    film_minutes: float = 0.0
    assessed: bool = False

    def __post_init__(self) -> None:
        for name in ("minutes", "steps"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise TrueupError(f"--{name} must be above 0, found {value:g}")


def default_learner(task: str, algorithm: str | None = None) -> LearnerCfg:
    """The settings that the task itself names, or those of another algorithm ("ppo", "sac", FILE.py:CFG)."""
    own = load_task(task).learner
    if algorithm is None or algorithm == own.algorithm:
        return own
    return settings_of(algorithm)()


def with_options(cfg: LearnerCfg, options: dict[str, Any]) -> LearnerCfg:
    """Settings with some replaced, e.g. {"gamma": 0.98, "net.latent": 8}; values as in JSON, or as text."""
    content = msgspec.to_builtins(cfg)
    for name, value in options.items():
        *groups, last = name.split(".")
        place: Any = content
        for group in groups:
            place = place.get(group) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last not in place or last == "algorithm":
            known = did_you_mean(last, sorted(place if isinstance(place, dict) else content))
            raise TrueupError(f"{cfg.algorithm} has no option {name!r}{known}")
        place[last] = value
    try:
        return msgspec.convert(content, type(cfg), strict=False)
    except msgspec.ValidationError as error:
        raise TrueupError(f"{cfg.algorithm} cannot take {options}: {error}") from None


def write_config(cfg: RunCfg) -> str:
    """As JSON text; `learner` holds its `algorithm`, by which it is read again."""
    return to_json(cfg).decode()


def read_config(path: Path) -> RunCfg:
    """Read what `write_config` wrote."""
    if not path.is_file():
        found = found_instead(path.parent)
        raise TrueupError(f"no run here: {found}; `trueup train TASK --out RUN` makes one", file=path.parent)
    content = read_json(path, dict[str, Any], "run's config")
    if "learner" not in content:
        raise TrueupError("this run is of an earlier version of trueup: it names no learner", file=path)
    try:
        return msgspec.convert(content, RunCfg, dec_hook=_read_learner)
    except msgspec.MsgspecError as error:
        raise TrueupError(f"is not a run's config: {error}", file=path) from None


def _read_learner(kind: type[Any], content: Any) -> LearnerCfg:
    """Called for the one type that msgspec does not know: LearnerCfg."""
    algorithm = content.get("algorithm") if isinstance(content, dict) else None
    try:
        return msgspec.convert(content, settings_of(str(algorithm)))
    except TrueupError as error:
        raise msgspec.ValidationError(str(error)) from None


def task_reference(task: str | Task | Callable[[], Task]) -> str:
    """A name for `load_task`: of a built-in task, FILE.py:FUNCTION of a function, or object:NAME of any other Task.

    An object:NAME exists in this process only: such a run is assessed, filmed and resumed here, and in another
    process after `tu.train(task, out=RUN, resume=True)` with the same Task.
    """
    if isinstance(task, str):
        return task
    if isinstance(task, Task):
        return name_object(task)
    file = inspect.getsourcefile(task)
    named = file is not None and Path(file).is_file() and task.__qualname__.isidentifier()
    if file is None or not named or task.__module__.startswith("trueup."):
        return name_object(task())  # built in, or of a notebook or within another function: no file can be named
    return f"{Path(file).absolute()}:{task.__qualname__}"


def with_motions(task: str, motions: tuple[str, ...]) -> str:
    """The reference of a tracking task that follows these motions: TASK:MOTION,MOTION; files by their whole path."""
    if not motions:
        return task
    if "motions" not in inspect.signature(task_maker(task)).parameters:
        raise TrueupError(f"task {task!r} follows no motion: --motion is for tracking tasks (g1-track, go2-track)")
    names = [part for name in motions for part in ([name] if Path(name).is_file() else name.split(","))]
    places = [str(Path(name).absolute()) if Path(name).is_file() else name for name in names]
    if any("," in place for place in places):
        raise TrueupError("the path of a motion must have no comma", file=next(p for p in places if "," in p))
    return f"{task}:{','.join(places)}"


def robot_reference(robot: Robot | str | Path | None) -> str | None:
    """A name for `load_robot`; refuses a Robot object that differs from its files."""
    if not isinstance(robot, Robot):
        return None if robot is None else str(robot)
    options = ",".join(f"{name}={value}" for name, value in robot.options.items())
    path = robot.model_path.absolute()
    places = [robot.spec.name] if robot.built_in else [str(path.parent), str(path)]
    for place in places:
        reference = f"{place}:{options}" if options else place
        try:
            if load_robot(reference, root=robot.root).spec == robot.spec:
                return reference
        except TrueupError:
            continue
    raise TrueupError(
        f"robot {robot.spec.name!r} was changed in Python, and a run must be able to load it again: write the change "
        "into a robot folder (spec.toml beside the model) and give the folder",
        file=robot.model_path,
    )
