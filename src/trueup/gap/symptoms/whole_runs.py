"""Rules on whole runs: falls, starts, heat over minutes, and differences between runs of the same command."""

from __future__ import annotations

import numpy as np

from trueup.gap.symptoms import changes as c
from trueup.gap.symptoms.bounds import BoundsReference, spread_bound
from trueup.gap.symptoms.changes import TaskChange
from trueup.gap.symptoms.finding import Looked, Symptom
from trueup.gap.symptoms.rules import cooler
from trueup.hardware.guard.cfg import GuardCfg
from trueup.tasks.task import Task

SET_DOWN_S = 3.0  # after the policy's first step: later falls are not of the start
HEAT_MINUTES = 5.0
_SPREADS = {"forward": ("forward speed", "m/s"), "sideways": ("sideways speed", "m/s"), "turn": ("turning", "rad/s")}
_FEW_SPREAD = 0.03  # m/s or rad/s: accuracy of leg odometry
Found = tuple[list[Symptom], list[Looked]]


def whole_runs(reference: BoundsReference) -> Found:
    """All rules of this module."""
    told: list[Symptom] = []
    looked: list[Looked] = []
    for rule in (_falls, _start, _heat, _differs):
        symptoms, seen = rule(reference)
        told += symptoms
        looked += seen
    return told, looked


def _falls(reference: BoundsReference) -> Found:
    """Falls at set-down and later ones, where simulated robots do not fall."""
    fell = reference.values("fell_s")
    simulated = [np.isfinite(one.get("fell_s", np.nan)) for one in reference.drawn]
    share = float(np.mean(simulated)) if simulated else 0.0
    early = {name: time for name, time in fell.items() if time <= SET_DOWN_S}
    late = {name: time for name, time in fell.items() if time > SET_DOWN_S}
    looked = [
        _looked("falls at set-down", "time to the fall", "s", min(early.values(), default=None), SET_DOWN_S, early)
    ]
    looked.append(_looked("falls while walking", "runs that fell", "1", len(late), 0.0, late))
    told = []
    if early:
        first = min(early, key=lambda name: early[name])
        pose, tilt = (reference.runs[first].get(name, np.nan) for name in ("start_pose", "start_tilt"))
        evidence = (
            f"{len(early)} of {len(reference.runs)} runs fell within {SET_DOWN_S:g} s of the policy's first step, "
            f"{first} after {early[first]:.1f} s; it began {pose:.2f} rad from the default pose, "
            f"leaning {tilt:.2f} rad; {share:.0%} of the simulated robots fell"
        )
        told.append(
            Symptom(
                name="falls at set-down", quantity="time to the fall", unit="s", value=early[first], bound=SET_DOWN_S,
                bound_from="3 s after the policy's first step: later falls are not of the start", below=True,
                runs=early, evidence=evidence,
                cause="the policy is given a state that no episode of training began in",
                change="begin episodes in wider poses, tilts and velocities",
                changes=tuple(_wider_start(reference.task, pose, tilt)),
            )
        )  # fmt: skip
    if late and share < 0.5:
        evidence = f"{len(late)} of {len(reference.runs)} runs fell later on, {share:.0%} of the simulated robots fell"
        told.append(
            Symptom(
                name="falls while walking", quantity="runs that fell", unit="1", value=float(len(late)), bound=0.0,
                bound_from="less than half of the simulated robots fell", runs=late, evidence=evidence,
                cause="ground, load or disturbance that training did not have; `trueup gap` tells which",
                change="push harder and widen the ranges",
                changes=tuple(_tougher(reference.task)),
            )
        )  # fmt: skip
    return told, looked


def _start(reference: BoundsReference) -> Found:
    """The policy's first state lies outside the start states of training; without a fall."""
    told: list[Symptom] = []
    looked: list[Looked] = []
    for quantity, words in (("start_pose", "farthest joint from the default pose"), ("start_tilt", "lean")):
        bound, values = reference.simulated(quantity), reference.values(quantity)
        if bound is None or not values:
            continue
        value = max(values.values())
        # a carpet's edge or a hand causes a lean of 0.1 rad
        bound = bound._replace(value=max(bound.value, 0.15)) if quantity == "start_tilt" else bound
        beyond = value > bound.value
        looked.append(_looked("starts elsewhere than training", words, "rad", value, bound.value, beyond))
        if beyond and not told:
            pose, tilt = (max(reference.values(name).values(), default=0.0) for name in ("start_pose", "start_tilt"))
            told.append(
                Symptom(
                    name="starts elsewhere than training", quantity=words, unit="rad", value=value, bound=bound.value,
                    bound_from=f"{bound.origin}, standing on its servos, with the task's noise on starts", runs=values,
                    evidence=f"{words} {value:.2f} rad at the policy's first step, "
                             f"training's starts reach {bound.value:.2f}",
                    cause="the robot is put down crooked, stands on something, or carries a load",
                    change="begin episodes in wider poses, tilts and velocities",
                    changes=tuple(_wider_start(reference.task, pose, tilt)),
                )
            )  # fmt: skip
    return told, looked


