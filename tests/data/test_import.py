"""Recordings through mappings: numbers worked out by hand, clocks joined, faults named."""

from __future__ import annotations

import gzip
import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.data.import_table import import_log, import_logs
from trueup.data.log import Log
from trueup.data.mapping import Mapping, find_mapping, read_mapping

REAL = Path(__file__).parents[3] / "shared" / "data"
needs_recordings = pytest.mark.skipif(not REAL.is_dir(), reason="the public recordings are not on this machine")


def mapping_of(folder: Path, body: str, joints: str = '["hip", "knee"]') -> Mapping:
    path = folder / "m.toml"
    path.write_text(f'schema = 1\nname = "m"\njoints = {joints}\n{body}')
    return read_mapping(path)


def simple(folder: Path, extra: str, head: str = "rate_hz = 10.0", signal: str = "joint_pos") -> Mapping:
    return mapping_of(folder, f'[[file]]\n{head}\n[[file.signal]]\nsignal = "{signal}"\n{extra}\n')


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def import_text(folder: Path, text: str, mapping: Mapping) -> Log:
    return import_log([write(folder, "a.csv", text)], mapping)


def go2_text(rows: int = 30) -> str:
    names = ["state", *(f"jpos{i}" for i in range(12)), *(f"jvel{i}" for i in range(12))]
    names += [*(f"jpos{i}_des" for i in range(12)), "kp", "kd"]
    lines = [",".join(names)]
    for t in range(rows):
        cells = [2, *(0.01 * t + i for i in range(12)), *([0.5] * 12), *(i for i in range(12)), 20, 0.5]
        lines.append(",".join(f"{cell:g}" for cell in cells))
    return "\n".join(lines) + "\n"


def so101_folder(folder: Path, name: str, start_us: float = 0.0) -> Path:
    """A motion in the format of the SO-101 recordings: six numbers a cell, microseconds, two files."""
    motion = folder / name
    motion.mkdir(parents=True)
    state, control = ["type,timestamp,positions,velocities,torques"], ["type,timestamp,positions"]
    for t in range(20):
        q = [0.1 * t, 0, 0, 0, 0, 0.5]
        state.append(f'STATE_MOTOR,{20000.5 * t},"{q}","{[1.0] * 6}","{[0.02] * 6}"')
    for t in range(10):
        control.append(f'CONTROL,{start_us + 40001.0 * t},"{[float(t), 0, 0, 0, 0, 1.0]}"')
    write(motion, "state_motor.csv.gz", "\n".join(state))
    write(motion, "control.csv.gz", "\n".join(control))
    write(motion, "event.csv.gz", "type,timestamp,event\nEVENT,0,START\n")
    (motion / "joint_list.txt").write_text("Rotation\n")
    return motion


# shipped mappings


def test_go2_air_imports_with_the_shipped_mapping(tmp_path: Path) -> None:
    path = write(tmp_path, "go2.csv.gz", go2_text())
    log = import_log([path], find_mapping("go2_air"))
    assert log.rate_hz == pytest.approx(200.0)
    assert set(log.signals) == {"joint_pos", "joint_vel", "target_pos", "target_kp", "target_kd"}
    np.testing.assert_allclose(log["joint_pos"][3], 0.03 + np.arange(12), atol=1e-6)
    np.testing.assert_array_equal(log["target_pos"][5], np.arange(12))
    np.testing.assert_array_equal(log["target_kp"], np.full((30, 12), 20.0))
    np.testing.assert_array_equal(log["target_kd"], np.full((30, 12), 0.5))
    assert log.joint_names[0] == "FL_hip_joint"
    assert log.meta["robot"] == "go2"
    assert log.meta["source_sha256"] == [hashlib.sha256(path.read_bytes()).hexdigest()]


