"""Units that recordings of others come in: factor (and bias) to the unit that a Log uses."""

from __future__ import annotations

import math

_DEG = math.pi / 180.0
_REV = 2.0 * math.pi

# units without a meaning of their own: the mapping must give `scale`
BARE = ("normalised", "counts")

TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

# Log unit (data.log.SIGNALS) -> units that can be converted to it: value in the log's unit = factor * raw + bias
UNITS: dict[str, dict[str, float]] = {
    "rad": {"rad": 1.0, "deg": _DEG, "rev": _REV, "mrad": 1e-3},
    "rad/s": {"rad/s": 1.0, "deg/s": _DEG, "rev/s": _REV, "rpm": _REV / 60.0},
    "N m": {"N m": 1.0, "mN m": 1e-3, "kgf cm": 0.0980665, "A": 1.0, "mA": 1e-3},
    "deg C": {"deg C": 1.0, "K": 1.0},
    "N m/rad": {"N m/rad": 1.0, "N m/deg": 1.0 / _DEG},
    "N m s/rad": {"N m s/rad": 1.0, "N m s/deg": 1.0 / _DEG},
    "m": {"m": 1.0, "cm": 1e-2, "mm": 1e-3},
    "m/s": {"m/s": 1.0, "cm/s": 1e-2, "mm/s": 1e-3},
    "m/s^2": {"m/s^2": 1.0, "g": 9.80665},
    "V": {"V": 1.0, "mV": 1e-3},
    "1": {"1": 1.0},
}
BIASES = {"K": -273.15}
CURRENT = ("A", "mA")  # become torque by the motor's torque constant


def factor_of(name: str, log_unit: str) -> float | None:
    """Return the factor from unit `name` to `log_unit`, None when there is none."""
    return 1.0 if name in BARE else UNITS[log_unit].get(name)
