"""From what was measured to what is wrong: start pose, answers, stops and torques together.

A mistake that commands and readings share (`mistakes`) is named when the torques ask for it and the stops agree with
it; it is ruled out by torques that do not fit it or by stops that are not where it would put them. What neither can
tell is listed as unseen, so that a person can look at it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.deploy.wiggle.analysis.answers import answer_findings
from trueup.deploy.wiggle.analysis.finding import JointResult, WiringFinding
from trueup.deploy.wiggle.analysis.gravity import GravityTest, Weight
from trueup.deploy.wiggle.analysis.imu import gravity_in_base, imu_findings
from trueup.deploy.wiggle.analysis.limb_model import LimbModel
from trueup.deploy.wiggle.analysis.mistakes import Mistake, no_mistake, shifted, single_mistakes, stop_offset
from trueup.deploy.wiggle.cfg import WiggleCfg
from trueup.deploy.wiggle.motion.trace import Trace
from trueup.robot.spec import RobotSpec

_IS_TRUE, _IS_FALSE = 0.6, 0.4  # weights of a mistake in the torques
_OUTSIDE_RAD = 0.1
_FAR_RAD = 0.4  # a stop this early may be something in the way, if the torques say so
Weights = list[tuple[Mistake, Weight | None]]  # of mistakes that the stops do not rule out


@dataclass(frozen=True, kw_only=True)
class Conclusion:
    """What is wrong, what was measured, what cannot be seen, what was left out."""

    findings: list[WiringFinding]
    joints: tuple[JointResult, ...]
    unseen: list[str]
    notes: list[str]


def outside_findings(spec: RobotSpec, pose: FloatArray) -> list[WiringFinding]:
    """Joints that read positions they cannot have; nothing is moved then (or any more)."""
    beyond = np.maximum(spec.position_low - pose, pose - spec.position_high)
    wrong = [j for j in range(spec.njoint) if not beyond[j] <= _OUTSIDE_RAD]  # NaN is wrong too
    if not wrong:
        return []
    fits = [mistake for mistake in single_mistakes(spec) if _allows(spec, mistake, pose)]
    if len(fits) == 1:
        return [_named(spec, fits[0], _readings(spec, pose, wrong))]
    names = tuple(spec.joint_names[j] for j in wrong)
    could = ", ".join(_what(spec, mistake) for mistake in fits) or "more than one of order, sign and zero"
    text = f"{_readings(spec, pose, wrong)}; its zero is wrong, or: {could}"
    return [WiringFinding(kind="outside", joints=names, value=float(np.nanmax(beyond)), text=text)]


def _allows(spec: RobotSpec, mistake: Mistake, pose: FloatArray) -> bool:
    """Whether every joint would read a position that it can have, if the mistake were made."""
    low, high = mistake.limits(spec)
    return bool(((pose >= low - _OUTSIDE_RAD) & (pose <= high + _OUTSIDE_RAD)).all())


def _what(spec: RobotSpec, mistake: Mistake) -> str:
    names = " and ".join(spec.joint_names[j] for j in mistake.joints)
    return f"{names} swapped" if mistake.kind == "swap" else f"the sign of {names}"


def _readings(spec: RobotSpec, pose: FloatArray, joints: list[int]) -> str:
    parts = [
        f"{spec.joint_names[j]} reads {pose[j]:.2f} rad, which its limits "
        f"[{spec.joints[j].position[0]:.2f}, {spec.joints[j].position[1]:.2f}] do not allow"
        for j in joints
    ]
    return "; ".join(parts)


def conclude(spec: RobotSpec, limbs: LimbModel | None, trace: Trace, cfg: WiggleCfg) -> Conclusion:
    """Everything that the measurements say."""
    settled = len(trace.pulses) == spec.njoint
    findings = [*imu_findings(trace, limbs, cfg), *answer_findings(spec, trace, settled=settled)]
    unseen: list[str] = []
    notes: list[str] = []
    test = _gravity_test(spec, limbs, trace, notes)
    if trace.stops:
        possible = [mistake for mistake in single_mistakes(spec) if mistake.agrees(spec, trace.stops)]
        weights = [(mistake, None if test is None else test.weigh(mistake)) for mistake in possible]
        shared = _shared_mistake(spec, weights) or _by_stops(spec, trace, weights)
        findings += [shared] if shared else _offsets(spec, trace, cfg, test, notes)
        if not findings:
            unseen = _unseen(spec, weights)
        unseen += [
            f"an encoder offset of {spec.joint_names[j]}: the allowed torque did not move it to both ends"
            for j, ends in trace.stops.items()
            if len(ends) == 2 and stop_offset(spec, j, ends) is None
        ]
    elif not findings:
        notes.append("joints were not driven to their stops: encoder offsets and consistent swaps were not looked for")
    return Conclusion(findings=findings, joints=_joints(spec, trace, test), unseen=unseen, notes=notes)


def _gravity_test(spec: RobotSpec, limbs: LimbModel | None, trace: Trace, notes: list[str]) -> GravityTest | None:
    rows = trace.rows()
    if not len(rows.joint):
        return None
    if limbs is None:
        notes.append("the model file leaves masses to shapes or other files: torques were not compared with gravity")
        return None
    if not np.isfinite(rows.torque).all():
        notes.append("the robot reports torques that are not finite: they were not compared with gravity")
        return None
    return GravityTest(spec, limbs, rows, gravity_in_base(trace, limbs))


def _shared_mistake(spec: RobotSpec, weights: Weights) -> WiringFinding | None:
    """The swap or sign that torques ask for, of those that the stops allow: the one that explains most."""
    wanted = [
        (weight.gain, mistake, weight)
        for mistake, weight in weights
        if weight is not None and weight.testable and weight.alpha > _IS_TRUE
    ]
    if not wanted:
        return None
    _, mistake, weight = max(wanted, key=lambda entry: entry[0])
    evidence = f"torques against gravity fit it by {weight.alpha:.2f} +- {weight.error:.2f} (0: no, 1: yes)"
    return _named(spec, mistake, evidence)


def _by_stops(spec: RobotSpec, trace: Trace, weights: Weights) -> WiringFinding | None:
    """A swap or sign without which the stops make no sense, where torques do not speak against it and only it fits."""
    if no_mistake(spec).agrees(spec, trace.stops, 0.5):
        return None
    fits = [mistake for mistake, weight in weights if weight is None or not weight.testable or weight.alpha > _IS_FALSE]
    return _named(spec, fits[0], "the stops lie where only this puts them") if len(fits) == 1 else None


def _named(spec: RobotSpec, mistake: Mistake, evidence: str) -> WiringFinding:
    names = tuple(spec.joint_names[j] for j in mistake.joints)
    if mistake.kind == "swap":
        text = f"{names[0]} and {names[1]} are swapped, in commands and readings alike: {evidence}"
        return WiringFinding(kind="swap", joints=names, text=text)
    text = f"{names[0]} turns the other way round, in commands and readings alike: {evidence}"
    return WiringFinding(kind="sign", joints=names, text=text)


def _offsets(
    spec: RobotSpec, trace: Trace, cfg: WiggleCfg, test: GravityTest | None, notes: list[str]
) -> list[WiringFinding]:
    """Joints whose stops are shifted, unless one is met very early and the torques say that something stood there."""
    found = []
    for j, ends in trace.stops.items():
        offset, name = stop_offset(spec, j, ends), spec.joint_names[j]
        if offset is None or abs(offset) < cfg.alarm_rad:
            continue
        side = "low" if offset > 0 else "high"
        at = f"{name} is held at {ends[side].position:.3f} rad, {abs(offset):.3f} rad before its {side} limit"
        weight = None if test is None else test.weigh(shifted(spec, j, offset))
        if abs(offset) > _FAR_RAD and weight is not None and weight.testable and weight.alpha < _IS_FALSE / 2:
            notes.append(f"{at}, but its torques fit an encoder without offset: was something in the way?")
            continue
        text = f"{at}: its encoder reads {offset:+.3f} rad too much (if that is its stop, and nothing stood in the way)"
        found.append(WiringFinding(kind="offset", joints=(name,), text=text, value=offset))
    return found


def _unseen(spec: RobotSpec, weights: Weights) -> list[str]:
    """Mistakes that neither stops nor torques could have shown."""
    told = []
    for mistake, weight in weights:
        what = _what(spec, mistake)
        if weight is None or not weight.testable:
            told.append(f"{what} (in commands and readings alike)")
        elif weight.alpha > _IS_FALSE:
            told.append(f"{what}: torques leave it open ({weight.alpha:.2f} +- {weight.error:.2f}; 0: no, 1: yes)")
    return told


def _joints(spec: RobotSpec, trace: Trace, test: GravityTest | None) -> tuple[JointResult, ...]:
    results = []
    for j, name in enumerate(spec.joint_names):
        answer, ends = trace.answers.get(j) or trace.pulses.get(j), trace.stops.get(j, {})
        fit = None if test is None else test.fits.get(j)
        heavy = fit is not None and fit.gravity > 0.3 * max(fit.friction, 0.05)
        low, high = (ends.get(side) for side in ("low", "high"))
        results.append(
            JointResult(
                name=name,
                gain=None if answer is None or not answer.asked else float(answer.moved[j] / answer.asked),
                offset=stop_offset(spec, j, ends),
                low=low.position if low and low.is_contact else None,
                high=high.position if high and high.is_contact else None,
                gravity=fit.scale if fit is not None and heavy else None,
                friction=None if fit is None else fit.friction,
            )
        )
    return tuple(results)
