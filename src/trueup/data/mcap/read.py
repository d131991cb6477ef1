"""Reads recordings as a Log: our own exactly, foreign ones with their topics on one clock.

Our own files carry a metadata record that names joints and signals, and number their rows, so every row comes
back as it was written, also from a file that a killed recorder left behind: then `meta["recovered"]` says so.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.log import Log, signal_width
from trueup.data.mcap.assemble import assemble
from trueup.data.mcap.bags import collect
from trueup.data.mcap.ros2 import EXTRA_PREFIX, PLACES, QUATERNIONS, STATE_TOPIC
from trueup.data.mcap.streams import Stream
from trueup.data.mcap.write import METADATA_NAME, RECOVERY_NAME, SCHEMA_VERSION

_PLACES = {signal: (topic, column) for topic, (_, fields) in PLACES.items() for column, signal in fields.items()}


class _Table(msgspec.Struct, frozen=True):
    """The metadata record of our files."""

    joint_names: tuple[str, ...]
    signals: tuple[str, ...]
    provenance: dict[str, object]


def read_mcap(path: str | Path) -> Log:
    """Read any recording with joint states (.mcap, .db3 or a rosbag2 folder) as a Log."""
    collector, damage = collect(path)
    streams = collector.streams()
    notes: dict[str, object] = {}
    if damage:
        notes["recovered"] = "; ".join(f"byte {flaw.offset}: {flaw.text}" for flaw in damage)
    table = collector.metadata.get(METADATA_NAME)
    if table is None or Path(path).is_dir():
        if collector.skipped:
            notes["topics_not_read"] = [f"{topic}: {kind}" for topic, kind in sorted(collector.skipped.items())]
        return assemble(streams, path, notes)
    try:
        log = _own(_decoded(table), streams)
    except TrueupError as error:
        place = error.place or f"metadata {METADATA_NAME!r}"
        raise TrueupError(error.message, file=path, place=place) from None
    if RECOVERY_NAME in collector.metadata:
        notes["recovered"] = collector.metadata[RECOVERY_NAME].get("damage", "")
    return replace(log, meta=log.meta | notes)


def _decoded(table: dict[str, str]) -> _Table:
    version = table.get("schema")
    if version != SCHEMA_VERSION:
        raise TrueupError(f"a log of schema {str(version)[:20]!r}, this trueup reads {SCHEMA_VERSION!r}; update trueup")
    try:
        parts = {name: msgspec.json.decode(table[name]) for name in _Table.__struct_fields__}
        decoded = msgspec.convert(parts, _Table)
    except KeyError as error:
        raise TrueupError(f"entry {error} is missing") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise TrueupError(f"an entry is not what it should be: {error}") from None
    for signal in decoded.signals:
        signal_width(signal, decoded.joint_names)
    return decoded


def _own(table: _Table, streams: dict[str, Stream]) -> Log:
    none = {signal: np.zeros((0, signal_width(signal, table.joint_names))) for signal in table.signals}
    clock = streams.get(STATE_TOPIC)
    if clock is None:
        return Log(time=np.zeros(0), joint_names=table.joint_names, signals=none, meta=table.provenance)
    if clock.names != table.joint_names or f"{STATE_TOPIC}#2" in streams:
        raise TrueupError("the joints of the messages are not those of the metadata", place=STATE_TOPIC)
    columns = {signal: _column(signal, values.shape[1], streams, clock) for signal, values in none.items()}
    # the end of a file may have cut a row in two: rows that not every topic has are left out
    rows = clock.sequence
    for sequence, _ in columns.values():
        rows = np.intersect1d(rows, sequence, assume_unique=True)
    return Log(
        time=clock.time_log[np.isin(clock.sequence, rows)],
        joint_names=table.joint_names,
        signals={signal: values[np.isin(sequence, rows)] for signal, (sequence, values) in columns.items()},
        meta=table.provenance,
    )


def _column(signal: str, width: int, streams: dict[str, Stream], clock: Stream) -> tuple[NDArray[np.int64], FloatArray]:
    """Row numbers and values of one signal."""
    topic, column = _PLACES.get(signal, (EXTRA_PREFIX + signal, "data"))
    stream = streams.get(topic, clock if width == 0 else None)
    if stream is None or (width and stream.columns.get(column, np.zeros((0, 0))).shape[1] != width):
        raise TrueupError(f"signal {signal!r} is announced and is not there", place=topic)
    if np.any(np.diff(stream.sequence) <= 0) or np.any(np.diff(clock.sequence) <= 0):
        raise TrueupError("rows are repeated or out of order", place=topic)
    values = stream.columns[column] if width else np.zeros((len(stream), 0))
    return stream.sequence, values[:, [3, 0, 1, 2]] if signal in QUATERNIONS else values
