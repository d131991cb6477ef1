"""Units that recordings of others come in: factor (and bias) to the unit that a Log uses."""

from __future__ import annotations

import math
from typing import NamedTuple


class Unit(NamedTuple):
    """value in the Log's unit = factor * raw + bias."""

    factor: float
    bias: float = 0.0


_DEG = math.pi / 180.0
_REV = 2.0 * math.pi

# units without a meaning of their own: the mapping must give `scale`
BARE = ("normalised", "counts")

TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

# Log unit (data.log.SIGNALS) -> units that can be converted to it
UNITS: dict[str, dict[str, Unit]] = {
    "rad": {"rad": Unit(1.0), "deg": Unit(_DEG), "rev": Unit(_REV), "mrad": Unit(1e-3)},
    "rad/s": {"rad/s": Unit(1.0), "deg/s": Unit(_DEG), "rev/s": Unit(_REV), "rpm": Unit(_REV / 60.0)},
    "N m": {
        "N m": Unit(1.0),
        "mN m": Unit(1e-3),
        "kgf cm": Unit(0.0980665),
        "A": Unit(1.0),
        "mA": Unit(1e-3),
    },
    "deg C": {"deg C": Unit(1.0), "K": Unit(1.0, -273.15)},
    "N m/rad": {"N m/rad": Unit(1.0), "N m/deg": Unit(1.0 / _DEG)},
    "N m s/rad": {"N m s/rad": Unit(1.0), "N m s/deg": Unit(1.0 / _DEG)},
    "m": {"m": Unit(1.0), "cm": Unit(1e-2), "mm": Unit(1e-3)},
    "m/s": {"m/s": Unit(1.0), "cm/s": Unit(1e-2), "mm/s": Unit(1e-3)},
    "m/s^2": {"m/s^2": Unit(1.0), "g": Unit(9.80665)},
    "V": {"V": Unit(1.0), "mV": Unit(1e-3)},
    "1": {"1": Unit(1.0)},
}
CURRENT = ("A", "mA")  # become torque by the motor's torque constant


def unit_of(name: str, log_unit: str) -> Unit | None:
    """Return the conversion of unit `name` to `log_unit`, None when there is none."""
    return Unit(1.0) if name in BARE else UNITS[log_unit].get(name)
