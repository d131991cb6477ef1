"""Files of a LeRobot dataset: tables with the rows of episodes, the tasks, how long each episode should be.

v2.x   data/chunk-000/episode_000000.parquet, an episode each; meta/tasks.jsonl, meta/episodes.jsonl
v3.0   data/chunk-000/file-000.parquet, several episodes each; meta/tasks.parquet and
       meta/episodes/chunk-000/file-000.parquet

Nothing outside the dataset's folder is opened: a link that leads elsewhere is refused, but for links of a Hugging Face
cache into its own `blobs`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from trueup.core.documents import BAD_JSON, read_bytes
from trueup.core.errors import TrueupError
from trueup.core.guarded import GuardedProcess, GuardLimits
from trueup.data.lerobot.info import MAX_TEXT_BYTES, Info
from trueup.data.tables import read_table
from trueup.data.tables.table import MIB

_MAX_FILES = 200_000
_EPISODE_FILE = re.compile(r"episode_(\d{1,9})\.parquet")
_LIMITS = GuardLimits(cpu_s=1.0, memory_bytes=256 * MIB, answer_bytes=8 * MIB)
TASK_GUARD = GuardedProcess("trueup.data.lerobot.load_tasks:load_tasks", preload=["pyarrow.parquet"])
T = TypeVar("T")


class _Task(msgspec.Struct, frozen=True):
    task_index: int
    task: str


class _Episode(msgspec.Struct, frozen=True):
    episode_index: int
    length: int


def data_files(root: Path) -> list[Path]:
    """Tables of a dataset in their order, each inside its folder."""
    return inside(root, sorted(_found(root / "data")))


def episode_of(file: Path) -> int | None:
    """The episode that a file of v2.x holds, by its name."""
    match = _EPISODE_FILE.fullmatch(file.name)
    return int(match.group(1)) if match else None


def read_tasks(root: Path, info: Info) -> dict[int, str]:
    """Task texts by index; {} for a dataset without tasks."""
    if info.codebase_version != "v3.0":
        return {entry.task_index: entry.task for entry in _lines(root, "meta/tasks.jsonl", _Task)}
    file = root / "meta" / "tasks.parquet"
    if not file.exists():
        return {}
    inside(root, [file])
    answer: Any = TASK_GUARD.call({"file": str(file.absolute())}, _LIMITS, file)
    return {int(index): str(text) for index, text in answer}


def read_lengths(root: Path, info: Info) -> dict[int, int]:
    """Number of rows of each episode by the dataset's metadata; {} without it."""
    if info.codebase_version != "v3.0":
        return {entry.episode_index: entry.length for entry in _lines(root, "meta/episodes.jsonl", _Episode)}
    lengths: dict[int, int] = {}
    for file in inside(root, sorted(_found(root / "meta" / "episodes"))):
        table = read_table(file, ["episode_index", "length"])
        table.check_lengths()
        columns = [table.columns[name] for name in ("episode_index", "length")]
        if any(column.ndim != 1 or not np.isfinite(column).all() for column in columns):
            raise TrueupError("episode_index and length are one number an episode", file=file)
        lengths |= {int(episode): int(length) for episode, length in zip(*columns, strict=True)}
    return lengths


def _found(folder: Path) -> list[Path]:
    """chunk-*/*.parquet under a folder."""
    if not folder.is_dir():
        return []
    files = []
    for file in folder.glob("*/*.parquet"):
        files.append(file)
        if len(files) > _MAX_FILES:
            raise TrueupError(f"holds more than {_MAX_FILES} files", file=folder)
    return files


def inside(root: Path, files: list[Path]) -> list[Path]:
    """The same files; one that is a link to elsewhere is refused."""
    home = root.resolve()
    homes = [home]
    if home.parent.name == "snapshots":  # of a Hugging Face cache, whose files are links into its blobs
        homes.append(home.parent.parent / "blobs")
    for file in files:
        if not any(file.resolve().is_relative_to(place) for place in homes):
            raise TrueupError("is a link that leads out of the dataset; copy the file into it", file=file)
    return files


def _lines(root: Path, name: str, kind: type[T]) -> list[T]:
    """Lines of JSON; [] when there is no such file."""
    file = root / name
    if not file.exists():
        return []
    inside(root, [file])
    try:
        return msgspec.json.Decoder(kind).decode_lines(read_bytes(file, MAX_TEXT_BYTES, "LeRobot file"))
    except BAD_JSON as error:
        raise TrueupError(f"cannot be read: {error}", file=file) from None
