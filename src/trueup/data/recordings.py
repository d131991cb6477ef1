"""Which files make up which recording: paths and folders of a user, sorted by a mapping's patterns."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.data.mapping import Mapping
from trueup.data.tables import SUFFIXES, table_format

_MAX_ENTRIES = 20_000  # of a folder
Recording = tuple[str, tuple[Path, ...]]  # its name, and one path for each [[file]] of the mapping


def find_recordings(paths: Sequence[str | Path], mapping: Mapping) -> list[Recording]:
    """Return the recordings in the given files and folders, in order.

    Files belong to one recording together. A folder is one recording, or holds a recording in each of its
    folders. When the mapping has a single [[file]], every matching file of a folder is a recording.
    """
    given = [Path(path) for path in paths]
    if not given:
        raise TrueupError("no file given to import")
    files = [path for path in given if not path.is_dir()]
    found = [_of_files(files, mapping)] if files else []
    for folder in (path for path in given if path.is_dir()):
        inside = _of_folder(folder, mapping)
        if not inside:
            wanted = ", ".join(file.pattern for file in mapping.files)
            raise TrueupError(f"neither this folder nor a folder in it holds {wanted}", file=folder)
        found += inside
    return found


def _of_files(files: list[Path], mapping: Mapping) -> Recording:
    for file in files:
        if not file.exists():
            raise TrueupError("does not exist", file=file)
    if len(files) == 1 and len(mapping.files) == 1:
        return _stem(files[0]), (files[0],)  # named by hand: the pattern has no say
    chosen = _assign(files, mapping)
    if chosen is None:
        need = ", ".join(file.pattern for file in mapping.files)
        have = ", ".join(file.name for file in files[:8])
        raise TrueupError(f"mapping {mapping.name!r} needs one file for each of {need}; given: {have}", file=files[0])
    unused = [file for file in files if file not in chosen]
    if unused:
        raise TrueupError(f"no [[file]] of mapping {mapping.name!r} takes this file", file=unused[0])
    return _stem(files[0]), chosen


def _of_folder(folder: Path, mapping: Mapping) -> list[Recording]:
    files, folders = _entries(folder)
    if len(mapping.files) == 1:
        matching = [file for file in files if fnmatchcase(file.name, mapping.files[0].pattern)]
        if matching:
            return [(_stem(file), (file,)) for file in matching]
    here = _assign(files, mapping)
    if here is not None:
        return [(folder.resolve().name, here)]
    inside = [(inner.name, _assign(_entries(inner)[0], mapping)) for inner in folders]
    return [(name, chosen) for name, chosen in inside if chosen is not None]


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the table files and the folders in a folder, sorted by name."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise TrueupError(f"cannot be listed: {error}", file=folder) from None
    if len(entries) > _MAX_ENTRIES:
        raise TrueupError(f"holds {len(entries)} entries; at most {_MAX_ENTRIES} are looked at", file=folder)
    files = [entry for entry in entries if table_format(entry) and entry.is_file()]
    return files, [entry for entry in entries if entry.is_dir()]


def _assign(files: Sequence[Path], mapping: Mapping) -> tuple[Path, ...] | None:
    """Return one file for each [[file]] by its pattern, None when one is absent."""
    found = [[file for file in files if fnmatchcase(file.name, entry.pattern)] for entry in mapping.files]
    if not all(found):
        return None
    for entry, matching in zip(mapping.files, found, strict=True):
        if len(matching) > 1:
            names = ", ".join(file.name for file in matching[:5])
            raise TrueupError(f"several files match {entry.pattern!r}: {names}", file=matching[0].parent)
    return tuple(matching[0] for matching in found)


def _stem(file: Path) -> str:
    ending = max((suffix for suffix in SUFFIXES if file.name.lower().endswith(suffix)), key=len, default="")
    return file.name[: len(file.name) - len(ending)] or file.name
