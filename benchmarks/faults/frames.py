"""What a relay can do to frames on their way: one class a fault, each a function of one frame.

A fault is called with (frame, is_up, now) for every frame after it began; `is_up` is the way from robot to controller.
It returns the frames that go on instead, each with a delay in seconds. `began` is when the first frame was touched.
"""

from __future__ import annotations

import math
import zlib
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.hardware import wire
from trueup.hardware.wire import Kind

Sent = list[tuple[float, bytes]]
_KIND, _TIME, _HEAD, _NUMBERS, _CRC = 5, 12, 20, 36, 4  # offsets of a frame: kind, time, payload, numbers of a state


class FrameFault(Protocol):
    """A fault on the way of frames."""

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        """Frames that go on instead, with delays; None: this one is not touched."""


def is_state(frame: bytes) -> bool:
    """Whether this is a report of the robot."""
    return len(frame) > _NUMBERS and frame[_KIND] == Kind.STATE


def is_stream(frame: bytes) -> bool:
    """Whether this is a state or a command: what streams."""
    return len(frame) > _KIND and frame[_KIND] in (Kind.STATE, Kind.COMMAND)


class Channel:
    """Share of frames that are lost, late, doubled, swapped, cut or damaged; `ways`: "up", "down" or both."""

    def __init__(
        self, random: np.random.Generator, *, ways: str = "both", drop: float = 0.0, delay_s: float = 0.0,
        duplicate: float = 0.0, reorder: float = 0.0, truncate: float = 0.0, flip: float = 0.0,
    ) -> None:  # fmt: skip
        self._random, self._ways, self._delay = random, ways, delay_s
        self._shares = {"drop": drop, "duplicate": duplicate, "reorder": reorder, "truncate": truncate, "flip": flip}
        self._held: dict[bool, bytes] = {}

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        if not is_stream(frame) or self._ways == ("down" if is_up else "up"):
            return None
        if self._delay:
            return [(self._delay, frame)]
        hit = {name: share and self._random.random() < share for name, share in self._shares.items()}
        held = self._held.pop(is_up, None)
        after: Sent = [] if held is None else [(0.0, held)]
        if hit["drop"]:
            return after
        if hit["truncate"]:
            return [(0.0, frame[: int(self._random.integers(len(frame)))]), *after]
        if hit["flip"]:
            return [(0.0, _flipped(frame, self._random)), *after]
        if hit["duplicate"]:
            return [(0.0, frame), (0.0, frame), *after]
        if hit["reorder"] and held is None:
            self._held[is_up] = frame
            return []
        return [(0.0, frame), *after] if after else None


class Replay:
    """Old reports come again: beside the fresh ones, instead of them, or in the dress of fresh ones."""

    def __init__(self, how: str, memory: deque[bytes]) -> None:
        self._how, self._memory = how, memory
        self._old: list[bytes] = []
        self._k = 0

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        if not is_state(frame):
            return None
        self._old = self._old or list(self._memory)
        if not self._old:
            return None
        old = self._old[self._k % len(self._old)]
        self._k += 1
        if self._how == "beside":
            return [(0.0, frame), (0.0, old)]
        return [(0.0, old if self._how == "instead" else sealed(frame[:_HEAD] + old[_HEAD:-_CRC]))]


class States:
    """Changes the numbers of every report (or of a share of them) and makes the checksum right again.

    change   gets (state numbers (4 n + 10,), njoint, random) and changes them in place: position, velocity, torque,
             temperature of the joints, then quaternion, gyro, accelerometer
    """

    def __init__(
        self, random: np.random.Generator, change: Callable[[FloatArray, int], None], share: float = 1.0
    ) -> None:
        self._random, self._change, self._share = random, change, share

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        if not is_state(frame) or (self._share < 1.0 and self._random.random() >= self._share):
            return None
        njoint = int.from_bytes(frame[_HEAD : _HEAD + 2], "little")
        numbers = _numbers(frame)
        self._change(numbers, njoint)
        return [(0.0, sealed(frame[:_NUMBERS] + numbers.tobytes()))]


