"""DDS: participants, readers and writers of CycloneDDS, for Unitree's robots and for ROS 2.

A DDS domain has one configuration per process: its first user names the network interface, all later ones must name the
same, and it is released when its last user closes. So drivers and twins of both kinds share a domain.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from dataclasses import dataclass
from typing import Any

from trueup.core.errors import TrueupError

_lock = threading.Lock()
_domains: dict[int, _Joined] = {}
_LARGEST_DOMAIN = 232  # whose ports are below 65536


@dataclass
class _Joined:
    """A domain that is set up; `domain` None: by CycloneDDS itself, from CYCLONEDDS_URI and its defaults."""

    interface: str
    domain: Any
    users: int = 0


class Inbox:
    """Received messages of one topic. Safe to use while other threads write."""

    def __init__(
        self, participant: Any, topic: str, kind: type[Any], qos: tuple[Any, ...], *, depth: int, others_only: bool
    ) -> None:
        from cyclonedds.core import InstanceState, ReadCondition, SampleState, ViewState, WaitSet
        from cyclonedds.qos import Policy, Qos
        from cyclonedds.sub import DataReader
        from cyclonedds.topic import Topic

        policies: list[Any] = [Policy.History.KeepLast(depth), *qos]
        if others_only:
            policies.append(Policy.IgnoreLocal.Participant)
        self.topic, self._depth = topic, depth
        self._reader: Any = DataReader(participant, Topic(participant, topic, kind), Qos(*policies))
        self._waiting = WaitSet(participant)
        self.any_sample = ReadCondition(self._reader, SampleState.Any | ViewState.Any | InstanceState.Any)
        self._waiting.attach(self.any_sample)

    def take(self) -> list[Any]:
        """Messages that came since the last call, oldest first, at most as many as the inbox keeps."""
        try:
            return [sample for sample in self._reader.take(self._depth) if sample.sample_info.valid_data]
        except Exception as error:  # strings in received messages may be any bytes
            raise TrueupError(f"{self.topic} cannot be read: {error}") from None

    def wait(self, seconds: float) -> bool:
        """Wait for a message; False when none came."""
        from cyclonedds.core import DDSException

        try:
            return bool(self._waiting.wait(max(0, int(seconds * 1e9))) > 0)
        except DDSException as error:
            raise TrueupError(f"{self.topic} cannot be read: {error}") from None

    @property
    def senders(self) -> int:
        """Number of matched writers."""
        return len(self._reader.get_matched_publications())

    def sender(self, sample: Any) -> str:
        """Source of a sample: the id of its DDS participant, or of the writer when the participant is gone."""
        handle = sample.sample_info.publication_handle
        with contextlib.suppress(Exception):  # the writer may be gone: the handle still tells writers apart
            return f"DDS participant {self._reader.get_matched_publication_data(handle).participant_key}"
        return f"DDS writer {handle:x}"


class Outbox:
    """Writes messages of one topic."""

    def __init__(self, participant: Any, topic: str, kind: type[Any], qos: tuple[Any, ...]) -> None:
        from cyclonedds.pub import DataWriter
        from cyclonedds.qos import Qos
        from cyclonedds.topic import Topic

        self.topic, self._kind = topic, kind
        self._writer: Any = DataWriter(participant, Topic(participant, topic, kind), qos=Qos(*qos) if qos else None)

    def send(self, message: Any) -> None:
        """Write a message; bytes are taken as CDR."""
        from cyclonedds.core import DDSException

        try:
            self._writer.write(self._kind(message) if isinstance(message, bytes) else message)
        except DDSException as error:
            raise TrueupError(f"{self.topic} cannot be written: {error}") from None

    @property
    def listeners(self) -> int:
        """Number of matched readers."""
        return len(self._writer.get_matched_subscriptions())


class DdsBus:
    """One participant of a domain; `extra` is what to install where cyclonedds is missing.

    interface  network interface; "": the one that CycloneDDS chooses, unless the domain is set up already
    """

    def __init__(self, interface: str, domain: int, extra: str) -> None:
        self.place = f"{interface}, domain {domain}" if interface else f"domain {domain}"
        self._domain = domain
        _join(interface, domain, extra)
        try:
            from cyclonedds.domain import DomainParticipant

            self._participant: Any = DomainParticipant(domain)
        except Exception as error:
            _leave(domain)
            raise TrueupError(f"cannot join DDS on {self.place}: {error}; is the network up?") from None

    def inbox(
        self, topic: str, kind: type[Any], *, qos: tuple[Any, ...] = (), depth: int = 32, others_only: bool = False
    ) -> Inbox:
        """A reader, best effort unless `qos` says more; `others_only` leaves out what this bus writes itself."""
        return Inbox(self._participant, topic, kind, qos, depth=depth, others_only=others_only)

    def outbox(self, topic: str, kind: type[Any], qos: tuple[Any, ...] = ()) -> Outbox:
        """A writer, reliable unless `qos` says more."""
        return Outbox(self._participant, topic, kind, qos)

    def topics(self) -> dict[str, str]:
        """Topics that others write in this domain, with their types: for messages to the user."""
        from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication

        own, reader = self._participant.guid, BuiltinDataReader(self._participant, BuiltinTopicDcpsPublication)
        found = (sample for sample in reader.read(N=200) if sample.sample_info.valid_data)
        return {sample.topic_name: sample.type_name for sample in found if sample.participant_key != own}

    def wait_any(self, *inboxes: Inbox) -> Any:
        """A cyclonedds WaitSet of several inboxes: `.wait(nanoseconds)`."""
        from cyclonedds.core import WaitSet

        waiting = WaitSet(self._participant)
        for inbox in inboxes:
            waiting.attach(inbox.any_sample)
        return waiting

    def close(self) -> None:
        """Delete the participant with its readers and writers at once. Safe to call twice."""
        if self._participant is not None:
            self._participant.__del__()  # cyclonedds deletes on garbage collection: too late for matched readers
            self._participant = None
            _leave(self._domain)


def require_cyclonedds(extra: str) -> None:
    """Raise a TrueupError if cyclonedds is missing; `extra` names the extra to install."""
    try:
        import cyclonedds.domain  # noqa: F401
    except ImportError as error:
        raise TrueupError(f"DDS needs cyclonedds ({error}): pip install 'trueup[{extra}]'") from None


def _join(interface: str, domain: int, extra: str) -> None:
    """Set a domain up, or use it again."""
    require_cyclonedds(extra)
    from cyclonedds.domain import Domain

    if not 0 <= domain <= _LARGEST_DOMAIN:
        raise TrueupError(f"a DDS domain lies between 0 and {_LARGEST_DOMAIN}, found {domain}", place="domain")
    names = [name for _, name in socket.if_nameindex()]
    if interface and (interface not in names or not re.fullmatch(r"[\w.@:-]+", interface)):
        raise TrueupError(f"no network interface {interface!r} here; there are {', '.join(names)}", place=interface)
    with _lock:
        known = _domains.get(domain)
        if known is None:
            made = Domain(domain, _config(interface)) if interface else None
            known = _domains[domain] = _Joined(interface, made)
        if interface and known.interface != interface:
            on = known.interface or "the interface that CycloneDDS chose"
            raise TrueupError(f"DDS domain {domain} is on {on} in this process; {interface} needs another domain")
        known.users += 1


def _leave(domain: int) -> None:
    with _lock:
        known = _domains[domain]
        known.users -= 1
        if known.users == 0:
            del _domains[domain]
            if known.domain is not None:
                known.domain.__del__()


def _config(interface: str) -> str:
    """Settings of CycloneDDS. On loopback, where multicast may be off, processes also find each other port by port."""
    peers = ""
    if interface == "lo":
        peers = "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>60</MaxAutoParticipantIndex>"
        peers = f'<Discovery>{peers}<Peers><Peer Address="127.0.0.1"/></Peers></Discovery>'
    card = f'<NetworkInterface name="{interface}" priority="default" multicast="default"/>'
    general = f"<General><Interfaces>{card}</Interfaces></General>"
    return f'<CycloneDDS><Domain Id="any">{general}{peers}</Domain></CycloneDDS>'
