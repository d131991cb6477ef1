"""Workspace: a folder with one folder per stage and round, whose manifests chain artifacts by hash.

WORKSPACE/workspace.json             request of the loop: robot, driver, task, budgets
WORKSPACE/round-1/calibrate/         the artifacts of a stage, and beside them
    request.json                     config and inputs; written first
    stage.log                        output of its commands
    manifest.json                    hashes of inputs and outputs, parents; written last: a stage without is not done
    times.json                       when and how long, no part of any hash
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from trueup.core.arrays import sha256_of
from trueup.core.errors import TrueupError
from trueup.core.files import make_folder, write_atomic
from trueup.loop.fingerprint import fingerprint

SCHEMA = 1
MANIFEST, REQUEST, LOG, TIMES, ASKED = "manifest.json", "request.json", "stage.log", "times.json", "workspace.json"


@dataclass(frozen=True, kw_only=True)
class StageManifest:
    """Inputs and outputs of a finished stage.

    request   hash of config and inputs: an equal request is not run again
    inputs    stage -> hash of its outputs as used; these are the parents
    outputs   path within the stage's folder -> hash by content (`fingerprint`)
    codes     exit codes of its commands
    hash      of request and outputs: what later stages name as their parent
    """

    stage: str
    round: int
    request: str
    config: dict[str, Any]
    inputs: dict[str, str]
    outputs: dict[str, str]
    codes: tuple[int, ...] = ()
    note: str = ""
    hash: str = ""
    schema: int = SCHEMA


@dataclass(frozen=True, kw_only=True)
class Times:
    """When a stage ran and for how long, summed over interrupted runs."""

    started: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    parts: int = 0


@dataclass(frozen=True)
class Workspace:
    """The folder; everything about the loop is read from it."""

    path: Path

    def folder(self, round_: int, stage: str) -> Path:
        return self.path / f"round-{round_}" / stage

    def manifest(self, round_: int, stage: str) -> StageManifest | None:
        """Manifest of a finished stage; None if it is not finished."""
        return read_manifest(self.folder(round_, stage))

    def times(self, round_: int, stage: str) -> Times:
        try:
            return msgspec.convert(json.loads((self.folder(round_, stage) / TIMES).read_text()), Times)
        except (OSError, ValueError):
            return Times()

    def begin(self, round_: int, stage: str, request: dict[str, Any]) -> Path:
        """The stage's folder for this request: files of an equal request are kept, others removed."""
        folder, text = self.folder(round_, stage), json.dumps(request, indent=1, sort_keys=True)
        if not (folder / REQUEST).exists() or (folder / REQUEST).read_text() != text:
            if folder.exists():
                shutil.rmtree(folder)
            make_folder(folder)
            write_atomic(folder / REQUEST, text)
        return folder

    def finish(self, manifest: StageManifest) -> StageManifest:
        """Write the manifest, last of all files of a stage."""
        folder = self.folder(manifest.round, manifest.stage)
        whole = asdict(manifest) | {"hash": _hash(manifest)}
        write_atomic(folder / MANIFEST, json.dumps(whole, indent=1, sort_keys=True) + "\n")
        return msgspec.convert(whole, StageManifest)

    def intact(self, manifest: StageManifest) -> bool:
        """Whether all outputs exist unchanged."""
        folder = self.folder(manifest.round, manifest.stage)
        try:
            return all(fingerprint(folder / name) == value for name, value in manifest.outputs.items())
        except (TrueupError, ValueError):
            return False

    def hashes(self) -> dict[str, str]:
        """round-K/STAGE -> hash of every finished stage, to compare two workspaces by."""
        found = sorted(self.path.glob(f"round-*/*/{MANIFEST}"))
        return {f"{one.parts[-3]}/{one.parts[-2]}": json.loads(one.read_text())["hash"] for one in found}

    def rounds(self) -> list[int]:
        """Rounds that have begun."""
        return sorted(int(one.name.removeprefix("round-")) for one in self.path.glob("round-*") if one.is_dir())


def read_manifest(folder: Path) -> StageManifest | None:
    """The manifest of a stage's folder; None if it is not there or of another version."""
    try:
        return msgspec.convert(json.loads((folder / MANIFEST).read_text()), StageManifest)
    except (OSError, ValueError, msgspec.ValidationError):
        return None


def request_hash(request: dict[str, Any]) -> str:
    """Hash of a stage's config and inputs."""
    return sha256_of([json.dumps(request, sort_keys=True)])


def _hash(manifest: StageManifest) -> str:
    return sha256_of([manifest.request, json.dumps(manifest.outputs, sort_keys=True)])
