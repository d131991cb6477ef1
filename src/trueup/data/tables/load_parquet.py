"""Parquet through pyarrow, in the guarded process: numbers, dates and lists of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as types

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.tables.table import NOTE_KEY, Table, check_names

_THRIFT_LIMIT = 16 << 20  # of one string and of one list inside the file's metadata
_NANOSECONDS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


def open_parquet(file: Path) -> pq.ParquetFile:
    """Open a file of others: strings and lists of its metadata are bounded, pages checked."""
    return pq.ParquetFile(
        file,
        memory_map=False,
        pre_buffer=False,
        thrift_string_size_limit=_THRIFT_LIMIT,
        thrift_container_size_limit=_THRIFT_LIMIT,
        page_checksum_verification=True,
    )


def load_parquet(file: Path, wanted: Sequence[str] | None) -> Table:
    """Read the wanted columns of a Parquet file."""
    opened = open_parquet(file)
    schema = opened.schema_arrow
    names = tuple(schema.names)
    check_names(names, wanted, file)
    kinds = {name: _kind(schema.field(k).type) for k, name in enumerate(names)}
    chosen = [name for name in names if kinds[name]] if wanted is None else list(dict.fromkeys(wanted))
    for name in chosen:
        if not kinds[name]:
            kind = schema.field(name).type
            raise TrueupError(f"holds {str(kind)[:80]} instead of numbers", file=file, place=f"column {name!r}")
    columns = {}
    if chosen:
        table = opened.read(columns=chosen, use_threads=False)
        columns = {name: _values(table.column(name), kinds[name], file, name) for name in chosen}
    note = (schema.metadata or {}).get(NOTE_KEY, b"").decode()
    dates = tuple(name for name in chosen if kinds[name] == "date")
    return Table(file=file, columns=columns, names=names, timestamps=dates, note=note)


def _kind(kind: Any) -> str:
    """Return `number`, `date` or `list` for a type that can be read, "" for any other."""
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        return "number"
    if types.is_timestamp(kind):
        return "date"
    if (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)) and (
        types.is_integer(kind.value_type) or types.is_floating(kind.value_type)
    ):
        return "list"
    return ""


def _values(column: Any, kind: str, file: Path, name: str) -> FloatArray:
    if kind == "date":
        factor = _NANOSECONDS[column.type.unit]
        return np.asarray(_numbers(column.cast(pa.int64())) * factor, np.float64)
    if kind == "number":
        return _numbers(column)
    place = f"column {name!r}"
    if column.null_count:
        raise TrueupError(f"{column.null_count} rows hold no list", file=file, place=place)
    lengths = np.unique(pc.list_value_length(column).to_numpy())
    if len(lengths) > 1:
        raise TrueupError(f"lists differ in length ({lengths[:8].tolist()})", file=file, place=place)
    flat = _numbers(pc.list_flatten(column))
    return flat.reshape(len(column), int(lengths[0]) if len(lengths) else 0)


def _numbers(column: Any) -> FloatArray:
    """Return float64 values; a null is a missing value (NaN)."""
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(), np.float64)
