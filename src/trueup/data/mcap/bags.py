"""Recordings as streams: any MCAP file, rosbag2 folders and their SQLite files.

A rosbag2 folder holds MCAP or SQLite files; its metadata.yaml only repeats what they say and is not read. The
SQLite files are read here, with a limit on work and with none of their views or triggers trusted, because a
database is a program.
"""

from __future__ import annotations

import re
import sqlite3
import struct
from pathlib import Path
from urllib.parse import quote

from trueup.core.errors import TrueupError, found_instead
from trueup.data.mcap import records
from trueup.data.mcap.records import MAGIC, Damage, MalformedError, Messages, decompress, open_input
from trueup.data.mcap.scan import scan
from trueup.data.mcap.streams import StreamCollector

_ZSTD = b"\x28\xb5\x2f\xfd"
_RECORD = struct.Struct("<BQHIQQ")  # the head of an MCAP message record


def collect(path: str | Path) -> tuple[StreamCollector, list[Damage]]:
    """Read a recording into a collector; a truncated file up to its end, noted as damage."""
    files = _files(Path(path))
    size = sum(file.stat().st_size for file in files)
    collector = StreamCollector(path, (records.SPARE_BYTES + records.EXPANSION * size) // 8)
    damage: list[Damage] = []
    for file in files:
        if file.suffix == ".db3":
            _collect_sqlite(file, collector)
        else:
            damage += _collect_mcap(file, collector)
        collector.forget_channels()
    return collector, damage


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        open_input(path).close()
        return [path]
    packed = sorted(path.glob("*.zstd"))
    if packed:
        raise TrueupError("this file is compressed as a whole; unpack it first: `zstd -d`", file=packed[0])
    found = [file for file in path.iterdir() if file.suffix in (".mcap", ".db3") and file.is_file()]
    if not found:
        text = f"no log here: {found_instead(path)}; a log is a file, or a rosbag2 folder with .mcap or .db3 files"
        raise TrueupError(f"{text}; tables in a folder are read through a mapping (--mapping NAME)", file=path)
    return sorted(found, key=_number_then_name)


def _number_then_name(file: Path) -> tuple[int, str]:
    """Parts of a recording are numbered name_0, name_1, ... name_10."""
    number = re.search(r"_(\d{1,9})$", file.stem)
    return (int(number[1]) if number else 0, file.name)


def _collect_mcap(path: Path, collector: StreamCollector) -> list[Damage]:
    with open_input(path) as file:
        file.seek(-min(len(MAGIC), path.stat().st_size), 2)
        is_ended = file.read() == MAGIC
    damage: list[Damage] = []
    for item in scan(path, damage):
        if damage and (is_ended or not damage[-1].is_cut):
            break  # told below
        collector.add(item)
    for flaw in damage:
        if is_ended or not flaw.is_cut:
            hint = "; `trueup data recover` saves what can be read" if flaw.offset else ""
            raise TrueupError(f"{flaw.text}{hint}", file=path, place=f"byte {flaw.offset}")
    return damage


def _collect_sqlite(path: Path, collector: StreamCollector) -> None:
    address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
    size = path.stat().st_size
    budget = iter(range(200 + size // 1000))  # each step is 1000 operations of the database machine
    try:
        database = sqlite3.connect(address, uri=True)
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(records.CHUNK_BYTES, size + 4096))
            database.set_progress_handler(lambda: next(budget, None) is None, 1000)
            _read_tables(database, path, collector)
        finally:
            database.close()
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        raise TrueupError(f"not a readable rosbag2 database ({error})", file=path, place="database") from None


def _read_tables(database: sqlite3.Connection, path: Path, collector: StreamCollector) -> None:
    tables = dict(database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall())
    for table in ("topics", "messages"):
        if re.search(r"\bVIRTUAL\b|\bAS\b", str(tables.get(table, "AS")), re.IGNORECASE):
            raise TrueupError(f"not a rosbag2 database: no plain table {table!r}", file=path, place="database")
    channels: dict[int, int] = {}
    for row in database.execute("SELECT id, name, type, serialization_format FROM topics LIMIT 4096"):
        number, name, kind, encoding = row
        if [type(value) for value in row] != [int, str, str, str]:
            raise TrueupError("a topic with fields of the wrong type", file=path, place="table topics")
        channels[number] = len(channels)
        collector.channel(channels[number], name[: records.NAME_BYTES], kind, encoding)
    allowed = records.SPARE_MESSAGES + path.stat().st_size // records.BYTES_PER_MESSAGE
    for k, row in enumerate(database.execute("SELECT topic_id, timestamp, data FROM messages")):
        number, time_ns, data = row
        if k >= allowed or [type(value) for value in row] != [int, int, bytes]:
            text = "a message with fields of the wrong type, or too many"
            raise TrueupError(text, file=path, place=f"message {k}")
        if data[:4] == _ZSTD:  # compressed by itself (compression_mode MESSAGE); plain CDR never begins so
            try:
                data = decompress(data, "zstd", min(records.DEFINITION_BYTES, 64 * len(data) + 1024), partial=True)
            except MalformedError as flaw:
                raise TrueupError(str(flaw), file=path, place=f"message {k}") from None
        time_ns = max(time_ns, 0)
        head = _RECORD.pack(5, 22 + len(data), channels.get(number, 0xFFFF), 0, time_ns, time_ns)
        collector.add(Messages(head + data, [0], k))
