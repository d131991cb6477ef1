"""From a rung to its fit: calibration for numbers of the simulator, training for learned models."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trueup.calibrate.actuator.learned import Lesson, train_net
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import BASE, Rung, UanMethod, params_of
from trueup.calibrate.calibrate import CalibrateCfg, calibrate
from trueup.calibrate.data.windows import WindowCfg
from trueup.calibrate.fit.fit import FitCfg, Progress
from trueup.calibrate.nets.net_design import stand_of
from trueup.calibrate.parameters import parameter_names
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration
from trueup.world.parameters.able_to_set import friction_model

_WINDOWS, _WINDOWS_IN_PYTHON = 40, 16  # friction models beyond M1 run between physics steps
_EXCERPT_S = 5.5


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a rung is fitted to, and what the rungs below came to.

    common   the set of parameters that fitted rungs share
    start    what a fit of numbers begins at; None: what the rung below came to
    state    folder for the state of a fit under way; None: not kept
    resume   go on from a state that is there
    """

    robot: Robot
    train: Sequence[Log]
    common: str
    physics_hz: float
    seed: int
    uan_method: UanMethod
    below: Mapping[str, Actuator]
    state: Path | None
    resume: bool
    progress: Progress
    start: Calibration | None = None


def fit_rung(rung: Rung, job: Job) -> Actuator:
    """Fit; raises KeyboardInterrupt when stopped, with its state kept."""
    if rung.kind == "ideal":
        return Actuator(rung=rung)
    if rung.kind == "params":
        return _calibrated(rung, job)
    base = job.below[rung.start].params
    assert base is not None
    lesson = Lesson(
        robot=job.robot,
        logs=job.train,
        base=base,
        physics_hz=job.physics_hz,
        seed=job.seed,
        uan_method=job.uan_method,
        state=job.state,
        resume=job.resume,
        progress=job.progress,
    )
    net = train_net(rung, lesson)
    _forget(job)
    return Actuator(rung=rung, params=base if stand_of(base) else None, net=net, notes=net.spec.notes)


def not_excited(rung: Rung, actuator: Actuator, common: str) -> str:
    """Why what a rung adds does not show in the data; "" if any of it does."""
    if actuator.params is None or not rung.adds or rung.alone:
        return ""
    shared = parameter_names(common)
    new = [entry for entry in actuator.params.estimates if entry.parameter.name not in shared]
    if not new or any(entry.verdict in ("identified", "weak") for entry in new):
        return ""
    advice = next((entry.advice for entry in new if entry.advice), "")
    return (
        f"none of the {len(new)} numbers that it adds is known from both sides: the data does not excite them"
        f"{f'; {advice}' if advice else ''}"
    )


def excerpts(logs: Sequence[Log], count: int) -> list[Log]:
    """About `count` pieces of some seconds, spread evenly over the logs: what as many windows can use."""
    rows = round(_EXCERPT_S * logs[0].rate_hz)
    starts = [(log, k * rows) for log in logs for k in range(max(1, len(log) // rows))]
    if len(starts) <= count:
        return list(logs)
    keep = np.unique(np.round(np.linspace(0, len(starts) - 1, count)).astype(int))
    return [log.window(start, start + rows) for log, start in (starts[k] for k in keep)]


def _calibrated(rung: Rung, job: Job) -> Actuator:
    params = params_of(rung, job.common)
    in_python = friction_model(parameter_names(params)) not in (None, "M1")
    start = job.start
    if start is None and rung.start:
        start = job.below[rung.start].params
    cfg = CalibrateCfg(
        params=params,
        holdout=0.0,
        physics_hz=job.physics_hz,
        check=False,
        window=WindowCfg(max_windows=_WINDOWS_IN_PYTHON if in_python else _WINDOWS),
        fit=FitCfg(method="auto" if rung.name == BASE and job.start is None else "local", seed=job.seed),
    )
    fit = calibrate(
        job.robot,
        excerpts(job.train, _WINDOWS_IN_PYTHON) if in_python else job.train,
        cfg,
        start=start,
        progress=job.progress,
        folder=job.state,
        resume=job.resume,
    )
    result: Calibration = fit.calibration
    if result.effort.interrupted:
        raise KeyboardInterrupt
    _forget(job)
    return Actuator(rung=rung, params=result, notes=tuple(n for n in result.notes if "held out" not in n))


def _forget(job: Job) -> None:
    """The state of a fit that came to its end is no longer needed."""
    if job.state is not None:
        shutil.rmtree(job.state, ignore_errors=True)
