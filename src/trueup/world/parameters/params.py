"""Per-simulation parameters by name, read from and written to the engine.

`values = params.get("armature")` and `params.set("armature", values, of="FL_hip_joint")` speak in arrays whose first
axis is the simulation and whose second is the joint (spec order), the body, the object or nothing. Fields that the
engine derives from masses and inertias are brought up to date before the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError, did_you_mean
from trueup.world.parameters.fields import ALL, Columns, Field, make_field
from trueup.world.parameters.table import PARAMETERS, Parameter, Scope, parameter

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim

__all__ = ["PARAMETERS", "Parameter", "Params"]


class Params:
    """The named parameters of one BatchSim.

    motor  (2, nsim, njoint) stall torque and no-load speed, which the engine keeps as other numbers
    """

    def __init__(self, sim: BatchSim) -> None:
        self._sim = sim
        self._fields: dict[str, Field] = {}
        self._stale = np.zeros(sim.nsim, np.bool_)  # rows whose derived engine constants are out of date
        objects = tuple(thing.name for thing in sim.scene.objects)
        names = (sim.model.body(i).name for i in range(1, sim.model.nbody) if sim.model.body_mass[i] > 0)
        self.body_names = tuple(name for name in names if name not in objects)
        spec = sim.robot.spec
        self.motor = np.stack([np.tile(limit, (sim.nsim, 1)) for limit in (spec.stall_torque, spec.velocity_limit)])
        self._names = {"joint": spec.joint_names, "body": self.body_names, "object": objects, "robot": ()}

    def get(self, name: str) -> FloatArray:
        """Return (nsim, njoint | nbody | nobject | -, ...) values."""
        self.columns(name, None)  # refuses an unknown name
        return self._field(name).get()

    def names_of(self, scope: Scope) -> tuple[str, ...]:
        """Names of the joints, bodies or objects that the columns of a parameter belong to."""
        return self._names[scope]

    def set(
        self, name: str, values: ArrayLike, *, of: str | Sequence[str] | None = None, ids: Ids | None = None
    ) -> None:
        """Write values, broadcast over simulations (`ids`) and over joints, bodies or objects (`of`)."""
        columns, field, entry = self.columns(name, of), self._field(name), PARAMETERS[name]
        rows = np.arange(self._sim.nsim) if ids is None else np.asarray(ids)
        count = len(self._names[entry.scope]) if isinstance(columns, slice) else len(columns)
        shape = (len(rows), *(() if entry.scope == "robot" else (count,)), *entry.shape)
        field.put(checked_values(name, values, shape), rows, columns)

    def refresh(self) -> None:
        """Recompute the engine's derived constants if masses, inertias or armatures were written."""
        if self._stale.any():
            self._sim.batch.set_const(None if self._stale.all() else np.flatnonzero(self._stale))
            self._stale[:] = False

    def mark_stale(self, rows: Ids) -> None:
        """Masses, inertias or armatures of rows were written."""
        self._stale[rows] = True

    def columns(self, name: str, of: str | Sequence[str] | None) -> Columns:
        """Columns of the joints, bodies or objects named; None: all."""
        scope = parameter(name).scope
        return ALL if of is None else columns_of(name, of, self._names[scope])

    def _field(self, name: str) -> Field:
        if name not in self._fields:
            self._fields[name] = make_field(self._sim, name)
        return self._fields[name]


def columns_of(name: str, of: str | Sequence[str], known: Sequence[str]) -> Ids:
    """Columns of the joints, bodies or objects named, among those that the simulation has."""
    scope, wanted = PARAMETERS[name].scope, [of] if isinstance(of, str) else list(of)
    if scope == "robot":
        raise TrueupError(f"parameter {name!r} belongs to the whole robot, not to {of!r}", place=name)
    for item in wanted:
        if item not in known:
            raise TrueupError(f"parameter {name!r}: no {scope} {item!r}{did_you_mean(item, known)}", place=name)
    return np.array([known.index(item) for item in wanted], np.intp)


def checked_values(name: str, values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Values as an array of this shape; refused if they are not finite, too small or do not broadcast."""
    entry, new = PARAMETERS[name], np.asarray(values, np.float64)
    if not np.isfinite(new).all():
        raise TrueupError(f"parameter {name!r} must be finite", place=name)
    if (new < entry.low).any():
        raise TrueupError(f"parameter {name!r} must be at least {entry.low:g}, found {new.min():g}", place=name)
    try:
        return np.broadcast_to(new, shape)
    except ValueError:
        found = f"takes a shape that broadcasts to {shape}, found {new.shape}"
        raise TrueupError(f"parameter {name!r} {found}", place=name) from None
