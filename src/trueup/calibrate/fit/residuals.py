"""Residuals of many parameter vectors at once: every window under every vector is one simulation of a batch.

The batches are built once and reset for every evaluation. A residual is (simulated - measured) / sigma, zero where a
sample is not compared; the encoder's bias shifts both the start state and the compared positions.

Limbs on a held base move independently, so one rollout can carry a change in each: the column grouping of Curtis,
Powell and Reid for sparse Jacobians, read off the kinematic tree. A go2 in the air has four limbs, and 48 of its 49
columns share 12 rollouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.cutting import BASE_CHANNELS, base_seen
from trueup.calibrate.data.windows import FitWindows
from trueup.core.arrays import FloatArray
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.fit_parameter import FitParameter, ParamWriter
from trueup.world.parameters.able_to_set import able_to_set
from trueup.world.parameters.params import PARAMETERS
from trueup.world.replay.playback import RecordedStretch, joint_seen, play, set_gains
from trueup.world.replay.replay import at_rate

Jacobian = NDArray[np.float32]
_MEMORY_NUMBERS = 20_000_000  # of one batch's rollout (160 MB)
_DIVERGED = 1e3  # residual of a simulation that blew up
_STEP = 0.01  # of a finite difference, in prior widths
_STEP_IN_CONTACT = 0.1  # a foot that touches one step earlier causes a jump, which a longer difference averages


@dataclass(frozen=True, kw_only=True)
class Colouring:
    """Columns of a Jacobian in groups that share a rollout.

    groups  parameter numbers of each group
    reach   (nparameter, njoint) bool: joints whose motion a parameter affects
    limb    (njoint,) limb of each joint, from 0
    owner   (nparameter,) the only limb that a parameter affects; -1: several
    """

    groups: tuple[tuple[int, ...], ...]
    reach: NDArray[np.bool_]
    limb: NDArray[np.intp]
    owner: NDArray[np.intp]


def colour(sim: BatchSim, parameters: Sequence[FitParameter]) -> Colouring:
    """Group parameters whose reaches are disjoint, first fit in order; one without effect goes with limb 0."""
    joint_limb, body_limb = _limbs(sim)
    reach = np.ones((len(parameters), len(joint_limb)), bool)
    for k, entry in enumerate(parameters):
        scope, names, limbs = PARAMETERS[entry.name].scope, sim.robot.spec.joint_names, joint_limb
        if scope == "body":
            names, limbs = sim.params.body_names, body_limb
        if scope != "robot":
            reach[k] = np.isin(joint_limb, [limbs[names.index(name)] for name in entry.of])
    groups: list[list[int]] = []
    for k, reached in enumerate(reach):
        group = next((g for g in groups if not (reach[g].any(axis=0) & reached).any()), None)
        if group is None:
            groups.append(group := [])
        group.append(k)
    limb = np.unique(joint_limb, return_inverse=True)[1].astype(np.intp)
    touched = [np.unique(limb[reached]) for reached in reach]
    owner = np.array([-1 if len(limbs) > 1 else limbs[0] if len(limbs) else 0 for limbs in touched], np.intp)
    return Colouring(groups=tuple(map(tuple, groups)), reach=reach, limb=limb, owner=owner)


def _limbs(sim: BatchSim) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Limb number of every joint and of every body with mass; one limb for all unless they are truly independent."""
    model = sim.model
    bodies = np.array([model.body(name).id for name in sim.params.body_names])
    joint_bodies = model.jnt_bodyid[sim.index.joint_id]
    # some shape offers contact and some shape accepts it
    may_touch = np.bitwise_or.reduce(model.geom_contype) & np.bitwise_or.reduce(model.geom_conaffinity)
    if sim.free_base or sim.cfg.model.base == "mount" or model.neq or model.ntendon or may_touch:
        return np.zeros(len(joint_bodies), np.intp), np.zeros(len(bodies), np.intp)
    # the kinematic trees below the world; -1: nothing above the body moves
    return model.body_treeid[joint_bodies].astype(np.intp), model.body_treeid[bodies].astype(np.intp)


