"""Recordings of others become a Log: columns, units, signs and clocks as a mapping says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.hashes import sha256_of_file
from trueup.data.log import SIGNALS, FloatArray, Log
from trueup.data.mapping import FileMap, Mapping, SignalMap, each
from trueup.data.recordings import SourceFiles, find_recordings
from trueup.data.resample import held, interpolated
from trueup.data.tables import Table, read_table
from trueup.data.units import BIASES, CURRENT, TIME_UNITS, factor_of


def import_log(paths: Sequence[str | Path], mapping: Mapping) -> Log:
    """Import one recording: a file, the files of one recording, or a folder that holds them."""
    found = find_recordings(paths, mapping)
    if len(found) > 1:
        names = ", ".join(recording.name for recording in found[:6])
        raise TrueupError(f"{len(found)} recordings here ({names}, ...); name one of them", file=paths[0])
    return import_recording(found[0], mapping)


def import_logs(paths: Sequence[str | Path], mapping: Mapping) -> Iterator[tuple[str, Log]]:
    """Import every recording in the given files and folders, one after another, as (name, log)."""
    for recording in find_recordings(paths, mapping):
        yield recording.name, import_recording(recording, mapping)


def import_recording(recording: SourceFiles, mapping: Mapping) -> Log:
    """Import one recording whose files are known."""
    streams = [_read_stream(path, entry, mapping) for path, entry in zip(recording.paths, mapping.files, strict=True)]
    base, others = streams[0], streams[1:]
    keep = np.ones(len(base.time), bool)
    for other in others:
        keep &= _covered(base, other)
    time = base.time[keep]
    parts = [(part, part.values[keep]) for part in base.parts]
    for other in others:
        join = held if other.entry.join == "hold" else interpolated
        parts += [(part, join(other.time, part.values, time)) for part in other.parts]
    meta: dict[str, object] = {
        "robot": mapping.robot,
        "recording": recording.name,
        "mapping": mapping.name,
        "source": [path.name for path in recording.paths],
        "source_sha256": [sha256_of_file(path) for path in recording.paths],
        "notes": list(mapping.notes),
        "rows_left_out": int(np.count_nonzero(~keep)),  # before the first row of a joined file
    }
    signals = _assemble(parts, mapping, len(time))
    return Log(time=time, joint_names=mapping.joints, signals=signals, meta=meta)


@dataclass(frozen=True)
class _Part:
    """What one entry of the mapping yields: (T, width) values in the log's unit."""

    entry: SignalMap
    values: FloatArray


@dataclass(frozen=True)
class _Stream:
    """One file on its own clock."""

    file: Path
    entry: FileMap
    time: FloatArray
    parts: list[_Part]


def _read_stream(path: Path, entry: FileMap, mapping: Mapping) -> _Stream:
    wanted = list(entry.time.columns) if entry.time else []
    for signal in entry.signals:
        wanted += mapping.column_names(signal)
    names = list(dict.fromkeys(wanted))
    if not names:
        raise TrueupError("the mapping reads no column of this file", file=path)
    table = read_table(path, names, delimiter=entry.delimiter, header=entry.header)
    table.check_lengths()
    if len(table) == 0:
        raise TrueupError("has no rows", file=path)
    _check_finite(table, entry)
    parts = [_Part(signal, _values(table, signal, mapping)) for signal in entry.signals]
    return _Stream(path, entry, _time(table, entry), parts)


def _check_finite(table: Table, entry: FileMap) -> None:
    clock = entry.time.columns if entry.time else ()
    for name, values in table.columns.items():
        keep_missing = entry.missing == "keep" and name not in clock
        bad = np.isinf(values) if keep_missing else ~np.isfinite(values)
        if bad.any():
            row = int(np.argmax(bad.any(axis=1) if bad.ndim == 2 else bad))
            found = float(values[row][bad[row]][0]) if values.ndim == 2 else float(values[row])
            text = "no number (an empty cell or NaN)" if np.isnan(found) else "a number too large (infinite)"
            hint = '; `missing = "keep"` in the mapping keeps such cells as NaN' if np.isnan(found) else ""
            count = f"{int(bad.sum())} cells hold no finite number, the first {text}{hint}"
            raise TrueupError(count, file=table.file, place=f"row {row + 1}, column {name!r}")


