"""ROS 2 on DDS: topics by their ROS names, with the QoS of ROS 2.

QoS as `rmw` has it: the default profile is reliable, volatile, keep the last 10; sensor data is best effort, volatile,
keep the last 5. A best-effort reader matches both kinds of writers, a reliable writer matches both kinds of readers:
so everything here reads as sensor data and writes with the default profile. How many messages a reader keeps is its own
choice: here more, so that every state is counted. Data is plain CDR, as ROS writes it.
"""

from __future__ import annotations

from typing import Any

from trueup.hardware.drivers.dds import DdsBus, Inbox, Outbox
from trueup.hardware.drivers.ros2.options import topic_on_wire

_MS = 1_000_000  # nanoseconds
_KEPT = 64
_BLOCKING_MS = 5  # longest time that a full queue may block a write


class RosBus:
    """A DDS participant that reads and writes ROS topics."""

    def __init__(self, interface: str, domain: int) -> None:
        self._bus = DdsBus(interface, domain, "ros")
        self.place, self.topics, self.close = self._bus.place, self._bus.topics, self._bus.close

    def inbox(self, ros_topic: str, kind: type[Any], *, others_only: bool = False) -> Inbox:
        """A reader of a ROS topic; `others_only` leaves out what this participant itself writes."""
        from cyclonedds.qos import Policy

        qos = (Policy.Reliability.BestEffort, Policy.Durability.Volatile, _plain())
        return self._bus.inbox(topic_on_wire(ros_topic), kind, qos=qos, depth=_KEPT, others_only=others_only)

    def outbox(self, ros_topic: str, kind: type[Any]) -> Outbox:
        """A writer of a ROS topic."""
        from cyclonedds.qos import Policy

        reliable = Policy.Reliability.Reliable(max_blocking_time=_BLOCKING_MS * _MS)
        qos = (reliable, Policy.Durability.Volatile, Policy.History.KeepLast(10), _plain())
        return self._bus.outbox(topic_on_wire(ros_topic), kind, qos)


def _plain() -> Any:
    """Plain CDR."""
    from cyclonedds.qos import Policy

    return Policy.DataRepresentation(use_cdrv0_representation=True, use_xcdrv2_representation=False)
