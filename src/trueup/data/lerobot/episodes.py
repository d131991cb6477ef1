"""Episodes of a LeRobot dataset as Logs: `observation.state` is joint_pos, `action` is target_pos.

Row t of an episode holds the observation and the action that was then sent, as in a Log. There is no
measured velocity, and none is computed. Films and pictures are not read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trueup.core.arrays import sha256_of_file
from trueup.core.errors import TrueupError
from trueup.data.import_table import column_names, log_of_table
from trueup.data.lerobot.info import ACTION, STATE, Info, columns_of_joints, names_of, read_info
from trueup.data.lerobot.layout import data_files, episode_of, inside, read_lengths, read_tasks
from trueup.data.lerobot.units import Units, find_scale, read_calibration
from trueup.data.log import Log, RobotReference
from trueup.data.mapping import FileMap, Mapping, SignalMap, TimeMap
from trueup.data.tables import Table, read_table

_log = logging.getLogger(__name__)
_EPISODE, _TASK = "episode_index", "task_index"
_MOST = 10**9  # episodes
_NOTES = (
    "time stamps are frame number / fps unless the recorder had better: when a row was really measured is not recorded",
    "target_pos is the action that was asked for; what a robot class clips on its way is not in a dataset",
)
_OLD_CALIBRATION = (
    "names such as main_shoulder_pan are from before LeRobot's calibration of June 2025: zero and direction of joints "
    "may differ from the model's; `trueup data check --robot` looks for that"
)


@dataclass(frozen=True, kw_only=True)
class LerobotCfg:
    """Facts that a dataset does not state.

    units        of joint values; required
    joints       which joint each column of state and action is, where the dataset does not name them ("-": none)
    calibration  the arm's calibration file, for units in which -100..100 is a range
    episodes     to import; () for all
    """

    units: Units | None = None
    joints: tuple[str, ...] = ()
    calibration: Path | None = None
    episodes: tuple[int, ...] = ()


def import_dataset(
    path: str | Path,
    robot: RobotReference | None,
    cfg: LerobotCfg,
    *,
    robot_name: str = "",
    mapping: Mapping | None = None,
) -> Iterator[tuple[str, Log]]:
    """Yield (name, log) of every episode; a `mapping` of one's own takes the place of robot and units."""
    root = Path(path)
    inside(root, [root / "meta" / "info.json"])
    info = read_info(root)
    files, tasks, lengths = data_files(root), read_tasks(root, info), read_lengths(root, info)
    if not files:
        raise TrueupError("has no data/*/*.parquet: only metadata was downloaded", file=root)
    if mapping is None:
        mapping = dataset_mapping(info, robot, cfg, root=root, robot_name=robot_name, example=files[0])
    wanted, done = set(cfg.episodes), set[int]()
    for file in files:
        if wanted and (by_name := episode_of(file)) is not None and by_name not in wanted:
            continue
        digest = sha256_of_file(file)
        for episode, table in _episodes(file, mapping, info):
            if episode in done:
                raise TrueupError(f"episode {episode} is in another file too, or in two parts", file=file)
            done.add(episode)
            if wanted and episode not in wanted:
                continue
            meta = _meta(info, mapping, table, episode) | {"source_sha256": [digest]}
            meta |= _task(table, tasks) | _shortfall(episode, len(table), lengths)
            yield f"episode_{episode:06d}", log_of_table(_without_index(table), mapping, meta)
    if missing := wanted - done:
        raise TrueupError(f"has no episode {min(missing)}; it has {len(done)}", file=root)


