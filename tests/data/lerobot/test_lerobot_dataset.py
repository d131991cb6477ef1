"""LeRobot datasets as logs. Two of them were written by LeRobot's own code (0.3.3: v2.1, 0.4.4: v3.0)."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_lerobot import JOINTS, NAMES, make_dataset, plain_episode

from trueup.core.errors import TrueupError
from trueup.data.lerobot.episodes import LerobotCfg, import_dataset
from trueup.data.lerobot.info import is_dataset
from trueup.data.log import Log, RobotReference
from trueup.data.mapping import read_mapping
from trueup.data.verbs import ImportLogVerb
from trueup.report.log import run_import

HERE = Path(__file__).parent
DEG = math.pi / 180.0
LOW, HIGH = np.array([-2.0, -1.5, -1.5, -1.5, -3.0, -0.2]), np.array([2.0, 1.5, 1.5, 1.5, 3.0, 1.8])


@pytest.fixture
def arm() -> RobotReference:
    one = np.ones(6)
    return RobotReference(
        joint_names=JOINTS,
        position_low=LOW,
        position_high=HIGH,
        velocity_limit=one,
        torque_limit=one,
        kp=one,
        kd=one,
        default_pose=0 * one,
        control_hz=50.0,
    )


def logs_of(root: Path, robot: RobotReference | None, **options: object) -> dict[str, Log]:
    cfg = LerobotCfg(**({"units": "radians"} | options))  # type: ignore[arg-type]
    return dict(import_dataset(root, robot, cfg))


@pytest.mark.parametrize(
    ("folder", "version"), [("written_by_lerobot_0_3_3", "v2.1"), ("written_by_lerobot_0_4_4", "v3.0")]
)
def test_dataset_written_by_lerobot_itself_becomes_logs(folder: str, version: str, arm: RobotReference) -> None:
    """Three episodes of 20, 21, 22 rows; state (10 e, t, -t, 2 t, 0, 50) in degrees and percent, action one more."""
    found = logs_of(HERE / folder, arm, units="degrees")
    assert list(found) == ["episode_000000", "episode_000001", "episode_000002"]
    for episode, (name, log) in enumerate(found.items()):
        t = np.arange(20 + episode)
        degrees = np.stack([10 * episode + 0 * t, t, -t, 2 * t, 0 * t], axis=1)
        assert log.joint_names == JOINTS
        np.testing.assert_allclose(log["joint_pos"][:, :5], DEG * degrees, atol=1e-12)
        np.testing.assert_allclose(log["joint_pos"][:, 5], -0.2 + 0.5 * 2.0, atol=1e-12)  # half open
        np.testing.assert_allclose(log["target_pos"][:, :5], DEG * (degrees + 1), atol=1e-12)
        np.testing.assert_allclose(log["target_pos"][:, 5], -0.2 + 0.51 * 2.0, atol=1e-12)
        np.testing.assert_allclose(log.time, t / 30.0, atol=1e-6)
        assert set(log.signals) == {"joint_pos", "target_pos"}  # no velocity is made up
        assert log.meta["task"] == f"task {episode % 2}"
        assert log.meta["format"] == f"LeRobot {version}"
        assert log.meta["recording"] == name
        assert log.meta["fps"] == 30


@pytest.mark.parametrize("version", ["v2.0", "v2.1", "v3.0"])
def test_all_versions_hold_the_same_logs(version: str, tmp_path: Path, arm: RobotReference) -> None:
    episodes = [plain_episode(8), plain_episode(5, 10.0), plain_episode(6, 20.0)]
    found = logs_of(make_dataset(tmp_path / "d", episodes, version=version, files=[[0, 1], [2]]), arm)
    assert [len(log) for log in found.values()] == [8, 5, 6]
    for log, (state, action) in zip(found.values(), episodes, strict=True):
        np.testing.assert_array_equal(log["joint_pos"], state.astype(np.float32))
        np.testing.assert_array_equal(log["target_pos"], action.astype(np.float32))
        np.testing.assert_allclose(np.diff(log.time), 0.02, atol=1e-6)


def test_normalised_values_span_the_limits_of_the_robot(tmp_path: Path, arm: RobotReference) -> None:
    state = np.array([[-100.0] * 5 + [0.0], [0.0] * 5 + [50.0], [100.0] * 5 + [100.0]])
    (log,) = logs_of(make_dataset(tmp_path / "d", [(state, state)]), arm, units="normalised").values()
    np.testing.assert_allclose(log["joint_pos"], [LOW, 0.5 * (LOW + HIGH), HIGH], atol=1e-12)
    assert "no calibration file given" in str(log.meta["notes"])


def test_calibration_file_says_how_far_normalised_values_reach(tmp_path: Path, arm: RobotReference) -> None:
    ranges = {joint: {"id": 1, "drive_mode": 0, "homing_offset": 3, "range_min": 1024} for joint in JOINTS}
    for joint, entry in ranges.items():
        entry["range_max"] = 3072 if joint != "gripper" else 2048  # half a turn; a quarter
    file = tmp_path / "arm.json"
    file.write_text(json.dumps(ranges))
    state = np.array([[-100.0] * 5 + [0.0], [100.0] * 5 + [100.0]])
    root = make_dataset(tmp_path / "d", [(state, state)])
    (log,) = logs_of(root, arm, units="normalised", calibration=file).values()
    quarter = math.pi / 2
    expected = [[-quarter] * 5 + [-0.2], [quarter] * 5 + [-0.2 + quarter]]
    np.testing.assert_allclose(log["joint_pos"], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"shoulder_pan": {"range_min": 5, "range_max": 5}}', "range 5..5 is none"),
        ('{"shoulder_pan": {"range_min": 5, "range_max": 500}}', "has no motor 'shoulder_lift'"),
        ("[1, 2]", "is not a LeRobot calibration file"),
        ('{"shoulder_pan": {"range_min": 5, "range_max": 1e999}}', "is not a LeRobot calibration file"),
    ],
)
def test_wrong_calibration_is_refused(text: str, message: str, tmp_path: Path, arm: RobotReference) -> None:
    (tmp_path / "c.json").write_text(text)
    root = make_dataset(tmp_path / "d", [plain_episode(3)])
    with pytest.raises(TrueupError, match=message):
        logs_of(root, arm, units="normalised", calibration=tmp_path / "c.json")


def test_units_must_be_said_and_the_values_are_shown(tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3)])
    with pytest.raises(TrueupError, match=r"does not say its units \(joint values .* from 0 to 5.02\)\. Say --units"):
        logs_of(root, arm, units=None)


def test_robot_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="--robot so101"):
        logs_of(make_dataset(tmp_path / "d", [plain_episode(3)]), None)


@pytest.mark.parametrize(
    "names",
    [NAMES[::-1], {"motors": NAMES[::-1]}, [f"main_{joint}" for joint in JOINTS[::-1]], list(JOINTS[::-1])],
    ids=["suffix", "dictionary", "main", "bare"],
)
def test_columns_are_matched_by_name_in_any_order(names: object, tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3)], names=names)
    (log,) = logs_of(root, arm).values()
    np.testing.assert_array_equal(log["joint_pos"][0], [5, 4, 3, 2, 1, 0])
    assert ("June 2025" in str(log.meta["notes"])) == (isinstance(names, list) and names[0].startswith("main_"))


def test_action_may_have_an_order_of_its_own(tmp_path: Path, arm: RobotReference) -> None:
    (log,) = logs_of(make_dataset(tmp_path / "d", [plain_episode(3)], action_names=NAMES[::-1]), arm).values()
    np.testing.assert_array_equal(log["joint_pos"][0], [0, 1, 2, 3, 4, 5])
    np.testing.assert_array_equal(log["target_pos"][0], [6, 5, 4, 3, 2, 1])


def test_columns_of_others_are_left_out(tmp_path: Path, arm: RobotReference) -> None:
    names = ["x.vel", *NAMES, "shoulder_pan.vel"]
    (log,) = logs_of(make_dataset(tmp_path / "d", [plain_episode(3, columns=8)], names=names), arm).values()
    np.testing.assert_array_equal(log["joint_pos"][0], [1, 2, 3, 4, 5, 6])


def test_columns_without_names_need_the_option(tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3, columns=7)], names=None)
    with pytest.raises(TrueupError, match="does not name its .* columns; name its columns in order: --joints"):
        logs_of(root, arm)
    (log,) = logs_of(root, arm, joints=("-", *JOINTS)).values()
    np.testing.assert_array_equal(log["joint_pos"][0], [1, 2, 3, 4, 5, 6])
    with pytest.raises(TrueupError, match="--joints names 6 columns"):
        logs_of(root, arm, joints=JOINTS)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([*NAMES[:5], "jaw.pos"], "5 of 6 joints: gripper missing"),
        (["a", "b", "c", "d", "e", "f"], "none of its columns"),
        ([*NAMES[:5], "shoulder_pan"], "two columns for joint 'shoulder_pan'"),
    ],
)
def test_names_that_do_not_fit_are_refused(names: list[str], message: str, tmp_path: Path, arm: RobotReference) -> None:
    with pytest.raises(TrueupError, match=message):
        logs_of(make_dataset(tmp_path / "d", [plain_episode(3)], names=names), arm)


def test_action_that_is_no_joint_target_is_left_out_aloud(
    tmp_path: Path, arm: RobotReference, caplog: pytest.LogCaptureFixture
) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3)], action_names=["x", "y", "z", "rx", "ry", "rz"])
    (log,) = logs_of(root, arm).values()
    assert "target_pos" not in log
    assert "no joint target" in caplog.text


def test_films_are_left_out_and_said(tmp_path: Path, arm: RobotReference) -> None:
    (log,) = logs_of(make_dataset(tmp_path / "d", [plain_episode(3)], camera=True), arm).values()
    assert "films and pictures (observation.images.top)" in str(log.meta["notes"])


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
def test_chosen_episodes_alone_are_imported(version: str, tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3, k) for k in range(4)], version=version)
    assert list(logs_of(root, arm, episodes=(2, 0))) == ["episode_000000", "episode_000002"]
    with pytest.raises(TrueupError, match="has no episode 7"):
        logs_of(root, arm, episodes=(7,))


def test_episode_in_two_files_is_refused(tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3), plain_episode(3)], files=[[0, 1], [0]])
    with pytest.raises(TrueupError, match="episode 0 is in another file too"):
        logs_of(root, arm)


def test_episode_shorter_than_its_metadata_is_said(
    tmp_path: Path, arm: RobotReference, caplog: pytest.LogCaptureFixture
) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(5)], version="v2.1")
    (root / "meta/episodes.jsonl").write_text('{"episode_index": 0, "length": 9}\n')
    (log,) = logs_of(root, arm).values()
    assert log.meta["rows_by_metadata"] == 9
    assert "has 5 rows, its metadata says 9" in caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codebase_version": "v1.6"}, "format 'v1.6'; this version reads v2.0, v2.1, v3.0"),
        ({"robot_type": 7}, "is not a LeRobot dataset"),
        ({"features": {}}, "has no feature 'observation.state'"),
        ({"features": 3}, "is not a LeRobot dataset"),
    ],
)
def test_info_that_is_none_is_refused(
    change: dict[str, object], message: str, tmp_path: Path, arm: RobotReference
) -> None:
    with pytest.raises(TrueupError, match=message):
        logs_of(make_dataset(tmp_path / "d", [plain_episode(3)], **change), arm)


def test_frame_rate_of_zero_is_refused(tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3)])
    info = json.loads((root / "meta/info.json").read_text())
    (root / "meta/info.json").write_text(json.dumps(info | {"fps": 0}))
    with pytest.raises(TrueupError, match="fps lies between"):
        logs_of(root, arm)


def test_values_that_are_not_finite_are_refused_by_row(tmp_path: Path, arm: RobotReference) -> None:
    state, action = plain_episode(5)
    state[3, 2] = np.nan
    with pytest.raises(TrueupError, match=r"row 4, column 'observation.state'"):
        logs_of(make_dataset(tmp_path / "d", [(state, action)]), arm)


def test_metadata_without_data_is_said(tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3)])
    (root / "data/chunk-000/file-000.parquet").unlink()
    with pytest.raises(TrueupError, match="only metadata was downloaded"):
        logs_of(root, arm)


@pytest.mark.parametrize("name", ["data/chunk-000/file-000.parquet", "meta/tasks.parquet", "meta/info.json"])
def test_link_out_of_the_dataset_is_refused(name: str, tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3)])
    (root / name).rename(tmp_path / "elsewhere")
    (root / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TrueupError, match="leads out of the dataset"):
        logs_of(root, arm)


def test_links_of_a_hugging_face_cache_are_followed(tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "datasets--me--arm" / "snapshots" / "abc", [plain_episode(3)])
    blobs = root.parent.parent / "blobs"
    blobs.mkdir()
    for k, file in enumerate(sorted(root.rglob("*.*"))):
        if file.is_file():
            file.rename(blobs / str(k))
            file.symlink_to(blobs / str(k))
    assert len(logs_of(root, arm)) == 1


def test_own_mapping_takes_the_place_of_robot_and_units(tmp_path: Path) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3), plain_episode(4)])
    toml = tmp_path / "own.toml"
    toml.write_text(
        'schema = 1\nname = "own"\njoints = ["a", "b"]\n[[file]]\n[file.time]\ncolumn = "timestamp"\nunit = "s"\n'
        '[[file.signal]]\nsignal = "joint_pos"\ncolumns = "observation.state"\nunit = "deg"\nindex = [5, 0]\n'
    )
    found = dict(import_dataset(root, None, LerobotCfg(), mapping=read_mapping(toml)))
    np.testing.assert_allclose(found["episode_000001"]["joint_pos"][0], [5 * DEG, 0.0])


def test_command_writes_a_log_for_each_episode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, out = HERE / "written_by_lerobot_0_4_4", tmp_path / "logs"
    assert run_import(ImportLogVerb(files=(root,), robot="so101", units="degrees", out=out)) == 0
    assert sorted(file.name for file in out.iterdir()) == [f"episode_{k:06d}.mcap" for k in range(3)]
    assert "22 rows, 0.70 s, 6 joints" in capsys.readouterr().out
    with pytest.raises(TrueupError, match="--out must be a folder"):
        run_import(ImportLogVerb(files=(root,), robot="so101", units="degrees", out=tmp_path / "one.mcap"))
    run_import(ImportLogVerb(files=(root,), robot="so101", units="degrees", episodes=(1,), out=tmp_path / "one.mcap"))
    assert (tmp_path / "one.mcap").is_file()


def test_tables_without_a_mapping_are_refused(tmp_path: Path) -> None:
    assert not is_dataset(tmp_path)
    with pytest.raises(TrueupError, match=r"meta/info.json is missing.*tables need a mapping"):
        run_import(ImportLogVerb(files=(tmp_path,), out=tmp_path / "x.mcap"))
    with pytest.raises(TrueupError, match=r"nowhere: no such file or folder"):
        run_import(ImportLogVerb(files=(tmp_path / "nowhere",), robot="so101", out=tmp_path / "x.mcap"))
    with pytest.raises(TrueupError, match="no file given"):
        run_import(ImportLogVerb(files=(), out=tmp_path / "x.mcap"))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"task_index": ["a"], "task": ["b"]}),
        pa.table({"task_index": [1]}),
        pa.table({"task_index": [1], "a": ["b"], "c": ["d"]}),
    ],
)
def test_tasks_of_another_shape_are_refused(table: pa.Table, tmp_path: Path, arm: RobotReference) -> None:
    root = make_dataset(tmp_path / "d", [plain_episode(3)])
    pq.write_table(table, root / "meta/tasks.parquet")
    with pytest.raises(TrueupError, match="has no task_index and text"):
        logs_of(root, arm)


def test_bomb_in_the_tasks_is_refused(tmp_path: Path, arm: RobotReference) -> None:
    """600 MB of text that packs into a few kB: the guarded process refuses, this one stays small."""
    root = make_dataset(tmp_path / "d", [plain_episode(3)])
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int32)), pa.array(["a" * 60_000]))
    bomb = pa.table({"task_index": range(10_000), "task": text})
    pq.write_table(bomb, root / "meta/tasks.parquet", compression="zstd", store_schema=False)
    assert (root / "meta/tasks.parquet").stat().st_size < 200_000
    with pytest.raises(TrueupError, match=r"tasks.parquet"):
        logs_of(root, arm)
