"""A payload on a body: mass, centre of mass and inertia of both together."""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray


def with_payload(
    mass: FloatArray, com: FloatArray, inertia: FloatArray, payload: FloatArray, at: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Add a point of mass `payload` (n,) kg at `at` (3,).

    mass (n,), com (n, 3) and inertia (n, 6: xx yy zz xy xz yz, about the centre of mass) are the body's; positions are
    in one frame. Both parts are moved to the common centre by Steiner's theorem: I + m (d.d 1 - d d^T).
    """
    total = mass + payload
    centre = (mass[:, None] * com + payload[:, None] * at) / total[:, None]
    moved = inertia + mass[:, None] * _steiner(com - centre) + payload[:, None] * _steiner(at - centre)
    return total, centre, moved


def _steiner(d: FloatArray) -> FloatArray:
    x, y, z = d.T
    return np.stack([y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z], axis=1)
