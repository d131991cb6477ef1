"""The sealed truth of a twin: written when the twin starts, opened only to score oneself (`trueup twin reveal`).

The seal is against reading by accident, not against intent: the content is compressed, so that neither an editor nor a
search shows it. No stage may import this module; a test holds them to it.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

import msgspec

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.files import write_atomic
from trueup.twin.truth.truth import Truth, truth_json

HEADER = b"trueup sealed twin 1: `trueup twin reveal` opens it\n"
SUFFIX = ".sealed"
MAX_BYTES = 10_000_000


def seal_folder() -> Path:
    """Return where sealed truths are kept: $XDG_STATE_HOME/trueup/twins, else ~/.local/state/trueup/twins."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "trueup" / "twins"


def seal(name: str, truth: Truth) -> Path:
    """Write the truth of the twin called `name`; returns the file."""
    file = seal_folder() / f"{name}{SUFFIX}"
    try:
        return write_atomic(file, HEADER + zlib.compress(truth_json(truth), 9))
    except TrueupError as error:
        reason = f"{error.message}; set XDG_STATE_HOME"
        raise TrueupError(f"the twin's truth cannot be sealed: {reason}", file=file) from None


def sealed_names() -> tuple[str, ...]:
    """Names of the twins whose truth is kept."""
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in seal_folder().glob(f"*{SUFFIX}")))


def reveal(name: str) -> dict[str, object]:
    """Open the seal of a twin (`go2-harmonic-7`: robot, preset, seed) and return its truth."""
    file = seal_folder() / f"{name}{SUFFIX}"
    if name not in sealed_names():
        raise TrueupError(f"no twin {name!r} has run here{did_you_mean(name, sealed_names())}", file=file)
    data = file.read_bytes()
    if not data.startswith(HEADER) or len(data) > MAX_BYTES:
        raise TrueupError("is not the sealed truth of a twin", file=file)
    try:
        content = zlib.decompressobj().decompress(data[len(HEADER) :], MAX_BYTES)
        return msgspec.json.decode(content, type=dict[str, object])
    except (zlib.error, msgspec.MsgspecError) as error:
        raise TrueupError(f"the sealed truth is damaged ({error}); start the twin once more", file=file) from None
