"""`run_ladder`: fit every rung that the logs support, score all alike, recommend the simplest that is good enough."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.costs import Timetable, measured_costs
from trueup.calibrate.actuator.fits import RungJob, common_params, fit_rung, not_excited, not_supported, training_of
from trueup.calibrate.actuator.folder import LadderFile, LadderFolder, RungResult, rung_key
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.recommend import StepCheck, in_question, recommend
from trueup.calibrate.actuator.rungs import Rung, choose, rung_named
from trueup.calibrate.actuator.score import Scores, error_of, roll, score_rung
from trueup.calibrate.actuator.trials import TwinRun, long_run, predict, run_on_twin
from trueup.calibrate.calibrate import provenance
from trueup.calibrate.data.logs import check, gain_of, ready, split_logs
from trueup.calibrate.fit.fit import Progress
from trueup.calibrate.parameters import parameter_names
from trueup.core.errors import TrueupError
from trueup.core.verb_package import Shown
from trueup.data.files import Logs, read_logs
from trueup.data.log import Log
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg

_LOG = logging.getLogger(__name__)
_GAINS = frozenset({"kp", "kd", "servo_kp", "servo_kd"})


@dataclass(frozen=True, kw_only=True)
class Ladder(Shown):
    """The result: the content of ladder.json, the models, and the logs they were scored on.

    See `table()`, `recommended`, `report("ladder.html")`.
    """

    robot: Robot
    file: LadderFile
    actuators: dict[str, Actuator]
    held: tuple[Log, ...]
    sim: SimCfg

    @property
    def recommended(self) -> str:
        """Name of the rung to use."""
        return self.file.recommendation.rung

    @property
    def chosen(self) -> Actuator:
        """The recommended model."""
        return self.actuators[self.recommended]


def run_ladder(
    robot: Robot | str,
    logs: Logs,
    cfg: LadderCfg | None = None,
    *,
    rungs: str | None = None,
    holdout: Logs = (),
    mapping: str | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    on_rung: Callable[[RungResult], None] | None = None,
    on_plan: Callable[[Timetable], None] | None = None,
) -> Ladder:
    """Fit actuator models from ideal PD to learned ones, simplest first, score all alike and recommend one.

    rungs    overrides that of `cfg`
    folder   rungs are written there when finished; `resume` reuses those already there
    on_rung  called with every rung's result
    on_plan  called before the first rung with the time estimate
    """
    cfg = cfg or LadderCfg()
    cfg = replace(cfg, rungs=rungs or cfg.rungs)
    robot, logs, holdout = load_robot(robot), read_logs(logs, mapping), read_logs(holdout, mapping)
    progress = progress or (lambda fraction: None)
    notes = check(robot, (*logs, *holdout), refuse=cfg.check)
    ordered, kept = ready(robot, logs, holdout)
    common = cfg.params or common_params(robot, ordered)
    fits_gains = bool(_GAINS & set(parameter_names(common)))
    split = split_logs(ordered, kept, cfg.holdout_share, fits_gains=fits_gains)
    if not split.held:
        raise TrueupError(
            f"rungs are compared on motion that none was fitted to, but {split.how}; record at least 20 s, or give "
            "held-out logs (--holdout)"
        )
    place = None if folder is None else LadderFolder(folder)
    job = RungJob(
        robot=robot,
        train=split.train,
        cfg=cfg,
        common=common,
        physics_hz=cfg.physics_hz or robot.spec.physics_hz,
        resume=resume,
    )
    twin = None if cfg.driver is None else run_on_twin(robot, cfg.driver)
    run = _LadderRun(job=job, held=split.held, folder=place, twin=twin)
    table = Timetable(rungs=choose(cfg.chosen), costs=measured_costs(robot, _sim(job.physics_hz)), limit_s=cfg.limit_s)
    if on_plan is not None:
        on_plan(table)
    finer = _climb(run, table, progress, on_rung)
    progress(1.0)
    file = LadderFile(
        robot=robot.spec.name,
        split=split.how,
        common=common,
        recommendation=recommend(run.usable, run.unbounded, finer),
        rungs=run.results,
        finer=finer,
        left_out=table.words(cfg.minutes),
        notes=list(dict.fromkeys(notes)),
        provenance=provenance(logs, holdout, asdict(cfg), job.physics_hz),
    )
    if place is not None:
        place.finish(file)
    return Ladder(robot=robot, file=file, actuators=job.below, held=tuple(split.held), sim=_sim(job.physics_hz))


def _climb(
    run: _LadderRun, table: Timetable, progress: Progress, on_rung: Callable[[RungResult], None] | None
) -> StepCheck | None:
    """Run the rungs of the timetable that fit, and the check of the physics step."""
    for rung in table.rungs:
        if not table.fits(rung):
            continue
        began = time.monotonic()
        result = run.one(rung, lambda share: progress(table.progress(share)))
        run.results.append(result)
        table.finish(rung)
        if result.status != "not supported" and rung.name not in run.kept:
            table.costs.took(rung, time.monotonic() - began)
        if on_rung is not None:
            on_rung(result)
    if in_question(run.usable, run.unbounded) is None or not table.has_time_for_step_check:
        return None
    return run.half_step(lambda share: progress(table.progress(0.0)))


def _sim(physics_hz: float) -> SimCfg:
    return SimCfg(physics_hz=physics_hz, model=ModelCfg(base="fixed"))


@dataclass(kw_only=True)
class _LadderRun:
    """A running ladder: `job.below` has the models so far, `results` the results."""

    job: RungJob
    held: list[Log]
    folder: LadderFolder | None
    twin: TwinRun | None
    results: list[RungResult] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)  # rungs reused from an earlier run

    @property
    def usable(self) -> dict[str, Scores]:
        """Scores of the rungs that may be recommended."""
        return {r.rung: r.scores for r in self.results if r.status == "done" and r.scores is not None}

    @property
    def unbounded(self) -> list[str]:
        return [r.rung for r in self.results if not r.bounded]

    def _own_job(self, rung: Rung, key: str, progress: Progress) -> RungJob:
        state = None if self.folder is None else self.folder.rung(rung.name) / f"state-{key[:12]}"
        return replace(self.job, state=state, progress=progress)

    def one(self, rung: Rung, progress: Progress) -> RungResult:
        """Fit and score a rung, or reuse an earlier result."""
        job, cfg = self.job, self.job.cfg
        settings = f"{job.common} {job.physics_hz} {cfg.long_s} {cfg.driver} {cfg.seed} "
        key = rung_key(rung, job.train, self.held, settings + training_of(rung, cfg.uan_method))
        found = self.folder.load(rung, key) if self.folder is not None and job.resume else None
        if found is not None:
            job.below[rung.name], result = found
            self.kept.add(rung.name)
            progress(1.0)
            return result
        why = not_supported(job.robot, [*job.train, *self.held], rung)
        if rung.start and rung.start not in job.below:
            why = why or f"stands on {rung.start}, which is not there"
        actuator = None
        if not why:
            try:
                actuator, result = self._fitted(rung, key, progress)
                job.below[rung.name] = actuator
            except TrueupError as error:  # the other rungs can still be compared
                why = f"could not be fitted: {error}"
        if why:
            result = RungResult(key=key, rung=rung.name, status="not supported", reason=why)
        if self.folder is not None:
            self.folder.save(actuator, result)
        progress(1.0)
        return result

    def _fitted(self, rung: Rung, key: str, progress: Progress) -> tuple[Actuator, RungResult]:
        _LOG.info("rung %s", rung.name)
        job, held = self.job, self.held
        robot, sim = job.robot, _sim(job.physics_hz)
        wall, cpu = time.monotonic(), time.process_time()
        actuator = fit_rung(rung, self._own_job(rung, key, lambda f: progress(0.9 * f)))
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        known = {gain_of(log) for log in job.train}
        new = ["motion" if gain_of(log) in known else "gain" for log in held]  # what is new in each log
        scores = score_rung(robot, actuator, job.train, held, new, sim)
        longest = max(held, key=len)
        below = next((r.scores for r in self.results if r.rung == rung.start and r.scores is not None), None)
        why = not_excited(rung, actuator, job.common)
        if why and below is not None and scores.train.mean < below.train.mean - below.train.se:
            why = ""  # no parameter shows by itself, but together they do
        return actuator, RungResult(
            key=key,
            rung=rung.name,
            status="not excited" if why else "done",
            reason=why,
            count=actuator.count,
            fit_s=wall,
            cpu_s=cpu,
            scores=scores,
            long=[long_run(robot, longest, actuator, sim, seconds) for seconds in job.cfg.long_s],
            closed_loop=None if self.twin is None else predict(robot, actuator, sim, self.twin),
            notes=list(actuator.notes),
        )

    def half_step(self, progress: Progress) -> StepCheck | None:
        """Fit the parametric rung that a learned one is about to replace again, with half the physics step."""
        name = in_question(self.usable, self.unbounded)
        if name is None:
            return None
        job, rung, finer_hz = self.job, rung_named(name), 2.0 * self.job.physics_hz
        key = rung_key(rung, job.train, self.held, f"{job.common} {finer_hz} {job.cfg.seed} step")
        found = self.folder.finer(key) if self.folder is not None and job.resume else None
        if found is not None:
            return found
        _LOG.info("rung %s with half the physics step", name)
        actuator = job.below[name]
        if rung.kind == "params":
            own = replace(self._own_job(rung, key, progress), physics_hz=finer_hz, start=actuator.params)
            actuator = fit_rung(rung, own)
        rolled = roll(job.robot, self.held, actuator, _sim(finer_hz))
        return StepCheck(rung=name, physics_hz=finer_hz, whole=error_of(rolled, None), key=key)
