"""HDF5 through h5py, in the guarded process: hard links, plain numbers and built-in filters only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import h5py

from trueup.core.errors import TrueupError
from trueup.data.tables.table import MAX_COLUMNS, FloatArray, Table, allowed_bytes, as_float, check_names, not_numbers

_MAX_DEPTH = 16
_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}


def load_hdf5(file: Path, wanted: Sequence[str] | None) -> Table:
    """Read the wanted datasets (`group/name`) of an HDF5 file."""
    allowed = allowed_bytes(file.stat().st_size)
    columns: dict[str, FloatArray] = {}
    with h5py.File(file, "r", locking=False) as opened:
        found = dict(_walk(opened, file, count()))
        check_names(tuple(found), None if wanted is None else [name.strip("/") for name in wanted], file)
        for key in found if wanted is None else wanted:
            dataset = found[key.strip("/")]
            is_link = dataset is None
            fault = (
                "is a soft link, which is not followed; name the dataset itself" if is_link else not_numbers(dataset)
            )
            if fault and wanted is None:
                continue
            fault = fault or _elsewhere(dataset) or _too_large(dataset, allowed)
            if fault:
                raise TrueupError(fault, file=file, place=f"dataset {key!r}")
            columns[key] = as_float(dataset[()])
    return Table(file=file, columns=columns, names=tuple(found))


def _walk(group: Any, file: Path, seen: Iterator[int], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every dataset that hard links reach; a soft link is yielded as None, an external one refused."""
    if prefix.count("/") > _MAX_DEPTH:
        raise TrueupError(f"groups are nested more than {_MAX_DEPTH} deep", file=file, place=prefix[:80])
    for key in group:
        if next(seen) >= MAX_COLUMNS:  # also ends hard links that run in circles
            raise TrueupError(f"holds more than {MAX_COLUMNS} objects", file=file, place=prefix[:80])
        name = f"{prefix}{key}".encode("utf-8", "replace").decode()
        link = group.get(key, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise TrueupError("links into another file; copy the data into this one", file=file, place=name)
        if isinstance(link, h5py.SoftLink):
            yield name, None
            continue
        item = group[key]
        if isinstance(item, h5py.Dataset):
            yield name, item
        elif isinstance(item, h5py.Group):
            yield from _walk(item, file, seen, f"{name}/")


def _elsewhere(dataset: Any) -> str:
    """Why the numbers are not in this file as they are, or need code that is not built in."""
    plist = dataset.id.get_create_plist()
    codes = [plist.get_filter(k)[0] for k in range(plist.get_nfilters())]
    strange = [code for code in codes if code not in _FILTERS]
    if dataset.is_virtual:
        return "is a virtual dataset, made of other files; copy the data into this one"
    if dataset.external:
        return "keeps its data in another file; copy the data into this one"
    return f"is packed by filter {strange[0]}; only {', '.join(_FILTERS.values())} are read" if strange else ""


def _too_large(dataset: Any, allowed: int) -> str:
    """The guarded process would refuse it too, without naming the dataset."""
    chunk = math.prod(dataset.chunks or ()) * dataset.dtype.itemsize
    size = math.prod(dataset.shape)
    if max(8 * size, chunk) <= allowed:
        return ""
    return f"declares {size} numbers in chunks of {dataset.chunks}, more than a file of this size may hold"
