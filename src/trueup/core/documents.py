"""TOML and JSON files read as checked structures: every failure names the file and, where there is one, the key.

TOML is written by people, JSON by our own stages; a file may still be anyone's. `read_bytes` is what both begin with:
no file is read that is larger than its kind can be. `read_arrays` is the same for arrays in safetensors, `read_npz` for
those in npz; nothing is ever unpickled.
"""

from __future__ import annotations

import io
import tomllib
import zipfile
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic

T = TypeVar("T")
MAX_BYTES = 64_000  # of a TOML file
MAX_LINE = 2000  # tomllib needs time that grows with the square of a dotted key: 45 s for one of 100 kB
_MAX_JSON, MAX_ARRAYS = 50_000_000, 200_000_000
BAD_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OverflowError)  # what damaged text raises


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of file contents: immutable, keyword-only, unknown keys refused."""


class _Version(msgspec.Struct):
    schema: int


def read_bytes(path: str | Path, most_bytes: int, what: str, absent: str = "no such file") -> bytes:
    """The content of a file of at most `most_bytes`; `what` names the kind of file, `absent` says what to do."""
    file = Path(path)
    try:
        if not file.is_file():
            raise TrueupError("is no regular file" if file.exists() else absent, file=file)
        if (size := file.stat().st_size) > most_bytes:
            raise TrueupError(f"{_a(what)} has at most {most_bytes} bytes, this file has {size}", file=file)
        return file.read_bytes()
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        raise TrueupError(f"the {what} cannot be read: {getattr(error, 'strerror', error)}", file=file) from None


def _a(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


# --- TOML ---
def read_toml(path: str | Path, kind: type[T], what: str, absent: str = "no such file") -> T:
    """Read a file as `kind`; `what` names it in messages, `absent` says what to do where there is none."""
    try:
        return parse_toml(read_bytes(path, MAX_BYTES, what, absent).decode(), kind, path)
    except UnicodeDecodeError as error:
        raise TrueupError(f"is not UTF-8 text: {error}", file=path) from None


def parse_toml(text: str, kind: type[T], file: str | Path) -> T:
    """Check TOML text as `kind`; `file` is for messages."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > MAX_LINE:
            raise TrueupError(f"is longer than {MAX_LINE} characters", file=file, place=f"line {number}")
    try:
        return msgspec.convert(tomllib.loads(text), kind)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        raise TrueupError(message[:500], file=file, place=place.strip("`")[:200] or "top level") from None
    except (RecursionError, OverflowError):
        raise TrueupError("is nested too deeply or holds a number too large", file=file) from None
    except ValueError as error:  # tomllib's own kind, and Python's refusal of a number of thousands of digits
        raise TrueupError(f"is not valid TOML: {str(error)[:300]}", file=file) from None


# --- JSON ---
def read_json(
    path: str | Path,
    kind: type[T],
    what: str,
    *,
    name: str = "",
    schema: int | None = None,
    most_bytes: int = _MAX_JSON,
    absent: str = "no such file",
) -> T:
    """Read a JSON file as `kind`; `name` is the file's where `path` is its folder, `schema` the one that is read."""
    file = Path(path) / name if name and Path(path).is_dir() else Path(path)
    return parse_json(read_bytes(file, most_bytes, what, absent), kind, what, file, schema)


def parse_json(content: bytes, kind: type[T], what: str, file: str | Path, schema: int | None = None) -> T:
    """Check JSON text as `kind`; a file of another schema is refused as such before anything else is looked at."""
    try:
        found = schema if schema is None else msgspec.json.decode(content, type=_Version).schema
        if found != schema:
            raise TrueupError(
                f"this {what} is of schema {found}, this version reads schema {schema}: make it again", file=file
            )
        return msgspec.json.decode(content, type=kind)
    except BAD_JSON as error:
        raise TrueupError(f"is not {_a(what)}: {str(error)[:300]}", file=file) from None


def read_json_lines(path: str | Path) -> list[dict[str, Any]]:
    """Records of a file that is appended to, one on a line; they end at the first that was torn. [] without a file."""
    file, out = Path(path), []
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        try:
            out.append(msgspec.json.decode(line, type=dict[str, Any]))
        except BAD_JSON:
            break
    return out


def to_json(content: object) -> bytes:
    """Indented JSON text."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def write_json(path: str | Path, content: object) -> Path:
    """Write a JSON file, whole or not at all."""
    return write_atomic(path, to_json(content))


# --- arrays ---
def read_arrays(path: str | Path, what: str) -> dict[str, NDArray[Any]]:
    """Named arrays of a safetensors file."""
    return parse_arrays(read_bytes(path, MAX_ARRAYS, what), what, path)


def parse_arrays(content: bytes, what: str, file: str | Path) -> dict[str, NDArray[Any]]:
    """Named arrays from the content of a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return {name: np.asarray(array) for name, array in load(content).items()}
    except (SafetensorError, ValueError, KeyError, TypeError) as error:  # a type that NumPy lacks is a KeyError
        raise TrueupError(f"is not {_a(what)}: {str(error)[:300]}", file=file) from None


def read_npz(path: str | Path, what: str, *, skip_objects: bool = False) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file; those of objects are refused, or left out."""
    return parse_npz(read_bytes(path, MAX_ARRAYS, what), what, path, MAX_ARRAYS, skip_objects=skip_objects)


def parse_npz(
    content: bytes, what: str, file: str | Path, most_bytes: int, *, skip_objects: bool = False
) -> dict[str, NDArray[Any]]:
    """Arrays from the content of an npz file, which may not unpack to more than `most_bytes`."""
    out = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > most_bytes:
                raise TrueupError(f"unpacks to more than {most_bytes} bytes", file=file)
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            for name in found.files:
                with suppress(_ObjectsError) if skip_objects else nullcontext():
                    out[name] = _plain(found, name)
    except TrueupError:
        raise
    except Exception as error:  # zipfile, zlib and the parser of array headers raise a dozen kinds
        raise TrueupError(f"is not {_a(what)}: {str(error)[:300]}", file=file) from None
    return out


class _ObjectsError(ValueError):
    """An array of objects, which are never read, or a file in the archive that is no array."""


def _plain(found: Any, name: str) -> NDArray[Any]:
    try:
        array = found[name]
    except ValueError as error:
        if "pickle" not in str(error):
            raise
        raise _ObjectsError(f"{name!r} holds objects, which are never read") from None
    if not isinstance(array, np.ndarray):
        raise _ObjectsError(f"{name!r} is no array")
    return array
