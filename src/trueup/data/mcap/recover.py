"""Recovery: whatever can still be read of a cut or damaged MCAP file, written as a clean one.

Chunks that fail their checksum are left out whole; attachments are not copied.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mcap.records import Channel, Metadata, Schema

from trueup.core.errors import TrueupError
from trueup.core.files import replacing
from trueup.data.mcap.records import Damage, Item, Limits, Messages
from trueup.data.mcap.scan import scan
from trueup.data.mcap.write import RECOVERY_NAME, open_writer

_HEAD = struct.Struct("<QHIQQ")  # of a message record, behind its opcode: length, channel, sequence, two times


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What came of a recovery.

    messages       messages written to `out_path`
    lost_estimate  messages lost, estimated from the bytes that could not be read
    damage         where the file was damaged, and how
    """

    messages: int
    lost_estimate: int
    out_path: Path
    damage: tuple[Damage, ...]


def recover(path: str | Path, out: str | Path | None = None, *, limits: Limits | None = None) -> Recovery:
    """Write what can be read of `path` to `out` (default: x.recovered.mcap beside it), never to `path`."""
    source = Path(path)
    target = Path(out) if out is not None else source.with_name(f"{source.stem}.recovered.mcap")
    if target.resolve() == source.resolve():
        raise TrueupError("a recovery must not overwrite its source; choose another name", file=target)
    definitions = _Definitions()
    damage: list[Damage] = []
    for item in scan(source, limits, damage):
        definitions.take(item)
    if not definitions.messages:
        what = damage[0].text if damage else "it holds no messages"
        raise TrueupError(f"nothing to recover: {what}", file=source, place=f"byte {damage[0].offset if damage else 0}")
    with replacing(target) as file:
        written = _copy(source, file, definitions, limits, damage)
    return Recovery(
        messages=written,
        lost_estimate=_lost(source, definitions.messages, damage) + definitions.messages - written,
        out_path=target,
        damage=tuple(damage),
    )


class _Definitions:
    """Schemas and channels of the whole file: the summary repeats those that damage at the start took."""

    def __init__(self) -> None:
        self.schemas: dict[int, Schema] = {}
        self.channels: dict[int, Channel] = {}
        self.metadata: list[Metadata] = []
        self.messages = 0

    def take(self, item: Item) -> None:
        """Count or keep one item; the first definition of a number stays."""
        if isinstance(item, Messages):
            self.messages += len(item.starts)
        elif isinstance(item, Schema):
            if item.id:  # 0 means "no schema"
                self.schemas.setdefault(item.id, item)
        elif isinstance(item, Channel):
            self.channels.setdefault(item.id, item)
        else:
            self.metadata.append(item)


def _lost(source: Path, messages: int, damage: list[Damage]) -> int:
    """Messages in the bytes skipped, at as many bytes per message as in the bytes read."""
    size = source.stat().st_size
    skipped = sum(flaw.skipped_bytes for flaw in damage)
    return round(skipped * messages / max(size - skipped, 1))


def _copy(source: Path, file: IO[bytes], definitions: _Definitions, limits: Limits | None, damage: list[Damage]) -> int:
    """Second pass: all definitions first, then every message whose channel is known."""
    out = open_writer(file)
    for metadata in definitions.metadata:
        out.add_metadata(metadata.name, metadata.metadata)
    found = "; ".join(f"byte {flaw.offset}: {flaw.text}" for flaw in damage[:20])
    name = source.name.encode(errors="replace").decode()
    out.add_metadata(RECOVERY_NAME, {"source": name, "damage": found})
    schemas = {
        old: out.register_schema(schema.name, schema.encoding, schema.data)
        for old, schema in definitions.schemas.items()
    }
    channels = {
        old: out.register_channel(
            channel.topic, channel.message_encoding, schemas.get(channel.schema_id, 0), channel.metadata
        )
        for old, channel in definitions.channels.items()
    }
    written = 0
    for item in (item for item in scan(source, limits, []) if isinstance(item, Messages)):
        for start in item.starts:
            length, channel, sequence, logged, published = _HEAD.unpack_from(item.data, start + 1)
            if channel in channels:
                data = item.data[start + 9 + 22 : start + 9 + length]
                out.add_message(channels[channel], logged, data, published, sequence)
                written += 1
    out.finish()
    return written