def _heat(reference: BoundsReference) -> Found:
    """Motors that will overheat within minutes, by the rise of their temperatures."""
    limit = GuardCfg().temperature_derate_c
    ahead = {
        name: one["temperature"] + HEAT_MINUTES * max(one["heating"], 0.0)
        for name, one in reference.runs.items()
        if np.isfinite(one.get("temperature", np.nan)) and np.isfinite(one.get("heating", np.nan))
    }
    quantity = f"hottest motor after {HEAT_MINUTES:g} min"
    if not ahead:
        return [], [_looked("overheats", quantity, "deg C", None, limit, False)]
    worst = max(ahead, key=lambda name: ahead[name])
    told = ahead[worst] > limit
    looked = [_looked("overheats", quantity, "deg C", ahead[worst], limit, told)]
    if not told:
        return [], looked
    now, rise = reference.runs[worst]["temperature"], reference.runs[worst]["heating"]
    minutes = max(0.0, (limit - now) / rise) if rise > 0 else 0.0
    symptom = Symptom(
        name="overheats", quantity=quantity, unit="deg C", value=ahead[worst], bound=limit,
        bound_from="from which the motor guard reduces torque", runs=ahead,
        evidence=f"{now:.0f} deg C and {rise:.1f} more each minute in {worst}: {limit:.0f} after {minutes:.1f} min",
        cause="the gait holds torque that it does not need, or a joint carries more than in training",
        change="penalise energy and torque more, train with motors that have become weak",
        changes=tuple([] if reference.task is None else cooler(reference.task, limit)),
    )  # fmt: skip
    return [symptom], looked


def _differs(reference: BoundsReference) -> Found:
    """Runs of the same command that differ more than runs of one simulated robot do."""
    told: list[Symptom] = []
    looked: list[Looked] = []
    for quantity, (words, unit) in _SPREADS.items():
        values = reference.values(quantity)
        bound = spread_bound(reference, quantity, len(values))
        if bound is None:
            continue
        bound = bound._replace(value=max(bound.value, _FEW_SPREAD))
        value = float(np.ptp(list(values.values())))
        beyond = value > bound.value
        looked.append(_looked("differs each time", f"spread of {words}", unit, value, bound.value, beyond))
        if beyond and not told:
            told.append(
                Symptom(
                    name="differs each time", quantity=f"spread of {words}", unit=unit, value=value, bound=bound.value,
                    bound_from=f"{bound.origin}, and at least the {_FEW_SPREAD:g} {unit} that leg odometry tells",
                    runs=values,
                    evidence=f"mean {words} of {len(values)} runs with the same command differs by {value:.2f} {unit}, "
                             f"runs of one simulated robot by {bound.value:.2f}",
                    cause="start, ground or sensors differ from run to run more than in training",
                    change="train with more sensor noise and wider starts",
                    changes=tuple(_noisier(reference.task)),
                )
            )  # fmt: skip
    return told, looked


def _wider_start(task: Task | None, pose: float, tilt: float) -> list[TaskChange]:
    if task is None:
        return []
    wanted = {"joint_pos": min(1.25 * pose, 1.0), "tilt": min(max(1.25 * tilt, 2.0 * task.start.tilt), 0.6)}
    wanted |= {name: max(2.0 * getattr(task.start, name), 0.2) for name in ("vel", "spin", "joint_vel")}
    return c.fields(task, "start", **{name: float(value) for name, value in wanted.items() if np.isfinite(value)})


def _tougher(task: Task | None) -> list[TaskChange]:
    if task is None:
        return []
    newton = 1.5 * task.pushes.newton if task.pushes is not None else 40.0
    return [*c.fields(task, "pushes", newton=newton), *c.stretched(task, *task.randomize, by=1.25)]


def _noisier(task: Task | None) -> list[TaskChange]:
    if task is None:
        return []
    names = ("joint_pos_rad", "joint_vel_rad_s", "gyro_rad_s", "gravity")
    start = {name: 1.5 * getattr(task.start, name) for name in ("joint_pos", "tilt", "vel", "spin")}
    return [*c.fields(task, "sensors", **{name: 1.5 * getattr(task.sensors, name) for name in names}),
            *c.fields(task, "start", **start)]  # fmt: skip


def _looked(name: str, quantity: str, unit: str, value: float | None, bound: float | None, told: object) -> Looked:
    return Looked(name=name, quantity=quantity, unit=unit, value=value, bound=bound, told=bool(told))
