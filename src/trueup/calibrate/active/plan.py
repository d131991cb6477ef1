"""Active excitation: the motion that best shows the weak parameters of an earlier calibration.

Segment after segment, from rest to rest, CMA-ES searches for the Fourier motion that minimises the trace of the
covariance of the weak parameters (A-optimal design, with the earlier posterior as prior), from the Fisher information
of batched rollouts, averaged over draws of the posterior. Independent limbs are searched side by side in the same
rollouts. Every segment is rehearsed (position, velocity, torque, self-collision); joints that the rehearsal scales down
stay scaled down. The plan ends when the predicted standard errors reach the target, when the time is up, or when a
segment improved none of them. After SPI-Active (arXiv 2505.14266) and ASID (arXiv 2404.12308).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from trueup.calibrate.active.forecast import Forecaster, deviations
from trueup.calibrate.active.motion import NUMBERS, MotionSpace, Populations
from trueup.calibrate.active.outlook import SMALL_GAIN, Outlook, UsualCfg, after_usual
from trueup.calibrate.uncertainty.scores import recorded_drivers
from trueup.calibrate.uncertainty.verdict import VISIBLE, is_close
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.open import same_twin
from trueup.robot.excitation.limits import LimitCfg, joint_bounds
from trueup.robot.excitation.plan import Plan, clock, join_plans
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration, Estimate, Word
from trueup.world.rehearse import Rehearsal, RehearseCfg, rehearse

_STILL_S = 0.25  # rest between segments
_FARTHEST = 20  # times the time allowed: no longer plan is predicted
_PENALTY = 10.0
_NEARER = 0.95  # of its standard error before a segment: a smaller one makes another segment worth its time


@dataclass(frozen=True, kw_only=True)
class ActiveCfg:
    """Settings of the search.

    seconds      at most, of the whole plan; segment_s: of one motion from rest to rest
    target       standard error over prior width at which a parameter is known well enough
    generations, population   of CMA-ES, per segment
    draws        points of the posterior at which motions must be good: the mean and draws
    """

    seconds: float = 20.0
    segment_s: float = 5.0
    rate_hz: float = 200.0
    seed: int = 0
    target: float = 0.12
    generations: int = 10
    population: int = 12
    draws: int = 2
    limits: LimitCfg = field(default_factory=LimitCfg)
    rehearse: RehearseCfg = field(default_factory=RehearseCfg)

    def __post_init__(self) -> None:
        if self.segment_s < 2.0 or self.seconds < self.segment_s:
            raise TrueupError(
                f"an active plan needs at least one segment of 2 s or more; {self.seconds:g} s were allowed for "
                f"segments of {self.segment_s:g} s"
            )
        if min(self.generations, self.draws) < 1 or self.population < 4 or not 0.0 < self.target < 1.0:
            raise TrueupError("generations and draws must be at least 1, population 4, target between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class Expected:
    """One weak parameter: its estimate now, and the standard error that the plan should leave, in prior widths."""

    estimate: Estimate
    after: float

    @property
    def word(self) -> Word:
        """The expected verdict."""
        if is_close(self.estimate.parameter, self.after):
            return "identified"
        return "weak" if self.after < VISIBLE else "not visible"

    @property
    def standard_error(self) -> float:
        """After the plan, in the parameter's unit."""
        return self.after * self.estimate.parameter.slope(self.estimate.value)


@dataclass(frozen=True, kw_only=True)
class ActivePlan:
    """A rehearsed plan with its predicted information.

    reached   every weak parameter should be known to the target afterwards
    seconds_needed  of such motion until then; None: no length suffices
    others    predicted root mean square standard error (prior widths) of the usual excitations, same limits and time
    after     of this plan
    """

    rehearsal: Rehearsal
    expected: tuple[Expected, ...]
    reached: bool
    seconds_needed: float | None
    before: float
    after: float
    others: dict[str, float]

    @property
    def gain(self) -> float:
        """How many times smaller the standard errors are than after the best of the usual excitations."""
        return min(self.others.values()) / self.after if self.others else 1.0

    @property
    def advised(self) -> str:
        """The usual excitation to use instead if this motion is hardly more informative; else ""."""
        return min(self.others, key=lambda kind: self.others[kind]) if self.gain < SMALL_GAIN and self.others else ""


