"""HDF5 through h5py, in the guarded process: hard links, plain numbers and built-in filters only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.tables.table import MAX_COLUMNS, Table, allowed_bytes, as_float, check_names, not_numbers

_FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 32000: "lzf"}


def load_hdf5(file: Path, wanted: Sequence[str] | None) -> Table:
    """Read the wanted datasets (`group/name`) of an HDF5 file."""
    allowed = allowed_bytes(file.stat().st_size)
    columns: dict[str, FloatArray] = {}
    with h5py.File(file, "r", locking=False) as opened:
        found = _datasets(opened, file)
        check_names(tuple(found), None if wanted is None else [name.strip("/") for name in wanted], file)
        for key in found if wanted is None else wanted:
            dataset = found[key.strip("/")]
            soft = "is a soft link, which is not followed; name the dataset itself"
            fault = soft if dataset is None else not_numbers(dataset)
            if fault and wanted is None:
                continue
            fault = fault or _elsewhere(dataset) or _too_large(dataset, allowed)
            if fault:
                raise TrueupError(fault, file=file, place=f"dataset {key!r}")
            columns[key] = as_float(dataset[()])
    return Table(file=file, columns=columns, names=tuple(found))


def _datasets(opened: Any, file: Path) -> dict[str, Any]:
    """Every dataset that hard links reach; None for a soft link, while an external one is refused."""
    links: dict[str, Any] = {}

    def keep(name: str, link: Any) -> bool | None:
        links[name] = link
        return len(links) > MAX_COLUMNS or None  # True ends the visit

    opened.visititems_links(keep)  # each group once: links that run in circles end
    if len(links) > MAX_COLUMNS:
        raise TrueupError(f"holds more than {MAX_COLUMNS} objects", file=file)
    found = {}
    for name, link in links.items():
        text = name.encode("utf-8", "replace").decode()
        if isinstance(link, h5py.ExternalLink):
            raise TrueupError("links into another file; copy the data into this one", file=file, place=text)
        item = None if isinstance(link, h5py.SoftLink) else opened[name]
        if item is None or isinstance(item, h5py.Dataset):
            found[text] = item
    return found


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
