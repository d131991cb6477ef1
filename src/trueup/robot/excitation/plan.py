"""Plan: joint targets over time. Pure numbers: no robot, no engine.

A plan is made by `excitation`, rehearsed by `world.rehearse`, carried out by `record`. Moves between poses follow the
minimum-jerk polynomial s(x) = 10 x^3 - 15 x^4 + 6 x^5 (Flash and Hogan 1985): at rest at both ends, peak speed
1.875 d/T and peak acceleration 5.7735 d/T^2 for a distance d in a time T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.robot.spec import RobotSpec

PEAK_SPEED, PEAK_ACCELERATION = 1.875, 10.0 / math.sqrt(3.0)
MAX_ROWS = 20_000_000


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Joint targets on a uniform clock.

    time         (T,) seconds from 0
    target_pos   (T, n) rad, in the order of `joint_names`
    target_vel   (T, n) rad/s, or None: the servos brake against zero velocity, as under a position policy
    meta         where it comes from: plain strings, numbers and lists
    """

    time: FloatArray
    joint_names: tuple[str, ...]
    target_pos: FloatArray
    target_vel: FloatArray | None = None
    meta: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.joint_names))
        if self.time.ndim != 1 or len(self.time) < 2:
            raise TrueupError(f"a plan needs a clock of at least two rows, found shape {self.time.shape}")
        for name, values in (("target_pos", self.target_pos), ("target_vel", self.target_vel)):
            if values is not None and values.shape != shape:
                raise TrueupError(f"{name} of a plan must have shape {shape}, found {values.shape}", place=name)
            for row, j in np.argwhere(~np.isfinite(values)) if values is not None else ():
                where = f"row {row} of joint {self.joint_names[j]!r}"
                raise TrueupError(f"a plan must be finite; {where} is not", place=name)

    def __len__(self) -> int:
        return len(self.time)

    @property
    def dt(self) -> float:
        """Seconds from row to row."""
        return float(self.time[1] - self.time[0])

    @property
    def seconds(self) -> float:
        """From the first row to the last."""
        return float(self.time[-1] - self.time[0])

    def velocity(self) -> FloatArray:
        """How fast the targets move, (T - 1, n): differences of rows."""
        return np.diff(self.target_pos, axis=0) / self.dt


def clock(rows: int, rate_hz: float) -> FloatArray:
    """The times of `rows` rows from zero."""
    if not 2 <= rows <= MAX_ROWS:
        raise TrueupError(f"a plan has 2 to {MAX_ROWS} rows, this one would have {rows}: change seconds or rate")
    return np.arange(rows) / rate_hz


def min_jerk(x: ArrayLike) -> FloatArray:
    """Go from 0 to 1 for x from 0 to 1, at rest at both ends; held outside."""
    x = np.clip(np.asarray(x, np.float64), 0.0, 1.0)
    return np.asarray(x**3 * (10.0 + x * (6.0 * x - 15.0)), np.float64)


def move_time(distance: ArrayLike, speed: ArrayLike, acceleration: ArrayLike) -> FloatArray:
    """Seconds that a minimum-jerk move needs to stay within peak speed and acceleration."""
    far = np.abs(np.asarray(distance, np.float64))
    by_speed = PEAK_SPEED * far / np.asarray(speed)
    return np.asarray(np.maximum(by_speed, np.sqrt(PEAK_ACCELERATION * far / np.asarray(acceleration))), np.float64)


def move_distance(seconds: ArrayLike, speed: ArrayLike, acceleration: ArrayLike) -> FloatArray:
    """Largest distance of a minimum-jerk move in a given time; the inverse of `move_time`."""
    span = np.asarray(seconds, np.float64)
    by_speed = span * np.asarray(speed) / PEAK_SPEED
    return np.asarray(np.minimum(by_speed, span**2 * np.asarray(acceleration) / PEAK_ACCELERATION), np.float64)


def move_plan(
    spec: RobotSpec, start: FloatArray, end: FloatArray, *, rate_hz: float, velocity_fraction: float = 0.1
) -> Plan | None:
    """A straight, smooth move of all joints from pose to pose, or None when there is no way to go.

    Peak speed is `velocity_fraction` of the slowest joint's limit; the first row stands at `start`, the last two at
    `end`.
    """
    speed = velocity_fraction * spec.velocity_limit
    need = float(move_time(end - start, speed, speed / 0.2).max())
    if need * rate_hz < 1e-3:
        return None
    steps = max(1, math.ceil(need * rate_hz))
    way = min_jerk(np.arange(steps + 2) / steps)
    target = start + way[:, None] * (end - start)
    return Plan(time=clock(len(way), rate_hz), joint_names=spec.joint_names, target_pos=target, meta={"kind": "move"})


def join_plans(*plans: Plan | None) -> Plan:
    """One plan after the other; missing ones are passed over. Meta is that of the longest."""
    parts = [plan for plan in plans if plan is not None]
    if not parts:
        raise TrueupError("there is no plan to join")
    rates = {round(1.0 / plan.dt, 6) for plan in parts}
    if len(rates) > 1:
        raise TrueupError(f"plans of different rates cannot be joined: {sorted(rates)} Hz")
    speeds = [np.zeros_like(plan.target_pos) if plan.target_vel is None else plan.target_vel for plan in parts]
    longest = max(parts, key=len)
    return replace(
        longest,
        time=clock(sum(len(plan) for plan in parts), 1.0 / longest.dt),
        target_pos=np.concatenate([plan.target_pos for plan in parts]),
        target_vel=None if all(plan.target_vel is None for plan in parts) else np.concatenate(speeds),
    )


def scale_plan(plan: Plan, about: FloatArray, scale: ArrayLike) -> Plan:
    """The same motion, smaller: each joint's distance from the pose `about` times its `scale` in [0, 1].

    Limits that held before still hold, because every target only moves towards `about`.
    """
    factor = np.broadcast_to(np.asarray(scale, np.float64), (len(plan.joint_names),))
    if not ((factor >= 0.0) & (factor <= 1.0)).all():
        raise TrueupError(f"a plan can be scaled by 0 to 1, found {factor.tolist()}")
    target = np.where(factor == 1.0, plan.target_pos, about + factor * (plan.target_pos - about))
    speed = None if plan.target_vel is None else plan.target_vel * factor
    return replace(plan, target_pos=target, target_vel=speed)
