"""The Python face of verbs whose results can be shown: the command line calls these and prints.

Functions without a page of their own (`load_robot`, `replay`, ...) are reached through `trueup` directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueup.calibrate import calibrate as stage
from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.folder import RungResult
from trueup.calibrate.actuator.ladder import Ladder, run_ladder
from trueup.calibrate.calibrate import Fit
from trueup.calibrate.config import CalibrateCfg, Tie
from trueup.calibrate.export import Export, Format, export_calibration
from trueup.calibrate.fit.fit import Progress
from trueup.calibrate.score_logs import LogScores, score_logs
from trueup.data.check import check
from trueup.data.check.finding import Report
from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.record.session import record as record  # the stage's own function is the verb
from trueup.report.calibration.actuators import ladder_text, write_ladder_page
from trueup.report.calibration.calibrate import fit_text, write_fit_page
from trueup.report.calibration.score_logs import scores_text, write_scores_page
from trueup.robot.load import Robot, load_robot
from trueup.robot.reference import log_reference
from trueup.world.fitted.calibration import Calibration, Word, read_calibration, write_calibration

Logs = Sequence[Log | str | Path] | Log | str | Path

if TYPE_CHECKING:
    from trueup.policy.foreign.layout import Layout
    from trueup.rl.settings import LearnerCfg
    from trueup.tasks.task import Task
    from trueup.train.play.play import TrainedRun


@dataclass(frozen=True, kw_only=True)
class CalibratedFit(Fit):
    """A fit that can be looked at: `table()`, `verdicts`, `report("fit.html")`, `export("isaaclab", "out/")`."""

    robot: Robot

    @property
    def verdicts(self) -> dict[str, Word]:
        """identified, bounded, weak or not visible, by parameter."""
        return {entry.parameter.label: entry.verdict for entry in self.calibration.estimates}

    def table(self) -> str:
        """Parameters with standard errors and verdicts, and the errors on held-out data, as text."""
        return fit_text(self)

    def report(self, path: str | Path) -> Path:
        """Write the page."""
        return write_fit_page(self, Path(path))

    def export(self, to: Format, out: str | Path) -> Export:
        """Write the calibrated robot for a simulator."""
        return export_calibration(self.robot, self.calibration, to, out)


def calibrate(
    robot: Robot | str,
    logs: Logs,
    cfg: CalibrateCfg | None = None,
    *,
    params: str | None = None,
    tie: Tie | None = None,
    holdout: Sequence[Log | str | Path] = (),
    mapping: str | None = None,
    start: Calibration | str | Path | None = None,
    progress: Progress | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
) -> CalibratedFit:
    """Fit a robot's simulator to logs (or files of them); `params` and `tie` stand for those of `cfg`.

    The other options are those of `trueup.calibrate.calibrate.calibrate`.
    """
    cfg = cfg or CalibrateCfg()
    cfg = replace(cfg, params=params or cfg.params, tie=tie or cfg.tie)
    robot = _robot(robot)
    fit = stage.calibrate(
        robot,
        _logs(logs, mapping),
        cfg,
        holdout=_logs(holdout, mapping),
        start=read_calibration(start) if isinstance(start, str | Path) else start,
        progress=progress,
        folder=folder,
        resume=resume,
    )
    return CalibratedFit(robot=robot, **_fields(fit))


@dataclass(frozen=True, kw_only=True)
class ShownLadder(Ladder):
    """A ladder that can be looked at: `table()`, `recommended`, `report("ladder.html")`."""

    @property
    def recommended(self) -> str:
        """Name of the rung to use."""
        return self.file.recommendation.rung

    def table(self) -> str:
        """Every rung with its errors on unseen data, and the recommendation, as text."""
        return ladder_text(self)

    def report(self, path: str | Path) -> Path:
        """Write the page."""
        return write_ladder_page(self, Path(path))


def actuator(
    robot: Robot | str,
    logs: Logs,
    cfg: LadderCfg | None = None,
    *,
    rungs: str | None = None,
    holdout: Sequence[Log | str | Path] = (),
    mapping: str | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    on_rung: Callable[[RungResult], None] | None = None,
) -> ShownLadder:
    """Fit actuator models from ideal PD to learned ones and recommend one; `rungs` stands for that of `cfg`.

    The other options are those of `trueup.calibrate.actuator.ladder.run_ladder`.
    """
    cfg = cfg or LadderCfg()
    ladder = run_ladder(
        _robot(robot),
        _logs(logs, mapping),
        replace(cfg, rungs=rungs or cfg.rungs),
        holdout=_logs(holdout, mapping),
        folder=folder,
        resume=resume,
        progress=progress,
        on_rung=on_rung,
    )
    return ShownLadder(**_fields(ladder))


@dataclass(frozen=True, kw_only=True)
class ScoredLogs(LogScores):
    """Scores that can be looked at: `table()`, `report("logs.html")`."""

    def table(self) -> str:
        """Errors per log and per joint as text."""
        return scores_text(self)

    def report(self, path: str | Path) -> Path:
        """Write the page."""
        return write_scores_page(self, path)


def score(
    robot: Robot | str, logs: Logs, *, params: Calibration | Fit | str | Path | None = None, mapping: str | None = None
) -> ScoredLogs:
    """Replay logs with a saved fit and with the nominal simulator, without a refit; see `calibrate.score_logs`."""
    fit = params.calibration if isinstance(params, Fit) else params
    fit = read_calibration(fit) if isinstance(fit, str | Path) else fit
    return ScoredLogs(**_fields(score_logs(_robot(robot), _logs(logs, mapping), fit)))


def check_log(log: Log | str | Path, robot: Robot | str | None = None, *, mapping: str | None = None) -> Report:
    """Check a log, or a file of one, by itself and against a robot; findings come worst first."""
    (given,) = _logs(log, mapping)
    return check.check_log(given, None if robot is None else log_reference(_robot(robot).spec))


def play(
    run: str | Path | None = None,
    *,
    onnx: str | Path | None = None,
    layout: Layout | None = None,
    task: str | None = None,
    film: str | Path | None = None,
    seconds: float | None = None,
    command: Sequence[float] | None = None,
    width: int = 640,
    height: int = 480,
    azimuth: float = 140.0,
    randomize: bool = False,
    seed: int = 0,
    host: str = "127.0.0.1",
    port: int = 8080,
    on_url: Callable[[str], None] = print,
    progress: Callable[[float], None] | None = None,
) -> Path | None:
    """Watch the policy of a run, or an ONNX policy of others with its layout and a task.

    film      write a film of `seconds` (default 10) and return its path; None: serve a live page until Ctrl-C, or for
              `seconds`; `on_url` is told its address
    command   what to ask for throughout, in the columns of the goal's sliders; None: as the task draws it
    """
    from trueup.train.play.play import open_policy
    from trueup.train.play.show import film_policy
    from trueup.view.camera import CameraCfg

    env, policy = open_policy(run, onnx=onnx, layout=layout, task=task, randomize=randomize, seed=seed)
    if film is None:
        from trueup.train.live.live import serve_live

        serve_live(env, policy, host=host, port=port, seconds=seconds, command=command, on_url=on_url)
        return None
    return film_policy(
        env,
        policy,
        Path(film),
        seconds=seconds or 10.0,
        width=width,
        height=height,
        camera=CameraCfg(azimuth=azimuth),
        command=command,
        progress=progress,
    )


def _robot(robot: Robot | str) -> Robot:
    return load_robot(robot) if isinstance(robot, str) else robot


def _logs(logs: Logs, mapping: str | None) -> list[Log]:
    given = [logs] if isinstance(logs, Log | str | Path) else logs
    return [log if isinstance(log, Log) else read_log(log, mapping) for log in given]


def _fields(result: Fit | Ladder | LogScores) -> dict[str, Any]:
    return {entry.name: getattr(result, entry.name) for entry in fields(result)}


def train(
    task: str | Task | Callable[[], Task],
    *,
    out: str | Path | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    target: float | None = None,
    seed: int = 0,
    robot: Robot | str | Path | None = None,
    params: str | Path | Fit | Calibration | None = None,
    posterior: bool = True,
    actuator: str | Path | None = None,
    learner: LearnerCfg | str | None = None,
    nenv: int = 0,
    resume: bool = False,
) -> TrainedRun:
    """Train a policy for a task; the run is in `out` (default runs/TASK).

    task      name, FILE.py:FUNCTION, a function that returns a Task, or a Task; a Task that is not built in is known to
              this process only: to resume its run in another, give it again
    robot     in place of the task's own, with the same joints
    params    a fit, or the folder of one: everything it fitted is drawn from its posterior
    posterior False: the fit's estimate in every simulation instead of draws
    actuator  folder of a learned actuator, which then drives the joints
    learner   settings (`PpoCfg`, `SacCfg`) or the name of an algorithm; default: the task's own settings
    """
    from trueup.rl.settings import LearnerCfg
    from trueup.tasks.load import load_task, name_object
    from trueup.tasks.task import Task
    from trueup.train.config import Budget, RunCfg, default_learner, robot_reference, task_reference
    from trueup.train.folder import RunFolder
    from trueup.train.play.play import TrainedRun
    from trueup.train.train import train as train_run

    name = task_reference(task)
    path = Path(out) if out is not None else Path("runs") / (task if isinstance(task, str) else load_task(name).name)
    if resume and isinstance(task, Task):
        name = name_object(task, RunFolder(path).config().task)
    fit = params.calibration if isinstance(params, Fit) else params
    if isinstance(fit, Calibration):
        fit = path / "params" if resume else write_calibration(fit, path / "params")
    cfg = RunCfg(
        task=name,
        seed=seed,
        nenv=nenv,
        robot=robot_reference(robot),
        params=None if fit is None else str(fit),
        posterior=posterior,
        actuator=None if actuator is None else str(actuator),
        learner=learner if isinstance(learner, LearnerCfg) else default_learner(name, learner),
    )
    budget = Budget(minutes=minutes, steps=steps, target=target)
    return TrainedRun(path=path, outcome=train_run(cfg, path, budget, resume=resume))
