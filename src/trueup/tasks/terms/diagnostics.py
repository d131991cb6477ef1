"""Red flags: gaits that collect reward and would not do on a robot, each the share of environments that show it now."""

from __future__ import annotations

import numpy as np

from trueup.tasks.sensing.frame import Float32, Frame
from trueup.tasks.terms.rewards import commanded

_SHUFFLE_M, _UNEVEN, _NEAR_LIMIT, _IDLE = 0.01, 0.5, 0.95, 0.25


def shuffling(frame: Frame) -> Float32:
    """Asked to move, with no foot higher than 1 cm and some foot sliding faster than 0.1 m/s."""
    flat = frame.foot_height.max(axis=1) < _SHUFFLE_M
    sliding = (np.square(frame.foot_vel[:, :, :2]).sum(axis=2) * frame.foot_contact).max(axis=1) > 0.01
    return (flat & sliding & commanded(frame)).astype(np.float32)


def hopping(frame: Frame) -> Float32:
    """One foot touches the ground over half of the time more than another: a leg is carried or does all the work."""
    return (np.ptp(frame.duty, axis=1) > _UNEVEN).astype(np.float32)


def saturation(frame: Frame) -> Float32:
    """Share of joints at more than 95 % of their torque limit."""
    return (np.abs(frame.joint_torque) > np.float32(_NEAR_LIMIT) * frame.torque_limit).mean(axis=1, dtype=np.float32)


def idling(frame: Frame) -> Float32:
    """Asked for more than 0.2 m/s, and less than a quarter of it done."""
    asked = np.hypot(frame.command[:, 0], frame.command[:, 1])
    done = (frame.base_vel[:, :2] * frame.command[:, :2]).sum(axis=1)
    return ((asked > 0.2) & (done < _IDLE * asked * asked)).astype(np.float32)
