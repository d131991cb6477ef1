"""RefitRequest: which parameters a diagnosis suspects, in which ranges; `gap` writes it, `calibrate` takes it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic

REFIT_FILE, SCHEMA = "refit.json", 1
_MOST_BYTES = 1_000_000


class Suspect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One parameter: its name among those of `calibrate`, joints or bodies (): all, and where it may lie."""

    name: str
    of: tuple[str, ...]
    low: float
    high: float
    unit: str


class RefitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to fit again, to which logs.

    params      names for `calibrate --params`: what is usual for the robot, and the suspects
    bodies      whose masses are to be fitted
    logs        files as they were named, `hashes` their content
    excitation  motion that would show the suspects better
    """

    schema: int = SCHEMA
    robot: str
    base: str
    params: tuple[str, ...]
    bodies: tuple[str, ...] = ()
    suspects: tuple[Suspect, ...]
    logs: tuple[str, ...]
    hashes: tuple[str, ...]
    excitation: str = ""


def write_refit(request: RefitRequest, path: str | Path) -> Path:
    """Write a request, whole or not at all."""
    return write_atomic(path, msgspec.json.format(msgspec.json.encode(request), indent=1))


def read_refit(path: str | Path) -> RefitRequest:
    """Read refit.json, or the folder that holds it."""
    file = Path(path) / REFIT_FILE if Path(path).is_dir() else Path(path)
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise TrueupError(f"is larger than {_MOST_BYTES} bytes: not a refit request", file=file)
        found = msgspec.json.decode(file.read_bytes(), type=RefitRequest)
    except OSError as error:
        raise TrueupError(f"the refit request cannot be read: {error.strerror}", file=file) from None
    except msgspec.MsgspecError as error:
        raise TrueupError(f"is not a refit request of `trueup gap`: {error}", file=file) from None
    if found.schema != SCHEMA:
        raise TrueupError(f"is of schema {found.schema}, this version reads {SCHEMA}: diagnose again", file=file)
    return found
