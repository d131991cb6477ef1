"""LeRobot datasets as their writers lay them out (v2.0, v2.1, v3.0), with numbers that a test can compute."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
NAMES = [f"{joint}.pos" for joint in JOINTS]
Episode = tuple[np.ndarray, np.ndarray]  # state and action, (T, columns)


def plain_episode(rows: int, start: float = 0.0, columns: int = 6) -> Episode:
    """State k in column k plus start, rising by 0.01 a row; the action is 1 ahead."""
    state = start + np.arange(columns) + 0.01 * np.arange(rows)[:, None]
    return state, state + 1.0


def make_dataset(
    root: Path,
    episodes: Sequence[Episode],
    *,
    version: str = "v3.0",
    names: Any = NAMES,
    action_names: Any = None,
    fps: float = 50.0,
    files: Sequence[Sequence[int]] | None = None,
    camera: bool = False,
    **changes: Any,
) -> Path:
    """Write a dataset; `files` says which episodes share a file (v3.0), `changes` replace keys of info.json."""
    width, awidth = episodes[0][0].shape[1], episodes[0][1].shape[1]
    features: dict[str, Any] = {
        "observation.state": {"dtype": "float32", "shape": [width], "names": names},
        "action": {"dtype": "float32", "shape": [awidth], "names": names if action_names is None else action_names},
    }
    if camera:
        features["observation.images.top"] = {"dtype": "video", "shape": [480, 640, 3], "names": ["h", "w", "c"]}
    for key, dtype in (("timestamp", "float32"), *((k, "int64") for k in _INDICES)):
        features[key] = {"dtype": dtype, "shape": [1], "names": None}
    frames = sum(len(state) for state, _ in episodes)
    info = {"codebase_version": version, "robot_type": "so101_follower", "total_episodes": len(episodes)}
    info |= {"total_frames": frames, "total_tasks": 2, "chunks_size": 1000, "fps": fps, "splits": {}}
    info |= {"features": features} | changes
    (root / "meta").mkdir(parents=True)
    (root / "meta" / "info.json").write_text(json.dumps(info))
    lengths = [len(state) for state, _ in episodes]
    starts = np.cumsum([0, *lengths])
    tables = [_table(k, int(starts[k]), episode, fps) for k, episode in enumerate(episodes)]
    if version == "v3.0":
        _write_v3(root, tables, lengths, files or [range(len(episodes))])
    else:
        _write_v2(root, tables, lengths)
    return root


_INDICES = ("frame_index", "episode_index", "index", "task_index")


def _table(k: int, start: int, episode: Episode, fps: float) -> pa.Table:
    rows = len(episode[0])
    columns = {
        name: pa.FixedSizeListArray.from_arrays(pa.array(values.astype(np.float32).ravel()), values.shape[1])
        for name, values in zip(("observation.state", "action"), episode, strict=True)
    }
    frame = np.arange(rows)
    columns["timestamp"] = pa.array((frame / fps).astype(np.float32))
    numbers = (frame, np.full(rows, k), start + frame, np.full(rows, k % 2))
    return pa.table(columns | {name: pa.array(values) for name, values in zip(_INDICES, numbers, strict=True)})


def _write(table: pa.Table, file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file, compression="snappy")


def _write_v2(root: Path, tables: list[pa.Table], lengths: list[int]) -> None:
    for k, table in enumerate(tables):
        _write(table, root / f"data/chunk-{k // 1000:03d}/episode_{k:06d}.parquet")
    tasks = [{"task_index": k, "task": f"task {k}"} for k in range(2)]
    said = [{"episode_index": k, "tasks": [f"task {k % 2}"], "length": n} for k, n in enumerate(lengths)]
    for name, lines in (("tasks", tasks), ("episodes", said)):
        (root / f"meta/{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _write_v3(root: Path, tables: list[pa.Table], lengths: list[int], files: Sequence[Sequence[int]]) -> None:
    for number, members in enumerate(files):
        _write(pa.concat_tables([tables[k] for k in members]), root / f"data/chunk-000/file-{number:03d}.parquet")
    _write(pa.table({"task_index": [0, 1], "__index_level_0__": ["task 0", "task 1"]}), root / "meta/tasks.parquet")
    said = {"episode_index": list(range(len(lengths))), "length": lengths}
    texts = [[f"task {k % 2}"] for k in range(len(lengths))]
    _write(pa.table(said | {"tasks": texts}), root / "meta/episodes/chunk-000/file-000.parquet")