def plan_active(
    robot: Robot,
    result: Calibration,
    cfg: ActiveCfg | None = None,
    *,
    progress: Callable[[float], None] | None = None,
    on_estimate: Callable[[float], None] | None = None,
    on_outlook: Callable[[Outlook], None] | None = None,
) -> ActivePlan:
    """Plan the motion that would best show the weak parameters of an earlier calibration.

    on_estimate  called first with the search's estimated duration, s
    on_outlook   called before the search with the forecast of usual excitations
    """
    planner = _Planner(robot, result, cfg or ActiveCfg(), progress or (lambda fraction: None))
    if on_estimate is not None:
        on_estimate(planner.search_s())
    if on_outlook is not None:
        on_outlook(planner.outlook())
    return planner.plan()


class _Planner:
    """Builds a plan; `known` is the information so far, (ndraw, nparameter, nparameter)."""

    def __init__(self, robot: Robot, result: Calibration, cfg: ActiveCfg, progress: Callable[[float], None]) -> None:
        self._robot, self._result, self._cfg, self._progress = robot, result, cfg, progress
        self._weak = np.flatnonzero([estimate.verdict != "identified" for estimate in result.estimates])
        if not len(self._weak):
            raise TrueupError("every parameter of this calibration is identified: there is nothing to record")
        self._forecast = Forecaster(robot, result, rate_hz=cfg.rate_hz, draws=cfg.draws, seed=cfg.seed)
        self._bounds = list(joint_bounds(robot.spec, cfg.limits, rate_hz=cfg.rate_hz))
        self._segments = max(1, int(cfg.seconds / (cfg.segment_s + _STILL_S)))
        self._kept: dict[float, dict[str, FloatArray]] = {}

    def search_s(self) -> float:
        """Estimated duration of the search, from the time of one generation of motions at rest."""
        cfg, rows = self._cfg, round(self._cfg.segment_s * self._cfg.rate_hz)
        still = np.tile(self._robot.spec.excitation_pose, (cfg.population, rows, 1))
        self._forecast(still)  # builds its simulations
        began = time.perf_counter()
        self._forecast(still)
        return self._segments * cfg.generations * (time.perf_counter() - began)

    def outlook(self) -> Outlook:
        """Forecast the usual excitations at the plan's full length."""
        cfg, before = self._cfg, self._forecast.before
        seconds = self._segments * (cfg.segment_s + _STILL_S)
        usual = self._usual(seconds)
        return Outlook(
            seconds=seconds,
            before=_rms(self._after(before[None])),
            usual={kind: _rms(after) for kind, after in usual.items()},
            enough=tuple(kind for kind, after in usual.items() if (after <= cfg.target).all()),
        )

    def _usual(self, seconds: float) -> dict[str, FloatArray]:
        """(nweak,) standard errors after usual excitations of this length; kept."""
        cfg, before, key = self._cfg, self._forecast.before, round(seconds, 2)
        like = UsualCfg(seconds=key, rate_hz=cfg.rate_hz, seed=cfg.seed, limits=cfg.limits, rehearse=cfg.rehearse)
        if key not in self._kept:
            self._kept[key] = after_usual(self._robot, like, lambda plan: self._after(before + self._information(plan)))
        return self._kept[key]

    def plan(self) -> ActivePlan:
        """Search segments until the target is reached, the time is up, or a segment gains nothing."""
        known = np.repeat(self._forecast.before[None], self._cfg.draws, axis=0)
        parts: list[Plan] = []
        for k in range(self._segments):
            parts.append(self._segment(k, known))
            before, known = self._after(known), known + self._information(parts[-1])
            after = self._after(known)
            is_open = after > self._cfg.target  # parameters that no motion can identify do not prolong the search
            if not (after[is_open] < _NEARER * before[is_open]).any():
                break
        names = [self._result.estimates[k].parameter.label for k in self._weak]
        meta: dict[str, object] = {"kind": "active", "seed": self._cfg.seed, "for": names}
        whole = rehearse(self._robot, replace(join_plans(*parts), meta=meta), self._cfg.rehearse)
        self._progress(1.0)
        return self._judged(whole)

    def _segment(self, number: int, known: FloatArray) -> Plan:
        """The best motion found, rehearsed; joints that the rehearsal scaled down stay so."""
        cfg, spec = self._cfg, self._robot.spec
        rows = round(cfg.segment_s * cfg.rate_hz)
        space = MotionSpace(pose=spec.excitation_pose, bounds=self._bounds, rows=rows, rate_hz=cfg.rate_hz)
        search = Populations(self._forecast.limb, NUMBERS, cfg.population, seed=cfg.seed + 1000 * number)
        for generation in range(cfg.generations):
            search.tell(self._costs(space.targets(search.ask()), known))
            self._progress((number + (generation + 1) / cfg.generations) / self._segments)
        target = space.targets(search.best[None])[0]
        target = np.pad(target, ((0, round(_STILL_S * cfg.rate_hz)), (0, 0)), mode="edge")
        plan = Plan(time=clock(len(target), cfg.rate_hz), joint_names=spec.joint_names, target_pos=target)
        passed = rehearse(self._robot, plan, cfg.rehearse)
        self._bounds = [
            replace(bounds, amplitude=bounds.amplitude * float(scale))
            for bounds, scale in zip(self._bounds, passed.scale, strict=True)
        ]
        return passed.plan

    def _costs(self, targets: FloatArray, known: FloatArray) -> FloatArray:
        """(K, nlimb): trace over the weak parameters that affect a limb, and a penalty for torque beyond the limit."""
        found, spec = self._forecast(targets), self._robot.spec
        trace = (deviations(known[:, None], found.information) ** 2).mean(axis=0)[:, self._weak]
        owner, limb, path = self._forecast.owner[self._weak], self._forecast.limb, found.joint_pos
        torque = spec.kp * (targets - path) - spec.kd * np.gradient(path, 1.0 / self._cfg.rate_hz, axis=1)
        share = np.abs(torque).max(axis=1) / (self._cfg.rehearse.torque_fraction * spec.torque_limit)
        excess = np.maximum(0.0, share - 1.0)
        columns = [
            trace[:, (owner == g) | (owner < 0)].sum(axis=1) + _PENALTY * excess[:, limb == g].sum(axis=1)
            for g in range(int(limb.max()) + 1)
        ]
        return np.stack(columns, axis=1)

    def _after(self, known: FloatArray) -> FloatArray:
        """(nweak,) standard errors, root mean square over the draws."""
        spread = deviations(known, np.zeros_like(known))
        return np.asarray(np.sqrt((spread**2).mean(axis=0))[self._weak], np.float64)

    def _information(self, plan: Plan) -> FloatArray:
        """(ndraw, nparameter, nparameter) information of a plan."""
        return self._forecast(plan.target_pos[None]).information[:, 0]

    def _judged(self, whole: Rehearsal) -> ActivePlan:
        cfg, before, seconds = self._cfg, self._forecast.before, whole.plan.seconds
        gained = self._information(whole.plan)
        after = self._after(before + gained)
        others = {kind: _rms(found) for kind, found in self._usual(seconds).items()}
        enough = (  # if information grows in proportion to time
            float(share * seconds)
            for share in np.geomspace(0.05, _FARTHEST, 120)
            if (self._after(before + share * gained) <= cfg.target).all()
        )
        return ActivePlan(
            rehearsal=whole,
            expected=tuple(
                Expected(estimate=self._result.estimates[k], after=float(value))
                for k, value in zip(self._weak, after, strict=True)
            ),
            reached=bool((after <= cfg.target).all()),
            seconds_needed=next(enough, None),
            before=_rms(self._after(before[None])),
            after=_rms(after),
            others=others,
        )


def driver_for(result: Calibration, requested: str | None) -> tuple[str, str]:
    """Return the driver to record from for this calibration, and a remark for the user.

    `asked` is the driver that the user named, which wins. Only twins are started because a file says so: a file must
    not choose which code runs or which address is contacted.
    """
    found = recorded_drivers(result)
    names = ", ".join("unknown" if name is None else name for name in found) or "unknown"
    if requested is not None:
        known = [name for name in found if name is not None]
        differs = bool(known) and (same_twin(requested) or requested) not in known
        remark = f"warning: --driver {requested} is another robot than the calibration's logs came from ({names})"
        return requested, remark if differs else ""
    if len(found) == 1 and found[0] is not None and same_twin(found[0]):
        return found[0], f"driver {found[0]}, as in the calibration's logs"
    raise TrueupError(
        f"which robot shall be recorded? The calibration's logs came from: {names}. Name it with --driver"
    )


def _rms(values: FloatArray) -> float:
    return float(np.sqrt((values**2).mean()))
