"""Commands: what the policy is asked to do, drawn anew within an episode.

Every draw belongs to a row (`core.rows`); a command source keeps (nenv, n) float32 `values` and a countdown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.core.rows import RowRandom

Float32 = NDArray[np.float32]
Ids = NDArray[np.intp]


@dataclass(frozen=True, kw_only=True)
class NoCommand:
    """The task is always the same."""


@dataclass(frozen=True, kw_only=True)
class VelocityCommand:
    """Forward and sideways speed (m/s) and turning rate (rad/s) in the base frame.

    Drawn every `hold_s` seconds; a share of them asks to stand still, another not to turn. Speeds below `small` count
    as zero.
    Outside training, policies see it move by at most `rate` in a second (m/s, m/s, rad/s): sudden reversals throw
    robots over now and then, and learning to withstand them is the better lesson.
    """

    forward: tuple[float, float] = (-1.0, 1.0)
    sideways: tuple[float, float] = (-0.5, 0.5)
    turn: tuple[float, float] = (-1.0, 1.0)
    hold_s: tuple[float, float] = (4.0, 8.0)
    standing: float = 0.1
    straight: float = 0.0
    small: float = 0.1
    rate: tuple[float, float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class PoseCommand:
    """Poses of the tool that the arm can reach: position (m) and quaternion w x y z in the base frame.

    Poses come from joint positions drawn in the middle `span` of their ranges; those whose tool is lower than `floor_m`
    are passed over.
    """

    hold_s: tuple[float, float] = (3.0, 5.0)
    span: float = 0.6
    floor_m: float = 0.1
    table: int = 4096


CommandCfg = NoCommand | VelocityCommand | PoseCommand


class Commands:
    """Base of the sources: none at all."""

    ncommand = 0

    def __init__(self, nenv: int) -> None:
        self.values: Float32 = np.zeros((nenv, self.ncommand), np.float32)
        self.age: Float32 = np.zeros(nenv, np.float32)  # s since the command was drawn

    def reset(self, ids: Ids) -> None:
        """Draw commands for episodes that begin."""

    def advance(self) -> None:
        """One control step has passed."""

    def hold(self, values: NDArray[np.floating]) -> None:
        """Ask the same of every row until its episode ends."""
        self.values[:] = values

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """The live arrays that a checkpoint must hold."""
        return {}


class _Held(Commands, ABC):
    """Commands that are held for a drawn time."""

    def __init__(self, nenv: int, hold_s: tuple[float, float], dt: float, random: RowRandom) -> None:
        super().__init__(nenv)
        self._hold_s, self._dt, self._random = hold_s, dt, random
        self._left = np.zeros(nenv, np.int64)  # control steps until the next draw

    def reset(self, ids: Ids) -> None:
        low, high = self._hold_s
        self._left[ids] = np.round((low + (high - low) * self._random.uniform(1, ids)[:, 0]) / self._dt)
        self.values[ids] = self._draw(ids)
        self.age[ids] = 0.0

    def advance(self) -> None:
        self._left -= 1
        self.age += np.float32(self._dt)
        ids = np.flatnonzero(self._left <= 0)
        if len(ids):
            self.reset(ids)

    def hold(self, values: NDArray[np.floating]) -> None:
        super().hold(values)
        self._left[:] = np.iinfo(np.int64).max // 2

    def memory(self) -> dict[str, NDArray[np.generic]]:
        return {"values": self.values, "age": self.age, "left": self._left, "counter": self._random.counter}

    @abstractmethod
    def _draw(self, ids: Ids) -> NDArray[np.floating]:
        """Commands for rows, (rows, ncommand)."""


class VelocityCommands(_Held):
    """Draws VelocityCommand."""

    ncommand = 3

    def __init__(self, cfg: VelocityCommand, nenv: int, dt: float, random: RowRandom) -> None:
        super().__init__(nenv, cfg.hold_s, dt, random)
        self._cfg = cfg
        self._low, self._high = np.array([cfg.forward, cfg.sideways, cfg.turn]).T

    def _draw(self, ids: Ids) -> NDArray[np.floating]:
        unit = self._random.uniform(4, ids)
        values = self._low + (self._high - self._low) * unit[:, :3]
        values[np.hypot(values[:, 0], values[:, 1]) < self._cfg.small, :2] = 0.0
        values[np.abs(values[:, 2]) < self._cfg.small, 2] = 0.0
        values[unit[:, 3] > 1.0 - self._cfg.straight, 2] = 0.0
        values[unit[:, 3] < self._cfg.standing] = 0.0
        return values


class PoseCommands(_Held):
    """Draws from a table of reachable poses, (k, 7)."""

    ncommand = 7

    def __init__(
        self, cfg: PoseCommand, table: NDArray[np.floating], nenv: int, dt: float, random: RowRandom
    ) -> None:
        super().__init__(nenv, cfg.hold_s, dt, random)
        self._table = table

    def _draw(self, ids: Ids) -> NDArray[np.floating]:
        return self._table[(self._random.uniform(1, ids)[:, 0] * len(self._table)).astype(np.intp)]
