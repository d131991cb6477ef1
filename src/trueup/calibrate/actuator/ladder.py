"""`run_ladder`: fit every rung that the logs support, score all alike, recommend the simplest that is good enough."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from trueup.calibrate.actuator.closed_loop import TwinRun, predict, run_on_twin
from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.fits import RungJob, common_params, fit_rung, not_excited, not_supported, training_of
from trueup.calibrate.actuator.folder import LadderFile, LadderFolder, RungResult, rung_key
from trueup.calibrate.actuator.long_run import long_run
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.recommend import StepCheck, in_question, recommend
from trueup.calibrate.actuator.rungs import Rung, choose, rung_named
from trueup.calibrate.actuator.score import Scores, error_of, roll, score_rung
from trueup.calibrate.calibrate import provenance
from trueup.calibrate.data.logs import Split, check, gain_of, ready, split_logs
from trueup.calibrate.fit.fit import Progress
from trueup.calibrate.parameters import parameter_names
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg

_LOG = logging.getLogger(__name__)
_GAINS = frozenset({"kp", "kd", "servo_kp", "servo_kd"})
_COST = {"ideal": 1.0, "params": 8.0, "torque": 8.0, "residual": 40.0}  # shares of the time, roughly
_COST_OF_STEP = 12.0


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """The result: the content of ladder.json, the models, and the logs they were scored on."""

    robot: Robot
    file: LadderFile
    actuators: dict[str, Actuator]
    held: tuple[Log, ...]
    sim: SimCfg

    @property
    def chosen(self) -> Actuator:
        """The recommended model."""
        return self.actuators[self.file.recommendation.rung]


def run_ladder(
    robot: Robot,
    logs: Sequence[Log],
    cfg: LadderCfg | None = None,
    *,
    holdout: Sequence[Log] = (),
    folder: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    on_rung: Callable[[RungResult], None] | None = None,
) -> Ladder:
    """Fit and score the rungs, simplest first.

    folder   rungs are written there as they are done; `resume` takes over those that are there already
    on_rung  is called with every rung's result
    """
    cfg = cfg or LadderCfg()
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
    run = _Run(robot=robot, cfg=cfg, split=split, folder=place, resume=resume, common=common)
    if cfg.driver is not None:
        run.twin = run_on_twin(robot, cfg.driver)
    rungs = choose(cfg.rungs)
    total, spent = sum(_COST[rung.kind] for rung in rungs) + _COST_OF_STEP, 0.0
    for rung in rungs:
        share = _COST[rung.kind] / total
        run.results.append(run.one(rung, _part(progress, spent, share)))
        spent += share
        if on_rung is not None:
            on_rung(run.results[-1])
    finer = run.half_step(_part(progress, spent, 1.0 - spent))
    progress(1.0)
    file = LadderFile(
        robot=robot.spec.name,
        split=split.how,
        common=common,
        recommendation=recommend(run.usable, run.unbounded, finer),
        rungs=run.results,
        finer=finer,
        notes=list(dict.fromkeys(notes)),
        provenance=provenance(logs, holdout, asdict(cfg), run.physics_hz),
    )
    if place is not None:
        place.finish(file)
    return Ladder(robot=robot, file=file, actuators=run.done, held=tuple(split.held), sim=run.sim)


def _part(progress: Progress, before: float, share: float) -> Progress:
    """Progress of a part as progress of the whole."""
    return lambda fraction: progress(before + share * fraction)


@dataclass(kw_only=True)
class _Run:
    """A ladder that is being run: models and results so far."""

    robot: Robot
    cfg: LadderCfg
    split: Split
    folder: LadderFolder | None
    resume: bool
    common: str
    twin: TwinRun | None = None
    done: dict[str, Actuator] = field(default_factory=dict)
    results: list[RungResult] = field(default_factory=list)

    @property
    def physics_hz(self) -> float:
        return self.cfg.physics_hz or self.robot.spec.physics_hz

    @property
    def sim(self) -> SimCfg:
        return SimCfg(physics_hz=self.physics_hz, model=ModelCfg(base="fixed"))

    @property
    def usable(self) -> dict[str, Scores]:
        """Scores of the rungs that may be recommended."""
        return {r.rung: r.scores for r in self.results if r.status == "done" and r.scores is not None}

    @property
    def unbounded(self) -> list[str]:
        return [r.rung for r in self.results if not r.bounded]

    def one(self, rung: Rung, progress: Progress) -> RungResult:
        """Fit and score a rung, or take it over from before."""
        cfg, split = self.cfg, self.split
        settings = f"{self.common} {self.physics_hz} {cfg.long_s} {cfg.driver} {cfg.seed} "
        key = rung_key(rung, split.train, split.held, settings + training_of(rung, cfg.uan_method))
        found = self.folder.load(rung, key) if self.folder is not None and self.resume else None
        if found is not None:
            self.done[rung.name], result = found
            progress(1.0)
            return result
        why = not_supported(self.robot, [*split.train, *split.held], rung)
        if rung.start and rung.start not in self.done:
            why = why or f"stands on {rung.start}, which is not there"
        actuator = None
        if not why:
            try:
                actuator, result = self._fitted(rung, key, progress)
                self.done[rung.name] = actuator
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
        robot, split, sim = self.robot, self.split, self.sim
        wall, cpu = time.monotonic(), time.process_time()
        actuator = fit_rung(rung, self._job(rung, key, lambda f: progress(0.9 * f)))
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        known = {gain_of(log) for log in split.train}
        new = ["motion" if gain_of(log) in known else "gain" for log in split.held]  # what is new in each log
        scores = score_rung(robot, actuator, split.train, split.held, new, sim)
        longest = max(split.held, key=len)
        below = next((r.scores for r in self.results if r.rung == rung.start and r.scores is not None), None)
        why = not_excited(rung, actuator, self.common)
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
            long=[long_run(robot, longest, actuator, sim, seconds) for seconds in self.cfg.long_s],
            closed_loop=None if self.twin is None else predict(robot, actuator, sim, self.twin),
            notes=list(actuator.notes),
        )

    def _job(self, rung: Rung, key: str, progress: Progress) -> RungJob:
        return RungJob(
            robot=self.robot,
            train=self.split.train,
            cfg=self.cfg,
            common=self.common,
            physics_hz=self.physics_hz,
            below=self.done,
            state=None if self.folder is None else self.folder.rung(rung.name) / f"state-{key[:12]}",
            resume=self.resume,
            progress=progress,
        )

    def half_step(self, progress: Progress) -> StepCheck | None:
        """Fit the parametric rung that a learned one is about to replace again, with half the physics step."""
        name = in_question(self.usable, self.unbounded)
        if name is None:
            return None
        rung, split, finer_hz = rung_named(name), self.split, 2.0 * self.physics_hz
        key = rung_key(rung, split.train, split.held, f"{self.common} {finer_hz} {self.cfg.seed} step")
        found = self.folder.finer(key) if self.folder is not None and self.resume else None
        if found is not None:
            return found
        _LOG.info("rung %s with half the physics step", name)
        actuator = self.done[name]
        if rung.kind == "params":
            job = replace(self._job(rung, key, progress), physics_hz=finer_hz, start=actuator.params)
            actuator = fit_rung(rung, job)
        rolled = roll(self.robot, split.held, actuator, replace(self.sim, physics_hz=finer_hz))
        return StepCheck(rung=name, physics_hz=finer_hz, whole=error_of(rolled, None), key=key)
