"""Per-simulation parameters by name: what they are, their unit, and how they reach the engine.

`values = params.get("armature")` and `params.set("armature", values, of="FL_hip_joint")` speak in arrays whose first
axis is the simulation and whose second is the joint (spec order), the body or nothing. Fields that the engine derives
from masses and inertias are brought up to date before the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.core.errors import TrueupError, did_you_mean
from trueup.sim.inertia import check_inertia, compose, decompose

if TYPE_CHECKING:
    from trueup.sim.batch import BatchSim

FloatArray = NDArray[np.float64]
Scope = Literal["joint", "body", "robot"]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One name: per joint, per body or for the whole robot; extra axes; unit; smallest value allowed."""

    scope: Scope
    unit: str
    shape: tuple[int, ...] = ()
    low: float = -np.inf
    doc: str = ""


PARAMETERS: dict[str, Parameter] = {
    "armature": Parameter(scope="joint", unit="kg m^2", low=0.0, doc="reflected rotor inertia"),
    "damping": Parameter(scope="joint", unit="N m s/rad", low=0.0, doc="viscous friction"),
    "friction": Parameter(scope="joint", unit="N m", low=0.0, doc="dry (Coulomb) friction"),
    "stiffness": Parameter(scope="joint", unit="N m/rad", low=0.0, doc="spring towards the default pose"),
    "kp": Parameter(scope="joint", unit="N m/rad", low=0.0, doc="servo position gain"),
    "kd": Parameter(scope="joint", unit="N m s/rad", low=0.0, doc="servo velocity gain"),
    "torque_limit": Parameter(scope="joint", unit="N m", low=0.0, doc="largest servo torque"),
    "stall_torque": Parameter(scope="joint", unit="N m", low=1e-9, doc="envelope at rest (dcmotor)"),
    "no_load_speed": Parameter(
        scope="joint", unit="rad/s", low=1e-9, doc="speed at which torque vanishes (dcmotor)"
    ),
    "delay": Parameter(scope="joint", unit="s", low=0.0, doc="from command to torque"),
    "encoder_bias": Parameter(scope="joint", unit="rad", doc="measured minus true position"),
    "mass_scale": Parameter(scope="body", unit="1", low=1e-6, doc="times nominal mass and inertia"),
    "com_offset": Parameter(
        scope="body", unit="m", shape=(3,), doc="centre of mass minus nominal, body frame"
    ),
    "inertia": Parameter(
        scope="body", unit="kg m^2", shape=(6,), doc="xx yy zz xy xz yz at the centre of mass"
    ),
    "contact_friction": Parameter(
        scope="robot", unit="1", low=0.0, doc="sliding friction of every contact geom"
    ),
    "contact_timeconst": Parameter(
        scope="robot", unit="s", low=1e-4, doc="softness of contacts: larger is softer"
    ),
    "contact_dampratio": Parameter(scope="robot", unit="1", low=1e-3, doc="below 1 contacts bounce"),
    "gravity": Parameter(scope="robot", unit="m/s^2", shape=(3,), doc="gravity vector, world frame"),
}