class Frozen:
    """The numbers of all joints and the IMU (or of one joint) stay as they are; number and clock go on."""

    def __init__(self, joint: int | None = None) -> None:
        self._joint = joint
        self._kept: FloatArray | None = None

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        if not is_state(frame):
            return None
        numbers, njoint = _numbers(frame), int.from_bytes(frame[_HEAD : _HEAD + 2], "little")
        if self._kept is None:
            self._kept = numbers.copy()
        if self._joint is None:
            numbers = self._kept
        else:
            numbers[[self._joint, njoint + self._joint]] = self._kept[[self._joint, njoint + self._joint]]
        return [(0.0, sealed(frame[:_NUMBERS] + numbers.tobytes()))]


class Voltage:
    """The battery reports another voltage."""

    def __init__(self, volt: float) -> None:
        self._volt = np.array([volt], "<f8").tobytes()

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        if not is_state(frame):
            return None
        return [(0.0, sealed(frame[: _NUMBERS - 8] + self._volt + frame[_NUMBERS:-_CRC]))]


class ClockBack:
    """The robot's clock stands a second earlier than it did."""

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        if not is_state(frame):
            return None
        (time_s,) = np.frombuffer(frame, "<f8", 1, _TIME)
        back = np.array([time_s - 1.0], "<f8").tobytes()
        return [(0.0, sealed(frame[:_TIME] + back + frame[_HEAD:-_CRC]))]


class FlippedNumbers:
    """One to four bits of a report's numbers flipped, checksum right: memory that fails on the robot's own side."""

    def __init__(self, random: np.random.Generator, share: float) -> None:
        self._random, self._share = random, share

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        if not is_state(frame) or self._random.random() >= self._share:
            return None
        body = _flipped(frame[_NUMBERS:-_CRC], self._random)
        return [(0.0, sealed(frame[:_NUMBERS] + body))]


class Commander:
    """Somebody else on the same connection: after every command of ours one of theirs, numbered ahead of it."""

    def __init__(self, pose: FloatArray, kp: FloatArray, kd: FloatArray) -> None:
        zero = np.zeros_like(pose)
        self._rows = np.stack([pose, zero, kp, kd, zero])
        self._lead = 0

    def __call__(self, frame: bytes, is_up: bool, now: float) -> Sent | None:
        if is_up or frame[_KIND] != Kind.COMMAND:
            return None
        sequence = int.from_bytes(frame[8:12], "little")
        self._lead += 1
        theirs = wire.encode_rows(sequence + self._lead, now, self._rows)
        return [(0.0, frame), (0.0, theirs)]


def sealed(body: bytes) -> bytes:
    """A frame's bytes with the checksum that fits."""
    return body + zlib.crc32(body).to_bytes(_CRC, "little")


def quaternion_about(axis: int, degrees: float) -> FloatArray:
    """w x y z of a rotation about x, y or z."""
    half = math.radians(degrees) / 2.0
    out = np.zeros(4)
    out[0], out[1 + axis] = math.cos(half), math.sin(half)
    return out


def rotated(quat: FloatArray, by: FloatArray) -> FloatArray:
    """The product quat * by: an IMU that is turned in its mount."""
    w, v = quat[0], quat[1:]
    return np.concatenate([[w * by[0] - v @ by[1:]], w * by[1:] + by[0] * v + np.cross(v, by[1:])])


def _numbers(frame: bytes) -> FloatArray:
    return np.frombuffer(frame[_NUMBERS:-_CRC], "<f8").copy()


def _flipped(data: bytes, random: np.random.Generator) -> bytes:
    bits = bytearray(data)
    for _ in range(int(random.integers(1, 5))):
        bits[int(random.integers(len(bits)))] ^= 1 << int(random.integers(8))
    return bytes(bits)