def fit_sim_cfg(
    robot: Robot, rate_hz: float, names: Sequence[str], *, free_base: bool = False, physics_hz: float | None = None
) -> SimCfg:
    """Physics of a fit: control at the log's rate, physics at the spec's or the given rate, or the next multiple."""
    cfg = SimCfg(physics_hz=physics_hz, model=ModelCfg(base="free" if free_base else "fixed"))
    return able_to_set(at_rate(robot, cfg, rate_hz), names)


def as_delivered(cfg: SimCfg) -> SimCfg:
    """The simulation without a fit: the robot's own actuators, no stand, the engine's own friction."""
    base = "fixed" if cfg.model.base == "mount" else cfg.model.base
    actuator = replace(cfg.actuator, kind=None)
    return replace(cfg, model=replace(cfg.model, base=base), actuator=actuator, friction=None)


def window_products(jacobian: Jacobian) -> FloatArray:
    """(nwindow, p, p): J J^T of every window of (p, nwindow, L, nchannel), in double precision."""
    flat = [jacobian[:, w].reshape(len(jacobian), -1).astype(np.float64) for w in range(jacobian.shape[1])]
    return np.array([part @ part.T for part in flat])


class Shooting:
    """Residuals of a robot's windows as a function of x (see `fit_parameter`), by multiple shooting."""

    def __init__(self, robot: Robot, windows: FitWindows, parameters: Sequence[FitParameter], cfg: SimCfg) -> None:
        self.robot, self.windows, self.parameters = robot, windows, tuple(parameters)
        if windows.target_vel is not None or windows.torque is not None:
            cfg = replace(cfg, actuator=replace(cfg.actuator, inputs="servo"))
        self.cfg = cfg
        self.sigma = windows.sigma.copy()
        self.rollouts = 0  # windows simulated so far, over all vectors
        self._sims: dict[int, BatchSim] = {}
        self._writers: dict[int, tuple[ParamWriter, dict[str, FloatArray]]] = {}
        self._tiled: dict[int, tuple[FitWindows, RecordedStretch]] = {}
        self.colouring: Colouring = colour(self._sim(1), self.parameters)
        base, njoint = 0 if windows.base_quat is None else BASE_CHANNELS, robot.spec.njoint
        joint_channels = windows.measured.shape[-1] - base
        self._sees_velocity = joint_channels > njoint
        # (nchannel,) joint of each channel, the first for those of the base: a free base is one limb with all joints
        self._joints = np.append(np.arange(joint_channels) % njoint, np.zeros(base, np.intp))
        self.channel_limb = self.colouring.limb[self._joints]

    @property
    def nparameter(self) -> int:
        return len(self.parameters)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        pairs = np.array([entry.x_bounds for entry in self.parameters])
        return pairs[:, 0], pairs[:, 1]

    def values(self, x: FloatArray) -> FloatArray:
        """Parameter values of vectors (nvector, nparameter) of x."""
        return np.stack([entry.to_value(x[..., k]) for k, entry in enumerate(self.parameters)], axis=-1)

    def nominal(self) -> FloatArray:
        """(nparameter,) values without the fit: the model's own, 1 for factors."""
        sim, out = self._sim(1), []
        base = self._writers[1][1]
        for entry in self.parameters:
            scope = PARAMETERS[entry.name].scope
            known = sim.robot.spec.joint_names if scope == "joint" else sim.params.body_names
            value = base[entry.name][0]
            value = value if entry.axis is None else value[..., entry.axis]
            own = value if scope == "robot" else value[[known.index(name) for name in entry.of]]
            out.append(1.0 if entry.mode == "times" else float(np.mean(own)))
        return np.array(out)

    def gain(self, name: Literal["kp", "kd"], joints: Sequence[str]) -> float:
        """Mean gain of some joints, as logged or of the spec."""
        logged = getattr(self.windows, name)
        columns = [self.robot.spec.joint_names.index(joint) for joint in joints]
        gains = getattr(self.robot.spec, name) if logged is None else logged.reshape(-1, logged.shape[-1]).mean(axis=0)
        return float(np.mean(np.asarray(gains)[columns]))

    def residuals(self, x: FloatArray) -> FloatArray:
        """Return (nvector, nwindow, L, nchannel) residuals of vectors (nvector, nparameter)."""
        model, windows = self._sim(1).model, self.windows
        numbers = windows.count * windows.target.shape[1] * (model.nq + model.nv + 2 * model.nu)
        size = max(1, min(len(x), _MEMORY_NUMBERS // (numbers * self._sim(1).substeps)))
        parts = []
        for start in range(0, len(x), size):
            chunk = x[start : start + size]
            full = np.concatenate([chunk, np.repeat(chunk[-1:], size - len(chunk), axis=0)])
            parts.append(self._run(full)[: len(chunk)])
        return np.concatenate(parts)

    def jacobian(self, x: FloatArray, at_x: FloatArray) -> Jacobian:
        """Return (nparameter, nwindow, L, nchannel) derivatives by forward differences, a rollout per colour.

        at_x  residuals of x, (nwindow, L, nchannel)
        """
        high = self.bounds[1]
        size = _STEP if self.windows.base_quat is None else _STEP_IN_CONTACT
        step = np.where(x + size <= high, size, -size)
        moved = np.repeat(x[None], len(self.colouring.groups), axis=0)
        for row, group in enumerate(self.colouring.groups):
            moved[row, list(group)] += step[list(group)]
        change = self.residuals(moved) - at_x
        out = np.zeros((self.nparameter, *at_x.shape), np.float32)
        for row, group in enumerate(self.colouring.groups):
            for k in group:
                reached = self.colouring.reach[k][self._joints]
                out[k][..., reached] = change[row][..., reached] / step[k]
        return out

    def _run(self, x: FloatArray) -> FloatArray:
        nvector, windows = len(x), self.windows
        sim = self._sim(nvector)
        values = np.repeat(self.values(x), windows.count, axis=0)
        recorded = self._recorded(nvector)
        if recorded.changes:
            set_gains(sim, recorded)
        writer, base = self._writers[nvector]
        writer.write(values, base)
        out = play(sim, recorded)
        self.rollouts += sim.nsim
        seen = self._seen(sim, out).reshape(nvector, *windows.measured.shape)
        left = (seen - windows.measured) / self.sigma
        lost = sim.diverged.reshape(nvector, windows.count) | ~np.isfinite(left).all(axis=(2, 3))
        left[lost] = _DIVERGED
        return np.where(windows.compared, left, 0.0)

    def _seen(self, sim: BatchSim, out: dict[str, FloatArray]) -> FloatArray:
        """(nsim, L, nchannel) simulated sensor readings."""
        windows = self.windows
        seen = [joint_seen(sim, out["qpos"])]
        if self._sees_velocity:
            seen.append(out["qvel"][:, :, sim.index.dof])
        if windows.base_quat is not None:
            qpos = out["qpos"][:, :, sim.base_qpos : sim.base_qpos + 7]
            qvel = out["qvel"][:, :, sim.base_dof : sim.base_dof + 6]
            quat = np.tile(windows.base_quat, (sim.nsim // windows.count, 1, 1))
            seen.append(base_seen(qpos, qvel, quat))
        return np.concatenate(seen, axis=-1)

    def _sim(self, nvector: int) -> BatchSim:
        """The batch for so many vectors; built when first needed, with the log's gains as its base."""
        if nvector not in self._sims:
            sim = BatchSim(self.robot, replace(self.cfg, nsim=nvector * self.windows.count))
            set_gains(sim, self._recorded(nvector))
            writer = ParamWriter(sim, self.parameters)
            self._sims[nvector], self._writers[nvector] = sim, (writer, writer.base())
        return self._sims[nvector]

    def _recorded(self, nvector: int) -> RecordedStretch:
        """The windows once per vector, vector first; kept for as long as the windows are the same."""
        made = self._tiled.get(nvector)
        if made is None or made[0] is not self.windows:
            made = self._tiled[nvector] = (self.windows, self.windows.recorded.tiled(nvector))
        return made[1]
