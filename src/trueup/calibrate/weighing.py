"""Estimate the load of a legged robot from a log of slow squats on flat ground.

Logs in the air do not identify a load on the trunk. On the ground, at rest, each leg is a scale: with joint torques
tau, gravity g(q) and the foot's Jacobian J, its foot force is f = J^-T (g(q) - tau) (least squares for legs with more
than three joints). The six equations of the trunk then hold only if the load is right. With S the trunk's own rows,

    r = sum_feet S J^T f - S g(q) = (m g up, c x R^T m g up):

its vertical force is the load's weight m g, its torque gives the place c of the load in the horizontal plane. Torques
are those of the servo (kp, kd and the command in the log, or fitted), less fitted friction and damping; what is left of
friction turns its sign between lowering and raising, so only whole squats are averaged.

A load and weak motors cannot be told apart here: torques that are all a factor s smaller than the gains say weigh a
robot about 1/s too heavy. In the air the same factor makes armature, damping and friction 1/s too large, so that a
simulation with all four moves as the robot does. Standard errors are those of the load under the gains as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import mujoco
import numpy as np

from trueup.calibrate.data.logs import in_order
from trueup.calibrate.parameters import parameters_for
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.files import Logs, read_logs
from trueup.data.log import Log
from trueup.data.resample import rate_of
from trueup.robot.excitation.squat import PERIOD_S
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg, compile_model, default_qpos, joint_index, trunk_body
from trueup.robot.shapes import lowest_place
from trueup.world.batch import BatchSim
from trueup.world.config import SimCfg
from trueup.world.fitted.calibration import Calibration, Estimate, read_calibration
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.replay.tracks import require_finite

_RATE_HZ = 20.0  # rows a second that are weighed
_ANGLE_ERROR = 0.02  # rad, of encoders: levers are wrong by so much
_SLOW = 0.05  # rad/s around which dry friction turns its sign
_CENTRE_ERROR = 0.005  # m, of the robot's centre of mass (4 mm on twins: docs/results/load.md)
_HEIGHT_ERROR = 0.02  # m, of the trunk's centre of mass: nothing here shows the load's height
_SURE = 2.0  # standard errors that a load must be from zero


@dataclass(frozen=True, kw_only=True)
class Load:
    """A load on the trunk: kg (negative: lighter than the model) with its standard error; place in the trunk's frame.

    squats  number that was averaged
    robot   mass of the robot's model, kg
    """

    mass: float
    standard_error: float
    place: tuple[float, float]
    place_error: float
    squats: int
    robot: float

    @property
    def is_seen(self) -> bool:
        """Whether the load differs significantly from zero."""
        return abs(self.mass) > _SURE * self.standard_error

    def __str__(self) -> str:
        found = f"{self.mass:+.2f} +- {self.standard_error:.2f} kg on a robot of {self.robot:.1f} kg"
        if not self.is_seen:
            return f"the squats show no load ({found}): masses stay as they were"
        x, y = (100.0 * v for v in self.place)
        weaker = self.mass / (self.robot + self.mass)
        other = f"; motors that give {weaker:.0%} less than their gains say look the same" if weaker > 0 else ""
        return (
            f"the squats show a load of {found}, {x:+.0f} cm forward and {y:+.0f} cm left of the trunk's origin{other}"
        )


def load(robot: Robot | str, logs: Logs, fit: Calibration | str | Path, *, mapping: str | None = None) -> Calibration:
    """Estimate a legged robot's load from logs of squats, and return the calibration with the load in it.

    Its last note states the load.
    """
    robot = load_robot(robot)
    found = read_calibration(fit) if isinstance(fit, str | Path) else fit
    return with_load(robot, found, weigh(robot, read_logs(logs, mapping), found))


def weigh(robot: Robot, logs: Sequence[Log], fit: Calibration | None = None) -> Load:
    """Estimate the load; friction, damping and gains are those of `fit` where it has them."""
    if len(robot.spec.feet) < 3 or not robot.spec.base.floating:
        raise TrueupError(
            f"only a robot that stands on three feet or more can be weighed, {robot.spec.name!r} does not"
        )
    scale = _Scale(robot, fit)
    cycles = np.array([cycle for log in logs for cycle in scale.squats(in_order(robot, log))])
    if len(cycles) < 2:
        raise TrueupError(
            f"{len(cycles)} whole squats were found after the first, two are needed: `trueup record {robot.spec.name} "
            "--excitation squat --seconds 20` on the ground"
        )
    mean, spread = cycles.mean(axis=0), cycles.std(axis=0, ddof=1) / np.sqrt(len(cycles))
    mass, carried = float(mean[0]), scale.mass + float(mean[0])
    levers = carried * _ANGLE_ERROR / np.sqrt(len(robot.spec.feet))
    place = mean[1:] / mass
    return Load(
        mass=mass,
        standard_error=float(np.hypot(spread[0], levers)),
        place=(float(place[0]), float(place[1])),
        place_error=float(np.hypot(spread[1:].max(), _CENTRE_ERROR * carried) / abs(mass)),
        squats=len(cycles),
        robot=scale.mass,
    )


class _Scale:
    """The robot's model, on its feet."""

    def __init__(self, robot: Robot, fit: Calibration | None) -> None:
        self._spec = robot.spec
        self._model = compile_model(robot, ModelCfg(base="free"))
        self._data = mujoco.MjData(self._model)
        self._index = joint_index(self._model, robot)
        self._home = default_qpos(self._model, robot)
        self._feet = [self._model.geom(name).id for name in robot.spec.feet]
        self.mass = float(self._model.body_mass.sum())
        sim = BatchSim(robot, SimCfg(model=ModelCfg(base="fixed")).alone())
        if fit is not None:
            fit.apply(sim)
        self._gains = {name: sim.params.get(name)[0] for name in ("kp", "kd", "friction", "damping")}
        own = robot.spec.kp, robot.spec.kd
        self._times = [self._gains[n] / np.where(o > 0, o, 1.0) for n, o in zip(("kp", "kd"), own, strict=True)]

    def squats(self, log: Log) -> list[FloatArray]:
        """Load (kg) and its moments (kg m: x, y), averaged over each whole squat of a log, (3,) each."""
        require_finite(log)
        torque = self._torque(log)
        rate = rate_of(log)
        every, length = max(1, round(rate / _RATE_HZ)), round(PERIOD_S * rate)
        known = [name for name in ("imu_quat", "base_quat") if name in log]
        quat = log[known[0]] if known else None  # without: the trunk is taken as level
        pos = log["joint_pos"]
        rows = [range(start, start + length, every) for start in _squat_starts(log, rate)]
        return [
            np.mean([self._row(pos[t], torque[t], None if quat is None else quat[t]) for t in squat], 0)
            for squat in rows
        ]

    def _torque(self, log: Log) -> FloatArray:
        """Torque that reaches the links, (T, n): of the servo, less friction and damping."""
        pos = log["joint_pos"]
        vel = np.gradient(pos, 1.0 / rate_of(log), axis=0)
        width = max(1, round(0.1 * rate_of(log)))
        vel = np.apply_along_axis(np.convolve, 0, vel, np.ones(width) / width, "same")
        # the command that acts in row t was sent in row t - 1
        sent = {name: np.roll(log[name], 1, axis=0) for name in log.signals if name.startswith("target_")}
        kp = self._times[0] * sent.get("target_kp", self._spec.kp)
        kd = self._times[1] * sent.get("target_kd", self._spec.kd)
        torque = kp * (sent["target_pos"] - pos) + kd * (sent.get("target_vel", 0.0) - vel)
        torque = np.clip(torque + sent.get("target_torque", 0.0), -self._spec.torque_limit, self._spec.torque_limit)
        return torque - self._gains["damping"] * vel - self._gains["friction"] * np.tanh(vel / _SLOW)

    def _row(self, pos: FloatArray, torque: FloatArray, quat: FloatArray | None) -> FloatArray:
        """Mass and moments of the load from one row, (3,)."""
        model, data, dof = self._model, self._data, self._index.dof
        data.qpos[:] = self._home
        data.qpos[self._index.qpos] = pos
        if quat is not None:
            data.qpos[3:7] = quat / np.linalg.norm(quat)
        data.qvel[:] = 0.0
        mujoco.mj_forward(model, data)
        jacobian = np.zeros((len(self._feet), 3, model.nv))
        for k, foot in enumerate(self._feet):
            place = lowest_place(model, data, foot)
            mujoco.mj_jac(model, data, jacobian[k], None, place, int(model.geom_bodyid[foot]))
        flat = jacobian.reshape(-1, model.nv)
        force = np.linalg.lstsq(flat[:, dof].T, data.qfrc_bias[dof] - torque, rcond=1e-6)[0]
        wrench = flat[:, :6].T @ force - data.qfrc_bias[:6]
        weight = float(np.linalg.norm(model.opt.gravity))
        up = data.xmat[model.body(self._spec.base.body).id].reshape(3, 3)[2]  # the vertical, in the trunk's frame
        # torque = c x (m g up): for a trunk that is nearly level, (c_y, -c_x) m g up_z
        return np.array([wrench[2], -wrench[4] / up[2], wrench[3] / up[2]]) / weight


