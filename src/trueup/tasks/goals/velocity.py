"""Velocity: forward and sideways speed and turning rate of the base, in its own frame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.tasks.goals.goal import Float32, Goal, GoalCfg, GoalPlace, HeldGoal, Slider

if TYPE_CHECKING:
    from trueup.tasks.sensing.frame import Frame


@dataclass(frozen=True, kw_only=True)
class VelocityGoal(GoalCfg):
    """Forward and sideways speed (m/s) and turning rate (rad/s) in the base frame.

    Drawn every `hold_s` seconds; a share of them asks to stand still, another not to turn. Speeds below `small` count
    as zero.
    Outside training, policies see it move by at most `rate` in a second (m/s, m/s, rad/s): sudden reversals throw
    robots over now and then, and learning to withstand them is the better lesson.
    """

    error: ClassVar[tuple[str, str] | None] = ("velocity_error", "m/s")
    columns: ClassVar[tuple[str, ...]] = ("forward", "sideways", "turn")
    scales: ClassVar[Mapping[str, str]] = {"forward": "m/s", "sideways": "m/s", "turn": "rad/s", "small": "m/s"}
    forward: tuple[float, float] = (-1.0, 1.0)
    sideways: tuple[float, float] = (-0.5, 0.5)
    turn: tuple[float, float] = (-1.0, 1.0)
    hold_s: tuple[float, float] = (4.0, 8.0)
    standing: float = 0.1
    straight: float = 0.0
    small: float = 0.1
    rate: tuple[float, float, float] | None = None

    def start(self, place: GoalPlace) -> Goal:
        return Velocity(self, place)


class Velocity(HeldGoal):
    """Draws velocities."""

    ncommand = 3
    mirror = (1, -1, -1)

    def __init__(self, cfg: VelocityGoal, place: GoalPlace) -> None:
        super().__init__(place, cfg.hold_s, (cfg.forward, cfg.sideways, cfg.turn))
        self._cfg = cfg
        self.command_step = () if cfg.rate is None else tuple(rate * place.sim.control_dt for rate in cfg.rate)
        self.sliders = (
            Slider("forward, m/s", *cfg.forward, ("W", "S"), ("forward", "back")),
            Slider("sideways, m/s", *cfg.sideways, ("Q", "E"), ("left", "right")),
            Slider("turn, rad/s", *cfg.turn, ("A", "D"), ("turn left", "turn right")),
        )

    def course(self) -> Float32:
        return self.values

    def measured(self, frame: Frame) -> Float32:
        return np.concatenate([frame.base_vel[:, :2], frame.base_spin[:, 2:]], axis=1)

    def _draw(self, ids: Ids) -> FloatArray:
        unit = self._random.uniform(4, ids)
        values = self._between(unit[:, :3])
        values[np.hypot(values[:, 0], values[:, 1]) < self._cfg.small, :2] = 0.0
        values[np.abs(values[:, 2]) < self._cfg.small, 2] = 0.0
        values[unit[:, 3] > 1.0 - self._cfg.straight, 2] = 0.0
        values[unit[:, 3] < self._cfg.standing] = 0.0
        return values
