"""The ideal PD servo: the first rung of the actuator ladder and the law that all other rungs start from."""

from __future__ import annotations

import numpy as np

from trueup.models.values import FloatArray, Values


def pd_torque(
    q_target: Values,
    q: Values,
    dq: Values,
    *,
    kp: Values,
    kd: Values,
    dq_target: Values = 0.0,
    tau_ff: Values = 0.0,
    bias: Values = 0.0,
    torque_limit: Values = np.inf,
) -> FloatArray:
    """Return the torque of a PD servo that reads its joint through an encoder with a constant offset.

    tau = clip(kp (q* - (q + bias)) + kd (dq* - dq) + tau_ff, -torque_limit, +torque_limit)

    Positions in rad, velocities in rad/s, torques in N m. All arguments broadcast against each other. With a
    positive `bias` the encoder reads too much, and the servo holds the joint that much below its target.
    A NaN that goes in comes out, so that the caller's finiteness check sees it.
    """
    tau = kp * (q_target - (q + bias)) + kd * (dq_target - dq) + tau_ff
    return np.clip(tau, np.negative(torque_limit), torque_limit)
