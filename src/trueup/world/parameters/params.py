"""Per-simulation parameters by name: what they are, their unit, and how they reach the engine.

`values = params.get("armature")` and `params.set("armature", values, of="FL_hip_joint")` speak in arrays whose first
axis is the simulation and whose second is the joint (spec order), the body, the object or nothing. Fields that the
engine derives from masses and inertias are brought up to date before the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import mujoco
import mujoco.batch
import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.core.errors import TrueupError, did_you_mean
from trueup.world.parameters.inertia import check_inertia, compose, decompose, from_shape, to_shape
from trueup.world.parameters.joint_stops import get_stop, set_stop
from trueup.world.parameters.objects import ObjectParams
from trueup.world.parameters.table import GEAR_FRICTION, PARAMETERS, Parameter, Scope
from trueup.world.parameters.whole_robot import WholeRobot

if TYPE_CHECKING:
    from trueup.world.actuators.substep import GearFriction
    from trueup.world.batch import BatchSim

__all__ = ["PARAMETERS", "Parameter", "Params", "setconst_inputs"]
FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]


class Params:
    """The named parameters of one BatchSim."""

    def __init__(self, sim: BatchSim) -> None:
        self._sim = sim
        self._batch = sim.batch
        self._stale = np.zeros(sim.nsim, np.bool_)  # rows whose derived engine constants are out of date
        model = sim.model
        self.objects = ObjectParams(sim)
        robots = (i for i in range(1, model.nbody) if i not in self.objects.bodies)
        self.body_names = tuple(model.body(i).name for i in robots if model.body_mass[i] > 0)
        self._bodies = np.array([model.body(name).id for name in self.body_names])
        self._whole = WholeRobot(sim)

    def get(self, name: str) -> FloatArray:
        """Return (nsim, njoint | nbody | nobject | -, ...) values."""
        scope = _entry(name).scope
        if scope == "robot":
            return self._whole.get(name)
        if scope == "object":
            return self.objects.get(name)
        return self._get_body(name) if scope == "body" else self._get_joint(name)

    def names_of(self, scope: Scope) -> tuple[str, ...]:
        """Names of the joints, bodies or objects that the columns of a parameter belong to."""
        if scope == "object":
            return self.objects.names
        return self._sim.robot.spec.joint_names if scope == "joint" else self.body_names

    def _get_joint(self, name: str) -> FloatArray:
        sim, expand = self._sim, self._batch.expand
        gear = self._gear(name)
        if gear is not None:
            return gear.get(name, (sim.nsim, sim.robot.spec.njoint))
        if name in _DOF_FIELD:
            return expand(_DOF_FIELD[name])[:, sim.index.dof].copy()
        if name in _JOINT_FIELD:
            field, column = _JOINT_FIELD[name]
            values = expand(field)[:, sim.index.joint_id]
            return values.copy() if column is None else values[..., column].copy()
        if name in _SIM_ARRAY:
            return np.array(getattr(sim, name))
        if name in _STOP:
            return get_stop(sim, name)
        return sim.gains.get(name)

    def _get_body(self, name: str) -> FloatArray:
        bodies, expand, model = self._bodies, self._batch.expand, self._sim.model
        if name == "mass_scale":
            return expand("body_mass")[:, bodies] / model.body_mass[bodies]
        if name == "com_offset":
            return expand("body_ipos")[:, bodies] - model.body_ipos[bodies]
        six = compose(expand("body_inertia")[:, bodies], expand("body_iquat")[:, bodies])
        if name == "inertia":
            return six
        scale = expand("body_mass")[:, bodies] / model.body_mass[bodies]
        return to_shape(six / scale[..., None], self._nominal_inertia(bodies))

    def set(
        self,
        name: str,
        values: ArrayLike,
        *,
        of: str | Sequence[str] | None = None,
        ids: NDArray[np.intp] | None = None,
    ) -> None:
        """Write values, broadcast over simulations (`ids`) and over joints, bodies or objects (`of`)."""
        entry = _entry(name)
        rows = np.arange(self._sim.nsim) if ids is None else np.asarray(ids)
        columns = self._columns(name, entry.scope, of)
        shape = (len(rows), *(() if columns is None else (len(columns),)), *entry.shape)
        new = np.asarray(values, np.float64)
        if not np.isfinite(new).all():
            raise TrueupError(f"parameter {name!r} must be finite", place=name)
        if (new < entry.low).any():
            raise TrueupError(f"parameter {name!r} must be at least {entry.low:g}, found {new.min():g}", place=name)
        try:
            new = np.broadcast_to(new, shape)
        except ValueError:
            raise TrueupError(
                f"parameter {name!r} takes a shape that broadcasts to {shape}, found {new.shape}", place=name
            ) from None
        self._write(name, new, rows, columns)

    def refresh(self) -> None:
        """Recompute the engine's derived constants if masses, inertias or armatures were written."""
        if self._stale.any():
            self._batch.set_const(None if self._stale.all() else np.flatnonzero(self._stale))
            self._stale[:] = False

    def mark_stale(self, rows: Rows) -> None:
        """Masses, inertias or armatures of rows were written past `set`."""
        self._stale[rows] = True

    def _columns(self, name: str, scope: Scope, of: str | Sequence[str] | None) -> NDArray[np.intp] | None:
        """Columns of the joints, bodies or objects named; None for a parameter of the whole robot."""
        if scope == "robot":
            if of is not None:
                raise TrueupError(f"parameter {name!r} belongs to the whole robot, not to {of!r}", place=name)
            return None
        known = self.names_of(scope)
        if of is None:
            return np.arange(len(known))
        wanted = [of] if isinstance(of, str) else list(of)
        for item in wanted:
            if item not in known:
                raise TrueupError(f"parameter {name!r}: no {scope} {item!r}{did_you_mean(item, known)}", place=name)
        return np.array([known.index(item) for item in wanted], np.intp)

    def _write(self, name: str, values: FloatArray, rows: NDArray[np.intp], columns: NDArray[np.intp] | None) -> None:
        """Write just these rows and columns: what is not named keeps its bits."""
        if columns is None:
            self._whole.set(name, values, rows)
        elif PARAMETERS[name].scope == "object":
            self.objects.set(name, values, rows, columns)
        elif PARAMETERS[name].scope == "body":
            self._write_bodies(name, values, rows, self._bodies[columns])
        else:
            self._write_joints(name, values, rows, columns)

    def _write_joints(self, name: str, values: FloatArray, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> None:
        sim, expand = self._sim, self._batch.expand
        gear = self._gear(name)
        if gear is not None:
            changed = gear.get(name, (sim.nsim, sim.robot.spec.njoint))
            changed[np.ix_(rows, columns)] = values
            gear.set(name, changed)
        elif name in _DOF_FIELD:
            expand(_DOF_FIELD[name])[np.ix_(rows, sim.index.dof[columns])] = values
            if name == "armature":
                self._stale[rows] = True
        elif name in _JOINT_FIELD:
            field, column = _JOINT_FIELD[name]
            into = expand(field) if column is None else expand(field)[..., column]
            into[np.ix_(rows, sim.index.joint_id[columns])] = values
        elif name == "encoder_bias":
            sim.encoder_bias[np.ix_(rows, columns)] = values
        else:
            changed = self._get_joint(name)
            changed[np.ix_(rows, columns)] = values
            if name == "delay":
                sim.set_delay(changed)
            elif name == "torque_offset":
                sim.set_torque_offset(changed)
            elif name in _STOP:
                set_stop(sim, name, changed)
            else:
                sim.gains.set(name, changed)

    def _write_bodies(self, name: str, values: FloatArray, rows: NDArray[np.intp], bodies: NDArray[np.intp]) -> None:
        expand, model, at = self._batch.expand, self._sim.model, np.ix_(rows, bodies)
        if name == "mass_scale":
            before = expand("body_mass")[at]
            expand("body_mass")[at] = model.body_mass[bodies] * values
            expand("body_inertia")[at] *= (expand("body_mass")[at] / before)[:, :, None]
        elif name == "com_offset":
            expand("body_ipos")[at] = model.body_ipos[bodies] + values
        else:
            if name == "inertia_shape":
                scale = expand("body_mass")[at] / model.body_mass[bodies]
                values = from_shape(values, self._nominal_inertia(bodies)) * scale[..., None]
            check_inertia(values, tuple(model.body(body).name for body in bodies))
            expand("body_inertia")[at], expand("body_iquat")[at] = decompose(values)
        self._stale[rows] = True

    def _nominal_inertia(self, bodies: NDArray[np.intp]) -> FloatArray:
        return compose(self._sim.model.body_inertia[bodies], self._sim.model.body_iquat[bodies])

    def _gear(self, name: str) -> GearFriction | None:
        """The friction model that holds this coefficient, if the simulation has one."""
        gear = self._sim.gear_friction
        if name in GEAR_FRICTION and gear is None:
            raise TrueupError(f'parameter {name!r} needs a friction model: SimCfg(friction="M2") to "M6"', place=name)
        return gear if name in GEAR_FRICTION or name in ("damping", "friction") else None


_DOF_FIELD = {"armature": "dof_armature", "damping": "dof_damping", "friction": "dof_frictionloss"}
_JOINT_FIELD: dict[str, tuple[str, int | None]] = {
    "stiffness": ("jnt_stiffness", None),
    "stop_low": ("jnt_range", 0),
    "stop_high": ("jnt_range", 1),
}
_STOP = frozenset({"stop_stiffness", "stop_damping"})
_SIM_ARRAY = frozenset({"delay", "encoder_bias", "torque_offset"})


def _entry(name: str) -> Parameter:
    if name not in PARAMETERS:
        raise TrueupError(f"no parameter {name!r}{did_you_mean(name, PARAMETERS)}")
    return PARAMETERS[name]


def setconst_inputs() -> frozenset[str]:
    """Engine fields after whose change constants must be derived anew (for tests)."""
    return frozenset(mujoco.MjModel._setconst_inputs)
