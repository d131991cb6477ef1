"""Streams: what each topic of a recording says, on its own clocks, before anything is resampled.

The validator looks here for duplicate or backward stamps and for clocks that drift apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.data.log import FloatArray
from trueup.data.mcap.cdr import PARSERS, Cdr, Layout
from trueup.data.mcap.records import Channel, Item, Limits, MalformedError, Message, Metadata, Schema

_BATCH, _BATCH_BYTES = 4096, 4 << 20
_LAYOUTS = 16  # different layouts in one batch of a topic
_JOINT_SETS = 32  # different sets of joints on one topic


def seconds(time_ns: NDArray[np.uint64] | NDArray[np.int64]) -> FloatArray:
    """Nanoseconds as the nearest float64 seconds, for clocks that start at 0 and for those of today."""
    whole, rest = np.divmod(time_ns, time_ns.dtype.type(1_000_000_000))
    large: FloatArray = whole.astype(np.float64) + rest.astype(np.float64) / 1e9
    return np.where(whole < 9_000_000, time_ns.astype(np.float64) / 1e9, large)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One topic, in the order of the file.

    names        joints, for a JointState
    time_header  (n,) s, the sender's stamps; NaN where the message has none
    time_log     (n,) s, the recorder's stamps
    sequence     (n,) as stored
    columns      field of the message -> (n, width); quaternions x y z w as in the message
    """

    topic: str
    message_type: str
    names: tuple[str, ...]
    time_header: FloatArray
    time_log: FloatArray
    sequence: NDArray[np.int64]
    columns: dict[str, FloatArray]

    def __len__(self) -> int:
        return len(self.time_log)

    @property
    def time(self) -> FloatArray:
        """The sender's stamps if it stamped its messages, else the recorder's."""
        is_stamped = bool(np.all(np.isfinite(self.time_header)) and np.any(self.time_header != 0.0))
        return self.time_header if is_stamped else self.time_log


class _Part(NamedTuple):
    """Messages of one layout: `order` is their place among all of the topic."""

    names: tuple[str, ...]
    order: NDArray[np.int64]
    stamp_ns: NDArray[np.int64] | None
    log_ns: NDArray[np.uint64]
    sequence: NDArray[np.int64]
    columns: dict[str, FloatArray]


@dataclass
class Topic:
    """Gathers the messages of one topic and decodes them batch by batch."""

    name: str
    message_type: str
    path: str | Path
    limits: Limits
    _pending: list[Message] = field(default_factory=list)
    _parts: dict[tuple[str, ...], list[_Part]] = field(default_factory=dict)
    _count: int = 0
    _pending_bytes: int = 0

    def add(self, message: Message) -> None:
        """Take one message."""
        self._pending.append(message)
        self._pending_bytes += len(message.data)
        if len(self._pending) >= _BATCH or self._pending_bytes >= _BATCH_BYTES:
            self._decode()

    def _decode(self) -> None:
        batch, self._pending, self._pending_bytes = self._pending, [], 0
        by_size: dict[int, list[int]] = {}
        for k, message in enumerate(batch):
            by_size.setdefault(len(message.data), []).append(k)
        layouts = 0
        for rows in by_size.values():
            for part in self._parts_of(batch, np.array(rows)):
                layouts += 1
                if layouts > _LAYOUTS:
                    raise self._error(batch[0], "its messages hardly ever have the same layout twice")
                self._parts.setdefault(tuple(sorted(part.names)), []).append(part)
        if len(self._parts) > _JOINT_SETS:
            raise self._error(batch[0], f"more than {_JOINT_SETS} different sets of joints")
        self._count += len(batch)

    def _parts_of(self, batch: list[Message], rows: NDArray[np.int64]) -> Iterator[_Part]:
        """Split messages of one size by layout; the first of those left gives the layout of the next part."""
        size = len(batch[rows[0]].data)
        block = np.frombuffer(b"".join(batch[k].data for k in rows), np.uint8).reshape(len(rows), size)
        while len(rows):
            first = batch[rows[0]]
            try:
                layout = PARSERS[self.message_type](Cdr(first.data, self.limits))
            except MalformedError as flaw:
                raise self._error(first, str(flaw)) from None
            fixed = ~layout.varies(size)
            is_same = (block[:, fixed] == block[0, fixed]).all(axis=1)
            yield self._part([batch[k] for k in rows[is_same]], rows[is_same], block[is_same], layout)
            rows, block = rows[~is_same], block[~is_same]

    def _part(
        self, messages: list[Message], rows: NDArray[np.int64], block: NDArray[np.uint8], layout: Layout
    ) -> _Part:
        def numbers(offset: int, count: int, kind: str) -> NDArray[np.generic]:
            piece = np.ascontiguousarray(block[:, offset : offset + count * int(kind[1])])
            return piece.view(np.dtype(layout.endian + kind))

        stamp_ns = None
        if layout.stamp is not None:
            sec = numbers(layout.stamp, 1, "i4")[:, 0].astype(np.int64)
            stamp_ns = sec * 1_000_000_000 + numbers(layout.stamp + 4, 1, "u4")[:, 0].astype(np.int64)
        return _Part(
            names=layout.names,
            order=rows + self._count,
            stamp_ns=stamp_ns,
            log_ns=np.array([message.log_time for message in messages], np.uint64),
            sequence=np.array([message.sequence for message in messages], np.int64),
            columns={
                name: numbers(*place).astype(np.float64)
                for name, place in layout.places.items()
                if place[2] != "u1" and place[1]
            },
        )

    def _error(self, message: Message, text: str) -> TrueupError:
        return TrueupError(f"topic {self.name!r}: {text}", file=self.path, place=f"byte {message.place}")

    def streams(self, cells_left: int) -> tuple[list[Stream], int]:
        """The topic as streams, one per set of joints, the longest first; and the cells still allowed."""
        if self._pending:
            self._decode()
        streams: list[Stream] = []
        for parts in sorted(self._parts.values(), key=lambda parts: -sum(len(part.order) for part in parts)):
            wide = {column: values.shape[1] for part in parts for column, values in part.columns.items()}
            cells_left -= sum(len(part.order) for part in parts) * sum(wide.values())
            if cells_left < 0:
                raise TrueupError(
                    f"topic {self.name!r} would take more memory than the file warrants",
                    file=self.path,
                    place=self.name,
                )
            label = self.name if not streams else f"{self.name}#{len(streams) + 1}"
            streams.append(self._joined(label, parts, wide))
        return streams, cells_left

    def _joined(self, label: str, parts: list[_Part], wide: dict[str, int]) -> Stream:
        names = parts[0].names
        if len(set(names)) != len(names) and any(part.names != names for part in parts):
            raise TrueupError(
                f"topic {self.name!r} repeats a joint name in changing order", file=self.path, place=self.name
            )
        order = np.concatenate([part.order for part in parts])
        sort = np.argsort(order, kind="stable")
        columns = {column: self._column(column, width, parts)[sort] for column, width in wide.items()}
        stamps = [
            np.full(len(part.order), np.nan) if part.stamp_ns is None else seconds(part.stamp_ns)
            for part in parts
        ]
        return Stream(
            topic=label,
            message_type=self.message_type,
            names=names,
            time_header=np.concatenate(stamps)[sort],
            time_log=seconds(np.concatenate([part.log_ns for part in parts])[sort]),
            sequence=np.concatenate([part.sequence for part in parts])[sort],
            columns=columns,
        )

    def _column(self, column: str, width: int, parts: list[_Part]) -> FloatArray:
        """One field of all parts, joints in the order of the first; NaN where a message leaves it out."""
        names = parts[0].names
        blocks: list[FloatArray] = []
        for part in parts:
            values = part.columns.get(column)
            if values is None:
                values = np.full((len(part.order), width), np.nan)
            elif values.shape[1] != width:
                raise TrueupError(
                    f"topic {self.name!r} changes the length of its arrays", file=self.path, place=self.name
                )
            elif part.names != names:
                values = values[:, [part.names.index(name) for name in names]]
            blocks.append(values)
        return np.concatenate(blocks)


