"""Layouts of ROS 2 messages (CDR) of any sender: byte offsets of their numbers.

A layout is found once and holds for every message that has the same names and lengths; `streams` uses that to
decode thousands at a time. The types understood are those in `PARSERS`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.data.mcap.records import MOST_JOINTS, NAME_BYTES, MalformedError


class MessageLayout(NamedTuple):
    """Joint names of a message, and its numbers as a NumPy type (`sec` and `nanosec` of its stamp among them)."""

    names: tuple[str, ...]
    numbers: np.dtype[np.void]

    @property
    def is_fixed(self) -> NDArray[np.bool_]:
        """(size,) which bytes of a message are no numbers."""
        mask = np.ones(self.numbers.itemsize, bool)
        for kind, offset, *_ in (self.numbers.fields or {}).values():
            mask[offset : offset + kind.itemsize] = False
        return mask


class Cdr:
    """A CDR message of any sender, walked field by field; reading past its end is refused."""

    def __init__(self, data: bytes) -> None:
        endian = {b"\x00\x00": ">", b"\x00\x01": "<"}.get(data[:2])
        if endian is None or len(data) < 4:
            raise MalformedError(f"a message that is not plain CDR (begins with {data[:4].hex(' ')})")
        self.data, self.pos, self.endian = data, 4, endian
        self.names: tuple[str, ...] = ()
        self.fields: list[tuple[str, tuple[str, tuple[int, ...]], int]] = []  # name, type, offset

    def skip(self, size: int, align: int = 1) -> int:
        """Step over `size` bytes behind the next multiple of `align`; returns where they begin."""
        start = self.pos + -(self.pos - 4) % align
        if size > len(self.data) - start:
            left = max(len(self.data) - start, 0)
            raise MalformedError(f"{size} bytes expected at {start}, {left} are left")
        self.pos = start + size
        return start

    def count(self, most: int = MOST_JOINTS) -> int:
        count = int(struct.unpack_from(self.endian + "I", self.data, self.skip(4, 4))[0])
        if count > most:
            raise MalformedError(f"a name or an array of {count} elements, at most {most} are read")
        return count

    def string(self) -> str:
        size = self.count(NAME_BYTES)
        start = self.skip(size)
        try:
            return self.data[start : start + size].decode().rstrip("\x00")
        except UnicodeDecodeError:
            raise MalformedError("a name that is not UTF-8") from None

    def numbers(self, column: str, count: int, kind: str = "f8") -> None:
        size = int(kind[1])
        if count:
            self.fields.append((column, (self.endian + kind, (count,)), self.skip(size * count, size)))

    def header(self) -> None:
        self.numbers("sec", 1, "i4")
        self.numbers("nanosec", 1, "u4")
        self.string()


def _joint_state(cdr: Cdr) -> None:
    cdr.header()
    names = tuple([cdr.string() for _ in range(cdr.count())])
    for column in ("position", "velocity", "effort"):
        width = cdr.count()
        names = names or tuple(f"joint_{k}" for k in range(width))  # some senders leave the names out
        if width not in (0, len(names)):
            raise MalformedError(f"a JointState with {len(names)} names and {width} values of {column}")
        cdr.numbers(column, width)
    cdr.names = names


def _imu(cdr: Cdr) -> None:
    cdr.header()
    for column, width in (("orientation", 4), ("angular_velocity", 3), ("linear_acceleration", 3)):
        cdr.numbers(column, width)
        cdr.numbers(f"{column}_covariance", 9)


def _odometry(cdr: Cdr) -> None:
    cdr.header()
    cdr.string()
    widths = {"position": 3, "orientation": 4, "pose_covariance": 36, "linear": 3, "angular": 3, "twist_covariance": 36}
    for column, width in widths.items():
        cdr.numbers(column, width)


def _float_array(cdr: Cdr) -> None:
    for _ in range(cdr.count()):
        cdr.string()
        cdr.skip(8, 4)
    cdr.skip(4, 4)
    cdr.numbers("data", cdr.count())


def _battery(cdr: Cdr) -> None:
    cdr.header()
    cdr.numbers("voltage", 1, "f4")
    cdr.numbers("rest", len(cdr.data) - cdr.pos, "u1")  # of varying length, and not used


def find_layout(message_type: str, data: bytes) -> MessageLayout:
    """Offsets of the numbers of this message; MalformedError says why it cannot be read."""
    cdr = Cdr(data)
    PARSERS[message_type](cdr)
    columns, formats, offsets = zip(*cdr.fields, strict=True) if cdr.fields else ((), (), ())
    kind = {"names": columns, "formats": formats, "offsets": offsets, "itemsize": len(data)}
    return MessageLayout(cdr.names, np.dtype(kind))  # type: ignore[call-overload]


PARSERS: dict[str, Callable[[Cdr], None]] = {
    "sensor_msgs/JointState": _joint_state,
    "sensor_msgs/Imu": _imu,
    "nav_msgs/Odometry": _odometry,
    "std_msgs/Float64MultiArray": _float_array,
    "sensor_msgs/BatteryState": _battery,
}
