"""The limiter: bounds of a command, whatever the policy outputs. Idempotent functions on arrays; `CommandChecks`.

A command is rows (5, n): target_pos, target_vel, kp, kd, torque, and asks the servos for

    tau = push - kd dq,    push = kp (target_pos - q) + kd target_vel + torque

`bound_target` is applied once to every command of the policy, `bound_torque` with every new state before it is sent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.readings import GuardFault, worst_joint
from trueup.robot.spec import RobotSpec

_TINY = 1e-12
_ROWS = ("target_pos", "target_vel", "kp", "kd", "torque")
_FAR = 3.0  # times the largest velocity, gain or torque that is allowed: no command of a sane policy
_STORE = 1.5  # steps that can be saved up, so that a slightly early command is not cut
_SLACK = 1e-9  # of the torque limit: rounding that is no violation, so that a limited command stays as it is
_ROW_CLIPS = ("position", "target_vel", "gain", "gain", "torque")


class Limits(NamedTuple):
    """Limits of the commands to each joint, (n,) each.

    least, most  (5, n) limits of the rows of a command
    torque       the robot's limit, N m; `allowed` is the largest torque of a command
    """

    low: FloatArray
    high: FloatArray
    torque: FloatArray
    allowed: FloatArray
    soft_zone: float
    least: FloatArray
    most: FloatArray


class Limited(NamedTuple):
    """Rows after limiting, their push (n,), and which limits were applied."""

    rows: FloatArray
    push: FloatArray
    clips: tuple[str, ...]


def limits_of(spec: RobotSpec, cfg: GuardCfg) -> Limits:
    """The limits of a robot under a config."""
    low, high, speed, torque = spec.position_low, spec.position_high, spec.velocity_limit, spec.torque_limit
    allowed, zero = cfg.torque_fraction * torque, np.zeros(spec.njoint)
    return Limits(
        low=low,
        high=high,
        torque=torque,
        allowed=allowed,
        soft_zone=cfg.soft_zone_rad,
        least=np.stack([low, -speed, zero, zero, -allowed]),
        most=np.stack([high, speed, cfg.max_gain * spec.kp, cfg.max_gain * spec.kd, allowed]),
    )


def bound_target(rows: FloatArray, reference: FloatArray, allowance: FloatArray, limits: Limits) -> Limited:
    """Clip every number of a command, and its targets to within `allowance` (n,) of `reference` (inside limits)."""
    clipped = np.minimum(np.maximum(rows, limits.least), limits.most)
    changed = (clipped != rows).any(axis=1)
    clips = [name for name, is_changed in zip(_ROW_CLIPS, changed.tolist(), strict=True) if is_changed]
    target = clipped[0]
    near = np.minimum(np.maximum(target, reference - allowance), reference + allowance)
    if (np.abs(near - target) > _TINY).any():
        clips.append("step")
        clipped[0] = np.minimum(np.maximum(near, limits.low), limits.high)  # reference +- allowance is rounded
    return Limited(clipped, np.zeros_like(target), tuple(dict.fromkeys(clips)))


def bound_torque(rows: FloatArray, pos: FloatArray, vel: FloatArray, limits: Limits, derate: float = 1.0) -> Limited:
    """Move targets so that no joint is asked for more torque than allowed, or for torque into its position limit.

    kd is held to what brakes with the allowed torque at this speed. Then the push must lie in a window that holds zero:
    |push - kd dq| <= allowed, and towards a position limit at most allowed times (distance / soft zone). The target
    moves to the window's edge; where a position limit or a missing kp prevents that, kp, target_vel and torque shrink.
    """
    target, speed, kp, kd, torque = out = rows.copy()
    allowed = derate * limits.allowed
    np.minimum(kd, allowed / np.maximum(np.abs(vel), _TINY), out=kd)
    brake = kd * vel
    fade_low, fade_high = _fades(pos, limits)
    least = np.maximum(-allowed * fade_low, brake - allowed)
    most = np.minimum(allowed * fade_high, brake + allowed)
    push = kp * (target - pos) + kd * speed + torque
    slack = _SLACK * limits.torque
    is_out = (push < least - slack) | (push > most + slack)
    if not is_out.any():
        return Limited(out, push, ())
    is_strong = is_out & ((push < brake - allowed - slack) | (push > brake + allowed + slack))
    clips = ("torque",) * bool(is_strong.any()) + ("soft_zone",) * bool((is_out & ~is_strong).any())
    wanted = np.minimum(np.maximum(push, least), most)
    moved = pos + (wanted - kd * speed - torque) / np.where(kp > _TINY, kp, 1.0)
    moved = np.minimum(np.maximum(moved, limits.low), limits.high)
    target[:] = np.where(is_out & (kp > _TINY), moved, target)
    push = kp * (target - pos) + kd * speed + torque
    wanted = np.minimum(np.maximum(push, least), most)
    is_out &= np.abs(push - wanted) > slack
    share = np.where(is_out, wanted / np.where(is_out, push, 1.0), 1.0)
    out[[1, 2, 4]] *= share
    return Limited(out, push * share, clips)


def _fades(pos: FloatArray, limits: Limits) -> tuple[FloatArray, FloatArray]:
    """Share (n,) of the torque that is allowed towards the lower and the upper position limit."""
    zone = max(limits.soft_zone, _TINY)
    below, above = (pos - limits.low) / zone, (limits.high - pos) / zone
    return np.minimum(np.maximum(below, 0.0), 1.0), np.minimum(np.maximum(above, 0.0), 1.0)


class CommandChecks:
    """Refuses commands that no sane policy sends, and bounds the others.

    Targets may move by `max_step_rad` with a command and by max_step_rad * control_hz a second on average, however
    often the policy sends: each joint has a store of radians that refills with time.
    """

    def __init__(self, spec: RobotSpec, cfg: GuardCfg, limits: Limits, control_hz: float) -> None:
        self._spec, self._cfg, self._limits, self._control_hz = spec, cfg, limits, control_hz
        far = _FAR * limits.most
        far[0] = limits.high + cfg.command_margin_rad
        far[4] = _FAR * limits.torque
        least = -far
        least[0] = limits.low - cfg.command_margin_rad
        least[2:4] = 0.0
        self._far_least, self._far_most = least, far
        self._factor = np.array([1.0, 1.0, cfg.gain_factor, cfg.gain_factor, cfg.gain_factor])[:, None]
        self._reference = np.zeros(spec.njoint)
        self._free = np.ones(spec.njoint, np.bool_)  # joints without stiffness: their target follows the position
        self._store = np.zeros(spec.njoint)
        self._time_s = 0.0

    def start(self, pos: FloatArray, now_s: float) -> None:
        """Targets start from the measured pose."""
        self._reference = np.minimum(np.maximum(pos, self._limits.low), self._limits.high)
        self._store[:] = _STORE * self._cfg.max_step_rad
        self._time_s = now_s

    def accept(self, rows: FloatArray, pos: FloatArray, now_s: float) -> Limited | GuardFault:
        """Return the limited command (5, n), or why it is refused."""
        fault = self._fault(rows)
        if fault is not None:
            return fault
        step, limits = self._cfg.max_step_rad, self._limits
        passed = max(0.0, now_s - self._time_s) * self._control_hz
        self._time_s = now_s
        store = np.minimum(self._store + step * passed, _STORE * step)
        here = np.minimum(np.maximum(pos, limits.low), limits.high)
        reference = np.where(self._free, here, self._reference)
        limited = bound_target(rows * self._factor, reference, np.minimum(store, step), limits)
        self._store = np.maximum(store - np.abs(limited.rows[0] - reference), 0.0)
        self._reference, self._free = limited.rows[0], limited.rows[2] <= 0.0
        return limited

    def _fault(self, rows: FloatArray) -> GuardFault | None:
        shape = (len(_ROWS), self._spec.njoint)
        if np.shape(rows) != shape:
            return GuardFault("command", f"a command of this robot has shape {shape}, found {np.shape(rows)}")
        bad = ~((rows >= self._far_least) & (rows <= self._far_most))  # true for NaN
        if not bad.any():
            return None
        row = int(np.argmax(bad.any(axis=1)))
        j, joint = worst_joint(self._spec, bad[row])
        found = f"the policy sent {_ROWS[row]} {rows[row, j]:g} for {joint}"
        if not np.isfinite(rows[row, j]):
            return GuardFault("command", f"{found}: not a finite number")
        low, high = self._far_least[row, j], self._far_most[row, j]
        return GuardFault("command", f"{found}, far outside what is allowed (trips outside [{low:g}, {high:g}])")
