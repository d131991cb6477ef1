"""State of resumable computations on disk: checkpoints of long runs, state files of short ones; never pickle.

A checkpoint is a folder: named arrays in safetensors and a manifest with their hash, written last; two generations are
kept. A kill at any moment leaves at least one whole checkpoint: a folder counts only if its manifest is there and fits.
A `StateFile` is one file that is replaced whole, for computations of minutes.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from trueup.core.arrays import sha256_of
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic

Arrays = dict[str, NDArray[np.generic]]
_ARRAYS, _MANIFEST, _SCHEMA = "arrays.safetensors", "manifest.json", 1
_KEEP = 2


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Arrays, and facts that are no arrays (iteration, time spent, versions)."""

    arrays: Arrays
    facts: dict[str, Any]


def _encode(arrays: Arrays, about: dict[str, str] | None = None) -> bytes:
    return save({name: np.asarray(value, order="C") for name, value in arrays.items()}, about)


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write both files; the checkpoint exists from the moment its manifest does."""
    content = _encode(checkpoint.arrays)
    write_atomic(folder / _ARRAYS, content)
    manifest = {"schema": _SCHEMA, "sha256": {_ARRAYS: sha256_of([content])}, "facts": checkpoint.facts}
    write_atomic(folder / _MANIFEST, json.dumps(manifest, indent=1) + "\n")
    return folder


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint whose hash fits; anything else is a TrueupError."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        content = (folder / _ARRAYS).read_bytes()
        expected, facts = manifest["sha256"][_ARRAYS], dict(manifest["facts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrueupError(f"is not a whole checkpoint: {error}", file=folder) from None
    if sha256_of([content]) != expected:
        raise TrueupError("the hash does not fit: the file was changed or damaged", file=folder / _ARRAYS)
    try:
        return Checkpoint(arrays=dict(load(content)), facts=facts)
    except (SafetensorError, ValueError) as error:
        raise TrueupError(f"cannot be read: {error}", file=folder / _ARRAYS) from None


class Checkpoints:
    """The checkpoints of a run, one folder for each, named by iteration."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def save(self, iteration: int, checkpoint: Checkpoint) -> Path:
        """Write one and remove all but the newest two."""
        folder = write_checkpoint(self.root / f"{iteration:08d}", checkpoint)
        for old in self.folders()[_KEEP:]:
            (old / _MANIFEST).unlink(missing_ok=True)
            shutil.rmtree(old, ignore_errors=True)
        return folder

    def folders(self) -> list[Path]:
        """Newest first, whole or not."""
        if not self.root.is_dir():
            return []
        return sorted((path for path in self.root.iterdir() if path.name.isdigit()), reverse=True)

    def newest(self) -> Checkpoint | None:
        """The newest whole checkpoint; None if there is none yet."""
        for folder in self.folders():
            try:
                return read_checkpoint(folder)
            except TrueupError:
                continue
        return None


class StateFile:
    """The state of one computation, under a key that says which problem it belongs to.

    It is replaced whole while the computation runs, at most every `every_s`, and removed at its end.

    what  is computed, for messages: "fit", "training"
    """

    def __init__(self, path: Path, key: str, *, what: str, every_s: float) -> None:
        self.path, self._key, self._what, self._every_s = path, key, what, every_s
        self._last = -np.inf

    def save(self, state: Checkpoint, *, now: bool = False) -> None:
        """Write the state, unless one was just written and `now` is False."""
        if now or time.monotonic() - self._last >= self._every_s:
            write_atomic(self.path, _encode(state.arrays, {"key": self._key, "facts": json.dumps(state.facts)}))
            self._last = time.monotonic()

    def load(self) -> Checkpoint | None:
        """The state that a computation of the same problem left; None if there is none."""
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                about = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            facts = json.loads(about.get("facts", "{}"))
        except (SafetensorError, ValueError, OSError) as error:
            raise TrueupError(f"is not the state of a {self._what}: {error}; delete it", file=self.path) from None
        if about.get("key") != self._key:
            hint = "other logs, parameters or settings; choose another folder, or start anew without --resume"
            raise TrueupError(f"is the state of another {self._what}: {hint}", file=self.path)
        return Checkpoint(arrays=arrays, facts=facts)

    def clear(self) -> None:
        """Remove the file: the computation is done."""
        self.path.unlink(missing_ok=True)
