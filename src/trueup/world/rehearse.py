"""Rehearse: run a plan in the nominal model before the robot does, and scale it down until it passes.

The base is held; every shape collides with every other one. Collisions are checked along two paths: the one
that the model's servos follow and the commanded one, because a robot may follow better than its model. Torque
is checked at every physics step, short bursts excepted: a servo that is often at its limit hides its own gains.

Joints that break a limit are scaled down about the plan's first pose; a collision scales the joints between
the two bodies, and no others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.excitation.plan import Plan, scale_plan
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.engine import ActuatorCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.touch import Touch, TouchFinder

FloatArray = NDArray[np.float64]


BURST_SHARE = 0.005  # of the time beyond `torque_fraction`: a stiff servo answers every new row with a burst
SHRINK = 0.85  # smallest factor of one step down
LEAST_SCALE = 0.05  # below this the plan is given up
LEAST_PHYSICS_HZ = 1000.0  # slower steps average away the bursts with which a stiff servo answers a new row
SETTLE_S = 0.5  # before the plan: the servos sag under gravity, as they will have on the robot


@dataclass(frozen=True, kw_only=True)
class RehearseCfg:
    """Limits that a plan must keep.

    torque_fraction    of the torque limit that the servos may use, but for short bursts
    velocity_fraction  of the velocity limit that the joints may reach
    clearance_m        shapes nearer than this count as touching
    floor              a ground plane at height zero; None: under a robot that is bolted down, not under one held up
    scale              make the motion smaller until it passes; False: raise at the first violation
    """

    torque_fraction: float = 0.75
    velocity_fraction: float = 0.9
    clearance_m: float = 0.005
    floor: bool | None = None
    scale: bool = True

    def __post_init__(self) -> None:
        if not (self.torque_fraction > 0.0 and self.velocity_fraction > 0.0 and self.clearance_m >= 0.0):
            raise TrueupError("torque_fraction and velocity_fraction must be positive, clearance_m not negative")


class Violation(NamedTuple):
    """One joint beyond one limit: "position", "velocity" or "torque", when, how much, and the limit."""

    joint: str
    quantity: str
    time_s: float
    value: float
    limit: float

    def __str__(self) -> str:
        unit = {"position": "rad", "velocity": "rad/s", "torque": "N m"}[self.quantity]
        return (
            f"joint {self.joint!r} reaches a {self.quantity} of {self.value:.3g} {unit} "
            f"at {self.time_s:.2f} s (limit {self.limit:.3g})"
        )


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Result of a rehearsal.

    plan           the plan that was simulated: scaled down by `scale` (n,), ones if untouched
    joint_pos ...  (T, n) of the simulation; row t is the state in which the plan's row t is commanded
    torque         (T, n) of the servos, mean over the time a row is in force
    touches        of shapes, first time of each pair; `violations` of limits, first per joint and kind
    notes          what was changed and why, in words
    """

    plan: Plan
    scale: FloatArray
    joint_pos: FloatArray
    joint_vel: FloatArray
    torque: FloatArray
    touches: tuple[Touch, ...]
    violations: tuple[Violation, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not (self.touches or self.violations)

    @property
    def peak_torque(self) -> FloatArray:
        return np.asarray(np.abs(self.torque).max(axis=0), np.float64)

    @property
    def peak_velocity(self) -> FloatArray:
        return np.asarray(np.abs(self.joint_vel).max(axis=0), np.float64)


def rehearse(robot: Robot, plan: Plan, cfg: RehearseCfg | None = None) -> Rehearsal:
    """Return the largest version of the plan that the model carries out cleanly; raise if there is none."""
    cfg = cfg or RehearseCfg()
    stage = _Stage(robot, plan, cfg)
    scale = np.ones(robot.spec.njoint)
    notes: dict[str, str] = {}
    while True:
        now = stage.run(scale_plan(plan, plan.target_pos[0], scale), scale)
        if now.passed:
            return replace(now, notes=tuple(notes.values()))
        reasons = [*map(str, now.touches), *map(str, now.violations)]
        smaller = stage.smaller(now, scale)
        if not cfg.scale or smaller.min() < LEAST_SCALE or (smaller == scale).all():
            why = f" at {scale.min():.0%} of its size" if scale.min() < 1.0 else ""
            raise TrueupError(f"the plan does not pass its rehearsal{why}: {'; '.join(reasons[:3])}")
        for j in np.flatnonzero(smaller < scale):
            name = robot.spec.joint_names[j]
            cause = next((text for text in reasons if repr(name) in text), reasons[0])
            notes[name] = f"joint {name!r} scaled to {smaller[j]:.0%}: {cause}"
        scale = smaller


def plan_figure_data(plan: Plan, rehearsal: Rehearsal | None = None) -> dict[str, dict[str, FloatArray]]:
    """Arrays (T, n) for plots on the plan's clock: quantity -> trace -> values; torque with a rehearsal."""
    shown = plan if rehearsal is None else rehearsal.plan
    speed = np.gradient(shown.target_pos, shown.dt, axis=0)
    data = {"position": {"target": shown.target_pos}, "velocity": {"target": speed}}
    if rehearsal is not None:
        data["position"]["simulated"] = rehearsal.joint_pos
        data["velocity"]["simulated"] = rehearsal.joint_vel
        data["torque"] = {"servo": rehearsal.torque}
    return data


class _Stage:
    """Simulates one plan at several scales."""

    def __init__(self, robot: Robot, plan: Plan, cfg: RehearseCfg) -> None:
        if plan.joint_names != robot.spec.joint_names:
            raise TrueupError(f"this plan is for other joints than those of robot {robot.spec.name!r}")
        self._robot, self._cfg = robot, cfg
        floor = not robot.spec.base.floating if cfg.floor is None else cfg.floor
        self._substeps = max(1, math.ceil(max(robot.spec.physics_hz, LEAST_PHYSICS_HZ) * plan.dt - 1e-3))
        self._with_velocity = plan.target_vel is not None
        rate = self._substeps / plan.dt  # every physics step is a control step, so that its torque can be seen
        actuator = ActuatorCfg(inputs="servo" if self._with_velocity else "pos")
        model = ModelCfg(base="fixed", collisions="full", floor=floor)
        cfg_sim = SimCfg(threads=1, control_hz=rate, physics_hz=rate, model=model, actuator=actuator)
        self._sim = BatchSim(robot, cfg_sim)
        self._finder = TouchFinder(robot, self._sim.model, cfg.clearance_m, plan.target_pos[0])

    def run(self, plan: Plan, scale: FloatArray) -> Rehearsal:
        """Simulate one scale of the plan and check it."""
        pos, vel, torque = self._simulate(plan)
        return Rehearsal(
            plan=plan,
            scale=scale,
            joint_pos=pos,
            joint_vel=vel,
            torque=torque.reshape(len(plan), -1, pos.shape[1]).mean(axis=1),
            touches=self._finder.first_touches((pos, plan.target_pos), plan.time),
            violations=self._violations(plan.time, pos, vel, torque),
        )

    def smaller(self, run: Rehearsal, scale: FloatArray) -> FloatArray:
        """The scale of the next attempt: joints that broke a limit shrink, the others stay."""
        factor = dict.fromkeys(self._robot.spec.joint_names, 1.0)
        for touch in run.touches:
            factor |= dict.fromkeys(touch.joints, SHRINK)
        for violation in run.violations:
            # torque and velocity grow about as the motion does
            fits = 0.97 * violation.limit / violation.value if violation.quantity != "position" else 0.0
            factor[violation.joint] = min(factor[violation.joint], max(SHRINK, fits))
        moves = np.abs(run.plan.target_pos - run.plan.target_pos[0]).max(axis=0) > 0.0
        return np.where(moves, scale * np.array(list(factor.values())), scale)

    def _simulate(self, plan: Plan) -> tuple[FloatArray, FloatArray, FloatArray]:
        """States (T, n) at the instants at which the rows are commanded, torque (T substeps, n)."""
        sim = self._sim
        qpos = sim.default_qpos.copy()
        qpos[sim.index.qpos] = plan.target_pos[0]
        sim.reset(qpos=qpos[None])
        self._play(plan.target_pos[:1].repeat(round(SETTLE_S / plan.dt), axis=0), None)
        before = sim.joint_pos.copy(), sim.joint_vel.copy()
        out = self._play(plan.target_pos, plan.target_vel)
        if sim.diverged.any():
            raise TrueupError("the simulation of the plan diverged: are the gains too stiff for physics_hz?")
        after = slice(self._substeps - 1, -1, self._substeps)
        pos, vel = out["qpos"][0, after][:, sim.index.qpos], out["qvel"][0, after][:, sim.index.dof]
        torque = out["qfrc_actuator"][0][:, sim.index.dof]
        return np.concatenate([before[0], pos]), np.concatenate([before[1], vel]), torque

    def _play(self, target: FloatArray, speed: FloatArray | None) -> dict[str, FloatArray]:
        """Run targets (T, n), each held for its physics steps."""
        held = {} if not self._with_velocity else {"target_vel": np.zeros_like(target) if speed is None else speed}
        held = {name: values.repeat(self._substeps, axis=0)[None] for name, values in held.items()}
        targets = target.repeat(self._substeps, axis=0)[None]
        return self._sim.rollout(targets, record=("qpos", "qvel", "qfrc_actuator"), **held)

    def _violations(
        self, time: FloatArray, pos: FloatArray, vel: FloatArray, torque: FloatArray
    ) -> tuple[Violation, ...]:
        """First per joint and quantity; torque (T substeps, n)."""
        spec, found = self._robot.spec, []
        beyond = np.maximum(spec.position_low - pos, pos - spec.position_high)
        # bursts aside: what is beyond the quantile is cut down to it
        force = np.minimum(np.abs(torque), np.quantile(np.abs(torque), 1.0 - BURST_SHARE, axis=0))
        force = force.reshape(len(time), -1, spec.njoint).max(axis=1)
        checks = (
            ("velocity", np.abs(vel), self._cfg.velocity_fraction * spec.velocity_limit),
            ("torque", force, self._cfg.torque_fraction * spec.torque_limit),
        )
        for j, joint in enumerate(spec.joints):
            row = int(np.argmax(beyond[:, j]))
            if beyond[row, j] > 0.0:
                limit = joint.position[int(pos[row, j] > joint.default)]
                found.append(Violation(joint.name, "position", float(time[row]), float(pos[row, j]), limit))
            for quantity, values, limits in checks:
                row = int(np.argmax(values[:, j]))
                value, limit = float(values[row, j]), float(limits[j])
                if value > limit:
                    found.append(Violation(joint.name, quantity, float(time[row]), value, limit))
        return tuple(found)
