"""ObservationSpec and its builder: sensor readings become the numbers a policy sees.

The same code runs in training, in evaluation and on the robot; it needs NumPy alone. A spec is plain data (JSON), so a
policy carries its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.chain import Chain, matrices, rotation_error
from trueup.policy.history import History
from trueup.policy.reading import Reading

Float32 = NDArray[np.float32]
Signal = Literal[
    "joint_pos", "joint_angle", "joint_vel", "gyro", "gravity", "command", "action", "tool_error", "heights"
]


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One signal times a scale that brings it near one."""

    signal: Signal
    scale: float = 1.0


class ObservationSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a policy sees, in order.

    joint_pos    relative to `default_pose`
    joint_angle  sine and cosine of each joint, for joints that turn all the way
    action       the last action, as the policy gave it
    tool_error   command pose minus tool pose in the base frame: position, then rotation vector; needs `chain`
    command_step largest change of each column of the command from one control step to the next; empty: none
    history      frames stacked, oldest first
    nheight      columns of `heights`
    """

    joint_names: tuple[str, ...]
    default_pose: tuple[float, ...]
    terms: tuple[Term, ...]
    ncommand: int
    naction: int
    command_step: tuple[float, ...] = ()
    history: int = 1
    nheight: int = 0
    chain: Chain | None = None

    def __post_init__(self) -> None:
        if len(self.default_pose) != len(self.joint_names):
            raise ValueError("default_pose needs one number for each joint")
        if self.command_step and len(self.command_step) != self.ncommand:
            raise ValueError("command_step needs one number for each column of the command")
        if self.history < 1:
            raise ValueError(f"history must be at least 1, found {self.history}")
        if self.chain is None and any(term.signal == "tool_error" for term in self.terms):
            raise ValueError("tool_error needs a chain")

    def width(self, signal: Signal) -> int:
        """Columns of a signal."""
        njoint = len(self.joint_names)
        if signal == "joint_angle":
            return 2 * njoint
        if signal in ("joint_pos", "joint_vel"):
            return njoint
        if signal in ("gyro", "gravity"):
            return 3
        return {
            "command": self.ncommand,
            "action": self.naction,
            "tool_error": 6,
            "heights": self.nheight,
        }[signal]

    @property
    def slices(self) -> tuple[slice, ...]:
        """Columns of each term in one frame."""
        ends = np.cumsum([0, *(self.width(term.signal) for term in self.terms)])
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))

    @property
    def nframe(self) -> int:
        return sum(self.width(term.signal) for term in self.terms)

    @property
    def nactor(self) -> int:
        return self.history * self.nframe


class ObservationBuilder:
    """Builds observations of `nrow` robots; `restart` begins an episode, `step` continues it.

    `command` is what policies see of what is asked: with a `command_step`, it begins at zero and follows at that pace.
    """

    def __init__(self, spec: ObservationSpec, nrow: int = 1) -> None:
        self.spec, self.nrow = spec, nrow
        self.command: Float32 = np.zeros((nrow, spec.ncommand), np.float32)
        self._command_step = np.array(spec.command_step, np.float32)
        self._default = np.array(spec.default_pose, np.float32)
        self.history = History(nrow, spec.history, spec.nframe)
        self._parts: list[
            tuple[slice, np.float32, Callable[[Reading, Float32, Float32], NDArray[np.floating]]]
        ]
        self._parts = [
            (columns, np.float32(term.scale), getattr(self, f"_{term.signal}"))
            for columns, term in zip(spec.slices, spec.terms, strict=True)
        ]

    def frame(self, reading: Reading, command: Float32, action: Float32) -> Float32:
        """Return one frame of any number of rows, (n, nframe) float32, C-contiguous."""
        out = np.empty((len(reading.joint_pos), self.spec.nframe), np.float32)
        for columns, scale, part in self._parts:
            np.multiply(part(reading, command, action), scale, out=out[:, columns], casting="same_kind")
        return out

    def restart(
        self, reading: Reading, asked: Float32, action: Float32, ids: NDArray[np.intp] | None = None
    ) -> Float32:
        """Begin an episode of rows `ids` (None: all): the past is filled with the present."""
        rows = slice(None) if ids is None else ids
        self.command[rows] = 0.0 if self.spec.command_step else asked
        return self.history.fill(self.frame(reading, self.command[rows], action), ids)

    def step(self, reading: Reading, asked: Float32, action: Float32) -> Float32:
        """Return the observations (nrow, nactor) of all rows after one control step."""
        if self.spec.command_step:
            self.command += np.clip(asked - self.command, -self._command_step, self._command_step)
        else:
            self.command[:] = asked
        return self.history.push(self.frame(reading, self.command, action))

    # --- one function a signal ---
    def _joint_pos(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        return reading.joint_pos - self._default

    def _joint_angle(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        return np.concatenate([np.sin(reading.joint_pos), np.cos(reading.joint_pos)], axis=1)

    def _joint_vel(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        return reading.joint_vel

    def _gyro(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        return _need(reading.gyro, "gyro")

    def _gravity(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        return _need(reading.gravity, "gravity")

    def _heights(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        return _need(reading.heights, "heights")

    def _command(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        return command

    def _action(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        return action

    def _tool_error(self, reading: Reading, command: Float32, action: Float32) -> NDArray[np.floating]:
        assert self.spec.chain is not None
        position, rotation = self.spec.chain.tool_pose(reading.joint_pos)
        turn = rotation_error(matrices(command[:, 3:7]), rotation)
        return np.concatenate([command[:, :3] - position, turn], axis=1)


def _need(values: NDArray[np.floating] | None, name: str) -> NDArray[np.floating]:
    if values is None:
        raise TrueupError(f"this policy observes {name!r}, which the robot's reading does not have")
    return values
