"""Places to write, marked in the types of a config and checked before work begins that would be lost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from trueup.core.errors import TrueupError
from trueup.core.files import writing


@dataclass(frozen=True)
class Output:
    """What will be written at a path; "either": a file if the path has a suffix, a folder if not."""

    kind: Literal["file", "folder", "either"]


OutFile = Annotated[Path, Output("file")]
OutFolder = Annotated[Path, Output("folder")]
OutEither = Annotated[Path, Output("either")]


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
        # trying is the only way to know: rights, read-only disks and what root may do differ
        os.rmdir(tempfile.mkdtemp(dir=above, prefix=".trueup-"))


def _marks(hint: Any) -> Iterator[Output]:
    for part in get_args(hint):
        if isinstance(part, Output):
            yield part
        else:
            yield from _marks(part)
