"""The one family of errors that users see."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path


class TrueupError(Exception):
    """Something the user can mend: says what was asked, what was found and what to do.

    `file` and `place` (a line, a key, a joint) say where; both appear in the message.
    """

    def __init__(self, message: str, *, file: str | Path | None = None, place: str | None = None) -> None:
        self.message = message
        self.file = str(file) if file is not None else None
        self.place = place
        where = ", ".join(part for part in (self.file, place) if part)
        super().__init__(f"{where}: {message}" if where else message)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the nearest known name, else the list of known names."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f" (did you mean {close[0]!r}?)"
    return f" (known: {', '.join(names)})" if names else ""
