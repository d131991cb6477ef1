"""`tu.train`, and the config that it shares with `trueup train`.

Torch, MuJoCo and the tasks are imported when something runs, so that the command line can show the flags at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Protocol

import tyro

from trueup.core.errors import TrueupError
from trueup.core.files import OutFolder, OutFolderLike, PathLike
from trueup.core.verb_package import called_with

if TYPE_CHECKING:  # Python takes objects where the command line takes their names
    from trueup.rl.settings import LearnerCfg
    from trueup.robot.load import Robot
    from trueup.tasks.task import Task
    from trueup.train.config import RunCfg
    from trueup.train.play.play import TrainedRun
    from trueup.train.trainer import Progress
    from trueup.world.fitted.calibration import Calibration

    class HasCalibration(Protocol):
        """The result of `tu.calibrate`."""

        @property
        def calibration(self) -> Calibration: ...

    TaskLike = str | Task | Callable[[], Task]
    RobotLike = str | Path | Robot
    FitLike = str | Path | Calibration | HasCalibration
    LearnerLike = str | LearnerCfg
    Resumed = str | Path | bool
else:
    TaskLike = RobotLike = str
    FitLike = Path
    LearnerLike = str
    Resumed = OutFolder


@dataclass(frozen=True)
class TrainVerb:
    """Train a policy in simulation on this computer's cores.

    In: a task (and, with --params, a calibration). Out: OUT with config.json, checkpoints, metrics.jsonl,
    TensorBoard scalars, films and a page (index.html). Ctrl-C saves and ends; --resume continues exactly where the run
    was.
    """

    task: tyro.conf.Positional[TaskLike | None] = None
    """Name of a task, e.g. go2-velocity, or FILE.py:FUNCTION of your own; left out with --resume, and with --from where
    the task stays that of the run or bundle."""
    _: KW_ONLY
    motion: tuple[str, ...] = ()
    """Motions that a tracking task follows, one or several: files, or names of `trueup motion list`."""
    out: OutFolderLike | None = None  # Folder of the run.
    minutes: float | None = None
    """Time limit of the whole run with preparation, last film, assessment and page, including time before a resume."""
    steps: int | None = None  # Stop after this many control steps of all simulations together.
    target: float | None = None
    """Stop when an assessment reaches it: error below it and no falls; for tasks without an error a score."""
    resume: Resumed | None = None  # Continue the run in this folder.
    seed: int = 0  # Of everything random.
    robot: RobotLike | None = None
    """Train on this robot (a name or your own folder) in place of the task's; it must have the same joints."""
    params: FitLike | None = None
    """Folder or params.json of a calibration: everything that was fitted is drawn from its posterior."""
    posterior: bool = True  # Draw from the calibration's posterior; --no-posterior: its estimate in every simulation.
    actuator: PathLike | None = None
    """Folder of a learned actuator (`trueup calibrate actuator`): it drives the joints."""
    delta: PathLike | None = None
    """Folder of a delta action (`trueup calibrate delta`): it corrects the targets in training and is not exported."""
    randomize: bool = True  # Draw masses, friction, delays and so on from the task's ranges, and push.
    adr: bool = False  # Automatic domain randomisation: ranges grow from the calibrated point as the policy succeeds.
    nenv: int = 0  # Simulations; 0: as suits the learner, or measured at the start.
    threads: int = 0  # Physics threads; 0: measured at the start.
    learner: LearnerLike | None = None
    """Algorithm, with its default settings: ppo, sac, or FILE.py:CFG of your own; default: the task's own algorithm and
    settings."""
    option: tuple[str, ...] = ()
    """Settings of the learner, e.g. gamma=0.98 net.actor=[64,64]; `trueup/rl/settings.py` describes them."""
    symmetry: bool | None = None
    """Augment with mirrored samples (PPO), where the task has left-right symmetry; default: the task's setting."""
    latent: int = 0  # Size of the latent that encodes the hidden factors (PPO, first phase of RMA); 0: none.
    teacher: PathLike | None = None
    """Learn from the policy of this run instead of from rewards: a student that does not see the hidden factors."""
    student: Literal["latent", "action"] = "latent"
    """What the student learns: the teacher's latent (second phase of RMA) or its actions."""
    start: Annotated[PathLike | None, tyro.conf.arg(name="from", aliases=("--start",))] = None
    """Initialise from the networks of this run (possibly trained under other parameters), or from the
    policy of a bundle (`trueup policy import`), with its own observations and actions."""
    film_minutes: float = 5.0  # Time between short films, and one at the end; 0: none.
    save_seconds: float = 30.0  # Time between checkpoints.
    replay: PathLike | None = None
    """Instead of training, repeat the step that a dump (OUT/nan) recorded because a number was not finite."""


