"""The one family of errors that users see."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class TrueupError(Exception):
    """An error that the user can correct: says what was asked, what was found and what to do.

    `file` and `place` (a line, a key, a joint) say where; both appear in the message.
    """

    def __init__(self, message: str, *, file: str | Path | None = None, place: str | None = None) -> None:
        self.message = message
        self.file = str(file) if file is not None else None
        self.place = place
        where = ", ".join(part for part in (self.file, place) if part)
        super().__init__(f"{where}: {message}" if where else message)


_MARKS = {  # file in a folder of ours -> kind of that folder, and what to name instead
    "workspace.json": "this is a workspace of `trueup loop`: its runs and fits are in round-1/",
    "ladder.json": "this is a ladder of actuator models: its rungs, in rungs/, are calibrations",
    "config.json": "this is a run of `trueup train`; `trueup export` makes a bundle of one",
    "params.json": "this is a calibration of `trueup calibrate`",
    "manifest.json": "this is a policy bundle",
    "spec.toml": "this is a robot's folder",
}


def found_instead(path: str | Path) -> str:
    """Description of a path's actual content, to be appended to an error message."""
    path = Path(path)
    if not path.exists():
        return f"there is no {path.name!r} here"
    if path.is_file():
        return f"this is a file ({path.suffix or 'without suffix'})"
    for mark, words in _MARKS.items():
        if (path / mark).is_file():
            return words
    names = sorted(entry.name for entry in path.iterdir())
    return f"this folder holds {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}" if names else "it is empty"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the nearest known name, else the list of known names."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(names)})" if names else ""
