"""`climb`: fit every rung that the logs support, score all alike, recommend the simplest that is good enough."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import msgspec

from trueup._version import __version__
from trueup.calibrate.actuator.fits import Job, fit_rung, not_excited
from trueup.calibrate.actuator.folder import LadderFile, LadderFolder, RungResult, Status, problem_key
from trueup.calibrate.actuator.ladder import Ladder, LadderCfg
from trueup.calibrate.actuator.learned import training_of
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.recommend import StepCheck, in_question, recommend
from trueup.calibrate.actuator.rungs import Rung, choose, common_params, lacking, rung_named
from trueup.calibrate.actuator.score.closed_loop import Recorded, predict, run_on_twin
from trueup.calibrate.actuator.score.long import long_run
from trueup.calibrate.actuator.score.rollouts import roll
from trueup.calibrate.actuator.score.score import Scores, error_of, score_rung
from trueup.calibrate.calibrate import identity
from trueup.calibrate.data.holdout import Split, by_gain, gain_of, hold_out
from trueup.calibrate.data.prepare import check, ready
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


@dataclass
class _Climb:
    """A ladder under way."""

    robot: Robot
    cfg: LadderCfg
    split: Split
    folder: LadderFolder | None
    resume: bool
    progress: Progress
    common: str = ""
    twin: Recorded | None = None
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

    def groups(self) -> list[str]:
        """What is new in each held-out log: its gain, or just the motion."""
        known = {gain_of(log) for log in self.split.train}
        return ["motion" if gain_of(log) in known else "gain" for log in self.split.held]


def climb(
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
    """Climb the ladder.

    folder   rungs are written there as they are done; `resume` takes over those that are there already
    on_rung  is told of every rung as it is done
    """
    cfg = cfg or LadderCfg()
    notes = check(robot, (*logs, *holdout), refuse=cfg.check)
    ordered, kept = ready(robot, logs, holdout)
    common = cfg.params or common_params(robot, ordered)
    split = _split(ordered, kept, cfg.holdout, common)
    state = _Climb(
        robot=robot,
        cfg=cfg,
        split=split,
        folder=None if folder is None else LadderFolder(folder),
        resume=resume,
        progress=progress or (lambda fraction: None),
        common=common,
    )
    if cfg.driver is not None:
        state.twin = run_on_twin(robot, cfg.driver)
    rungs = choose(cfg.rungs)
    total, spent = sum(_COST[rung.kind] for rung in rungs) + _COST_OF_STEP, 0.0
    for rung in rungs:
        share = _COST[rung.kind] / total
        result = _one(state, rung, _part(state.progress, spent, share))
        spent += share
        state.results.append(result)
        if on_rung is not None:
            on_rung(result)
    finer = _half_step(state, _part(state.progress, spent, 1.0 - spent))
    state.progress(1.0)
    return _finished(state, logs, holdout, notes, finer)


def _part(progress: Progress, before: float, share: float) -> Progress:
    """Progress of a part as progress of the whole."""
    return lambda fraction: progress(before + share * fraction)


def _split(logs: Sequence[Log], holdout: Sequence[Log], share: float, common: str) -> Split:
    """Logs to fit and logs to compare on."""
    if holdout:
        train, held = ([part for log in group for part in by_gain(log)] for group in (logs, holdout))
        split = Split(train=train, held=held, how="held out: the logs given for it")
    else:
        fits_gains = bool(_GAINS & set(parameter_names(common)))
        split = hold_out(logs, share, fits_gains=fits_gains)
    if not split.held:
        raise TrueupError(
            f"rungs are compared on motion that none was fitted to, but {split.how}; record at least 20 s, or give "
            "held-out logs (--holdout)"
        )
    return split


def _one(state: _Climb, rung: Rung, progress: Progress) -> RungResult:
    """Fit and score a rung, or take it over from before."""
    split, cfg = state.split, state.cfg
    settings = f"{state.common} {state.physics_hz} {cfg.long_s} {cfg.driver} {cfg.seed} "
    settings += training_of(rung, cfg.uan_method)
    key = problem_key(rung, split.train, split.held, settings)
    if state.folder is not None and state.resume:
        found = state.folder.load(rung, key)
        if found is not None:
            state.done[rung.name], result = found
            progress(1.0)
            return result
    why = lacking(state.robot, [*split.train, *split.held], rung)
    if rung.start and rung.start not in state.done:
        why = why or f"stands on {rung.start}, which is not there"
    actuator = None
    if not why:
        try:
            actuator, result = _fitted(state, rung, key, progress)
            state.done[rung.name] = actuator
        except TrueupError as error:  # the other rungs can still be compared
            why = f"could not be fitted: {error}"
    if why:
        result = RungResult(key=key, rung=rung.name, status="not supported", reason=why)
    if state.folder is not None:
        state.folder.save(actuator, result)
    progress(1.0)
    return result


def _fitted(state: _Climb, rung: Rung, key: str, progress: Progress) -> tuple[Actuator, RungResult]:
    _LOG.info("rung %s", rung.name)
    wall, cpu = time.monotonic(), time.process_time()
    actuator = fit_rung(rung, _job(state, rung, key, lambda f: progress(0.9 * f)))
    wall, cpu = time.monotonic() - wall, time.process_time() - cpu
    scores = score_rung(state.robot, actuator, state.split.train, state.split.held, state.groups(), state.sim)
    longest = max(state.split.held, key=len)
    below = next((r.scores for r in state.results if r.rung == rung.start and r.scores is not None), None)
    why = not_excited(rung, actuator, state.common)
    if why and below is not None and scores.train.mean < below.train.mean - below.train.se:
        why = ""  # no number shows alone, but together they do
    status: Status = "not excited" if why else "done"
    return actuator, RungResult(
        key=key,
        rung=rung.name,
        status=status,
        reason=why,
        count=actuator.count,
        fit_s=wall,
        cpu_s=cpu,
        scores=scores,
        long=[long_run(state.robot, longest, actuator, state.sim, s) for s in state.cfg.long_s],
        closed_loop=None if state.twin is None else predict(state.robot, actuator, state.sim, state.twin),
        notes=list(actuator.notes),
    )


def _job(state: _Climb, rung: Rung, key: str, progress: Progress) -> Job:
    return Job(
        robot=state.robot,
        train=state.split.train,
        common=state.common,
        physics_hz=state.physics_hz,
        seed=state.cfg.seed,
        uan_method=state.cfg.uan_method,
        below=state.done,
        state=None if state.folder is None else state.folder.rung(rung.name) / f"state-{key[:12]}",
        resume=state.resume,
        progress=progress,
    )


def _half_step(state: _Climb, progress: Progress) -> StepCheck | None:
    """Fit what a learned rung is about to replace once more, with half the physics step."""
    name = in_question(state.usable, state.unbounded)
    if name is None:
        return None
    rung, split, sim = rung_named(name), state.split, replace(state.sim, physics_hz=2.0 * state.physics_hz)
    key = problem_key(rung, split.train, split.held, f"{state.common} {sim.physics_hz} {state.cfg.seed} step")
    found = state.folder.load_step(key) if state.folder is not None and state.resume else None
    if found is not None:
        return found
    _LOG.info("rung %s with half the physics step", name)
    actuator = state.done[name]
    if rung.kind == "params":
        job = _job(state, rung, key, progress)
        actuator = fit_rung(rung, replace(job, physics_hz=2.0 * state.physics_hz, start=actuator.params))
    check = StepCheck(
        rung=name,
        physics_hz=2.0 * state.physics_hz,
        whole=error_of(roll(state.robot, split.held, actuator, sim), None),
    )
    if state.folder is not None:
        state.folder.save_step(check, key)
    return check


def _finished(
    state: _Climb, logs: Sequence[Log], holdout: Sequence[Log], notes: list[str], finer: StepCheck | None
) -> Ladder:
    content = {
        "trueup": __version__,
        "config": asdict(state.cfg),
        "logs": [identity(log) for log in logs],
        "holdout": [identity(log) for log in holdout],
    }
    file = LadderFile(
        robot=state.robot.spec.name,
        split=state.split.how,
        common=state.common,
        recommendation=recommend(state.usable, state.unbounded, finer),
        rungs=state.results,
        finer=finer,
        notes=list(dict.fromkeys(notes)),
        provenance=msgspec.json.decode(msgspec.json.encode(content), type=dict[str, object]),
    )
    if state.folder is not None:
        state.folder.finish(file)
    return Ladder(
        robot=state.robot,
        file=file,
        actuators=state.done,
        held=tuple(state.split.held),
        sim=state.sim,
    )
