"""Recovery: writes the readable part of a truncated or damaged MCAP file as a clean one.

Chunks that fail their checksum are left out whole; attachments are not copied.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from mcap.records import Channel, Metadata, Schema
from mcap.writer import Writer

from trueup.core.errors import TrueupError
from trueup.core.files import replacing
from trueup.data.mcap.records import Damage, Messages
from trueup.data.mcap.scan import scan
from trueup.data.mcap.write import RECOVERY_NAME, open_writer

_HEAD = struct.Struct("<QHIQQ")  # of a message record, behind its opcode: length, channel, sequence, two times


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """Result of a recovery.

    messages       messages written to `out_path`
    lost_estimate  messages lost, estimated from the bytes that could not be read
    damage         where the file was damaged, and how
    """

    messages: int
    lost_estimate: int
    out_path: Path
    damage: tuple[Damage, ...]


def recover(path: str | Path, out: str | Path | None = None) -> Recovery:
    """Write the readable part of `path` to `out` (default: x.recovered.mcap beside it), never to `path`."""
    source = Path(path)
    target = Path(out) if out is not None else source.with_name(f"{source.stem}.recovered.mcap")
    if target.resolve() == source.resolve():
        raise TrueupError("a recovery must not overwrite its source; choose another name", file=target)
    damage: list[Damage] = []
    schemas, channels = dict[int, Schema](), dict[int, Channel]()  # the summary repeats those that damage took
    metadata: list[Metadata] = []
    found = 0
    for item in scan(source, damage):
        if isinstance(item, Messages):
            found += len(item.starts)
        elif isinstance(item, Schema):
            schemas.setdefault(item.id, item)
        elif isinstance(item, Channel):
            channels.setdefault(item.id, item)
        else:
            metadata.append(item)
    if not found:
        what, place = (damage[0].text, damage[0].offset) if damage else ("it holds no messages", 0)
        raise TrueupError(f"nothing to recover: {what}", file=source, place=f"byte {place}")
    seen = "; ".join(f"byte {flaw.offset}: {flaw.text}" for flaw in damage[:20])
    name = source.name.encode(errors="replace").decode()
    with replacing(target) as file:
        writer = open_writer(file)
        for entry in [*metadata, Metadata(name=RECOVERY_NAME, metadata={"source": name, "damage": seen})]:
            writer.add_metadata(entry.name, entry.metadata)
        new = {0: 0}  # numbers of schemas: 0 means "no schema"
        for old, schema in schemas.items():
            new[old] = writer.register_schema(schema.name, schema.encoding, schema.data) if old else 0
        numbers = {
            old: writer.register_channel(
                channel.topic, channel.message_encoding, new.get(channel.schema_id, 0), channel.metadata
            )
            for old, channel in channels.items()
        }
        written = _copy(source, writer, numbers)
        writer.finish()
    skipped = sum(flaw.skipped_bytes for flaw in damage)
    # as many bytes per message as in the bytes read
    lost = round(skipped * found / max(source.stat().st_size - skipped, 1)) + found - written
    return Recovery(messages=written, lost_estimate=lost, out_path=target, damage=tuple(damage))


def _copy(source: Path, out: Writer, channels: dict[int, int]) -> int:
    """Second pass: write every message whose channel is known; returns how many."""
    written = 0
    for item in (item for item in scan(source, []) if isinstance(item, Messages)):
        for start in item.starts:
            length, channel, sequence, logged, published = _HEAD.unpack_from(item.data, start + 1)
            if channel in channels:
                data = item.data[start + 9 + 22 : start + 9 + length]
                out.add_message(channels[channel], logged, data, published, sequence)
                written += 1
    return written
