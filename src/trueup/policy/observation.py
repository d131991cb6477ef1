"""ObservationSpec and its builder: sensor readings become the numbers a policy sees.

The same code runs in training, in evaluation and on the robot; it needs NumPy alone. A spec is plain data (JSON), so a
policy carries its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.chain import Chain
from trueup.policy.reading import Float32, FloatArray, History, Reading

# what the builder itself computes from encoders, IMU, command, action and time; any other signal comes with the reading
OWN_SIGNALS = ("joint_pos", "joint_angle", "joint_vel", "gyro", "gravity", "command", "action", "tool_error", "clock")

_MOST_FRAMES, _MOST_COLUMNS = 1000, 1_000_000  # a file must not ask for all memory


class Term(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One signal times a scale that brings it near one.

    scale        of all its columns, or of each
    clip         (low, high) of all its columns, or of each; before scaling, or after it with `clip_scaled`
    history      frames of this term, where they stand `by_term`; None: all that the spec shows
    """

    signal: str
    scale: float | tuple[float, ...] = 1.0
    clip: tuple[tuple[float, float], ...] = ()
    clip_scaled: bool = False
    history: int | None = None


class ObservationSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Observations of a policy, in order.

    joint_pos    relative to `default_pose`
    joint_angle  sine and cosine of each joint, for joints that turn all the way
    action       the last action, as the policy gave it
    tool_error   command pose minus tool pose in the base frame: position, then rotation vector; needs `chain`
    clock        sine and cosine of 2 pi times the share of a period that has passed; periods follow each other from
                 the start of the episode; needs `clock_step`
    command_step largest change of each column of the command from one control step to the next; empty: none
    clock_step   share of the clock's period that passes in one control step
    history      frames stacked, oldest first
    ages         frames that are shown, in this order; 0 is the newest. Empty: all of `history`, oldest first
    by_term      all frames of the first term, then all of the second; else whole frames
    widths       columns of signals that are none of OWN_SIGNALS: a map of heights, an object's pose, a reference motion
    """

    joint_names: tuple[str, ...]
    default_pose: tuple[float, ...]
    terms: tuple[Term, ...]
    ncommand: int
    naction: int
    command_step: tuple[float, ...] = ()
    clock_step: float = 0.0
    history: int = 1
    ages: tuple[int, ...] = ()
    by_term: bool = False
    widths: dict[str, int] = {}
    chain: Chain | None = None

    def __post_init__(self) -> None:
        if len(self.default_pose) != len(self.joint_names):
            raise ValueError("default_pose needs one number for each joint")
        if self.command_step and len(self.command_step) != self.ncommand:
            raise ValueError("command_step needs one number for each column of the command")
        if not 1 <= self.history <= _MOST_FRAMES:
            raise ValueError(f"history must lie in 1..{_MOST_FRAMES}, found {self.history}")
        if self.chain is None and any(term.signal == "tool_error" for term in self.terms):
            raise ValueError("tool_error needs a chain")
        if not 0.0 <= self.clock_step <= 0.5:
            raise ValueError(f"clock_step must lie in 0..0.5, found {self.clock_step}")
        if self.clock_step == 0.0 and any(term.signal == "clock" for term in self.terms):
            raise ValueError("clock needs a clock_step above 0")
        if any(not 0 <= age < self.history for age in self.ages):
            raise ValueError(f"ages must lie in 0..{self.history - 1}, found {self.ages}")
        for term in self.terms:
            self._check(term)
        if self.history * self.nframe > _MOST_COLUMNS:
            raise ValueError(f"an observation has at most {_MOST_COLUMNS} columns with its history")

    def _check(self, term: Term) -> None:
        width = self.width(term.signal)
        if width < 0:
            raise ValueError(f"{term.signal}: {width} columns")
        if isinstance(term.scale, tuple) and len(term.scale) != width:
            raise ValueError(f"{term.signal}: {len(term.scale)} scales for {width} columns")
        if len(term.clip) not in (0, 1, width) or any(low > high for low, high in term.clip):
            raise ValueError(f"{term.signal}: clip needs one (low, high) or one for each of {width} columns")
        if term.history is not None and not (self.by_term and 1 <= term.history <= self.history):
            raise ValueError(f"{term.signal}: a history of its own needs by_term and at most {self.history} frames")

    def width(self, signal: str) -> int:
        """Columns of a signal."""
        njoint = len(self.joint_names)
        widths = (njoint, 2 * njoint, njoint, 3, 3, self.ncommand, self.naction, 6, 2)
        own = dict(zip(OWN_SIGNALS, widths, strict=True))
        if signal not in own and signal not in self.widths:
            raise ValueError(f"unknown signal {signal!r}: `widths` does not say how many columns it has")
        return own[signal] if signal in own else self.widths[signal]

    @property
    def others(self) -> tuple[str, ...]:
        """Signals of its terms that come with the reading, beyond OWN_SIGNALS."""
        return tuple(dict.fromkeys(term.signal for term in self.terms if term.signal not in OWN_SIGNALS))

    @property
    def slices(self) -> tuple[slice, ...]:
        """Columns of each term in one frame."""
        ends = np.cumsum([0, *(self.width(term.signal) for term in self.terms)])
        return tuple(slice(int(a), int(b)) for a, b in itertools.pairwise(ends))

    @property
    def nframe(self) -> int:
        return sum(self.width(term.signal) for term in self.terms)

    @property
    def columns(self) -> NDArray[np.intp]:
        """Places of the observation's columns in the stacked frames, oldest first."""
        ages = self.ages or tuple(range(self.history - 1, -1, -1))
        start = {age: (self.history - 1 - age) * self.nframe for age in ages}
        frame = [(slice(0, self.nframe), self.history)]
        if self.by_term:
            frame = [(part, term.history or self.history) for part, term in zip(self.slices, self.terms, strict=True)]
        places = [np.arange(part.start, part.stop) + start[age] for part, shown in frame for age in ages if age < shown]
        return np.concatenate(places).astype(np.intp) if places else np.zeros(0, np.intp)

    @property
    def nactor(self) -> int:
        return len(self.columns)


