"""Unit and frame of every signal that an ObservationBuilder computes itself: one truth for robot and simulator."""

from __future__ import annotations

from typing import NamedTuple


class SignalFacts(NamedTuple):
    """Unit, and the frame that vectors are in ("joint": along each joint's own axis)."""

    unit: str
    frame: str


FACTS: dict[str, SignalFacts] = {
    "joint_pos": SignalFacts("rad", "joint"),
    "joint_angle": SignalFacts("1", "joint"),
    "joint_vel": SignalFacts("rad/s", "joint"),
    "gyro": SignalFacts("rad/s", "imu"),
    "gravity": SignalFacts("1", "imu"),
    "command": SignalFacts("as the goal says", "base"),
    "action": SignalFacts("1", "joint"),
    "tool_error": SignalFacts("m, rad", "base"),
    "clock": SignalFacts("1", "none"),
}
UNKNOWN = SignalFacts("as its task says", "as its task says")  # of a signal that comes with the reading


def unit_of(signal: str) -> str:
    """Unit of a signal that the builder computes."""
    return FACTS[signal].unit
