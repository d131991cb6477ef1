"""TOML files written by people, read as checked structures: every failure names the file and the key."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TypeVar

import msgspec

from trueup.core.errors import TrueupError

T = TypeVar("T", bound=msgspec.Struct)
MAX_BYTES = 64_000
MAX_LINE = 2000  # tomllib needs time that grows with the square of a dotted key: 45 s for one of 100 kB


def read_toml(path: str | Path, kind: type[T], what: str, absent: str = "no such file") -> T:
    """Read a file as `kind`; `what` names it in messages, `absent` says what to do where there is none."""
    file = Path(path)
    try:
        if not file.is_file():
            raise TrueupError(absent, file=file)
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise TrueupError(f"a {what} is a small text file; this one has {size} bytes", file=file)
        return parse_toml(file.read_text(encoding="utf-8"), kind, file)
    except UnicodeDecodeError as error:
        raise TrueupError(f"is not UTF-8 text: {error}", file=file) from None
    except (OSError, ValueError) as error:  # a path with a NUL byte is a ValueError
        raise TrueupError(f"cannot be read: {error}", file=file) from None


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
