"""Slow sweeps of joints at constant speed: to the mechanical stops, and about a pose; torques are recorded on the way.

A sweep to a stop goes on until the joint reads its limit (it arrived freely) or something holds it: it falls to less
than a quarter of its speed while the servo's torque rises. The push stays within the bound of `moves`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Literal

import numpy as np

from trueup.deploy.wiggle.motion.moves import Motion, Moves
from trueup.deploy.wiggle.motion.trace import Touch

Side = Literal["low", "high"]
_LOOK_S = 0.12  # over which a joint's speed and the rise of its torque are measured
_HELD = 0.25  # of its speed
_RISE = 0.05  # of the allowed torque
_STEADY = 0.5  # of its speed, from which on its torque is that of steady motion
_EASY = 0.8  # of the allowed torque: a joint that took less while it moved is held by something else than its weight
_HARD = 0.65  # of the allowed torque: a joint that takes more is swept more slowly
_SLOWEST = 0.5  # of the speed
_RUN_UP_S = 0.25
_ARRIVED_RAD = 0.01
_ROOM_RAD = 0.05  # left to the limits by sweeps about a pose


class _Way:
    """The way of one joint to its goal; with `stop`, the goal is a limit and the joint is pushed until it is there."""

    def __init__(self, moves: Moves, j: int, goal: float, stop: Side | None) -> None:
        self.j, self.goal, self.stop, self._moves = j, goal, stop, moves
        self._origin = float(moves.state.joint_pos[j])
        self._side = 1.0 if goal > float(moves.target[j]) else -1.0
        self._window = max(2, round(_LOOK_S / moves.dt))
        self._past: deque[tuple[float, float]] = deque([(self._origin, 0.0)], maxlen=self._window + 1)
        self._ticks = 0

    def lead_on(self) -> None:
        """Move the target one step, no further ahead of the joint than the torque bound allows."""
        moves, j, side = self._moves, self.j, self._side
        step, here = float(moves.speed[j]) * moves.dt, float(moves.state.joint_pos[j])
        ahead = side * min(side * float(moves.target[j]) + step, side * here + float(moves.lead[j]))
        moves.target[j] = ahead if self.stop else side * min(side * ahead, side * self.goal)
        moves.velocity[j] = side * float(moves.speed[j])

    def look(self) -> Touch | None:
        """Record the torque; return how the way ended, None while it goes on."""
        moves, j, side = self._moves, self.j, self._side
        q, lead = float(moves.state.joint_pos[j]), float(moves.lead[j])
        lag = side * (float(moves.target[j]) - q) / lead
        self._past.append((q, lag))
        self._ticks += 1
        if len(self._past) <= self._window:
            return None
        share = side * (q - self._past[0][0]) / (float(moves.speed[j]) * moves.dt * self._window)
        if share > _STEADY and self._ticks * moves.dt > _RUN_UP_S:
            self._steady(lag)
        short = self.goal - (q if self.stop else float(moves.target[j]))
        if side * short < (_ARRIVED_RAD if self.stop else 1e-9):
            return Touch(q, False)
        before = self._past[0][1]
        under_way = side * (q - self._origin) > 0.05
        if share >= _HELD or not (lag >= 0.98 or (under_way and lag - before > _RISE)):
            return None
        return Touch(q, True, under_way and before < _EASY)

    def _steady(self, lag: float) -> None:
        """Record an instant of steady motion; go slower where it takes much torque."""
        moves, j = self._moves, self.j
        moves.trace.add_row(moves.state.joint_pos, j, float(moves.velocity[j]), moves.torque(j))
        if lag > _HARD:
            slower = max(_SLOWEST * float(moves.full_speed[j]), 0.97 * float(moves.speed[j]))
            moves.speed[j] = min(float(moves.speed[j]), slower)


def sweep_to_stops(moves: Moves, joints: Iterable[int]) -> Motion:
    """Sweep joints to the ends of their ranges, the farther one first, and back to where they were."""
    home = {j: float(moves.target[j]) for j in joints}
    farther: dict[int, Side] = {j: "low" if q - moves.low[j] > moves.high[j] - q else "high" for j, q in home.items()}
    nearer: dict[int, Side] = {j: "high" if side == "low" else "low" for j, side in farther.items()}
    for sides in (farther, nearer):
        limits = {j: float((moves.low if side == "low" else moves.high)[j]) for j, side in sides.items()}
        yield from _sweep(moves, [_Way(moves, j, limits[j], side) for j, side in sides.items()])
    yield from _sweep(moves, [_Way(moves, j, q, None) for j, q in home.items()])


def sweep_about(moves: Moves, joints: Iterable[int], reach: float) -> Motion:
    """Sweep joints up and down about where they are, within their limits, and back."""
    home = {j: float(moves.target[j]) for j in joints}
    for way in (reach, -reach, 0.0):
        goal = {j: q + way for j, q in home.items()}
        inside = {j: np.clip(q, moves.low[j] + _ROOM_RAD, moves.high[j] - _ROOM_RAD) for j, q in goal.items()}
        yield from _sweep(moves, [_Way(moves, j, float(q), None) for j, q in inside.items()])


def _sweep(moves: Moves, ways: list[_Way]) -> Motion:
    while ways:
        for way in ways:
            way.lead_on()
        yield from moves.tick()
        for way in list(ways):
            touch = way.look()
            if touch is None:
                continue
            ways.remove(way)
            moves.velocity[way.j] = 0.0
            moves.relax([way.j])
            if way.stop is not None:
                moves.trace.stops.setdefault(way.j, {})[way.stop] = touch
