"""Motion: where simulated robots are and how they move, as several readers of one step share it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trueup.policy.reading import gravity_in_body

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Motion:
    """Joint positions and velocities (n, njoint) in spec order; of a free base its pose (n, 7) and velocity (n, 6).

    A pose is position and quaternion w x y z; a velocity is linear in the world frame, angular in the base frame.
    """

    joint_pos: FloatArray
    joint_vel: FloatArray
    base_pose: FloatArray | None
    base_vel: FloatArray | None

    @cached_property
    def gravity(self) -> FloatArray:
        """Direction of gravity in the base frame, (n, 3)."""
        assert self.base_pose is not None
        return gravity_in_body(self.base_pose[:, 3:])
