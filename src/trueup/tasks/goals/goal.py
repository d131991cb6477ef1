"""Goal: what is asked of a policy.

A task names a goal's config, a frozen dataclass; `GoalCfg.start` makes the running goal of an environment. The running
goal keeps the `values` (nenv, ncommand) that the policy sees as its command, draws them for episodes that begin and
within episodes, and says everything else that depends on what is asked: the start states it wants, how the values
mirror, which sliders steer them, and which of the task's metrics is its error. Every draw belongs to a row
(`core.rows`), and `memory` is all that a checkpoint must hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.rows import RowRandom
from trueup.policy.chain import Chain
from trueup.tasks.sensing.signals import MirrorRule
from trueup.world.engines.simulation import Simulation

if TYPE_CHECKING:
    from trueup.tasks.sensing.frame import Frame

Float32 = NDArray[np.float32]


class Slider(NamedTuple):
    """A column of the command on the live page: its range, the keys that raise and lower it, and what they do."""

    name: str
    low: float
    high: float
    keys: tuple[str, str] | None = None
    does: tuple[str, str] = ("", "")


class GoalPlace(NamedTuple):
    """Where a goal runs: the simulation, the joints that actions move, random numbers of its own, and whether to learn.

    training  draw commands for learning (by a curriculum, if the goal has one), otherwise for evaluation
    """

    sim: Simulation
    controlled_joints: tuple[str, ...]
    random: RowRandom
    training: bool = False


@dataclass(frozen=True, kw_only=True)
class GoalCfg(ABC):
    """What is asked, as data.

    error    the task's metric that tells how far the policy is from it, and its unit
    columns  of the command that the policy sees
    scales   fields that go with the size of a robot, and their units ("m/s", "rad/s"); {}: the goal cannot be scaled
    """

    error: ClassVar[tuple[str, str] | None] = None
    columns: ClassVar[tuple[str, ...]] = ()
    scales: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def start(self, place: GoalPlace) -> Goal:
        """Make the running goal of an environment."""


class Goal:
    """A running goal that asks nothing; base of the others.

    mirror        sign of each column when left and right are exchanged
    mirror_parts  in its place: rule and width of each part of the columns, where joints change places
    bodies        (n, 3) places of bodies that it compares, in the default pose
    command_step  largest change of each column that the policy sees in a control step, outside training; (): any
    sliders       of the live page, one for each column; (): the goal cannot be steered
    chain         from base to tool, where the goal is a pose of the tool
    """

    ncommand: int = 0
    mirror: tuple[int, ...] = ()
    mirror_parts: tuple[tuple[MirrorRule, int], ...] = ()
    bodies: FloatArray | None = None
    command_step: tuple[float, ...] = ()
    sliders: tuple[Slider, ...] = ()
    chain: Chain | None = None

    def __init__(self, nenv: int) -> None:
        self.values: Float32 = np.zeros((nenv, self.ncommand), np.float32)
        self.age: Float32 = np.zeros(nenv, np.float32)  # s since the values were drawn

    def reset(self, ids: Ids) -> None:
        """Draw what is asked in episodes that begin."""

    def advance(self) -> None:
        """One control step has passed."""

    def finished(self) -> NDArray[np.bool_] | None:
        """Rows (nenv,) whose goal is complete, so that their episodes end; None: episodes never end by the goal."""
        return None

    def ended(self, ids: Ids, failed: NDArray[np.bool_]) -> None:
        """Episodes of rows `ids` have ended, by a termination where `failed`; called before `reset`."""

    def hold(self, values: NDArray[np.floating]) -> None:
        """Ask the same of every row until its episode ends."""
        self.values[:] = values

    def elapsed(self, ids: Ids) -> float | FloatArray:
        """Share of the policy's clock that has passed where the episodes of rows `ids` begin."""
        return 0.0

    def adjust_start(self, ids: Ids, qpos: FloatArray, qvel: FloatArray) -> None:
        """Change the start states of rows `ids` in place; called after `reset`."""

    def course(self) -> Float32 | None:
        """Velocity over the ground that is asked, (nenv, 3) forward, sideways, turn; None where there is none."""
        return None

    def measured(self, frame: Frame) -> Float32 | None:
        """Measured values that correspond to the sliders' columns."""
        return None

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """The live arrays that a checkpoint must hold."""
        return {}


@dataclass(frozen=True, kw_only=True)
class NoGoal(GoalCfg):
    """The task is always the same."""

    def start(self, place: GoalPlace) -> Goal:
        return Goal(place.sim.nsim)


class HeldGoal(Goal, ABC):
    """A goal whose values are held for a drawn time; `ranges`: (low, high) of what is drawn uniformly."""

    def __init__(
        self, place: GoalPlace, hold_s: tuple[float, float], ranges: Sequence[tuple[float, float]] = ((0.0, 1.0),)
    ) -> None:
        super().__init__(place.sim.nsim)
        self._hold_s, self._dt, self._random = hold_s, place.sim.control_dt, place.random
        self._low, self._high = np.array(ranges).T
        self._left = np.zeros(place.sim.nsim, np.int64)  # control steps until the next draw

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
    def _draw(self, ids: Ids) -> FloatArray:
        """Values for rows, (rows, ncommand)."""

    def _between(self, unit: FloatArray) -> FloatArray:
        """Scale numbers in [0, 1) to the ranges."""
        return self._low + (self._high - self._low) * unit
