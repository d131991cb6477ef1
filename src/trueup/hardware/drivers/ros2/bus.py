"""The DDS side: a participant, readers and writers with the QoS of ROS 2, and who else is there.

QoS as `rmw` has it: the default profile is reliable, volatile, keep the last 10; sensor data is best effort, volatile,
keep the last 5. A best-effort reader takes from both kinds of writers, a reliable writer serves both kinds of readers:
so everything here reads as sensor data and writes with the default profile. How many messages a reader keeps is its own
affair: here more, so that every state is counted. Data is plain CDR, as ROS writes it.
"""

from __future__ import annotations

from typing import Any

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.ros2.options import topic_on_wire

try:
    from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
    from cyclonedds.core import DDSException, InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
    from cyclonedds.domain import Domain, DomainParticipant
    from cyclonedds.internal import InvalidSample
    from cyclonedds.pub import DataWriter
    from cyclonedds.sub import DataReader
    from cyclonedds.topic import Topic
except ImportError as error:
    raise TrueupError(f"ROS 2 topics need cyclonedds: pip install 'trueup[ros]' ({error})") from None

_MS = 1_000_000  # nanoseconds
KEPT = 64
_BLOCKING_MS = 5  # how long a full queue may hold up a write
_PLAIN = Policy.DataRepresentation(use_cdrv0_representation=True, use_xcdrv2_representation=False)
SENSOR_DATA = Qos(Policy.Reliability.BestEffort, Policy.Durability.Volatile, Policy.History.KeepLast(KEPT), _PLAIN)
DEFAULT = Qos(
    Policy.Reliability.Reliable(max_blocking_time=_BLOCKING_MS * _MS),
    Policy.Durability.Volatile,
    Policy.History.KeepLast(10),
    _PLAIN,
)
# DDS domains that this process has set up: a domain has one set-up in a process, for as long as that lives
_DOMAINS: dict[int, tuple[str, Domain]] = {}


class Inbox:
    """Messages of one topic: `take` what has come, `wait` for the next."""

    def __init__(self, participant: DomainParticipant, topic: Topic[Any], qos: Qos) -> None:
        self.topic = topic.name
        self._reader = DataReader(participant, topic, qos=qos)
        self._waiting = WaitSet(participant)
        self._waiting.attach(ReadCondition(self._reader, ViewState.Any | InstanceState.Any | SampleState.Any))

    def take(self) -> list[Any]:
        """Every message that has come since the last call, oldest first; one that cannot be decoded is refused."""
        try:
            found = self._reader.take(N=KEPT)
        except Exception as error:  # decoding of a stranger's bytes: anything may come
            raise TrueupError(f"a message on {self.topic} cannot be read: {error}") from error
        return [message for message in found if not isinstance(message, InvalidSample)]

    def wait(self, seconds: float) -> bool:
        """Wait for a message; False when none came."""
        return self._waiting.wait(max(0, int(seconds * 1e9))) > 0

    @property
    def senders(self) -> int:
        """How many writers this inbox hears."""
        return len(self._reader.get_matched_publications())


class Outbox:
    """Writes messages of one topic."""

    def __init__(self, participant: DomainParticipant, topic: Topic[Any]) -> None:
        self.topic = topic.name
        self._writer = DataWriter(participant, topic, qos=DEFAULT)

    def send(self, message: Any) -> None:
        """Write a message."""
        try:
            self._writer.write(message)
        except DDSException as error:
            raise TrueupError(f"a message on {self.topic} cannot be sent: {error}") from None

    @property
    def listeners(self) -> int:
        """How many readers hear this outbox."""
        return len(self._writer.get_matched_subscriptions())


class Bus:
    """One participant of a DDS domain."""

    def __init__(self, interface: str, domain: int) -> None:
        self.place = f"domain {domain}" + (f" on {interface}" if interface else "")
        try:
            _set_up(interface, domain)
            self._participant = DomainParticipant(domain)
            self._publications = BuiltinDataReader(self._participant, BuiltinTopicDcpsPublication)
        except DDSException as error:
            hint = f"is there an interface {interface!r}? `ip link` lists them" if interface else "is the network up?"
            raise TrueupError(f"cannot join DDS {self.place}: {error}; {hint}") from None

    def inbox(self, ros_topic: str, kind: type[Any], *, from_others_only: bool = False) -> Inbox:
        """A reader of a ROS topic; `from_others_only` leaves out what this participant itself writes."""
        qos = SENSOR_DATA
        if from_others_only:
            qos = Qos(Policy.IgnoreLocal.Participant, base=SENSOR_DATA)
        return Inbox(self._participant, Topic(self._participant, topic_on_wire(ros_topic), kind), qos)

    def outbox(self, ros_topic: str, kind: type[Any]) -> Outbox:
        """A writer of a ROS topic."""
        return Outbox(self._participant, Topic(self._participant, topic_on_wire(ros_topic), kind))

    def topics(self) -> dict[str, str]:
        """Topics that others write in this domain, with their types: for messages to the user."""
        own = self._participant.guid
        found = (sample for sample in self._publications.read(N=200) if sample.sample_info.valid_data)
        return {sample.topic_name: sample.type_name for sample in found if sample.participant_key != own}


def _set_up(interface: str, domain: int) -> None:
    """Choose the network interface of a domain, once in a process."""
    known = _DOMAINS.get(domain)
    if known is None:
        if interface:
            _DOMAINS[domain] = interface, Domain(domain, _config(interface))
        return
    if interface and known[0] != interface:
        text = f"DDS domain {domain} is on {known[0]} in this process and cannot be on {interface} too"
        raise TrueupError(f"{text}; choose another domain")


def _config(interface: str) -> str:
    """CycloneDDS settings: this interface alone; loopback has no multicast, so its ports are asked one by one."""
    if interface != "lo":
        return _xml(f'<NetworkInterface name="{interface}"/>', "")
    peers = "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>60</MaxAutoParticipantIndex>"
    peers += '<Peers><Peer Address="127.0.0.1"/></Peers>'
    return _xml('<NetworkInterface name="lo" multicast="false"/>', f"<Discovery>{peers}</Discovery>")


def _xml(interfaces: str, more: str) -> str:
    general = f"<General><Interfaces>{interfaces}</Interfaces></General>"
    return f"<CycloneDDS><Domain>{general}{more}</Domain></CycloneDDS>"