def run(
    verb: TrainVerb,
    show: Callable[[Progress], None] = lambda progress: None,
    on_start: Callable[[RunCfg], None] = lambda cfg: None,
    *,
    began: float | None = None,
) -> TrainedRun:
    """Train a policy for a task, or continue a run; the run is in `out` (default runs/TASK).

    task      name, FILE.py:FUNCTION, a function that returns a Task, or a Task; a Task that is not built in is known to
              this process only: to resume its run in another, give it again
    robot     in place of the task's own, with the same joints
    params    a fit, or the folder of one: everything it fitted is drawn from its posterior
    learner   settings (`PpoCfg`, `SacCfg`) or the name of an algorithm; default: the task's own settings
    resume    the run's folder, or True for that in `out`

    All options are the fields of `TrainVerb`, which says what they mean, and the flags of `trueup train`.
    `began` is when a command began that goes on with an assessment and a page: `minutes` holds those too.
    """
    started = time.monotonic() if began is None else began
    from trueup.tasks.load import name_object
    from trueup.tasks.task import Task
    from trueup.train.config import Budget
    from trueup.train.folder import RunFolder
    from trueup.train.play.play import TrainedRun
    from trueup.train.train import train as train_run

    if verb.replay is not None:
        raise TrueupError("a dump is replayed by `trueup train --replay` or trueup.train.train.replay_dump")
    path = run_folder(verb)
    if verb.resume:
        cfg = RunFolder(path).config()
        if isinstance(verb.task, Task):
            name_object(verb.task, cfg.task)
    else:
        cfg = run_config(verb)
        on_start(cfg)
    budget = Budget(
        minutes=verb.minutes,
        steps=verb.steps,
        target=verb.target,
        save_s=verb.save_seconds,
        film_minutes=verb.film_minutes,
        assessed=began is not None,
    )
    outcome = train_run(cfg, path, budget, resume=bool(verb.resume), show=show, started=started)
    return TrainedRun(path=path, outcome=outcome)


train = called_with(TrainVerb, run)
_NAMELESS = "name a task and --out, or --from RUN and --out, or --resume RUN"


def run_folder(verb: TrainVerb) -> Path:
    """The folder that was named, or runs/TASK."""
    from trueup.tasks.load import load_task
    from trueup.train.config import task_reference

    named = verb.out if verb.resume is None or isinstance(verb.resume, bool) else verb.resume
    if named is not None:
        return Path(named)
    if verb.task is None:
        raise TrueupError(_NAMELESS)
    motions = "".join(f"-{Path(name).stem}" for name in verb.motion)
    name = verb.task if isinstance(verb.task, str) else load_task(task_reference(verb.task)).name
    return Path("runs") / f"{name}{motions}"


def run_config(verb: TrainVerb) -> RunCfg:
    """What the run records: objects by their names, a fit that has no file in the run's folder."""
    from trueup.policy.bundle.bundle import is_bundle
    from trueup.train.bundles.warm import warm_layout, warm_settings
    from trueup.train.config import RunCfg, default_learner, robot_reference, with_motions
    from trueup.train.folder import RunFolder
    from trueup.world.fitted.calibration import Calibration, write_calibration

    task = with_motions(_task_name(verb), verb.motion)
    fit = getattr(verb.params, "calibration", verb.params)
    if isinstance(fit, Calibration):
        fit = write_calibration(fit, run_folder(verb) / "params")
    learner, layout, trained_s = _learner(verb, task), None, 0.0
    if verb.start is not None and is_bundle(verb.start):
        chosen = learner != default_learner(task)
        learner, layout = warm_settings(learner, verb.start, chosen=chosen), warm_layout(verb.start)
    elif verb.start is not None:
        trained_s = RunFolder(verb.start).trained_s()
    as_they_are = ("seed", "nenv", "threads", "posterior", "randomize", "adr")
    return RunCfg(
        task=task,
        robot=robot_reference(verb.robot),
        params=None if fit is None else str(fit),
        actuator=None if verb.actuator is None else str(verb.actuator),
        delta=None if verb.delta is None else str(verb.delta),
        learner=learner,
        layout=layout,
        teacher=None if verb.teacher is None else str(verb.teacher),
        start=None if verb.start is None else str(verb.start),
        trained_s=trained_s,
        **{name: getattr(verb, name) for name in as_they_are},
    )


def _task_name(verb: TrainVerb) -> str:
    """The task that was named, or that of the run or bundle that the training starts from."""
    from trueup.policy.bundle.bundle import is_bundle, load_bundle
    from trueup.train.config import task_reference
    from trueup.train.folder import RunFolder

    if verb.task is not None:
        return task_reference(verb.task)
    if verb.start is None:
        raise TrueupError(_NAMELESS)
    bundle = is_bundle(verb.start)
    found = load_bundle(verb.start).passport.policy.task if bundle else RunFolder(verb.start).config().task
    return found.partition(":")[0] if verb.motion else found


def _learner(verb: TrainVerb, task: str) -> LearnerCfg:
    """The task's settings or the learner's own, with the options given; a student's with a teacher."""
    from trueup.rl.settings import DistillCfg, LearnerCfg, with_reference
    from trueup.train.config import default_learner, with_options

    if verb.teacher is not None:
        cfg: LearnerCfg = DistillCfg(kind=verb.student)
    else:
        cfg = verb.learner if isinstance(verb.learner, LearnerCfg) else default_learner(task, verb.learner)
    options: dict[str, object] = {} if verb.symmetry is None else {"symmetry": verb.symmetry}
    if verb.latent:
        options["net.latent"] = verb.latent
    for text in verb.option:
        name, equals, value = text.partition("=")
        if not equals:
            raise TrueupError(f"--option takes NAME=VALUE, found {text!r}")
        try:
            options[name] = json.loads(value)
        except ValueError:  # a word
            options[name] = value
    return with_reference(with_options(cfg, options) if options else cfg)
