"""Writes a parameter of a few rows straight into the engine's fields: what `params.set` does, without its checks.

Resets of single environments happen in almost every step of a large batch, so their cost is that of the calls. Names
that are not handled here go through `params.set`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from trueup.sim.batch import BatchSim
from trueup.sim.inertia import decompose
from trueup.sim.whole_robot import down

FloatArray = NDArray[np.float64]
Ids = NDArray[np.intp]
Writer = Callable[[FloatArray, Ids], None]
_DOF = {"armature": "dof_armature", "damping": "dof_damping", "friction": "dof_frictionloss"}
_GAIN = {"kp": 1, "kd": 2}  # columns of actuator_biasprm (pid)


def row_writer(sim: BatchSim, name: str, of: tuple[str, ...] | None) -> Writer:
    """A function that writes values (rows, ...) of a parameter, of the bodies `of` if it belongs to bodies."""
    batch = sim.batch
    if name in _DOF and sim.gear_friction is None:
        field, dof, derived = batch.expand(_DOF[name]), sim.index.dof, name == "armature"
        return lambda values, rows: _dofs(sim, field, dof, derived, values, rows)
    if name in (*_GAIN, "torque_limit") and sim.cfg.actuator.kind == "pd":
        return _gain_writer(sim, name)
    if name == "encoder_bias":
        return lambda values, rows: sim.encoder_bias.__setitem__(rows, values)
    if name == "delay":
        return lambda values, rows: sim.set_delay(values, rows)
    if name in ("mass_scale", "com_offset", "inertia"):
        return _body_writer(sim, name, of or sim.params.body_names)
    if name in ("contact_friction", "contact_timeconst", "contact_dampratio"):
        return _contact_writer(sim, name)
    if name == "tilt":
        gravity = batch.expand("opt.gravity").reshape(sim.nsim, 3)
        size = float(np.linalg.norm(sim.model.opt.gravity))
        return lambda values, rows: gravity.__setitem__(rows, size * down(values))
    return lambda values, rows: sim.params.set(name, values, of=of, ids=rows)


def _dofs(sim: BatchSim, field: FloatArray, dof: Ids, derived: bool, values: FloatArray, rows: Ids) -> None:
    field[rows[:, None], dof] = values
    if derived:
        sim.params.mark_stale(rows)


def _gain_writer(sim: BatchSim, name: str) -> Writer:
    if name == "torque_limit":
        limits = sim.batch.expand("actuator_forcerange")

        def write_limit(values: FloatArray, rows: Ids) -> None:
            limits[rows] = np.stack([-values, values], axis=2)

        return write_limit
    gains, column = sim.batch.expand("actuator_biasprm"), _GAIN[name]

    def write_gain(values: FloatArray, rows: Ids) -> None:
        gains[rows, :, column] = -values

    return write_gain


def _body_writer(sim: BatchSim, name: str, of: tuple[str, ...]) -> Writer:
    bodies = np.array([sim.model.body(body).id for body in of], np.intp)
    if name == "inertia":
        moments, axes = sim.batch.expand("body_inertia"), sim.batch.expand("body_iquat")

        def write_inertia(values: FloatArray, rows: Ids) -> None:
            at = (rows[:, None], bodies)
            moments[at], axes[at] = decompose(values)
            sim.params.mark_stale(rows)

        return write_inertia
    is_mass = name == "mass_scale"
    field = sim.batch.expand("body_mass" if is_mass else "body_ipos")
    nominal = (sim.model.body_mass if is_mass else sim.model.body_ipos)[bodies]

    def write_body(values: FloatArray, rows: Ids) -> None:
        field[rows[:, None], bodies] = nominal * values if is_mass else nominal + values
        sim.params.mark_stale(rows)

    return write_body


def _contact_writer(sim: BatchSim, name: str) -> Writer:
    touching = np.flatnonzero((sim.model.geom_contype | sim.model.geom_conaffinity) != 0)
    field = sim.batch.expand("geom_friction" if name == "contact_friction" else "geom_solref")
    column = 1 if name == "contact_dampratio" else 0

    def write_contact(values: FloatArray, rows: Ids) -> None:
        field[rows[:, None], touching, column] = values[:, None]

    return write_contact
