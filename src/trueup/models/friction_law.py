"""Friction law: what a model of a joint's friction is, so that simulation and fits take one that they do not know.

A law is a dataclass of coefficients, one number per joint each, and a pure function from the state of the joints to a
budget (`FrictionBudget`). Each coefficient says its unit and how a fit scales it. `models.friction` has M1 to M6; one
of your own is a function in a file that returns a FrictionLaw (`--params friction:FILE.py:FUNCTION`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.models.values import Values, require_positive


class FrictionBudget(NamedTuple):
    """The most that friction can give, split as an engine takes it: a damping coefficient and a dry torque.

    viscous  N m s/rad (a MuJoCo `dof_damping`)
    dry      N m (a MuJoCo `dof_frictionloss`)
    """

    viscous: FloatArray
    dry: FloatArray

    def torque(self, dq: Values) -> FloatArray:
        """Return tau_fm = viscous |dq| + dry, N m."""
        return self.viscous * np.abs(dq) + self.dry


class Coefficient(NamedTuple):
    """What a coefficient is, and how it is fitted: on a logarithmic scale, log(value + offset).

    low     smallest value that makes sense; above 0 where the law divides by it
    bounds  of a fit;  mean, width: of its prior, the width in units of the logarithm
    shows   what to record so that the data show it
    """

    unit: str
    doc: str
    shows: str
    bounds: tuple[float, float] = (0.0, 2.0)
    mean: float = 0.05
    width: float = 1.2
    offset: float = 0.02
    low: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class FrictionCoefficients:
    """Coefficients of every law, floats or arrays that broadcast against the joint velocities; a law adds its own.

    divisors  those that must be above 0; the others may be 0
    """

    divisors: ClassVar[tuple[str, ...]] = ()
    kv: Values = 0.0  # viscous, N m s/rad: the parameter "damping"
    kc: Values = 0.0  # Coulomb, N m: the parameter "friction"

    def __post_init__(self) -> None:
        for entry in fields(self):
            require_positive(entry.name, getattr(self, entry.name), or_zero=entry.name not in self.divisors)


class FrictionLaw(NamedTuple):
    """A friction model by name.

    params        class of its coefficients
    budget        of (coefficients, joint velocity, motor torque, other torque), arrays that broadcast
    coefficients  what a fit may move, beside kv and kc
    """

    name: str
    params: type[FrictionCoefficients]
    budget: Callable[[Any, Values, Values, Values], FrictionBudget]
    coefficients: Mapping[str, Coefficient]
