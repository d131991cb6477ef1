"""Log -> Parquet, CSV or NPZ for other tools, and back without loss.

One column a joint (`joint_pos/FL_hip_joint`) or component (`imu_gyro/x`), time in seconds. Joint order,
signals and provenance travel as JSON: in the Parquet schema, in a first line `# trueup-log ...` of a CSV, in
an array of an NPZ.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.data.log import SIGNALS, Log, signal_width
from trueup.data.tables import Table, read_table, table_format
from trueup.data.tables.table import MIB, NOTE_KEY, NOTE_MARK, allowed_bytes, unpacked_bytes

SCHEMA = 1
_COMPONENTS = {1: ("0",), 3: ("x", "y", "z"), 4: ("w", "x", "y", "z")}


class _Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Metadata stored beside the numbers."""

    schema: int
    joint_names: tuple[str, ...]
    signals: tuple[str, ...]
    meta: dict[str, object]

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
        for name in self.signals:
            if name not in SIGNALS:
                raise ValueError(f"unknown signal {name!r}")


def export_log(log: Log, path: str | Path) -> Path:
    """Write a log as .parquet, .csv, .csv.gz or .npz; `read_export` gives an equal log back."""
    target = Path(path)
    kind = table_format(target)
    writers: dict[str, Callable[[Log, str, Path], bytes]] = {"parquet": _parquet, "csv": _csv, "npz": _npz}
    if kind not in writers or ".tsv" in target.name:
        raise TrueupError("a log is exported as .parquet, .csv, .csv.gz or .npz", file=target)
    return write_atomic(target, writers[kind](log, _note_text(log, target), target))


def read_export(path: str | Path) -> Log:
    """Read a log that `export_log` wrote."""
    file = Path(path)
    table = read_table(file)
    if not table.note:
        raise TrueupError("was not exported by trueup; import it with a mapping (`trueup data import`)", file=file)
    try:
        note = msgspec.json.decode(table.note, type=_Note)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TrueupError(f"its log description is damaged: {error}", file=file) from None
    time = _column(table, "time")
    signals = {name: _signal(table, name, note.joint_names, len(time)) for name in note.signals}
    return Log(time=time, joint_names=note.joint_names, signals=signals, meta=note.meta)


def _note_text(log: Log, target: Path) -> str:
    for key, value in log.meta.items():
        try:
            same = json.loads(json.dumps(value, allow_nan=False)) == value
        except (TypeError, ValueError, RecursionError):
            same = False
        if not same or not isinstance(key, str):
            text = "provenance must be plain text, numbers and lists to survive an export"
            raise TrueupError(text, file=target, place=f"meta {key!r}")
    content = {"schema": SCHEMA, "joint_names": log.joint_names, "signals": list(log.signals), "meta": log.meta}
    text = json.dumps(content, allow_nan=False)
    if len(text) + len(NOTE_MARK) + 2 > MIB:
        raise TrueupError(f"provenance of {len(text)} bytes is too long for an export", file=target)
    return text


def _names(signal: str, joints: tuple[str, ...]) -> list[str]:
    columns = SIGNALS[signal][0]
    return [f"{signal}/{part}" for part in (joints if isinstance(columns, str) else _COMPONENTS[columns])]


def _table(log: Log, target: Path) -> Any:
    if len(set(log.joint_names)) != len(log.joint_names):
        raise TrueupError("two joints of the log have the same name", file=target)
    try:
        import pyarrow as pa
    except ImportError:
        raise TrueupError("this format needs the package pyarrow: pip install 'trueup[data]'", file=target) from None
    columns = {"time": log.time}
    for signal, values in log.signals.items():
        columns.update(zip(_names(signal, log.joint_names), values.T, strict=True))
    return pa.table({name: np.ascontiguousarray(values) for name, values in columns.items()})


def _parquet(log: Log, note: str, target: Path) -> bytes:
    table = _table(log, target).replace_schema_metadata({NOTE_KEY: note.encode()})
    import pyarrow.parquet as pq

    def write(compression: str) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression=compression, use_dictionary=False)
        return buffer.getvalue()

    data = write("zstd")
    return data if table.nbytes <= allowed_bytes(len(data)) else write("none")


def _csv(log: Log, note: str, target: Path) -> bytes:
    table = _table(log, target)
    import pyarrow.csv

    if any("\n" in name or "\r" in name or name != name.strip() for name in table.column_names):
        raise TrueupError("a joint's name has line breaks or outer spaces, which CSV cannot keep", file=target)
    buffer = io.BytesIO()
    buffer.write(f"{NOTE_MARK}{note}\n".encode())
    pyarrow.csv.write_csv(table, buffer)  # the shortest text that reads back the same
    text = buffer.getvalue()
    if not target.name.lower().endswith(".gz"):
        return text
    data = gzip.compress(text, 6, mtime=0)
    return data if len(text) <= unpacked_bytes(len(data)) else gzip.compress(text, 0, mtime=0)


def _npz(log: Log, note: str, target: Path) -> bytes:
    buffer = io.BytesIO()
    arrays = {"time": log.time, **log.signals, NOTE_KEY.decode(): np.frombuffer(note.encode(), np.uint8)}
    np.savez(buffer, allow_pickle=False, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _column(table: Table, name: str) -> FloatArray:
    if name not in table.columns:
        raise TrueupError(f"its column {name!r} is absent or no numbers", file=table.file, place=f"column {name!r}")
    return table.columns[name]


def _signal(table: Table, name: str, joints: tuple[str, ...], rows: int) -> FloatArray:
    if name in table.columns:  # NPZ keeps whole arrays
        return table.columns[name]
    values = np.empty((rows, signal_width(name, joints)))
    for k, column in enumerate(_names(name, joints)):
        found = _column(table, column)
        if found.shape != (rows,):
            raise TrueupError(f"has shape {found.shape} for {rows} rows", file=table.file, place=f"column {column!r}")
        values[:, k] = found
    return values