def test_so101_joins_commands_to_states_by_holding_them(tmp_path: Path) -> None:
    log = import_log([so101_folder(tmp_path, "chirp")], find_mapping("so101"))
    assert len(log) == 20
    assert log.time[1] == pytest.approx(0.0200005)
    # commands at 0, 40.001, 80.002 ms; states at 0, 20.0005, 40.001, 60.0015 ms: one command for two states
    np.testing.assert_array_equal(log["target_pos"][:, 0], np.arange(20) // 2)
    assert log.meta["recording"] == "chirp"
    assert any("without sign" in note for note in list(log.meta["notes"]))  # type: ignore[call-overload]


def test_so101_jaw_is_mapped_to_the_range_of_the_model(tmp_path: Path) -> None:
    log = import_log([so101_folder(tmp_path, "chirp")], find_mapping("so101"))
    np.testing.assert_allclose(log["joint_pos"][:, 5], (1.74533 - 0.174533) / 2, atol=1e-9)
    np.testing.assert_allclose(log["target_pos"][:, 5], 1.74533, atol=1e-9)
    np.testing.assert_allclose(log["joint_vel"][0], [1, 1, 1, 1, 1, 0.82176])


def test_states_before_the_first_command_are_left_out_and_counted(tmp_path: Path) -> None:
    log = import_log([so101_folder(tmp_path, "late", start_us=50_000.0)], find_mapping("so101"))
    assert log.time[0] == pytest.approx(0.0600015)
    assert log.meta["rows_left_out"] == 3
    assert log["target_pos"][0, 0] == 0.0


def test_a_folder_of_motions_imports_one_log_each(tmp_path: Path) -> None:
    for name in ("b_steps", "a_chirp"):
        so101_folder(tmp_path / "all", name)
    mapping = find_mapping("so101")
    assert [(name, len(log)) for name, log in import_logs([tmp_path / "all"], mapping)] == [
        ("a_chirp", 20),
        ("b_steps", 20),
    ]
    with pytest.raises(TrueupError, match="2 recordings here"):
        import_log([tmp_path / "all"], mapping)


def test_files_of_one_recording_may_be_named_in_any_order(tmp_path: Path) -> None:
    motion = so101_folder(tmp_path, "chirp")
    given = [motion / "control.csv.gz", motion / "state_motor.csv.gz"]
    assert len(import_log(given, find_mapping("so101"))) == 20


def test_absent_and_superfluous_files_are_named(tmp_path: Path) -> None:
    motion = so101_folder(tmp_path, "chirp")
    mapping = find_mapping("so101")
    with pytest.raises(TrueupError, match="needs one file for each"):
        import_log([motion / "control.csv.gz"], mapping)
    with pytest.raises(TrueupError, match="takes this file"):
        import_log([motion / f"{name}.csv.gz" for name in ("control", "state_motor", "event")], mapping)
    with pytest.raises(TrueupError, match="does not exist"):
        import_log([motion / "absent.csv"], mapping)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TrueupError, match="neither this folder"):
        import_log([tmp_path / "empty"], mapping)
    with pytest.raises(TrueupError, match="no file given"):
        import_log([], mapping)
    write(motion, "control.csv", "timestamp,positions\n")
    with pytest.raises(TrueupError, match="several files match"):
        import_log([motion], mapping)


# conversions


