"""Logs as Parquet, CSV and NPZ: back without loss, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.data import export
from trueup.data.export import export_log, read_export
from trueup.data.log import SIGNALS, Log

ENDINGS = [".parquet", ".csv", ".csv.gz", ".npz"]


def make_log(rows: int = 50, joints: tuple[str, ...] = ("FL_hip", "knee, left", "gelenk_ä")) -> Log:
    rng = np.random.default_rng(5)
    signals = {}
    for name, (columns, _) in SIGNALS.items():
        width = len(joints) if isinstance(columns, str) else columns
        signals[name] = rng.normal(size=(rows, width)) * 10.0 ** rng.integers(-12, 12, size=(rows, width))
    meta: dict[str, object] = {
        "robot": "go2",
        "seed": 7,
        "rate": 0.1,
        "notes": ["ä", 1, 2.5],
        "ok": True,
        "nested": {"a": [1]},
    }
    return Log(time=np.cumsum(rng.uniform(1e-3, 2e-3, rows)), joint_names=joints, signals=signals, meta=meta)


def assert_equal(one: Log, other: Log) -> None:
    assert one.joint_names == other.joint_names
    assert one.meta == other.meta
    assert list(one.signals) == list(other.signals)
    assert one.time.tobytes() == other.time.tobytes()
    for name in one.signals:
        assert one[name].shape == other[name].shape
        assert np.ascontiguousarray(one[name]).tobytes() == np.ascontiguousarray(other[name]).tobytes(), name


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_log_comes_back_bit_for_bit(tmp_path: Path, ending: str) -> None:
    log = make_log()
    path = export_log(log, tmp_path / f"log{ending}")
    assert_equal(read_export(path), log)


@pytest.mark.parametrize("ending", ENDINGS)
def test_special_numbers_come_back(tmp_path: Path, ending: str) -> None:
    values = np.array([[np.nan, -0.0], [np.inf, 5e-324], [-np.inf, 1.7976931348623157e308]])
    log = Log(time=np.arange(3.0), joint_names=("a", "b"), signals={"joint_pos": values})
    assert_equal(read_export(export_log(log, tmp_path / f"log{ending}")), log)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("rows", "joints"), [(0, ("a",)), (1, ()), (0, ())])
def test_empty_logs_come_back(tmp_path: Path, ending: str, rows: int, joints: tuple[str, ...]) -> None:
    log = make_log(rows, joints)
    assert_equal(read_export(export_log(log, tmp_path / f"log{ending}")), log)


def test_columns_have_names_that_other_tools_show(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = export_log(make_log(), tmp_path / "log.parquet")
    names = pq.read_table(path).column_names
    assert names[0] == "time"
    assert {"joint_pos/FL_hip", "imu_gyro/x", "base_quat/w", "voltage/0"} <= set(names)


@pytest.mark.parametrize("value", [float("nan"), (1, 2), {1: 2}, np.float64(1.0) * np.ones(2), object()])
def test_provenance_that_would_not_survive_is_refused(tmp_path: Path, value: object) -> None:
    log = Log(time=np.arange(2.0), joint_names=(), signals={}, meta={"fine": 1, "odd": value})
    with pytest.raises(TrueupError, match="plain text") as caught:
        export_log(log, tmp_path / "log.csv")
    assert caught.value.place == "meta 'odd'"
    assert not list(tmp_path.iterdir())


def test_names_that_a_format_cannot_keep_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="same name"):
        export_log(make_log(2, ("a", "a")), tmp_path / "log.parquet")
    with pytest.raises(TrueupError, match="line breaks"):
        export_log(make_log(2, ("a\nb",)), tmp_path / "log.csv")
    with pytest.raises(TrueupError, match=r"\.parquet, \.csv"):
        export_log(make_log(2), tmp_path / "log.h5")
    with pytest.raises(TrueupError, match="too long"):
        export_log(
            Log(time=np.arange(2.0), joint_names=(), signals={}, meta={"a": "x" * 2_000_000}), tmp_path / "a.csv"
        )


@pytest.mark.parametrize("ending", [".csv", ".npz", ".parquet"])
def test_a_table_that_is_no_export_points_to_import(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"a{ending}"
    if ending == ".csv":
        path.write_text("time\n1\n")
    elif ending == ".npz":
        np.savez(path, time=np.arange(2.0))
    else:
        pq, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
        pq.write_table(pa.table({"time": [1.0]}), path)
    with pytest.raises(TrueupError, match="import it with a mapping"):
        read_export(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('# trueup-log {"schema": 9, "joint_names": [], "signals": [], "meta": {}}\ntime\n1\n', "schema 9"),
        ('# trueup-log {"schema": 1, "joint_names": [], "signals": ["x"], "meta": {}}\ntime\n1\n', "unknown signal"),
        ("# trueup-log " + "[" * 5000 + "\ntime\n1\n", "damaged"),
        ('# trueup-log {"schema": 1, "joint_names": ["a"], "signals": ["joint_pos"], "meta": {}}\ntime\n1\n', "absent"),
        ('# trueup-log {"schema": 1, "joint_names": [], "signals": [], "meta": {}}\nt\n1\n', "'time' is absent"),
    ],
)
def test_a_damaged_description_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(TrueupError, match=words) as caught:
        read_export(path)
    assert caught.value.file == str(path)


@pytest.mark.medium
def test_a_log_that_packs_too_well_is_written_so_that_it_can_be_read_again(tmp_path: Path) -> None:
    rows = 600_000
    signals = {"joint_pos": np.zeros((rows, 12)), "joint_vel": np.zeros((rows, 12))}
    log = Log(time=np.zeros(rows), joint_names=tuple("abcdefghijkl"), signals=signals)
    path = export_log(log, tmp_path / "log.parquet")  # 120 MB of zeros: a bomb, were it packed
    assert len(read_export(path)) == rows


def test_packed_text_that_is_too_small_is_stored_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(time=np.zeros(2000), joint_names=("a",), signals={"joint_pos": np.zeros((2000, 1))})
    packed = export_log(log, tmp_path / "packed.csv.gz").stat().st_size
    monkeypatch.setattr(export, "unpacked_bytes", lambda size: 0)
    assert export_log(log, tmp_path / "plain.csv.gz").stat().st_size > 20 * packed
    assert_equal(read_export(tmp_path / "plain.csv.gz"), log)
