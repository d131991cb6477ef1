"""From drawn numbers to the simulator's parameters: nominal values, operations, derived names (payload, strength).

One rule for a parameter with both a range and a calibration: fitted joints and bodies are drawn from the posterior
alone. The range (and `motor_strength`, `restitution`) acts on the joints and bodies that the fit left out. A `payload`
is put on the trunk unless the fit has the trunk's mass: what was weighed has its load in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError, did_you_mean
from trueup.robot.model import trunk_body
from trueup.world.batch import BatchSim
from trueup.world.fitted.posterior import Fitted
from trueup.world.parameters.inertia import from_shape
from trueup.world.parameters.joint_plan import JointPlan
from trueup.world.parameters.params import PARAMETERS
from trueup.world.parameters.payload import with_payload
from trueup.world.parameters.row_writer import Writer, row_writer

if TYPE_CHECKING:
    from trueup.world.randomization.randomize import Draw

STRENGTH, PAYLOAD, RESTITUTION = "motor_strength", "payload", "restitution"
VIRTUAL = (STRENGTH, PAYLOAD, RESTITUTION)
_DRIVEN = ("kp", "kd", "torque_limit")
_TRUNK = ("mass_scale", "com_offset", "inertia")
_BOUNCE = ("contact_dampratio",)
_MASSES = ("mass_scale", "com_offset", "inertia_shape")
_PARTS = {STRENGTH: _DRIVEN, PAYLOAD: _TRUNK, RESTITUTION: _BOUNCE}
_PAYLOAD_UP = 0.1  # m above the trunk's origin


class RandomizedParameters:
    """Writes the parameters that a set of ranges and a posterior touch."""

    def __init__(self, sim: BatchSim, ranges: Mapping[str, Draw], fitted: Fitted | None) -> None:
        self._sim, self._ranges, self._fitted = sim, ranges, fitted
        names = [part for name in ranges for part in parts_of(name)]
        if fitted is not None:
            names += fitted.names
        if "mass_scale" in names or "inertia_shape" in names:
            names.append("inertia")  # follows both, from nominal: rounding must not add up over resets
        self.touched = tuple(dict.fromkeys(names))
        self._nominal = {name: sim.params.get(name)[0] for name in self.touched}
        self._trunk = trunk_body(sim.model, sim.robot)
        trunk = sim.model.body(self._trunk)
        self._base = sim.params.body_names.index(trunk.name) if sim.free_base else 0
        self._trunk_mass = float(trunk.mass[0])
        self._payload_at: FloatArray = np.array([0.0, 0.0, _PAYLOAD_UP]) - trunk.ipos
        self._columns_of = {
            name: self._where(name, draw.of)
            for name, draw in ranges.items()
            if draw.of is not None and name not in VIRTUAL
        }
        self._writers: dict[str, tuple[Ids | None, Writer]] = {}
        for name in self.touched:
            bodies = self._names_written(name)
            columns = None if bodies is None else self._where(name, bodies)
            self._writers[name] = columns, row_writer(sim, name, bodies)
        self._shaped = self._writers["inertia_shape"][0] if "inertia_shape" in self._writers else None
        self._columns_drawn: dict[str, slice] = {}
        self._joints: JointPlan | None = None

    def lay_out(self, columns: dict[str, slice]) -> None:
        """Assign columns of the drawn numbers to each range."""
        self._columns_drawn = columns
        nominal = {
            name: self._nominal[name]
            for name in self.touched
            if PARAMETERS[name].scope == "joint"
            and self._nominal[name].ndim == 1
            and (name not in self._ranges or self._ranges[name].of is None)
        }
        if nominal and self._fitted is None:
            self._joints = JointPlan(nominal, self._ranges, columns, columns.get(STRENGTH), _DRIVEN)

    def nominal(self, name: str) -> FloatArray:
        """The simulator's own value of a parameter, one row."""
        return self._nominal[name]

    def width(self, name: str) -> int:
        """How many numbers a range with `each` draws."""
        if name == STRENGTH:
            return self._sim.robot.spec.njoint
        if name in VIRTUAL:
            return 1
        return self._columns(name, self._nominal[name]).size

    def write(self, numbers: FloatArray, posterior: FloatArray, rows: Ids, only: list[str] | None) -> None:
        """Compute from drawn numbers and write every touched parameter of `rows`, or those that `only` touch."""
        self.put(self.ready(numbers, posterior, only), rows)

    def ready(self, numbers: FloatArray, posterior: FloatArray, only: list[str] | None = None) -> dict[str, FloatArray]:
        """Final values of every touched parameter, (rows, ...), or of those that `only` touch."""
        parts = self.touched if only is None else [p for name in only for p in parts_of(name)]
        drawn = {name: numbers[:, at] for name, at in self._columns_drawn.items()}
        new = self._joints.values(numbers) if self._joints is not None and only is None else {}
        rest = [name for name in parts if name not in new and name != "inertia"]
        values = None if self._fitted is None else self._fitted.values(posterior)
        new |= {name: self._value(name, drawn, values, len(numbers)) for name in rest}
        if any(name in parts for name in (*_MASSES, "inertia")):
            for name in _MASSES:
                if name in self.touched:
                    new.setdefault(name, self._value(name, drawn, values, len(numbers)))
            self._weigh(new, drawn.get(PAYLOAD), len(numbers))
        if RESTITUTION in drawn and any(name in parts for name in _BOUNCE) and not self._is_fitted(_BOUNCE[0]):
            new["contact_dampratio"] = damp_ratio(drawn[RESTITUTION][:, 0])
        out = {}
        for name, value in new.items():
            columns, writer = self._writers[name]
            out[name] = writer.ready(value if columns is None else value[:, columns])
        return out

    def put(self, ready: Mapping[str, FloatArray], rows: Ids) -> None:
        """Write what `ready` computed into rows."""
        for name, values in ready.items():
            self._writers[name][1].put(values, rows)

    def _value(self, name: str, drawn: Mapping[str, FloatArray], fitted: FloatArray | None, count: int) -> FloatArray:
        """(count, ...) of one parameter; `fitted` (count, nparameter) are values of draws from the posterior."""
        nominal = self._nominal[name]
        value: FloatArray = np.repeat(nominal[None], count, axis=0)
        if name in drawn:
            self._operate(name, value, drawn[name])
        if name in _DRIVEN and STRENGTH in drawn:
            value *= drawn[STRENGTH]
        if self._fitted is not None and fitted is not None:
            self._fitted.place(name, value, fitted)
        return value

    def _operate(self, name: str, value: FloatArray, numbers: FloatArray) -> None:
        draw = self._ranges[name]
        at = self._columns_of.get(name)
        part = value if at is None else value[:, at]
        shaped = numbers.reshape(part.shape) if draw.each else numbers.reshape(-1, *(1,) * (part.ndim - 1))
        if draw.operation == "scale":
            part *= shaped
        elif draw.operation == "add":
            part += shaped
        else:
            part[...] = shaped
        if at is not None:
            value[:, at] = part

    def _weigh(self, new: dict[str, FloatArray], payload: FloatArray | None, count: int) -> None:
        """Update inertias for drawn masses and shapes, and add the payload to the base."""
        if "inertia" not in self.touched:
            return
        nominal = self._nominal["inertia"]
        if "mass_scale" in self._nominal:
            nominal = nominal / self._nominal["mass_scale"][:, None]
        scale = new.get("mass_scale", np.ones((count, len(nominal))))
        inertia = nominal * scale[:, :, None]
        shape, at = new.pop("inertia_shape", None), self._shaped
        if shape is not None and at is not None:
            inertia[:, at] = from_shape(shape[:, at], nominal[at]) * scale[:, at, None]
        if payload is not None and not self._is_weighed:
            b, mass, offset = self._base, self._trunk_mass, new["com_offset"]
            loaded = with_payload(mass * scale[:, b], offset[:, b], inertia[:, b], payload[:, 0], self._payload_at)
            scale[:, b], offset[:, b], inertia[:, b] = loaded[0] / mass, loaded[1], loaded[2]
        new["inertia"] = inertia

    @property
    def _is_weighed(self) -> bool:
        """Whether the fit has the trunk's mass."""
        return self._fitted is not None and self._trunk in self._fitted.bodies("mass_scale")

    def _is_fitted(self, name: str) -> bool:
        return self._fitted is not None and name in self._fitted.names

    def _names_written(self, name: str) -> tuple[str, ...] | None:
        """Bodies that are written: those drawn, not all (an inertia that is not touched keeps its bits)."""
        if PARAMETERS[name].scope != "body":
            return None
        names: dict[str, None] = dict.fromkeys([self._trunk] if PAYLOAD in self._ranges else [])
        for source in _MASSES if name == "inertia" else (name,):
            if source in self._ranges:
                names |= dict.fromkeys(self._ranges[source].of or self._sim.params.body_names)
            if self._fitted is not None and (source, name) != ("com_offset", "inertia"):
                names |= dict.fromkeys(self._fitted.bodies(source))
        return tuple(names)

    def _columns(self, name: str, nominal: FloatArray) -> FloatArray:
        at = self._columns_of.get(name)
        return nominal if at is None else nominal[at]

    def _where(self, name: str, of: tuple[str, ...]) -> Ids:
        known = self._sim.params.names_of(PARAMETERS[name].scope)
        for item in of:
            if item not in known:
                raise TrueupError(f"range of {name!r}: there is no {item!r}{did_you_mean(item, known)}")
        return np.array([known.index(item) for item in of], np.intp)


def parts_of(name: str) -> tuple[str, ...]:
    """Parameters of the simulation that a range acts on: itself, or those that a name of several stands for."""
    return _PARTS.get(name, (name,))


def damp_ratio(restitution: FloatArray) -> FloatArray:
    """Damping ratio of a contact that returns the share `restitution` of the speed; 1 for none."""
    log = np.log(np.clip(restitution, 1e-3, 0.999))
    return np.where(restitution < 1e-3, 1.0, -log / np.sqrt(np.pi**2 + log**2))