def dataset_mapping(
    info: Info, robot: RobotReference | None, cfg: LerobotCfg, *, root: Path, robot_name: str, example: Path
) -> Mapping:
    """The mapping of a dataset's columns to this robot's joints; refuses missing facts."""
    file = root / "meta" / "info.json"
    if robot is None:
        raise TrueupError("say which robot the joints are of: --robot so101", file=file)
    columns = columns_of_joints(info, STATE, robot.joint_names, cfg.joints, file)
    if not columns:
        found = ", ".join(names_of(info.features[STATE]) or ("?",))[:300]
        text = f"none of its columns ({found}) is a joint of the robot ({', '.join(robot.joint_names)})"
        raise TrueupError(f"{text}; --joints names them in order", file=file, place=f"feature {STATE!r}")
    if cfg.units is None:
        raise TrueupError(f"does not say its units{_seen(example, columns)}. {_UNITS_HINT}", file=file)
    ranges = None if cfg.calibration is None else read_calibration(cfg.calibration)
    scale = find_scale(cfg.units, robot.joint_names, robot.position_low, robot.position_high, ranges)
    used = {"joint_pos": (STATE, columns)}
    notes = [*_NOTES, *scale.notes]
    if ACTION in info.features and (sent := columns_of_joints(info, ACTION, robot.joint_names, cfg.joints, file)):
        used["target_pos"] = (ACTION, sent)
    else:
        notes.append("the action is no joint target: the log has no target_pos")
        _log.warning("%s: its action is no joint target, so the logs have no commands", root)
    if any(name.startswith("main_") for name in names_of(info.features[STATE]) or ()):
        notes.append(_OLD_CALIBRATION)
    if info.cameras:
        notes.append(f"left out: films and pictures ({', '.join(info.cameras)[:300]})")
    signals = tuple(
        SignalMap(
            signal=signal,
            columns=feature,
            index=index,
            unit="rad" if cfg.units == "radians" else "normalised",
            scale=tuple(scale.scale.tolist()),
            offset=tuple(scale.offset.tolist()),
        )
        for signal, (feature, index) in used.items()
    )
    clock = TimeMap(column="timestamp", unit="s")
    table = FileMap(pattern="*.parquet", time=clock, signals=signals)
    return Mapping(
        schema=1, name="lerobot", joints=robot.joint_names, files=(table,), robot=robot_name, notes=tuple(notes)
    )


_UNITS_HINT = (
    "Say --units degrees (recorded with use_degrees=true, the default of lerobot 0.4.4), normalised "
    "(use_degrees=false, the default of 0.3.3: -100..100) or radians; the gripper is 0..100 in the first two"
)


def _seen(file: Path, columns: tuple[int, ...]) -> str:
    """Range of the values, as a hint on their unit."""
    values = read_table(file, [STATE]).columns[STATE]
    values = values.reshape(len(values), -1)
    if not len(values) or max(columns) >= values.shape[1] or not np.isfinite(values).all():
        return ""
    chosen = values[:, list(columns)]
    return f" (joint values in {file.name} run from {chosen.min():.4g} to {chosen.max():.4g})"


def _episodes(file: Path, mapping: Mapping, info: Info) -> Iterator[tuple[int, Table]]:
    """The rows of each episode in a file, as a table of their own."""
    wanted = [*column_names(mapping.files[0], mapping), _EPISODE] + [_TASK] * (_TASK in info.features)
    table = read_table(file, list(dict.fromkeys(wanted)))
    table.check_lengths()
    index = table.columns[_EPISODE]
    if (
        index.ndim != 1
        or not np.isfinite(index).all()
        or (index != np.rint(index)).any()
        or not ((index >= 0) & (index < _MOST)).all()
    ):
        raise TrueupError("holds no episode numbers", file=file, place=f"column {_EPISODE!r}")
    ends = np.flatnonzero(np.diff(index)) + 1
    for rows in np.split(np.arange(len(index)), ends) if len(index) else ():
        part = {name: values[rows[0] : rows[-1] + 1] for name, values in table.columns.items()}
        yield int(index[rows[0]]), replace(table, columns=part)


def _without_index(table: Table) -> Table:
    kept = {name: values for name, values in table.columns.items() if name not in (_EPISODE, _TASK)}
    return replace(table, columns=kept)


def _meta(info: Info, mapping: Mapping, table: Table, episode: int) -> dict[str, object]:
    return {
        "robot": mapping.robot,
        "recording": f"episode_{episode:06d}",
        "episode": episode,
        "mapping": mapping.name,
        "format": f"LeRobot {info.codebase_version}",
        "lerobot_robot": info.robot_type or "",
        "fps": info.fps,
        "source": [table.file.name],
        "notes": list(mapping.notes),
    }


def _task(table: Table, tasks: dict[int, str]) -> dict[str, object]:
    index = table.columns.get(_TASK)
    if index is None or index.ndim != 1 or not np.isfinite(index).all():
        return {}
    found = [tasks[k] for k in dict.fromkeys(index.astype(np.int64).tolist()) if k in tasks]
    return {"task": "; ".join(found)} if found else {}


def _shortfall(episode: int, rows: int, lengths: dict[int, int]) -> dict[str, object]:
    """A note when an episode's length differs from the dataset's metadata."""
    expected = lengths.get(episode, rows)
    if expected == rows:
        return {}
    _log.warning("episode %d has %d rows, its metadata says %d: it was cut or edited", episode, rows, expected)
    return {"rows_by_metadata": expected}
