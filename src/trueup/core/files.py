"""Files that are whole or absent: written under a temporary name, synced, renamed. A refusal is a TrueupError."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from trueup.core.errors import TrueupError


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn the system's refusal to write `path` within the block into a TrueupError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise TrueupError(f"cannot be written: {reason}; choose another place", file=path) from None


def make_folder(path: str | Path) -> Path:
    """Make a folder and all above it, unless it is there."""
    with writing(path):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Give a file to write; `path` becomes it when the block ends, and stays as it was when the block fails.

    A kill at any moment leaves the old file or the new one, never a part.
    """
    target = Path(path)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with writing(target):
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(name, 0o644)
            os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def write_atomic(path: str | Path, content: str | bytes) -> Path:
    """Write a whole file at once."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)
