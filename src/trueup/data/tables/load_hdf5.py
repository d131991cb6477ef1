"""HDF5 through h5py, in the guarded process: hard links, plain numbers and built-in filters only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from trueup.core.errors import TrueupError
from trueup.data.tables.table import MAX_COLUMNS, FloatArray, Table, check_names, check_size

_MAX_DEPTH = 16
_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}


def load_hdf5(file: Path, wanted: Sequence[str] | None, allowed: int) -> Table:
    """Read the wanted datasets (`group/name`) of an HDF5 file."""
    with h5py.File(file, "r", locking=False) as opened:
        found = dict(_walk(opened, file, count()))
        names = tuple(found)
        asked = None if wanted is None else [name.strip("/") for name in wanted]
        check_names(names, asked, file)
        chosen = [name for name in names if _fault(found[name]) is None] if asked is None else asked
        values = 0
        for name in chosen:
            _check(found[name], file, name, allowed)
            values += math.prod(found[name].shape)
            check_size(values, allowed, file, f"dataset {name!r}")
        keys = chosen if wanted is None else list(wanted)
        columns = {key: _values(found[name], file, name) for key, name in zip(keys, chosen, strict=True)}
    return Table(file=file, columns=columns, names=names)


def _walk(group: Any, file: Path, seen: Iterator[int], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every dataset that hard links reach; a soft link is yielded as None, an external one refused."""
    if prefix.count("/") > _MAX_DEPTH:
        raise TrueupError(
            f"groups are nested more than {_MAX_DEPTH} deep", file=file, place=f"group {prefix[:80]!r}"
        )
    for key in group:
        if next(seen) >= MAX_COLUMNS:  # also ends hard links that run in circles
            raise TrueupError(
                f"holds more than {MAX_COLUMNS} objects", file=file, place=f"group {prefix[:80]!r}"
            )
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


def _fault(dataset: Any) -> str | None:
    """Return why this dataset is no column of numbers, None if it is one."""
    if dataset is None:
        return "is a soft link, which is not followed; name the dataset itself"
    if dataset.dtype.kind not in "iufb" or dataset.dtype.subdtype is not None:
        return f"holds {str(dataset.dtype)[:80]} instead of numbers"
    if dataset.shape is None or len(dataset.shape) not in (1, 2):
        return f"has shape {dataset.shape}; a column has one axis (rows) or two (rows, values)"
    return None


def _check(dataset: Any, file: Path, name: str, allowed: int) -> None:
    fault = _fault(dataset)
    if fault is None:
        plist = dataset.id.get_create_plist()
        codes = [plist.get_filter(k)[0] for k in range(plist.get_nfilters())]
        strange = [code for code in codes if code not in _FILTERS]
        if dataset.is_virtual:
            fault = "is a virtual dataset, made of other files; copy the data into this one"
        elif dataset.external:
            fault = "keeps its data in another file; copy the data into this one"
        elif strange:
            fault = f"is packed by filter {strange[0]}; only {', '.join(_FILTERS.values())} are read"
        elif dataset.chunks is not None and math.prod(dataset.chunks) * dataset.dtype.itemsize > allowed:
            fault = f"declares chunks of {dataset.chunks}, more than a file of this size may hold"
    if fault:
        raise TrueupError(fault, file=file, place=f"dataset {name!r}")


def _values(dataset: Any, file: Path, name: str) -> FloatArray:
    try:
        with np.errstate(all="ignore"):
            return np.ascontiguousarray(dataset[()], np.float64)
    except (OSError, RuntimeError, ValueError) as error:
        raise TrueupError(
            f"cannot be read: {str(error)[:200]}", file=file, place=f"dataset {name!r}"
        ) from None
