"""Reference: the few facts about a robot that a log can be compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A robot as the validator sees it; `data` lies below `robot`, so the caller fills this from a RobotSpec.

    Every array is (n,) in the order of joint_names; rad, rad/s, N m, N m/rad, N m s/rad, Hz.
    """

    joint_names: tuple[str, ...]
    position_low: FloatArray
    position_high: FloatArray
    velocity_limit: FloatArray
    torque_limit: FloatArray
    kp: FloatArray
    kd: FloatArray
    default_pose: FloatArray
    control_hz: float

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            shape = np.shape(getattr(self, name))
            if shape != (len(self.joint_names),):
                raise TrueupError(
                    f"{name} must have one number for each of {len(self.joint_names)} joints, found {shape}"
                )

    def in_order(self, names: tuple[str, ...]) -> Reference:
        """The same robot with its joints as in `names`; every name must exist here."""
        order = [self.joint_names.index(name) for name in names]
        arrays = {name: np.asarray(getattr(self, name), np.float64)[order] for name in _ARRAYS}
        return Reference(joint_names=names, control_hz=self.control_hz, **arrays)


_ARRAYS = ("position_low", "position_high", "velocity_limit", "torque_limit", "kp", "kd", "default_pose")