def _time(table: Table, entry: FileMap) -> FloatArray:
    """Seconds on the file's clock."""
    if entry.time is None:
        assert entry.rate_hz is not None
        return np.arange(len(table)) / entry.rate_hz
    total = np.full(len(table), entry.time.offset_s)
    for name, unit in zip(entry.time.columns, entry.time.units, strict=True):
        column = table.columns[name]
        if column.ndim != 1:
            raise TrueupError("time must be one number a row", file=table.file, place=f"column {name!r}")
        if name in table.timestamps and unit != "ns":
            raise TrueupError(
                f'is a date and arrives in nanoseconds: write unit = "ns" instead of {unit!r} in the mapping',
                file=table.file,
                place=f"column {name!r}",
            )
        total += column * TIME_UNITS[unit]
    return total


def _values(table: Table, signal: SignalMap, mapping: Mapping) -> FloatArray:
    """Return one entry's values (T, width) in the log's unit."""
    width = mapping.width(signal)
    if signal.value is not None:
        return np.tile(np.array(each(signal.value, width)), (len(table), 1))
    raw = _gather(table, signal, mapping.column_names(signal), width)
    units = signal.unit if isinstance(signal.unit, tuple) else (signal.unit or "1",) * width
    log_unit = SIGNALS[signal.signal][1]
    factor = np.array([factor_of(unit, log_unit) or 1.0 for unit in units])
    constant = each(signal.torque_constant or 1.0, width)
    factor *= [constant[k] if unit in CURRENT else 1.0 for k, unit in enumerate(units)]
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
            raise TrueupError(
                f"holds one number a row for {width} columns; list all columns, use a pattern such as "
                "'q{i}', or set every_joint = true if it holds for every joint",
                file=table.file,
                place=place,
            )
        return np.tile(column[:, None], (1, width))
    index = signal.index or tuple(range(width))
    if max(index) >= column.shape[1] or (not signal.index and column.shape[1] != width):
        raise TrueupError(
            f"lists {column.shape[1]} numbers a row for {width} columns; `index` picks among them",
            file=table.file,
            place=place,
        )
    return column[:, list(index)]


def _covered(base: _Stream, other: _Stream) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows of the base for which the other file has a value: from its first row on (linear: to its last)."""
    steps = np.diff(other.time)
    if (steps < 0).any():
        row = int(np.argmax(steps < 0)) + 2
        raise TrueupError("time runs backward; it cannot be joined to other files", file=other.file, place=f"row {row}")
    rows = base.time >= other.time[0]
    if other.entry.join == "linear":
        rows &= base.time <= other.time[-1]
    if not rows.any() or base.time.min() > other.time[-1]:
        raise TrueupError(
            f"its clock ({other.time[0]:.6g} to {other.time[-1]:.6g} s) and that of {base.file.name} "
            f"({base.time.min():.6g} to {base.time.max():.6g} s) do not overlap; check the "
            "time units, or set time.offset_s",
            file=other.file,
        )
    return np.asarray(rows, np.bool_)


def _assemble(parts: list[tuple[_Part, FloatArray]], mapping: Mapping, rows: int) -> dict[str, FloatArray]:
    """Put the entries of each signal together, joints in the mapping's order."""
    signals: dict[str, FloatArray] = {}
    for part, values in parts:
        name = part.entry.signal
        if SIGNALS[name][0] != "joint" or mapping.joints_of(part.entry) == mapping.joints:
            signals[name] = values
            continue
        whole = signals.setdefault(name, np.full((rows, len(mapping.joints)), np.nan))
        whole[:, [mapping.joints.index(joint) for joint in mapping.joints_of(part.entry)]] = values
    return signals