@pytest.mark.parametrize(
    ("signal", "extra", "expected"),
    [
        ("joint_pos", 'columns = "q{i}"\nunit = "deg"', [math.pi / 180, 2 * math.pi / 180]),
        ("joint_pos", 'columns = ["q1", "q0"]\nunit = "rad"', [2, 1]),
        ("joint_pos", 'columns = "q{i}"\nindex = [1, 0]\nunit = "rad"', [2, 1]),
        ("joint_pos", 'columns = "q{i}"\nunit = "rev"\nsign = [1, -1]', [2 * math.pi, -4 * math.pi]),
        ("joint_pos", 'columns = "q{i}"\nunit = "rad"\nsign = -1\noffset = 0.5', [-0.5, -1.5]),
        ("joint_pos", 'columns = "q{i}"\nunit = "normalised"\nscale = [2.0, 3.0]\noffset = -1', [1, 5]),
        ("joint_pos", 'columns = "q{i}"\nunit = "counts"\nscale = 0.25', [0.25, 0.5]),
        ("joint_pos", 'columns = "list"\nunit = ["rad", "deg"]', [7, 8 * math.pi / 180]),
        ("joint_pos", 'columns = "long"\nindex = [2, 0]\nunit = "rad"', [9, 7]),
        ("joint_vel", 'columns = "q{i}"\nunit = "rpm"', [math.pi / 30, math.pi / 15]),
        ("joint_torque", 'columns = "q{i}"\nunit = "mA"\nscale = [100, 200]', [0.1, 0.4]),
        ("joint_temperature", 'columns = "q{i}"\nunit = "K"', [-272.15, -271.15]),
        ("target_kp", "value = 20", [20, 20]),
        ("target_kd", "value = [0.5, 0.6]", [0.5, 0.6]),
        ("target_kp", 'columns = "q1"\nevery_joint = true\nunit = "N m/rad"', [2, 2]),
        ("imu_acc", 'columns = "long"\nunit = "g"', [7 * 9.80665, 8 * 9.80665, 9 * 9.80665]),
        ("voltage", 'columns = "q0"\nunit = "mV"', [1e-3]),
    ],
)
def test_units_signs_and_offsets_by_hand(tmp_path: Path, signal: str, extra: str, expected: list[float]) -> None:
    text = 'q0,q1,list,long\n1,2,"[7, 8]","[7, 8, 9]"\n'
    body = f'[[file]]\nrate_hz = 10.0\n[[file.signal]]\nsignal = "{signal}"\n{extra}\n'
    if "columns" not in extra:
        body += '[[file.signal]]\nsignal = "joint_pos"\ncolumns = "q{i}"\nunit = "rad"\n'
    log = import_text(tmp_path, text, mapping_of(tmp_path, body))
    np.testing.assert_allclose(log[signal], [expected], rtol=1e-12)


def test_halves_of_the_joints_may_come_from_different_entries(tmp_path: Path) -> None:
    extra = 'columns = ["b"]\njoints = ["knee"]\nunit = "rad"\n[[file.signal]]\nsignal = "joint_pos"\n'
    extra += 'columns = ["a"]\njoints = ["hip"]\nunit = "deg"'
    log = import_text(tmp_path, "a,b\n180,2\n", simple(tmp_path, extra))
    np.testing.assert_allclose(log["joint_pos"], [[math.pi, 2.0]])


@pytest.mark.parametrize(
    ("time", "text", "expected"),
    [
        ('{column = "t", unit = "ms"}', "t,q0,q1\n5,0,0\n10,0,0\n", [0.005, 0.01]),
        ('{column = "t", unit = "us", offset_s = 1.0}', "t,q0,q1\n5,0,0\n10,0,0\n", [1.000005, 1.00001]),
        ('{column = ["s", "n"], unit = ["s", "ns"]}', "s,n,q0,q1\n5,500000000,0,0\n6,1,0,0\n", [5.5, 6.000000001]),
    ],
)
def test_time_columns(tmp_path: Path, time: str, text: str, expected: list[float]) -> None:
    mapping = simple(tmp_path, 'columns = "q{i}"\nunit = "rad"', head=f"time = {time}")
    np.testing.assert_allclose(import_text(tmp_path, text, mapping).time, expected, rtol=1e-12)


def joined(folder: Path, join: str, offset: float = 0.0) -> Mapping:
    entry = '[[file]]\npattern = "{name}*"\njoin = "{join}"\ntime = {{column = "t", unit = "s", offset_s = {offset}}}\n'
    entry += '[[file.signal]]\nsignal = "{signal}"\ncolumns = "q{{i}}"\nunit = "rad"\n'
    body = entry.format(name="state", join="hold", signal="joint_pos", offset=0.0)
    return mapping_of(folder, body + entry.format(name="command", join=join, signal="target_pos", offset=offset))