def _squat_starts(log: Log, rate: float) -> list[int]:
    """First rows of whole squats, from the log's own plan: they begin when the command leaves its first pose."""
    excitation = log.meta.get("excitation")
    phases = log.meta.get("phases")
    if not (isinstance(excitation, dict) and excitation.get("kind") == "squat" and isinstance(phases, dict)):
        raise TrueupError(
            "a load is weighed from a log of `trueup record ROBOT --excitation squat`; this is another one"
        )
    first = int(phases["plan"])
    last = int(phases.get("home", len(log)))
    length = round(PERIOD_S * rate)
    return list(range(first, last - length + 1, length))[1:]  # the first one settles


def with_load(robot: Robot, fit: Calibration, load: Load) -> Calibration:
    """The calibration with the trunk's mass and centre of mass as weighed; as it was if no load is seen.

    Mass and moments are of trunk and load together. The load's height is not seen: there the prior's width stands.
    """
    if not load.is_seen:
        return msgspec.structs.replace(fit, notes=(*fit.notes, str(load)))
    cfg = SimCfg(model=ModelCfg(base="free"))
    model = compile_model(robot, ModelCfg(base="free"))
    trunk = trunk_body(model, robot)
    own, centre = float(model.body(trunk).mass[0]), model.body(trunk).ipos
    entries = parameters_for(robot, cfg, ("mass_scale", "com_offset"), bodies=(trunk,))
    total = own + load.mass
    if total < 0.2 * own:
        raise TrueupError(f"{load}: that is more than the trunk's own {own:.1f} kg; is this the right robot model?")
    share = load.mass / total
    shift = [share * (load.place[k] - float(centre[k])) for k in range(2)]
    error = float(np.hypot(share * load.place_error, load.standard_error / total * max(map(abs, shift))))
    found = [(total / own, load.standard_error / own), (shift[0], error), (shift[1], error), (0.0, _HEIGHT_ERROR)]
    new = tuple(_estimate(entry, *pair, seen=k < 3) for k, (entry, pair) in enumerate(zip(entries, found, strict=True)))
    kept = [k for k, estimate in enumerate(fit.estimates) if not _replaces(new, estimate)]
    old = np.array(fit.covariance)[np.ix_(kept, kept)]
    covariance = np.zeros((len(kept) + len(new),) * 2)
    covariance[: len(kept), : len(kept)] = old
    covariance[range(len(kept), len(covariance)), range(len(kept), len(covariance))] = [
        estimate.ratio**2 for estimate in new
    ]
    return msgspec.structs.replace(
        fit,
        estimates=(*(fit.estimates[k] for k in kept), *new),
        x=[*(fit.x[k] for k in kept), *(estimate.parameter.to_x(estimate.value) for estimate in new)],
        covariance=covariance.tolist(),
        notes=(*fit.notes, str(load)),
    )


def _replaces(new: Sequence[Estimate], estimate: Estimate) -> bool:
    return any((n.parameter.name, n.parameter.of) == (estimate.parameter.name, estimate.parameter.of) for n in new)


def _estimate(entry: FitParameter, value: float, error: float, *, seen: bool) -> Estimate:
    reach = 4.0 * error  # bounds are for searches; what was weighed may lie beyond
    entry = msgspec.structs.replace(entry, low=min(entry.low, value - reach), high=max(entry.high, value + reach))
    return Estimate(
        parameter=entry,
        value=value,
        standard_error=error,
        interval=(max(entry.low, value - 1.96 * error), min(entry.high, value + 1.96 * error)),
        verdict="not visible" if not seen else "identified" if error < 0.5 * entry.slope(value) else "weak",
        ratio=error / entry.slope(value),
        partner="",
        correlation=0.0,
        on_bound=False,
        advice="",
        nominal=1.0 if entry.name == "mass_scale" else 0.0,
        nominal_excluded=seen and abs(value - (entry.name == "mass_scale")) > _SURE * error,
    )