class _Moment(NamedTuple):
    """What one frame is computed from; `phase` (n,) is the share of the clock's period that has passed."""

    reading: Reading
    command: Float32
    action: Float32
    phase: FloatArray


Reader = Callable[[_Moment], FloatArray]


class _Part(NamedTuple):
    """How one term is computed: its columns, scale and bounds."""

    columns: slice
    scale: Float32
    bounds: Float32 | None  # low, high
    clip_scaled: bool
    read: Reader


class ObservationBuilder:
    """Builds observations of `nrow` robots; `restart` begins an episode, `step` continues it.

    `command` is the observed command: with a `command_step`, it begins at zero and follows the given one at that rate.
    `phase` (nrow,) is the share of the clock's period that has passed: zero when an episode begins.
    """

    def __init__(self, spec: ObservationSpec, nrow: int = 1) -> None:
        self.spec = spec
        self.command: Float32 = np.zeros((nrow, spec.ncommand), np.float32)
        self.phase: NDArray[np.float64] = np.zeros(nrow)
        self._command_step = np.array(spec.command_step, np.float32)
        self.history = History(nrow, spec.history, spec.nframe)
        readers = _readers(spec)
        self._parts = []
        for columns, term in zip(spec.slices, spec.terms, strict=True):
            bounds = np.array(term.clip, np.float32).T if term.clip else None
            scale = np.array(term.scale, np.float32)
            self._parts.append(_Part(columns, scale, bounds, term.clip_scaled, readers[term.signal]))
        places = spec.columns
        is_plain = np.array_equal(places, np.arange(spec.history * spec.nframe))
        self._columns = None if is_plain else places

    def frame(self, reading: Reading, command: Float32, action: Float32, phase: FloatArray | None = None) -> Float32:
        """Return one frame of any number of rows, (n, nframe) float32, C-contiguous; `phase` None: periods begin."""
        moment = _Moment(reading, command, action, np.zeros(len(reading.joint_pos)) if phase is None else phase)
        out = np.empty((len(reading.joint_pos), self.spec.nframe), np.float32)
        for part in self._parts:
            values, into = part.read(moment), out[:, part.columns]
            if part.bounds is not None and not part.clip_scaled:
                values = np.clip(values, *part.bounds)
            np.multiply(values, part.scale, out=into, casting="same_kind")
            if part.bounds is not None and part.clip_scaled:
                np.clip(into, *part.bounds, out=into)
        return out

    def restart(
        self,
        reading: Reading,
        command: Float32,
        action: Float32,
        ids: NDArray[np.intp] | None = None,
        phase: float | FloatArray = 0.0,
    ) -> Float32:
        """Begin an episode of rows `ids` (None: all): the past is filled with the present; `phase` of the clock."""
        rows = slice(None) if ids is None else ids
        self.command[rows] = 0.0 if self.spec.command_step else command
        self.phase[rows] = phase
        return self._shown(self.history.fill(self.frame(reading, self.command[rows], action, self.phase[rows]), ids))

    def step(self, reading: Reading, command: Float32, action: Float32) -> Float32:
        """Return the observations (nrow, nactor) of all rows after one control step."""
        if self.spec.command_step:
            self.command += np.clip(command - self.command, -self._command_step, self._command_step)
        else:
            self.command[:] = command
        np.mod(self.phase + self.spec.clock_step, 1.0, out=self.phase)
        return self._shown(self.history.push(self.frame(reading, self.command, action, self.phase)))

    def _shown(self, stacked: Float32) -> Float32:
        return stacked if self._columns is None else np.take(stacked, self._columns, axis=1)


def _readers(spec: ObservationSpec) -> dict[str, Reader]:
    """How each of OWN_SIGNALS is computed; others are taken from the reading."""
    default, chain = np.array(spec.default_pose, np.float32), spec.chain
    readers: dict[str, Reader] = {name: partial(_other, name) for name in spec.widths}
    readers |= {
        "joint_pos": lambda now: now.reading.joint_pos - default,
        "joint_angle": lambda now: _sine_cosine(now.reading.joint_pos),
        "joint_vel": lambda now: now.reading.joint_vel,
        "gyro": lambda now: _need(now.reading.gyro, "gyro"),
        "gravity": lambda now: _need(now.reading.gravity, "gravity"),
        "command": lambda now: now.command,
        "action": lambda now: now.action,
        "clock": lambda now: _sine_cosine(2.0 * np.pi * now.phase[:, None]),
    }
    if chain is not None:
        readers["tool_error"] = lambda now: chain.tool_error(now.reading.joint_pos, now.command)
    return readers


def _sine_cosine(angles: FloatArray) -> FloatArray:
    return np.hstack([np.sin(angles), np.cos(angles)])


def _other(name: str, now: _Moment) -> FloatArray:
    return _need(now.reading.others.get(name), name)


def _need(values: FloatArray | None, name: str) -> FloatArray:
    if values is None:
        raise TrueupError(f"this policy observes {name!r}, which the robot's reading does not have")
    return values