@pytest.mark.parametrize(
    ("join", "times", "values"), [("hold", [1, 2, 3, 4], [10, 10, 30, 30]), ("linear", [1, 2, 3], [10, 20, 30])]
)
def test_second_file_is_held_or_interpolated(
    tmp_path: Path, join: str, times: list[float], values: list[float]
) -> None:
    files = [
        write(tmp_path, "state.csv", "t,q0,q1\n" + "".join(f"{t},0,0\n" for t in range(5))),
        write(tmp_path, "command.csv", "t,q0,q1\n1,10,10\n3,30,30\n"),
    ]
    log = import_log(files, joined(tmp_path, join))
    np.testing.assert_array_equal(log.time, times)
    np.testing.assert_array_equal(log["target_pos"][:, 0], values)


def test_clocks_that_do_not_overlap_are_refused_and_an_offset_mends_them(tmp_path: Path) -> None:
    files = [
        write(tmp_path, "state.csv", "t,q0,q1\n0,0,0\n1,0,0\n"),
        write(tmp_path, "command.csv", "t,q0,q1\n1700000000,1,1\n1700000001,2,2\n"),
    ]
    with pytest.raises(TrueupError, match="do not overlap"):
        import_log(files, joined(tmp_path, "hold"))
    assert len(import_log(files, joined(tmp_path, "hold", offset=-1.7e9))) == 2
    write(tmp_path, "command.csv", "t,q0,q1\n0,1,1\n1,2,2\n0.5,3,3\n")
    with pytest.raises(TrueupError, match="backward") as caught:
        import_log(files, joined(tmp_path, "hold"))
    assert caught.value.place == "row 3"


# faults


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("q0,q1\n1,2\n3,nan\n", "row 2, column 'q1'", "NaN"),
        ("q0,q1\n1,2\n3,\n", "row 2, column 'q1'", "empty cell"),
        ("q0,q1\n1,2\n1e999,3\n", "row 2, column 'q0'", "too large"),
        ("q0,q2\n1,2\n", "column 'q1'", r"no column 'q1' \(near: q[02]"),
        ('q0,q1\n1,"[1, 2]"\n', "column 'q1'", "holds a list"),
    ],
)
def test_faults_name_row_and_column(tmp_path: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(TrueupError, match=words) as caught:
        import_text(tmp_path, text, simple(tmp_path, 'columns = "q{i}"\nunit = "rad"'))
    assert caught.value.place == place
    assert caught.value.file == str(tmp_path / "a.csv")


def test_missing_cells_are_kept_when_the_mapping_says_so_but_not_infinite_ones(tmp_path: Path) -> None:
    mapping = simple(tmp_path, 'columns = "q{i}"\nunit = "rad"', head='rate_hz = 10\nmissing = "keep"')
    log = import_text(tmp_path, "q0,q1\n1,\n3,nan\n", mapping)
    np.testing.assert_array_equal(log["joint_pos"], [[1, np.nan], [3, np.nan]])
    with pytest.raises(TrueupError, match="too large"):
        import_text(tmp_path, "q0,q1\n1,\n3,1e999\n", mapping)


def test_time_must_be_finite_even_where_missing_cells_are_kept(tmp_path: Path) -> None:
    head = 'time = {column = "t", unit = "s"}\nmissing = "keep"'
    mapping = simple(tmp_path, 'columns = "q{i}"\nunit = "rad"', head=head)
    with pytest.raises(TrueupError, match="NaN") as caught:
        import_text(tmp_path, "t,q0,q1\n0,1,2\n,3,4\n", mapping)
    assert caught.value.place == "row 2, column 't'"


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ('columns = "a"\nunit = "rad"', "every_joint"),
        ('columns = "list"\nunit = "rad"', "lists 3 numbers a row for 2"),
        ('columns = "list"\nindex = [0, 3]\nunit = "rad"', "lists 3 numbers a row for 2"),
        ('columns = "b{i}"\nunit = "rad"\nscale = 1e308', "overflow"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path: Path, extra: str, words: str) -> None:
    with pytest.raises(TrueupError, match=words):
        import_text(tmp_path, 'a,list,b0,b1\n1,"[1, 2, 3]",1e300,1\n', simple(tmp_path, extra))


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="has no rows"):
        import_text(tmp_path, "q0,q1\n", simple(tmp_path, 'columns = "q{i}"\nunit = "rad"'))