class Collector:
    """Turns what `mcap_records.scan` yields (or a database holds) into streams."""

    def __init__(
        self, path: str | Path, limits: Limits, *, cells: int, topics: frozenset[str] | None = None
    ) -> None:
        self.path, self._limits, self._cells, self._wanted = path, limits, cells, topics
        self.metadata: dict[str, dict[str, str]] = {}
        self.skipped: dict[str, str] = {}
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._topics: dict[tuple[str, str], Topic] = {}
        self._by_channel: dict[int, Topic | None] = {}

    def add(self, item: Item) -> None:
        """Take one item of the file."""
        if isinstance(item, Message):
            try:
                topic = self._by_channel[item.channel_id]
            except KeyError:
                raise TrueupError(
                    f"a message of channel {item.channel_id}, which is not declared",
                    file=self.path,
                    place=f"byte {item.place}",
                ) from None
            if topic is not None:
                topic.add(item)
        elif isinstance(item, Schema):
            self._check(self._schemas.setdefault(item.id, item) == item, item.id)
        elif isinstance(item, Channel):
            self._check(self._channels.setdefault(item.id, item) == item, item.id)
            schema = self._schemas.get(item.schema_id)
            self.channel(item.id, item.topic, schema.name if schema else "", item.encoding)
        elif isinstance(item, Metadata):
            self.metadata[item.name] = item.values  # the last one counts: a log may say more at its end

    def _check(self, is_same: bool, number: int) -> None:
        if not is_same:
            raise TrueupError(
                f"number {number} is declared twice, for different things",
                file=self.path,
                place=f"definition {number}",
            )

    def channel(self, channel_id: int, topic: str, message_type: str, encoding: str) -> None:
        """Declare a channel; topics that nothing here can decode are remembered in `skipped`."""
        short = message_type.replace("/msg/", "/")
        if encoding != "cdr" or short not in PARSERS:
            self.skipped[topic] = f"{message_type} ({encoding})"
            self._by_channel[channel_id] = None
        elif self._wanted is not None and topic not in self._wanted:
            self._by_channel[channel_id] = None
        else:
            key = (topic, short)
            self._by_channel[channel_id] = self._topics.setdefault(
                key, Topic(topic, short, self.path, self._limits)
            )

    def forget_channels(self) -> None:
        """The next file of the recording numbers its channels anew; topics go on."""
        self._schemas.clear()
        self._channels.clear()
        self._by_channel.clear()

    def streams(self) -> dict[str, Stream]:
        """Every stream by topic."""
        out: dict[str, Stream] = {}
        cells = self._cells
        for topic in self._topics.values():
            found, cells = topic.streams(cells)
            for stream in found:
                label = stream.topic if stream.topic not in out else f"{stream.topic} ({stream.message_type})"
                out[label] = stream
        return out
