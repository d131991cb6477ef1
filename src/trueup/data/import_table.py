"""Imports foreign recordings as a Log: columns, units, signs and clocks by a mapping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, sha256_of_file
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.mapping import BIASES, TIME_UNITS, FileMap, Mapping, SignalMap, each
from trueup.data.recordings import find_recordings
from trueup.data.resample import held, interpolated
from trueup.data.tables import Table, read_table


def import_log(paths: Sequence[str | Path], mapping: Mapping) -> Log:
    """Import one recording: a file, the files of one recording, or a folder that holds them."""
    found = find_recordings(paths, mapping)
    if len(found) > 1:
        names = ", ".join(name for name, _ in found[:6])
        raise TrueupError(f"{len(found)} recordings here ({names}, ...); name one of them", file=paths[0])
    return _import(*found[0], mapping)


def import_logs(paths: Sequence[str | Path], mapping: Mapping) -> Iterator[tuple[str, Log]]:
    """Import every recording in the given files and folders, one after another, as (name, log)."""
    for name, files in find_recordings(paths, mapping):
        yield name, _import(name, files, mapping)


class _Stream(NamedTuple):
    """One file on its own clock: values of each entry of the mapping, (T, width) in the log's unit."""

    file: Path
    entry: FileMap
    time: FloatArray
    parts: list[tuple[SignalMap, FloatArray]]


def log_of_table(table: Table, mapping: Mapping, meta: dict[str, object]) -> Log:
    """One recording from a table in memory, by a mapping of a single file."""
    if len(mapping.files) != 1:
        raise TrueupError(f"mapping {mapping.name!r} is for {len(mapping.files)} files; here is one", file=table.file)
    return _joined([_stream(table, mapping.files[0], mapping)], mapping, meta)


def column_names(entry: FileMap, mapping: Mapping) -> list[str]:
    """Columns that a mapping reads of one file, each once."""
    wanted = list(entry.time.columns) if entry.time else []
    for signal in entry.signals:
        wanted += mapping.column_names(signal)
    return list(dict.fromkeys(wanted))


def _import(name: str, files: tuple[Path, ...], mapping: Mapping) -> Log:
    """Import one recording whose files are known."""
    streams = [_read_stream(path, entry, mapping) for path, entry in zip(files, mapping.files, strict=True)]
    meta: dict[str, object] = {
        "robot": mapping.robot,
        "recording": name,
        "mapping": mapping.name,
        "source": [path.name for path in files],
        "source_sha256": [sha256_of_file(path) for path in files],
        "notes": list(mapping.notes),
    }
    return _joined(streams, mapping, meta)


def _joined(streams: list[_Stream], mapping: Mapping, meta: dict[str, object]) -> Log:
    """All files of a recording on the clock of the first."""
    base, others = streams[0], streams[1:]
    keep = np.ones(len(base.time), bool)
    for other in others:
        keep &= _covered(base, other)
    time = base.time[keep]
    signals: dict[str, FloatArray] = {}
    for stream in streams:
        join = held if stream.entry.join == "hold" else interpolated
        for entry, values in stream.parts:
            here = values[keep] if stream is base else join(stream.time, values, time)
            joints = mapping.joints_of(entry)
            if not entry.is_per_joint or joints == mapping.joints:
                signals[entry.signal] = here
                continue
            whole = signals.setdefault(entry.signal, np.full((len(time), len(mapping.joints)), np.nan))
            whole[:, [mapping.joints.index(joint) for joint in joints]] = here
    left_out = {"rows_left_out": int(np.count_nonzero(~keep))}  # before the first row of a joined file
    return Log(time=time, joint_names=mapping.joints, signals=signals, meta=meta | left_out)


def _read_stream(path: Path, entry: FileMap, mapping: Mapping) -> _Stream:
    names = column_names(entry, mapping)
    if not names:
        raise TrueupError("the mapping reads no column of this file", file=path)
    table = read_table(path, names, delimiter=entry.delimiter, header=entry.header)
    table.check_lengths()
    if len(table) == 0:
        raise TrueupError("has no rows", file=path)
    return _stream(table, entry, mapping)


def _stream(table: Table, entry: FileMap, mapping: Mapping) -> _Stream:
    _check_finite(table, entry)
    parts = [(signal, _values(table, signal, mapping)) for signal in entry.signals]
    return _Stream(table.file, entry, _time(table, entry), parts)


