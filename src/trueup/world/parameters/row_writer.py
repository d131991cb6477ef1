"""Writes a parameter of a few rows straight into the engine's fields: what `params.set` does, without its checks.

Resets of single environments happen in almost every step of a large batch, so their cost is that of the calls. Names
that are not handled here go through `params.set`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.world.batch import BatchSim
from trueup.world.motion import as_slice
from trueup.world.parameters.inertia import decompose
from trueup.world.parameters.whole_robot import contact_geoms, down

FloatArray = NDArray[np.float64]
Ids = NDArray[np.intp]
_DOF = {"armature": "dof_armature", "damping": "dof_damping", "friction": "dof_frictionloss"}
_GAINS = ("kp", "kd", "torque_limit")


@dataclass(frozen=True)
class Writer:
    """How a parameter's values reach the engine.

    ready  what the engine keeps, (rows, ...), from values (rows, ...): computed for as many rows as one likes
    put    writes that into rows
    """

    ready: Callable[[FloatArray], FloatArray]
    put: Callable[[FloatArray, Ids], None]


def row_writer(sim: BatchSim, name: str, of: tuple[str, ...] | None) -> Writer:
    """The writer of a parameter, of the bodies `of` if it belongs to bodies."""
    batch = sim.batch
    if name in _DOF and sim.gear_friction is None:
        return Writer(_same, _columns(batch.expand(_DOF[name]), sim.index.dof, sim if name == "armature" else None))
    if name in _GAINS:
        return _gain_writer(sim, name)
    if name == "encoder_bias":
        return Writer(_same, lambda ready, rows: sim.encoder_bias.__setitem__(rows, ready))
    if name == "delay":
        line = sim.delay_line
        return Writer(line.plan, line.put)
    if name in ("mass_scale", "com_offset", "inertia"):
        return _body_writer(sim, name, of or sim.params.body_names)
    if name in ("object_mass", "object_friction"):
        return Writer(_same, lambda ready, rows: sim.params.objects.set(name, ready, rows))
    if name in ("contact_friction", "contact_timeconst", "contact_dampratio"):
        return _contact_writer(sim, name)
    if name == "tilt":
        gravity = batch.expand("opt.gravity").reshape(sim.nsim, 3)
        size = float(np.linalg.norm(sim.model.opt.gravity))
        return Writer(lambda values: size * down(values), lambda ready, rows: gravity.__setitem__(rows, ready))
    return Writer(_same, lambda ready, rows: sim.params.set(name, ready, of=of, ids=rows))


def _same(values: FloatArray) -> FloatArray:
    return values


def _columns(field: FloatArray, columns: Ids, derived_in: BatchSim | None = None) -> Callable[[FloatArray, Ids], None]:
    """A function that writes (rows, ncolumn, ...); the engine derives constants from some fields."""
    where = as_slice(columns)
    view = field[:, where] if isinstance(where, slice) else None

    def put(ready: FloatArray, rows: Ids) -> None:
        if view is None:
            field[rows[:, None], columns] = ready
        else:
            view[rows] = ready
        if derived_in is not None:
            derived_in.params.mark_stale(rows)

    return put


def _gain_writer(sim: BatchSim, name: str) -> Writer:
    if name == "torque_limit":
        limits = sim.batch.expand("actuator_forcerange")
        return Writer(
            lambda values: np.stack([-values, values], axis=2), lambda ready, rows: limits.__setitem__(rows, ready)
        )
    gains, sign = sim.gains.field(name)
    return Writer(lambda values: sign * values, lambda ready, rows: gains.__setitem__(rows, ready))


def _body_writer(sim: BatchSim, name: str, of: tuple[str, ...]) -> Writer:
    bodies = np.array([sim.model.body(body).id for body in of], np.intp)
    if name == "inertia":
        put_moments = _columns(sim.batch.expand("body_inertia"), bodies)
        put_axes = _columns(sim.batch.expand("body_iquat"), bodies, sim)

        def put(ready: FloatArray, rows: Ids) -> None:
            put_moments(ready[:, :, :3], rows)
            put_axes(ready[:, :, 3:], rows)

        return Writer(lambda values: np.concatenate(decompose(values), axis=2), put)
    is_mass = name == "mass_scale"
    field = sim.batch.expand("body_mass" if is_mass else "body_ipos")
    nominal = (sim.model.body_mass if is_mass else sim.model.body_ipos)[bodies]
    return Writer(lambda values: nominal * values if is_mass else nominal + values, _columns(field, bodies, sim))


def _contact_writer(sim: BatchSim, name: str) -> Writer:
    field = sim.batch.expand("geom_friction" if name == "contact_friction" else "geom_solref")
    column = 1 if name == "contact_dampratio" else 0
    return Writer(lambda values: values[:, None], _columns(field[:, :, column], contact_geoms(sim)))