# other formats


def other_formats(folder: Path, t: np.ndarray[Any, Any], q: np.ndarray[Any, Any]) -> list[Path]:
    h5py = pytest.importorskip("h5py")
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    np.savez(folder / "a.npz", t=t, q=q)
    pq.write_table(pa.table({"t": t, "q": q.tolist()}), folder / "a.parquet")
    with h5py.File(folder / "a.h5", "w") as file:
        file["t"], file["q"] = t, q
    rows = "".join(f'{x!r},"{list(y)}"\n' for x, y in zip(t.tolist(), q.tolist(), strict=True))
    return [folder / "a.npz", folder / "a.parquet", folder / "a.h5", write(folder, "a.csv", "t,q\n" + rows)]


def test_every_format_gives_the_same_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    t, q = np.cumsum(rng.uniform(0.001, 0.002, 50)), rng.normal(size=(50, 2))
    mapping = simple(tmp_path, 'columns = "q"\nunit = "rad"', head='time = {column = "t", unit = "s"}')
    for path in other_formats(tmp_path, t, q):
        log = import_log([path], mapping)
        np.testing.assert_array_equal(log.time, t, err_msg=path.name)
        np.testing.assert_array_equal(log["joint_pos"], q, err_msg=path.name)


def test_parquet_dates_must_be_mapped_as_nanoseconds(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": pa.array([0, 20], pa.timestamp("ms")), "q0": [1.0, 2], "q1": [1.0, 2]}), path)
    extra = 'columns = "q{i}"\nunit = "rad"'
    log = import_log([path], simple(tmp_path, extra, head='time = {column = "t", unit = "ns"}'))
    np.testing.assert_allclose(log.time, [0, 0.02])
    with pytest.raises(TrueupError, match='unit = "ns"'):
        import_log([path], simple(tmp_path, extra, head='time = {column = "t", unit = "ms"}'))


def test_streams_of_different_rates_in_one_file(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz", t=np.arange(4.0), q=np.ones((4, 2)), t2=np.array([0.0, 2.0]), c=np.array([[1, 1], [2, 2]])
    )
    body = '[[file]]\ntime = {column = "t", unit = "s"}\n[[file.signal]]\nsignal = "joint_pos"\n'
    body += 'columns = "q"\nunit = "rad"\n'
    body += body.replace('"t"', '"t2"').replace('"q"', '"c"').replace("joint_pos", "target_pos")
    log = import_log([tmp_path / "a.npz"], mapping_of(tmp_path, body))
    np.testing.assert_array_equal(log["target_pos"][:, 0], [1, 1, 2, 2])
    mixed = 'columns = "c"\nunit = "rad"'
    with pytest.raises(TrueupError, match="differ in length"):
        import_log([tmp_path / "a.npz"], simple(tmp_path, mixed, head='time = {column = "t", unit = "s"}'))


# the public recordings, where they are at hand


@needs_recordings
def test_the_real_go2_recording_imports() -> None:
    log = import_log([REAL / "go2_air"], find_mapping("go2_air"))
    assert len(log) == 7000
    assert log.rate_hz == pytest.approx(200.0)
    error = np.sqrt(np.mean((log["joint_pos"] - log["target_pos"]) ** 2, axis=0))
    assert error.mean() == pytest.approx(0.165, abs=0.01), "holding the target"


@needs_recordings
@pytest.mark.medium
def test_the_real_so101_recordings_import() -> None:
    logs = dict(import_logs([REAL / "so101"], find_mapping("so101")))
    assert len(logs) == 20
    for name, log in logs.items():
        assert log.rate_hz == pytest.approx(49.85, abs=0.05), name
        assert np.sqrt(np.mean((log["joint_pos"] - log["target_pos"]) ** 2)) < 0.2, name
    jaw = logs["coupled_joints"]
    slope = np.polyfit(np.gradient(jaw["joint_pos"][:, 5], jaw.time), jaw["joint_vel"][:, 5], 1)[0]
    assert slope == pytest.approx(1.0, abs=0.03), "the jaw's velocity is the derivative of its position"
