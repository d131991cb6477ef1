"""Rehearse: run a plan in the nominal model before the robot does, and scale it down until it passes.

The base is held; every shape collides with every other one. Collisions are checked along two paths: the one
that the model's servos follow and the commanded one, because a robot may follow better than its model. Torque
is checked at every physics step, short bursts excepted: a servo that is often at its limit hides its own gains.

Joints that break a limit are scaled down about the plan's first pose; a collision scales the joints between
the two bodies, and no others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.robot.excitation.plan import Plan, scale_plan
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.robot.spec import RobotSpec
from trueup.world.actuators.engine import ActuatorCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.touch import TouchFault, TouchFinder

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


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """A plan that the model executes within all limits.

    plan           the plan that was simulated: scaled down by `scale` (n,), ones if untouched
    joint_pos ...  (T, n) of the simulation; row t is the state in which the plan's row t is commanded
    torque         (T, n) of the servos, mean over the time a row is in force
    notes          what was changed and why, in words
    """

    plan: Plan
    scale: FloatArray
    joint_pos: FloatArray
    joint_vel: FloatArray
    torque: FloatArray
    notes: tuple[str, ...]

    @property
    def peak_torque(self) -> FloatArray:
        return np.asarray(np.abs(self.torque).max(axis=0), np.float64)

    @property
    def peak_velocity(self) -> FloatArray:
        return np.asarray(np.abs(self.joint_vel).max(axis=0), np.float64)


def rehearse(robot: Robot, plan: Plan, cfg: RehearseCfg | None = None) -> Rehearsal:
    """Return the largest version of the plan that the model executes within all limits; raise if there is none."""
    cfg = cfg or RehearseCfg()
    if plan.joint_names != robot.spec.joint_names:
        raise TrueupError(f"this plan is for other joints than those of robot {robot.spec.name!r}")
    sim = _simulation(robot, plan, cfg)
    finder = TouchFinder(robot, sim.model, cfg.clearance_m, plan.target_pos[0])
    moves = np.abs(plan.target_pos - plan.target_pos[0]).max(axis=0) > 0.0
    scale = np.ones(robot.spec.njoint)
    notes: dict[str, str] = {}
    while True:
        scaled = scale_plan(plan, plan.target_pos[0], scale)
        pos, vel, torque = _simulate(sim, scaled)
        faults = finder.first_touches((pos, scaled.target_pos), plan.time, SHRINK)
        faults += _violations(robot.spec, cfg, plan.time, pos, vel, torque)
        if not faults:
            mean = torque.reshape(len(plan), -1, robot.spec.njoint).mean(axis=1)
            return Rehearsal(
                plan=scaled, scale=scale, joint_pos=pos, joint_vel=vel, torque=mean, notes=tuple(notes.values())
            )
        factor = dict.fromkeys(robot.spec.joint_names, 1.0)
        for fault in faults:
            factor |= {joint: min(factor[joint], fault.factor) for joint in fault.joints}
        smaller = np.where(moves, scale * np.array(list(factor.values())), scale)
        if not cfg.scale or smaller.min() < LEAST_SCALE or (smaller == scale).all():
            why = f" at {scale.min():.0%} of its size" if scale.min() < 1.0 else ""
            reasons = "; ".join(fault.text for fault in faults[:3])
            raise TrueupError(f"the plan does not pass its rehearsal{why}: {reasons}")
        for j in np.flatnonzero(smaller < scale):
            name = robot.spec.joint_names[j]
            cause = next(fault.text for fault in faults if name in fault.joints)
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


def _simulation(robot: Robot, plan: Plan, cfg: RehearseCfg) -> BatchSim:
    """One simulation in which every physics step is a control step, so that its torque can be seen."""
    floor = not robot.spec.base.floating if cfg.floor is None else cfg.floor
    substeps = max(1, math.ceil(max(robot.spec.physics_hz, LEAST_PHYSICS_HZ) * plan.dt - 1e-3))
    rate, model = substeps / plan.dt, ModelCfg(base="fixed", collisions="full", floor=floor)
    actuator = ActuatorCfg(inputs="servo")
    return BatchSim(robot, SimCfg(threads=1, control_hz=rate, physics_hz=rate, model=model, actuator=actuator))


def _simulate(sim: BatchSim, plan: Plan) -> tuple[FloatArray, FloatArray, FloatArray]:
    """States (T, n) at the instants at which the rows are commanded, torque (T substeps, n)."""
    substeps = round(plan.dt / sim.control_dt)

    def play(target: FloatArray, speed: FloatArray | None) -> dict[str, FloatArray]:
        held = [np.repeat(part, substeps, axis=0)[None] for part in (target, 0.0 * target if speed is None else speed)]
        return sim.rollout(held[0], target_vel=held[1], record=("qpos", "qvel", "qfrc_actuator"))

    qpos = sim.default_qpos.copy()
    qpos[sim.index.qpos] = plan.target_pos[0]
    sim.reset(qpos=qpos[None])
    play(plan.target_pos[:1].repeat(round(SETTLE_S / plan.dt), axis=0), None)
    before = sim.joint_pos.copy(), sim.joint_vel.copy()
    out = play(plan.target_pos, plan.target_vel)
    if sim.diverged.any():
        raise TrueupError("the simulation of the plan diverged: are the gains too stiff for physics_hz?")
    after = slice(substeps - 1, -1, substeps)
    pos, vel = out["qpos"][0, after][:, sim.index.qpos], out["qvel"][0, after][:, sim.index.dof]
    torque = out["qfrc_actuator"][0][:, sim.index.dof]
    return np.concatenate([before[0], pos]), np.concatenate([before[1], vel]), torque


def _violations(
    spec: RobotSpec, cfg: RehearseCfg, time: FloatArray, pos: FloatArray, vel: FloatArray, torque: FloatArray
) -> list[TouchFault]:
    """Violated limits, the worst instant per joint and quantity; torque (T substeps, n)."""
    # bursts aside: what is beyond the quantile is cut down to it
    force = np.minimum(np.abs(torque), np.quantile(np.abs(torque), 1.0 - BURST_SHARE, axis=0))
    force = force.reshape(len(time), -1, spec.njoint).max(axis=1)
    above = pos > spec.default_pose
    checks = (  # quantity, unit, value, size, limit of the size
        ("position", "rad", pos, np.maximum(spec.position_low - pos, pos - spec.position_high), 0.0 * spec.kp),
        ("velocity", "rad/s", np.abs(vel), np.abs(vel), cfg.velocity_fraction * spec.velocity_limit),
        ("torque", "N m", force, force, cfg.torque_fraction * spec.torque_limit),
    )
    found = []
    for j, joint in enumerate(spec.joints):
        for quantity, unit, values, sizes, limits in checks:
            row = int(np.argmax(sizes[:, j]))
            if sizes[row, j] <= limits[j]:
                continue
            value, limit = float(values[row, j]), float(limits[j])
            if quantity == "position":
                limit, fits = joint.position[int(above[row, j])], 0.0
            else:
                fits = 0.97 * limit / value  # torque and velocity grow about as the motion does
            text = f"a {quantity} of {value:.3g} {unit} at {time[row]:.2f} s (limit {limit:.3g})"
            found.append(TouchFault((joint.name,), max(SHRINK, fits), f"joint {joint.name!r} reaches {text}"))
    return found