class Params:
    """The named parameters of one BatchSim."""

    def __init__(self, sim: BatchSim) -> None:
        self._sim = sim
        self._batch = sim.batch
        self._stale = False  # engine constants derived from what was written
        model = sim.model
        self.body_names = tuple(model.body(i).name for i in range(1, model.nbody) if model.body_mass[i] > 0)
        self._bodies = np.array([model.body(name).id for name in self.body_names])
        self._contacts = np.flatnonzero((model.geom_contype | model.geom_conaffinity) != 0)

    def get(self, name: str) -> FloatArray:
        """Return (nsim, njoint | nbody | -, ...) values."""
        entry = _entry(name)
        joints, bodies, expand = self._sim.index.dof, self._bodies, self._batch.expand
        model, nsim = self._sim.model, self._sim.nsim
        match name:
            case "armature" | "damping" | "friction":
                return expand(_DOF_FIELD[name])[:, joints].copy()
            case "stiffness":
                return expand("jnt_stiffness")[:, self._sim.index.joint_id].copy()
            case "delay":
                return self._sim.delay.copy()
            case "encoder_bias":
                return self._sim.encoder_bias.copy()
            case "mass_scale":
                return expand("body_mass")[:, bodies] / model.body_mass[bodies]
            case "com_offset":
                return expand("body_ipos")[:, bodies] - model.body_ipos[bodies]
            case "inertia":
                return compose(expand("body_inertia")[:, bodies], expand("body_iquat")[:, bodies])
            case "contact_friction":
                return expand("geom_friction")[:, self._contacts, 0].max(axis=1)
            case "contact_timeconst" | "contact_dampratio":
                return expand("geom_solref")[:, self._contacts, _SOLREF[name]].max(axis=1)
            case "gravity":
                return expand("opt.gravity").reshape(nsim, 3).copy()
        assert entry.scope == "joint"
        return self._sim.gains.get(name)

    def set(
        self,
        name: str,
        values: ArrayLike,
        *,
        of: str | Sequence[str] | None = None,
        ids: NDArray[np.intp] | None = None,
    ) -> None:
        """Write values, broadcast over simulations (`ids`) and over joints or bodies (`of`)."""
        entry = _entry(name)
        rows = np.arange(self._sim.nsim) if ids is None else np.asarray(ids)
        columns = self._columns(name, entry.scope, of)
        shape = (len(rows), *(() if columns is None else (len(columns),)), *entry.shape)
        new = np.asarray(values, np.float64)
        if not np.isfinite(new).all():
            raise TrueupError(f"parameter {name!r} must be finite", place=name)
        if (new < entry.low).any():
            raise TrueupError(
                f"parameter {name!r} must be at least {entry.low:g}, found {new.min():g}", place=name
            )
        try:
            new = np.broadcast_to(new, shape)
        except ValueError:
            raise TrueupError(
                f"parameter {name!r} takes a shape that broadcasts to {shape}, found {new.shape}", place=name
            ) from None
        self._write(name, new, rows, columns)

    def nominal(self, name: str) -> FloatArray:
        """The value of the robot's own model, one row."""
        reference = type(self._sim)(self._sim.robot, self._sim.cfg.alone())
        return reference.params.get(name)[0]

    def refresh(self) -> None:
        """Recompute the engine's derived constants if masses, inertias or armatures were written."""
        if self._stale:
            self._batch.set_const()
            self._stale = False

    def _columns(self, name: str, scope: Scope, of: str | Sequence[str] | None) -> NDArray[np.intp] | None:
        """Columns of the joints or bodies named; None for a parameter of the whole robot."""
        if scope == "robot":
            if of is not None:
                raise TrueupError(f"parameter {name!r} belongs to the whole robot, not to {of!r}", place=name)
            return None
        known = self._sim.robot.spec.joint_names if scope == "joint" else self.body_names
        if of is None:
            return np.arange(len(known))
        wanted = [of] if isinstance(of, str) else list(of)
        for item in wanted:
            if item not in known:
                raise TrueupError(
                    f"parameter {name!r}: no {scope} {item!r}{did_you_mean(item, known)}", place=name
                )
        return np.array([known.index(item) for item in wanted], np.intp)

    def _write(
        self, name: str, values: FloatArray, rows: NDArray[np.intp], columns: NDArray[np.intp] | None
    ) -> None:
        """Write just these rows and columns: what is not named keeps its bits."""
        if columns is None:
            self._write_robot(name, values, rows)
        elif PARAMETERS[name].scope == "body":
            self._write_bodies(name, values, rows, self._bodies[columns])
        else:
            self._write_joints(name, values, rows, columns)

    def _write_joints(
        self, name: str, values: FloatArray, rows: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> None:
        sim, expand = self._sim, self._batch.expand
        if name in _DOF_FIELD:
            expand(_DOF_FIELD[name])[np.ix_(rows, sim.index.dof[columns])] = values
            self._stale |= name == "armature"
        elif name == "stiffness":
            expand("jnt_stiffness")[np.ix_(rows, sim.index.joint_id[columns])] = values
        elif name == "encoder_bias":
            sim.encoder_bias[np.ix_(rows, columns)] = values
        else:
            changed = sim.delay if name == "delay" else sim.gains.get(name)
            changed[np.ix_(rows, columns)] = values
            sim.set_delay(changed) if name == "delay" else sim.gains.set(name, changed)

    def _write_bodies(
        self, name: str, values: FloatArray, rows: NDArray[np.intp], bodies: NDArray[np.intp]
    ) -> None:
        expand, model, at = self._batch.expand, self._sim.model, np.ix_(rows, bodies)
        if name == "mass_scale":
            before = expand("body_mass")[at]
            expand("body_mass")[at] = model.body_mass[bodies] * values
            expand("body_inertia")[at] *= (expand("body_mass")[at] / before)[:, :, None]
        elif name == "com_offset":
            expand("body_ipos")[at] = model.body_ipos[bodies] + values
        else:
            check_inertia(values, tuple(model.body(body).name for body in bodies))
            expand("body_inertia")[at], expand("body_iquat")[at] = decompose(values)
        self._stale = True

    def _write_robot(self, name: str, values: FloatArray, rows: NDArray[np.intp]) -> None:
        expand, contacts = self._batch.expand, np.ix_(rows, self._contacts)
        if name == "contact_friction":
            expand("geom_friction")[..., 0][contacts] = values[:, None]
        elif name == "gravity":
            expand("opt.gravity").reshape(-1, 3)[rows] = values
        else:
            expand("geom_solref")[..., _SOLREF[name]][contacts] = values[:, None]


_DOF_FIELD = {"armature": "dof_armature", "damping": "dof_damping", "friction": "dof_frictionloss"}
_SOLREF = {"contact_timeconst": 0, "contact_dampratio": 1}


def _entry(name: str) -> Parameter:
    if name not in PARAMETERS:
        raise TrueupError(f"no parameter {name!r}{did_you_mean(name, PARAMETERS)}")
    return PARAMETERS[name]


def setconst_inputs() -> frozenset[str]:
    """Engine fields after whose change constants must be derived anew (for tests)."""
    return frozenset(mujoco.MjModel._setconst_inputs)
