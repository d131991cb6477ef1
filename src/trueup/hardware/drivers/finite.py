"""The last look at a command before a driver sends it: right widths, finite numbers."""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command


def finite_rows(command: Command, joint_names: tuple[str, ...]) -> FloatArray:
    """A command as (5, n) numbers of its own: position, velocity, kp, kd, torque. What is not finite is refused."""
    n = len(joint_names)
    for name, values in vars(command).items():
        if np.shape(values) != (n,):
            raise TrueupError(f"{name} takes {n} numbers, found shape {np.shape(values)}", place=name)
        bad = ~np.isfinite(np.asarray(values, np.float64))
        if bad.any():
            raise TrueupError(f"{name} of joint {joint_names[int(np.argmax(bad))]!r} is not finite", place=name)
    return np.array(list(vars(command).values()), np.float64)
