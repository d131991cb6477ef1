"""Streams: content of each topic of a recording on its own clocks, before resampling.

The validator looks here for duplicate or backward stamps and for clocks that drift apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from mcap.records import Channel, Metadata, Schema
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.mcap.cdr import PARSERS, find_layout
from trueup.data.mcap.records import Item, MalformedError, Messages

_BATCH_BYTES = 4 << 20
_AFTER_LENGTH = 22
# the head of an MCAP message record; its own time of publication is not used
_HEAD = np.dtype(
    [("opcode", "u1"), ("length", "<u8"), ("channel", "<u2"), ("sequence", "<u4"), ("log_time", "<u8"), ("", "<u8")]
)
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


class _Batch(NamedTuple):
    """Messages of one topic: heads of their records, where in `data` their bytes begin, and their place in the file."""

    heads: NDArray[np.void]
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    places: NDArray[np.int64]


class Topic:
    """Decodes the messages of one topic batch by batch."""

    def __init__(self, name: str, message_type: str, path: str | Path) -> None:
        self.name, self.message_type, self._path = name, message_type, path
        # by their joints: messages of one layout, with their places among all of the topic
        self._parts: dict[tuple[str, ...], list[tuple[NDArray[np.int64], Stream]]] = {}
        self._count = 0

    def add(self, batch: _Batch) -> None:
        """Decode messages, those of one layout at once; the first of those left gives the layout of the next part."""
        sizes = batch.heads["length"].astype(np.int64) - _AFTER_LENGTH
        rows, layouts = np.arange(len(sizes)), 0
        while len(rows):
            taken, part = self._part(batch, rows[sizes[rows] == sizes[rows[0]]], int(sizes[rows[0]]))
            self._parts.setdefault(tuple(sorted(part.names)), []).append((taken + self._count, part))
            rows = np.setdiff1d(rows, taken, assume_unique=True)
            layouts += 1
            if layouts > _LAYOUTS or len(self._parts) > _JOINT_SETS:
                raise self._refusal("has messages that hardly ever have the same layout or joints twice")
        self._count += len(sizes)

    def _part(self, batch: _Batch, rows: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], Stream]:
        """The messages of the same layout and size as the first of `rows`: their rows and values."""
        first = batch.data[batch.starts[rows[0]] :][:size]
        try:
            layout = find_layout(self.message_type, first.tobytes())
        except MalformedError as flaw:
            text, place = f"topic {self.name!r}: {flaw}", f"byte {batch.places[rows[0]]}"
            raise TrueupError(text, file=self._path, place=place) from None
        block = sliding_window_view(batch.data, size)[batch.starts[rows]]
        fixed = layout.is_fixed
        is_same = (block[:, fixed] == first[fixed]).all(axis=1)
        rows, heads = rows[is_same], batch.heads[rows[is_same]]
        numbers = block[is_same].view(layout.numbers)[:, 0]
        columns = {name: numbers[name] for name in layout.numbers.names or () if name != "rest"}
        time_header = np.full(len(rows), np.nan)
        if "sec" in columns:
            sec, rest = (columns.pop(name)[:, 0].astype(np.int64) for name in ("sec", "nanosec"))
            time_header = seconds(sec * 1_000_000_000 + rest)
        return rows, Stream(
            topic=self.name,
            message_type=self.message_type,
            names=layout.names,
            time_header=time_header,
            time_log=seconds(heads["log_time"]),
            sequence=heads["sequence"].astype(np.int64),
            columns={name: values.astype(np.float64) for name, values in columns.items()},
        )

    def _refusal(self, text: str) -> TrueupError:
        return TrueupError(f"topic {self.name!r} {text}", file=self._path, place=self.name)

    def streams(self, cells_left: int) -> tuple[list[Stream], int]:
        """The topic as streams, one per set of joints, the longest first; and the cells still allowed."""
        streams: list[Stream] = []
        for group in sorted(self._parts.values(), key=lambda group: -sum(len(part) for _, part in group)):
            order, parts = np.concatenate([order for order, _ in group]), [part for _, part in group]
            wide = {column: values.shape[1] for part in parts for column, values in part.columns.items()}
            cells_left -= len(order) * sum(wide.values())
            if cells_left < 0:
                raise self._refusal("would take more memory than the file warrants")
            label = self.name if not streams else f"{self.name}#{len(streams) + 1}"
            streams.append(self._joined(label, parts, np.argsort(order, kind="stable"), wide))
        return streams, cells_left

    def _joined(self, label: str, parts: list[Stream], sort: NDArray[np.int64], wide: dict[str, int]) -> Stream:
        names = parts[0].names
        if len(set(names)) != len(names) and any(part.names != names for part in parts):
            raise self._refusal("repeats a joint name in changing order")
        return replace(
            parts[0],
            topic=label,
            time_header=np.concatenate([part.time_header for part in parts])[sort],
            time_log=np.concatenate([part.time_log for part in parts])[sort],
            sequence=np.concatenate([part.sequence for part in parts])[sort],
            columns={column: self._column(column, width, parts)[sort] for column, width in wide.items()},
        )

    def _column(self, column: str, width: int, parts: list[Stream]) -> FloatArray:
        """One field of all parts, joints in the order of the first; NaN where a message leaves it out."""
        names = parts[0].names
        blocks: list[FloatArray] = []
        for part in parts:
            values = part.columns.get(column, np.full((len(part), width), np.nan))
            if values.shape[1] != width:
                raise self._refusal("changes the length of its arrays")
            same = part.names == names or column not in part.columns
            blocks.append(values if same else values[:, [part.names.index(name) for name in names]])
        return np.concatenate(blocks)


class StreamCollector:
    """Turns what `scan` yields (or a database holds) into streams of at most `cells` numbers."""

    def __init__(self, path: str | Path, cells: int) -> None:
        self.path, self._cells = path, cells
        self.metadata: dict[str, dict[str, str]] = {}
        self.skipped: dict[str, str] = {}
        self._definitions: dict[tuple[type, int], Schema | Channel] = {}
        self._topics: dict[tuple[str, str], Topic] = {}
        self._by_channel: dict[int, Topic | None] = {}
        self._pending: list[Messages] = []
        self._pending_bytes = 0

    def add(self, item: Item) -> None:
        """Process one item of the file."""
        if isinstance(item, Metadata):
            self.metadata[item.name] = item.metadata  # the last one is used: a log may add metadata at its end
        elif isinstance(item, Messages):
            self._pending.append(item)
            self._pending_bytes += len(item.data)
            if self._pending_bytes >= _BATCH_BYTES:
                self._decode()
        else:
            if self._definitions.setdefault((type(item), item.id), item) != item:
                text = f"number {item.id} is declared twice, for different things"
                raise TrueupError(text, file=self.path, place=f"definition {item.id}")
            if isinstance(item, Channel):
                schema = self._definitions.get((Schema, item.schema_id))
                kind = schema.name if isinstance(schema, Schema) else ""
                self.channel(item.id, item.topic, kind, item.message_encoding)

    def _decode(self) -> None:
        """Pass the collected messages to their topics."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if not pending:
            return
        counts = [len(item.starts) for item in pending]
        begins = np.cumsum([0, *(len(item.data) for item in pending[:-1])])
        starts = np.concatenate([item.starts for item in pending]) + np.repeat(begins, counts)
        data = np.frombuffer(b"".join(item.data for item in pending), np.uint8)
        heads = sliding_window_view(data, _HEAD.itemsize)[starts].view(_HEAD)[:, 0]
        places = np.repeat([item.place for item in pending], counts)
        for channel in np.unique(heads["channel"]).tolist():
            rows = np.flatnonzero(heads["channel"] == channel)
            if channel not in self._by_channel:
                text = f"a message of channel {channel}, which is not declared"
                raise TrueupError(text, file=self.path, place=f"byte {places[rows[0]]}")
            topic = self._by_channel[channel]
            if topic is not None:
                topic.add(_Batch(heads[rows], data, starts[rows] + _HEAD.itemsize, places[rows]))

    def channel(self, channel_id: int, topic: str, message_type: str, encoding: str) -> None:
        """Declare a channel; topics that nothing here can decode are remembered in `skipped`."""
        short = message_type.replace("/msg/", "/")
        if encoding != "cdr" or short not in PARSERS:
            self.skipped[topic] = f"{message_type} ({encoding})"
            self._by_channel[channel_id] = None
        else:
            new = Topic(topic, short, self.path)
            self._by_channel[channel_id] = self._topics.setdefault((topic, short), new)

    def forget_channels(self) -> None:
        """The next file of the recording numbers its channels anew; topics go on."""
        self._decode()
        self._definitions.clear()
        self._by_channel.clear()

    def streams(self) -> dict[str, Stream]:
        """Every stream by topic."""
        self._decode()
        out: dict[str, Stream] = {}
        cells = self._cells
        for topic in self._topics.values():
            found, cells = topic.streams(cells)
            for stream in found:
                label = stream.topic if stream.topic not in out else f"{stream.topic} ({stream.message_type})"
                out[label] = stream
        return out
