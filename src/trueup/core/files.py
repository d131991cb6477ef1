"""Files that are whole or absent: written under a temporary name, synced, renamed. A refusal is a TrueupError.

Places to write are marked in the types of a config (`OutFile`, `OutFolder`) and checked before work begins.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

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


@dataclass(frozen=True)
class Output:
    """Kind of output at a path; "either": a file if the path has a suffix, a folder if not."""

    kind: Literal["file", "folder", "either"]


OutFile = Annotated[Path, Output("file")]
OutFolder = Annotated[Path, Output("folder")]
OutEither = Annotated[Path, Output("either")]
if TYPE_CHECKING:  # Python also takes text where the command line makes paths
    PathLike = str | Path
    OutFileLike = str | Path
    OutFolderLike = str | Path
else:
    PathLike, OutFileLike, OutFolderLike = Path, OutFile, OutFolder


def check_outputs(config: object) -> None:
    """Raise a TrueupError if a place that `config` names, in a field typed as above, cannot be written."""
    for name, hint in get_type_hints(type(config), include_extras=True).items():
        path = getattr(config, name, None)
        for output in _marks(hint):
            if isinstance(path, Path):
                check_writable(path, output.kind)


def check_writable(path: Path, kind: Literal["file", "folder", "either"]) -> None:
    """Raise a TrueupError unless a file or folder can be written at `path`; nothing is left behind."""
    is_file = kind == "file" or (kind == "either" and path.suffix != "")
    with writing(path):
        if is_file and path.exists() and not path.is_file():
            what = "a folder" if path.is_dir() else "no ordinary file"
            raise TrueupError(f"is {what}; name a file to write", file=path)
        if not is_file and path.exists() and not path.is_dir():
            raise TrueupError("is a file; name a folder to write into", file=path)
        folder = path.parent if is_file else path
        above = next(place for place in (folder, *folder.parents) if place.exists())
        if not above.is_dir():
            raise TrueupError(f"cannot be written: {above} is a file, not a folder", file=path)
        # only trying shows it: permissions, read-only disks and root differ
        os.rmdir(tempfile.mkdtemp(dir=above, prefix=".trueup-"))


def _marks(hint: Any) -> Iterator[Output]:
    for part in get_args(hint):
        if isinstance(part, Output):
            yield part
        else:
            yield from _marks(part)
