"""ROS 2 messages of any sender: where in the bytes of a message (CDR) its numbers lie.

A layout is found once and holds for every message that has the same names and lengths; `streams` uses that to
decode thousands at a time. The types understood are those in `PARSERS`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.data.mcap.records import Limits, MalformedError


class MessageLayout(NamedTuple):
    """Where the numbers of a message lie: column -> (offset, count, numpy type); the rest never varies."""

    names: tuple[str, ...]
    stamp: int | None
    endian: str
    places: dict[str, tuple[int, int, str]]

    def varies(self, size: int) -> NDArray[np.bool_]:
        """(size,) which bytes of a message are numbers."""
        mask = np.zeros(size, bool)
        if self.stamp is not None:
            mask[self.stamp : self.stamp + 8] = True
        for offset, count, kind in self.places.values():
            mask[offset : offset + count * int(kind[1])] = True
        return mask


class Cdr:
    """A CDR message of any sender, walked field by field; reading past its end is refused."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        endian = {b"\x00\x00": ">", b"\x00\x01": "<"}.get(data[:2])
        if endian is None or len(data) < 4:
            raise MalformedError(f"a message that is not plain CDR (begins with {data[:4].hex(' ')})")
        self.data, self.pos, self.endian, self._limits = data, 4, endian, limits
        self.places: dict[str, tuple[int, int, str]] = {}

    def skip(self, size: int, align: int = 1) -> int:
        """Step over `size` bytes behind the next multiple of `align`; returns where they begin."""
        start = self.pos + -(self.pos - 4) % align
        if size > len(self.data) - start:
            left = max(len(self.data) - start, 0)
            raise MalformedError(f"{size} bytes expected at {start}, {left} are left")
        self.pos = start + size
        return start

    def _u32(self) -> int:
        return int(struct.unpack_from(self.endian + "I", self.data, self.skip(4, 4))[0])

    def string(self) -> str:
        size = self._u32()
        if size > self._limits.name_bytes:
            raise MalformedError(f"a name of {size} bytes, at most {self._limits.name_bytes} are read")
        start = self.skip(size)
        try:
            return self.data[start : start + size].decode().rstrip("\x00")
        except UnicodeDecodeError:
            raise MalformedError("a name that is not UTF-8") from None

    def count(self) -> int:
        count = self._u32()
        if count > self._limits.joints:
            raise MalformedError(f"an array of {count} elements, at most {self._limits.joints} are read")
        return count

    def stamp(self) -> int:
        start = self.skip(8)
        self.string()
        return start

    def numbers(self, column: str, count: int, kind: str = "f8") -> None:
        if count:
            size = int(kind[1])
            self.places[column] = (self.skip(size * count, size), count, kind)

    def layout(self, stamp: int | None, names: tuple[str, ...] = ()) -> MessageLayout:
        return MessageLayout(names, stamp, self.endian, self.places)


def _joint_state(cdr: Cdr) -> MessageLayout:
    stamp = cdr.stamp()
    names = tuple([cdr.string() for _ in range(cdr.count())])
    for column in ("position", "velocity", "effort"):
        width = cdr.count()
        names = names or tuple(f"joint_{k}" for k in range(width))  # some senders leave the names out
        if width not in (0, len(names)):
            raise MalformedError(f"a JointState with {len(names)} names and {width} values of {column}")
        cdr.numbers(column, width)
    return cdr.layout(stamp, names)


def _imu(cdr: Cdr) -> MessageLayout:
    stamp = cdr.stamp()
    for column, width in (("orientation", 4), ("angular_velocity", 3), ("linear_acceleration", 3)):
        cdr.numbers(column, width)
        cdr.numbers(f"{column}_covariance", 9)
    return cdr.layout(stamp)


def _odometry(cdr: Cdr) -> MessageLayout:
    stamp = cdr.stamp()
    cdr.string()
    cdr.numbers("position", 3)
    cdr.numbers("orientation", 4)
    cdr.numbers("pose_covariance", 36)
    cdr.numbers("linear", 3)
    cdr.numbers("angular", 3)
    cdr.numbers("twist_covariance", 36)
    return cdr.layout(stamp)


def _float_array(cdr: Cdr) -> MessageLayout:
    for _ in range(cdr.count()):
        cdr.string()
        cdr.skip(8, 4)
    cdr.skip(4, 4)
    cdr.numbers("data", cdr.count())
    return cdr.layout(None)


def _battery(cdr: Cdr) -> MessageLayout:
    stamp = cdr.stamp()
    cdr.numbers("voltage", 1, "f4")
    cdr.places["rest"] = (cdr.pos, len(cdr.data) - cdr.pos, "u1")
    return cdr.layout(stamp)


def find_layout(message_type: str, data: bytes, limits: Limits) -> MessageLayout:
    """Where the numbers of this message lie; MalformedError says why it cannot be read."""
    return PARSERS[message_type](Cdr(data, limits))


PARSERS: dict[str, Callable[[Cdr], MessageLayout]] = {
    "sensor_msgs/JointState": _joint_state,
    "sensor_msgs/Imu": _imu,
    "nav_msgs/Odometry": _odometry,
    "std_msgs/Float64MultiArray": _float_array,
    "sensor_msgs/BatteryState": _battery,
}
