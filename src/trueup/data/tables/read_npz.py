"""NPZ: a zip of arrays. Sizes and types are checked in directory and headers before reading."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from trueup.core.errors import TrueupError
from trueup.data.tables.table import FloatArray, Table, allowed_bytes, check_names, check_size, count_values

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(file: Path, wanted: Sequence[str] | None) -> Table:
    """Read the wanted arrays of an NPZ file; nothing is unpickled or unpacked before it is measured."""
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(file) as archive:
            warnings.simplefilter("ignore")  # NumPy's remarks on headers it mends
            return _read(file, archive, wanted)
    except TrueupError:
        raise
    except Exception as error:
        # zipfile, zlib and the array header parser raise a dozen kinds of errors on damaged files
        raise TrueupError(f"is not a readable NPZ file: {_short(error)}", file=file) from error


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"


def _read(file: Path, archive: zipfile.ZipFile, wanted: Sequence[str] | None) -> Table:
    entries = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    names = tuple(entries)
    check_names(names, wanted, file)
    allowed = allowed_bytes(file.stat().st_size)
    chosen = names if wanted is None else tuple(dict.fromkeys(wanted))
    for name in chosen:
        if entries[name].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise TrueupError(
                "is packed by a method NumPy does not write", file=file, place=f"array {name!r}"
            )
    packed_total = sum(entries[name].file_size for name in chosen)
    check_size(packed_total // 8, allowed, file, "sum of all arrays")
    arrays = _Arrays(file, archive, allowed)
    columns = {}
    for name in chosen:
        values = arrays.read(name, entries[name], required=wanted is not None)
        if values is not None:
            columns[name] = values
    return Table(file=file, columns=columns, names=names)


class _Arrays:
    """Reads arrays one after another out of one budget."""

    def __init__(self, file: Path, archive: zipfile.ZipFile, allowed: int) -> None:
        self.file, self.archive, self.left = file, archive, allowed

    def read(self, name: str, info: zipfile.ZipInfo, *, required: bool) -> FloatArray | None:
        """Return one array as numbers, None for an array of something else that is not required."""
        place = f"array {name!r}"
        with self.archive.open(info) as stream:
            header = self._header(stream, info, place)
            shape, fortran, dtype = header
            fault = _fault(shape, dtype)
            if fault and not required:
                return None
            if fault:
                raise TrueupError(fault, file=self.file, place=place)
            values = count_values(shape)
            check_size(values, self.left, self.file, place)
            need = values * dtype.itemsize
            if need > info.file_size:
                raise TrueupError(
                    f"declares shape {shape} but holds {info.file_size} bytes", file=self.file, place=place
                )
            data = stream.read(need)
        if len(data) != need:
            raise TrueupError(f"is cut short: {len(data)} of {need} bytes", file=self.file, place=place)
        self.left -= values * 8
        array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(array, np.float64)

    def _header(
        self, stream: IO[bytes], info: zipfile.ZipInfo, place: str
    ) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
        try:
            version = npy.read_magic(stream)
            if version not in _HEADERS:
                raise TrueupError(
                    f"array format {version} holds no plain numbers", file=self.file, place=place
                )
            shape, fortran, dtype = _HEADERS[version](stream, max_header_size=10_000)
        except TrueupError:
            raise
        except Exception as error:  # the header is Python syntax: many kinds of errors
            raise TrueupError(f"has no valid header: {_short(error)}", file=self.file, place=place) from error
        if any(n < 0 for n in shape):
            raise TrueupError(f"declares shape {shape}", file=self.file, place=place)
        return shape, fortran, dtype


def _fault(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> str | None:
    if dtype.kind not in "iufb" or dtype.subdtype is not None:
        return f"holds {dtype} instead of numbers (objects and text are never read)"
    if len(shape) not in (1, 2):
        return f"has shape {shape}; a column has one axis (rows) or two (rows, values)"
    return None