def _check_finite(table: Table, entry: FileMap) -> None:
    clock = entry.time.columns if entry.time else ()
    for name, values in table.columns.items():
        keep_missing = entry.missing == "keep" and name not in clock
        bad = np.isinf(values) if keep_missing else ~np.isfinite(values)
        if bad.any():
            row = int(np.argwhere(bad)[0, 0])
            text = "a number too large (infinite)"
            if np.isnan(values[bad][0]):
                text = 'no number (an empty cell or NaN); `missing = "keep"` in the mapping keeps such cells as NaN'
            count = f"{int(bad.sum())} cells hold no finite number, the first {text}"
            raise TrueupError(count, file=table.file, place=f"row {row + 1}, column {name!r}")


def _time(table: Table, entry: FileMap) -> FloatArray:
    """Seconds on the file's clock."""
    if entry.time is None:
        assert entry.rate_hz is not None
        return np.arange(len(table)) / entry.rate_hz
    total = np.full(len(table), entry.time.offset_s)
    for name, unit in zip(entry.time.columns, entry.time.units, strict=True):
        column, place = table.columns[name], f"column {name!r}"
        if column.ndim != 1:
            raise TrueupError("time must be one number a row", file=table.file, place=place)
        if name in table.timestamps and unit != "ns":
            text = f'is a date and arrives in nanoseconds: write unit = "ns" instead of {unit!r} in the mapping'
            raise TrueupError(text, file=table.file, place=place)
        total += column * TIME_UNITS[unit]
    return total


def _values(table: Table, signal: SignalMap, mapping: Mapping) -> FloatArray:
    """Return one entry's values (T, width) in the log's unit."""
    width = mapping.width(signal)
    if signal.value is not None:
        return np.tile(np.array(each(signal.value, width)), (len(table), 1))
    raw = _gather(table, signal, mapping.column_names(signal), width)
    units = each(signal.unit or "1", width)
    factor = np.array([signal.units[unit] for unit in units])
    bias = np.array([BIASES.get(unit, 0.0) for unit in units])
    gain = np.array(each(signal.sign, width)) * np.array(each(signal.scale, width))
    with np.errstate(over="ignore", invalid="ignore"):
        values = gain * (raw * factor + bias) + np.array(each(signal.offset, width))
    if np.isinf(values).any():
        raise TrueupError("values overflow after scaling", file=table.file, place=f"signal {signal.signal!r}")
    return np.asarray(values, np.float64)


def _gather(table: Table, signal: SignalMap, names: Sequence[str], width: int) -> FloatArray:
    """Put the columns of one entry side by side, (T, width)."""
    if len(names) > 1 or isinstance(signal.columns, tuple):
        wide = next((name for name in names if table.columns[name].ndim != 1), None)
        if wide is not None:
            raise TrueupError("holds a list where one number is needed", file=table.file, place=f"column {wide!r}")
        return np.stack([table.columns[name] for name in names], axis=1)
    column = table.columns[names[0]]
    place = f"column {names[0]!r}, signal {signal.signal!r}"
    if column.ndim == 1:
        if width != 1 and not signal.every_joint:
            hint = "list all columns, use a pattern such as 'q{i}', or set every_joint = true if it holds for all"
            raise TrueupError(f"holds one number a row for {width} columns; {hint}", file=table.file, place=place)
        return np.tile(column[:, None], (1, width))
    found, index = column.shape[1], signal.index or tuple(range(width))
    if max(index) >= found or (not signal.index and found != width):
        text = f"lists {found} numbers a row for {width} columns; `index` picks among them"
        raise TrueupError(text, file=table.file, place=place)
    return column[:, list(index)]


def _covered(base: _Stream, other: _Stream) -> NDArray[np.bool_]:
    """Rows of the base for which the other file has a value: from its first row on (linear: to its last)."""
    backward = np.flatnonzero(np.diff(other.time) < 0)
    if len(backward):
        place = f"row {backward[0] + 2}"
        raise TrueupError("time runs backward; it cannot be joined to other files", file=other.file, place=place)
    first, last = other.time[[0, -1]]
    rows = base.time >= first
    if other.entry.join == "linear":
        rows &= base.time <= last
    if not rows.any() or base.time.min() > last:
        clocks = f"its clock ({first:.6g} to {last:.6g} s) and that of {base.file.name}"
        own = f"({base.time.min():.6g} to {base.time.max():.6g} s)"
        hint = "check the time units, or set time.offset_s"
        raise TrueupError(f"{clocks} {own} do not overlap; {hint}", file=other.file)
    return np.asarray(rows, np.bool_)
