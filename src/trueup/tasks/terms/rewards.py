"""Reward and termination terms, and red flags: pure functions of a Frame, (nenv,) each.

Kernels exp(-e^2 / width^2) lie in [0, 1]; costs are positive and get a negative weight in the task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trueup.tasks.sensing.frame import Bool, Float32, Frame

_MOVING = np.float32(0.05)  # commands longer than this ask to move
_SHUFFLE_M, _UNEVEN, _NEAR_LIMIT, _IDLE = 0.01, 0.5, 0.95, 0.25


def commanded(frame: Frame) -> Bool:
    """Whether the command asks to move."""
    return _sum_squares(frame.command) > _MOVING**2


# --- following ---
def track_velocity(frame: Frame) -> Float32:
    """exp(-|v - v*|^2 / 0.25), forward and sideways."""
    return np.exp(-_sum_squares(frame.base_vel[:, :2] - frame.command[:, :2]) * np.float32(4.0))


def track_turn(frame: Frame) -> Float32:
    """exp(-(w - w*)^2 / 0.25), turning rate."""
    return np.exp(-np.square(frame.base_spin[:, 2] - frame.command[:, 2]) * np.float32(4.0))


def track_velocity_closely(frame: Frame) -> Float32:
    """exp(-|v - v*|^2 / 0.04): still rises where `track_velocity` is flat."""
    return np.exp(-_sum_squares(frame.base_vel[:, :2] - frame.command[:, :2]) * np.float32(25.0))


def track_turn_closely(frame: Frame) -> Float32:
    """exp(-(w - w*)^2 / 0.04), likewise."""
    return np.exp(-np.square(frame.base_spin[:, 2] - frame.command[:, 2]) * np.float32(25.0))


def velocity_error(frame: Frame) -> Float32:
    """|v - v*|, m/s: a metric, not a reward."""
    return np.sqrt(_sum_squares(frame.base_vel[:, :2] - frame.asked[:, :2]))


def turn_error(frame: Frame) -> Float32:
    """|w - w*|, rad/s, likewise."""
    return np.abs(frame.base_spin[:, 2] - frame.asked[:, 2])


# --- posture ---
def tilt(frame: Frame) -> Float32:
    """Squared horizontal part of gravity in the base frame: zero when upright."""
    return _sum_squares(frame.gravity[:, :2])


@dataclass(frozen=True)
class Height:
    """Squared distance of the base from a height above the ground, m^2."""

    target_m: float

    def __call__(self, frame: Frame) -> Float32:
        return np.square(frame.base_height - np.float32(self.target_m))


def bounce(frame: Frame) -> Float32:
    """Squared vertical speed of the base."""
    return np.square(frame.base_vel[:, 2])


def wobble(frame: Frame) -> Float32:
    """Squared roll and pitch rates."""
    return _sum_squares(frame.base_spin[:, :2])


def pose(frame: Frame) -> Float32:
    """Squared distance of the joints from the default pose."""
    return _sum_squares(frame.joint_pos - frame.default_pose)


def stand_still(frame: Frame) -> Float32:
    """Distance of the joints from the default pose, where the command is to stand."""
    away = frame.joint_pos - frame.default_pose
    return _sum(np.abs(away, out=away)) * ~commanded(frame)


# --- effort ---
def energy(frame: Frame) -> Float32:
    """Mechanical power |tau qd| summed over the joints, W."""
    power = frame.joint_torque * frame.joint_vel
    return _sum(np.abs(power, out=power))


def torque(frame: Frame) -> Float32:
    """Sum of squared torques, (N m)^2."""
    return _sum_squares(frame.joint_torque)


def action_rate(frame: Frame) -> Float32:
    """Squared change of the action since the step before."""
    return _sum_squares(frame.action - frame.last_action)


def joint_speed(frame: Frame) -> Float32:
    """Sum of squared joint speeds."""
    return _sum_squares(frame.joint_vel)


def joint_limits(frame: Frame) -> Float32:
    """How far joints are beyond 95 % of their range, rad, summed."""
    margin = np.float32(0.025) * (frame.joint_high - frame.joint_low)
    inside = np.maximum(frame.joint_pos, frame.joint_low + margin)
    np.minimum(inside, frame.joint_high - margin, out=inside)
    np.subtract(frame.joint_pos, inside, out=inside)
    return _sum(np.abs(inside, out=inside))


# --- feet ---
@dataclass(frozen=True)
class AirTime:
    """Length of the steps that end now beyond `least_s`, counted up to `most_s`, summed; only where asked to move."""

    least_s: float
    most_s: float

    def __call__(self, frame: Frame) -> Float32:
        gain = np.minimum(frame.air_time, np.float32(self.most_s)) - np.float32(self.least_s)
        return _sum(np.multiply(gain, frame.touchdown, out=gain)) * commanded(frame)


def slip(frame: Frame) -> Float32:
    """Squared horizontal speed of feet that touch the ground, summed."""
    return _sum(_foot_speed_squared(frame) * frame.foot_contact)


@dataclass(frozen=True)
class Clearance:
    """Feet that move low: sum over the feet of (h - h*)^2 times horizontal speed, where h < h*; m^3/s."""

    target_m: float

    def __call__(self, frame: Frame) -> Float32:
        speed = np.sqrt(_foot_speed_squared(frame))
        low = np.minimum(frame.foot_height - np.float32(self.target_m), np.float32(0.0))
        return np.einsum("ij,ij,ij->i", low, low, speed)


@dataclass(frozen=True)
class SwingHeight:
    """Steps that end now and stayed below h*: sum over the feet of (1 - peak / h*)^2; only where asked to move."""

    target_m: float

    def __call__(self, frame: Frame) -> Float32:
        lack = np.float32(1.0) - np.minimum(frame.swing_peak / np.float32(self.target_m), np.float32(1.0))
        return np.einsum("ij,ij,ij->i", lack, lack, frame.touchdown.astype(np.float32)) * commanded(frame)


def trot(frame: Frame) -> Float32:
    """How much feet move as in a trot, in [-1, 1]; only where asked to move.

    Feet of a diagonal should do the same, neighbours in front and behind the opposite: 1 in a trot, 0 standing, on one
    side (pace) or in the air, -1 in a bound. Feet in the order front left, front right, rear left, rear right.
    """
    left, right, rear_left, rear_right = (frame.foot_contact[:, k] for k in range(4))
    diagonals = (left == rear_right).astype(np.float32) + (right == rear_left)
    neighbours = (left != right).astype(np.float32) + (rear_left != rear_right)
    return (np.float32(0.5) * (diagonals + neighbours) - np.float32(1.0)) * commanded(frame)


def stand_quiet(frame: Frame) -> Float32:
    """Squared joint speeds and feet in the air, where the command is to stand."""
    moves = np.float32(0.1) * _sum_squares(frame.joint_vel)
    return (moves + (~frame.foot_contact).sum(axis=1, dtype=np.float32)) * ~commanded(frame)


def collision(frame: Frame) -> Float32:
    """One where the trunk touches something."""
    return frame.body_contact.astype(np.float32)


def fall(frame: Frame) -> Float32:
    """One where the episode ends by a fall."""
    return (fallen(frame) | trunk_down(frame)).astype(np.float32)


# --- arms and pendulums ---
def tool_distance(frame: Frame) -> Float32:
    """Distance from tool to command, m."""
    return np.sqrt(_sum_squares(frame.tool_error[:, :3]))


@dataclass(frozen=True)
class Settled:
    """A quantity where `after_s` have passed since the command; of all rows as long as there is no such row.

    Rows that had less time are filled with the mean of those that had it, so that the mean over rows is theirs.
    """

    quantity: Callable[[Frame], Float32]
    after_s: float

    def __call__(self, frame: Frame) -> Float32:
        values, settled = self.quantity(frame), frame.command_age > self.after_s
        return np.where(settled, values, values[settled].mean()) if settled.any() else values


settled_distance = Settled(tool_distance, 1.5)


def tool_angle(frame: Frame) -> Float32:
    """Angle between tool and command, rad."""
    return np.sqrt(_sum_squares(frame.tool_error[:, 3:]))


@dataclass(frozen=True)
class Near:
    """1 - tanh(distance / width): a large width pulls from afar, a small one asks for the last centimetres."""

    distance: Callable[[Frame], Float32]
    width: float

    def __call__(self, frame: Frame) -> Float32:
        return np.float32(1.0) - np.tanh(self.distance(frame) * np.float32(1.0 / self.width))


def swing_up(frame: Frame) -> Float32:
    """(1 - cos q) / 2: zero hanging, one upright, of the first joint."""
    return np.float32(0.5) * (np.float32(1.0) - np.cos(frame.joint_pos[:, 0]))


# --- terminations ---
def fallen(frame: Frame) -> Bool:
    """The base has tilted by more than 60 degrees."""
    return frame.gravity[:, 2] > -0.5


def trunk_down(frame: Frame) -> Bool:
    """The trunk touches the ground."""
    return frame.body_contact


# --- red flags: gaits that collect reward and would not do on a robot, 1 where an environment shows one now ---
def shuffling(frame: Frame) -> Float32:
    """Asked to move, with no foot higher than 1 cm and some foot sliding faster than 0.1 m/s."""
    flat = frame.foot_height.max(axis=1) < _SHUFFLE_M
    sliding = (_foot_speed_squared(frame) * frame.foot_contact).max(axis=1) > 0.01
    return (flat & sliding & commanded(frame)).astype(np.float32)


def hopping(frame: Frame) -> Float32:
    """One foot touches the ground over half of the time more than another: a leg is carried or does all the work."""
    return (np.ptp(frame.duty, axis=1) > _UNEVEN).astype(np.float32)


def saturation(frame: Frame) -> Float32:
    """Share of joints at more than 95 % of their torque limit."""
    return (np.abs(frame.joint_torque) > np.float32(_NEAR_LIMIT) * frame.torque_limit).mean(axis=1, dtype=np.float32)


def idling(frame: Frame) -> Float32:
    """Asked for more than 0.2 m/s, and less than a quarter of it done."""
    speed = np.hypot(frame.command[:, 0], frame.command[:, 1])
    done = (frame.base_vel[:, :2] * frame.command[:, :2]).sum(axis=1)
    return ((speed > 0.2) & (done < _IDLE * speed * speed)).astype(np.float32)


def _foot_speed_squared(frame: Frame) -> Float32:
    """Of the horizontal velocity, (nenv, nfoot)."""
    x, y = frame.foot_vel[:, :, 0], frame.foot_vel[:, :, 1]
    return x * x + y * y


def _sum(values: Float32) -> Float32:
    """Over the second axis; in the same order for any number of rows."""
    return np.einsum("ij->i", values)


def _sum_squares(values: Float32) -> Float32:
    return np.einsum("ij,ij->i", values, values)
