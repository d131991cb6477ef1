"""RefitRequest: which parameters a diagnosis suspects, in which ranges; `gap` writes it, `calibrate` takes it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from trueup.core.documents import read_json, write_json

REFIT_FILE, SCHEMA = "refit.json", 1


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
    return write_json(path, request)


def read_refit(path: str | Path) -> RefitRequest:
    """Read refit.json, or the folder that holds it."""
    return read_json(path, RefitRequest, "refit request", name=REFIT_FILE, schema=SCHEMA)
