"""From a rung to its fit: calibration for parameters of the simulator, training for learned models.

Trainers need torch, which takes seconds to load: they are imported when one is used.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import BASE, Rung, UanMethod, params_of
from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg, Method, WindowCfg
from trueup.calibrate.data.cutting import saturated
from trueup.calibrate.fit.fit import Progress
from trueup.calibrate.nets.net_design import stand_of
from trueup.calibrate.parameters import parameter_names
from trueup.data.check.check import check_log
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet
from trueup.robot.load import Robot
from trueup.robot.reference import log_reference
from trueup.world.fitted.calibration import Calibration
from trueup.world.parameters.able_to_set import friction_model
from trueup.world.replay.tracks import smooth

_WINDOWS_IN_PYTHON = 16  # at most, for friction models beyond M1, which run between physics steps
_EXCERPT_S = 5.5
_ALWAYS = 0.5  # of the samples at the torque limit: the gains are not the servo's


@dataclass(frozen=True, kw_only=True)
class RungJob:
    """The data of a rung's fit, and the fits of the rungs below.

    common   the set of parameters that fitted rungs share
    start    what a fit of parameters begins at; None: the rung below
    state    folder for the state of a running fit; None: not kept
    resume   continue from an existing state
    """

    robot: Robot
    train: Sequence[Log]
    cfg: LadderCfg
    common: str
    physics_hz: float
    resume: bool = False
    below: dict[str, Actuator] = field(default_factory=dict)
    state: Path | None = None
    progress: Progress | None = None
    start: Calibration | None = None


def fit_rung(rung: Rung, job: RungJob) -> Actuator:
    """Fit; raises KeyboardInterrupt when stopped, with its state kept."""
    if rung.kind == "ideal":
        return Actuator(rung=rung)
    if rung.kind == "params":
        fitted = _calibrated(rung, job)
    else:
        base = job.below[rung.start].params
        assert base is not None
        net = train_net(rung, job, base)
        fitted = Actuator(rung=rung, params=base if stand_of(base) else None, net=net, notes=net.spec.notes)
    if job.state is not None:  # the fit is done
        shutil.rmtree(job.state, ignore_errors=True)
    return fitted


def _calibrated(rung: Rung, job: RungJob) -> Actuator:
    params = params_of(rung, job.common)
    in_python = friction_model(parameter_names(params)) not in (None, "M1")
    start = job.start or (job.below[rung.start].params if rung.start else None)
    method: Method = "auto" if rung.name == BASE and job.start is None else "local"
    windows = WindowCfg(max_windows=_WINDOWS_IN_PYTHON) if in_python else WindowCfg()
    fit = FitCfg(method=method, seed=job.cfg.seed)
    cfg = CalibrateCfg(
        params=params, holdout_share=0.0, physics_hz=job.physics_hz, check=False, window=windows, fit=fit
    )
    train = excerpts(job.train, _WINDOWS_IN_PYTHON) if in_python else job.train
    result = calibrate(
        job.robot, train, cfg, start=start, progress=job.progress, folder=job.state, resume=job.resume
    ).calibration
    if result.effort.interrupted:
        raise KeyboardInterrupt
    return Actuator(rung=rung, params=result, notes=tuple(n for n in result.notes if "held out" not in n))


def train_net(rung: Rung, job: RungJob, base: Calibration) -> ActuatorNet:
    """Train the net of a rung on the simulator fitted by `base`."""
    seed = job.cfg.seed
    if rung.kind == "residual":
        from trueup.calibrate.nets.uan.uan import UanCfg, train_uan

        cfg = UanCfg(method=job.cfg.uan_method, physics_hz=job.physics_hz, seed=seed)
        return train_uan(job.robot, job.train, base, cfg, job.progress, folder=job.state, resume=job.resume)
    from trueup.calibrate.nets.supervised import FORMS, train_supervised

    form = replace(FORMS[rung.net], seed=seed)  # type: ignore[index]
    return train_supervised(job.robot, job.train, base, form, job.progress)


def training_of(rung: Rung, uan_method: UanMethod) -> str:
    """Settings of a learned rung's training, as text; "" for others."""
    if rung.kind == "residual":
        from trueup.calibrate.nets.uan.uan import UanCfg

        return repr(UanCfg(method=uan_method))
    if rung.kind == "torque":
        from trueup.calibrate.nets.supervised import FORMS

        return repr(FORMS[rung.net])  # type: ignore[index]
    return ""


def common_params(robot: Robot, logs: Sequence[Log]) -> str:
    """`servo` where the spec's gains cannot be the servo's (it would saturate most of the time), else `pace`."""
    for log in logs:
        if (saturated(robot, log, smooth(log)[1]).mean(axis=0) > _ALWAYS).any():
            return "servo"
    return "pace"


def not_supported(robot: Robot, logs: Sequence[Log], rung: Rung) -> str:
    """Why these logs are not sufficient for a rung; "" if they are."""
    if rung.kind != "torque":
        return ""
    without = [log for log in logs if "joint_torque" not in log]
    if without:
        return f"needs measured torque: {len(without)} of {len(logs)} logs have none"
    for log in logs:
        for finding in check_log(log, log_reference(robot.spec)).findings:
            if finding.code in ("torque_unsigned", "torque_sign"):
                return f"needs torque with its sign: {finding.evidence}"
    return ""


def not_excited(rung: Rung, actuator: Actuator, common: str) -> str:
    """Why the data do not identify the parameters that a rung adds; "" if they identify any."""
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
    """About `count` pieces of some seconds, spread evenly over the logs: as much as so many windows can use."""
    rows = round(_EXCERPT_S * logs[0].rate_hz)
    starts = [(log, k * rows) for log in logs for k in range(max(1, len(log) // rows))]
    if len(starts) <= count:
        return list(logs)
    keep = np.unique(np.round(np.linspace(0, len(starts) - 1, count)).astype(int))
    return [log.window(start, start + rows) for log, start in (starts[k] for k in keep)]
