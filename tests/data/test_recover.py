"""Recovery: killed recorders lose next to nothing, damaged files keep what is whole."""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType
from mcap_logs import ForeignBag, assert_same, full_log, joint_state

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.mcap.bags import collect
from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.records import MAGIC
from trueup.data.mcap.recover import recover
from trueup.data.mcap.write import LogWriter, write_log

RECORDER = Path(__file__).parents[1] / "helpers" / "mcap_recorder.py"


def recorded(path: Path, log: Log) -> bytes:
    """A recording in chunks of ten rows: on a busy machine the wall clock would make some of them shorter."""
    still = mock.patch("trueup.data.mcap.write.time.monotonic", return_value=0.0)
    with still, LogWriter(path, log.joint_names, log.meta) as writer:
        for k, time_s in enumerate(log.time):
            writer.append(time_s, **{name: values[k] for name, values in log.signals.items()})
    return path.read_bytes()


def inside_a_chunk(path: Path) -> int:
    """A byte in the compressed data of the sixth chunk."""
    with path.open("rb") as file:
        return make_reader(file).get_summary().chunk_indexes[5].chunk_start_offset + 500


def kill_a_recorder(path: Path, after_s: float) -> tuple[int, float]:
    """Kill -9 a recorder `after_s` after its first row; returns the rows it told of and the last time."""
    search = os.pathsep.join([str(RECORDER.parent), *sys.path])
    child = subprocess.Popen(
        [sys.executable, str(RECORDER), str(path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": search}
    )
    assert child.stdout is not None
    told = child.stdout.read(16)
    time.sleep(after_s)
    child.send_signal(signal.SIGKILL)
    told += child.stdout.read()
    assert child.wait() == -signal.SIGKILL
    last, time_s = struct.unpack_from("<Qd", told, len(told) // 16 * 16 - 16)
    return last + 1, time_s


def check_kills(folder: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    truth = full_log(rows=100)
    lost_s, lost_rows = [], []
    for k in range(count):
        path = folder / f"{k}.mcap"
        rows, time_s = kill_a_recorder(path, rng.uniform(0.0, 1.2))
        assert not path.read_bytes().endswith(MAGIC)
        done = recover(path)
        log = read_mcap(done.out_path)
        direct = read_mcap(path)
        assert_same(Log(time=log.time, joint_names=log.joint_names, signals=log.signals, meta=direct.meta), direct)
        for name, values in log.signals.items():
            assert np.array_equal(values, truth[name][np.arange(len(log)) % 100])
        with done.out_path.open("rb") as file:
            assert make_reader(file, validate_crcs=True).get_summary().statistics.message_count == done.messages
        lost_s.append(time_s - log.time[-1])
        lost_rows.append(rows - len(log))
    print(f"{count} kills: worst loss {1e3 * max(lost_s):.1f} ms, {max(lost_rows)} rows; {lost_rows}")
    assert max(lost_s) <= 0.05


@pytest.mark.medium
def test_a_killed_recorder_loses_at_most_50_ms(tmp_path: Path) -> None:
    check_kills(tmp_path, count=6, seed=1)


@pytest.mark.slow
def test_thirty_killed_recorders_lose_at_most_50_ms_each(tmp_path: Path) -> None:
    check_kills(tmp_path, count=30, seed=2)


def test_a_whole_file_is_copied_without_loss(tmp_path: Path) -> None:
    log = full_log()
    write_log(log, tmp_path / "log.mcap")
    done = recover(tmp_path / "log.mcap")
    assert done.out_path == tmp_path / "log.recovered.mcap"
    assert (done.messages, done.lost_estimate, done.damage) == (60 * 9, 0, ())
    found = read_mcap(done.out_path)
    assert found.meta.pop("recovered") == ""
    assert_same(found, log)


def test_a_damaged_chunk_costs_its_rows_and_no_others(tmp_path: Path) -> None:
    log = full_log(rows=101)
    raw = bytearray(recorded(tmp_path / "log.mcap", log))
    raw[inside_a_chunk(tmp_path / "log.mcap")] ^= 0x10
    (tmp_path / "bad.mcap").write_bytes(raw)
    done = recover(tmp_path / "bad.mcap", tmp_path / "good.mcap")
    found = read_mcap(tmp_path / "good.mcap")
    assert len(found) == 91
    assert 60 <= done.lost_estimate <= 120  # 10 rows of 9 messages
    rows = np.searchsorted(log.time, found.time)
    for name, values in found.signals.items():
        assert np.array_equal(values, log[name][rows])
    assert "checksum" in str(found.meta["recovered"]) or "damaged" in str(found.meta["recovered"])


@pytest.mark.parametrize("keep", [0, 5, 100, 700])
def test_damage_to_the_definitions_is_made_good_from_the_summary(tmp_path: Path, keep: int) -> None:
    log = full_log(rows=50)
    raw = recorded(tmp_path / "log.mcap", log)
    (tmp_path / "bad.mcap").write_bytes(raw[:keep] + bytes(1500 - keep) + raw[1500:])
    recover(tmp_path / "bad.mcap", tmp_path / "good.mcap")
    stream = collect(tmp_path / "good.mcap")[0].streams()["/joint_states"]
    # the first chunk holds the definitions and the first row
    assert np.array_equal(stream.columns["position"], log["joint_pos"][1:])


def test_recovery_finds_the_next_chunk_where_the_framing_is_lost(tmp_path: Path) -> None:
    log = full_log(rows=101)
    raw = recorded(tmp_path / "log.mcap", log)
    middle = inside_a_chunk(tmp_path / "log.mcap")
    for name, changed in {
        "hole": raw[:middle] + raw[middle + 777 :],
        "junk": raw[:middle] + np.random.default_rng(0).bytes(5000) + raw[middle:],
        "zeros": raw[:middle] + bytes(3000) + raw[middle + 3000 :],
    }.items():
        path = tmp_path / f"{name}.mcap"
        path.write_bytes(changed)
        done = recover(path)
        assert done.damage
        assert len(read_mcap(done.out_path)) == 91, name


@pytest.mark.parametrize("compression", list(CompressionType))
def test_a_cut_chunk_of_another_recorder_gives_what_it_holds(tmp_path: Path, compression: CompressionType) -> None:
    bag = ForeignBag(tmp_path / "bag.mcap", compression)
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2000, 12))
    names = [f"j{k}" for k in range(12)]
    for k, row in enumerate(values):
        bag.add("/joint_states", "sensor_msgs/JointState", joint_state(k / 500, names, position=row.tolist()), k / 500)
    bag.close()
    raw = (tmp_path / "bag.mcap").read_bytes()
    (tmp_path / "cut.mcap").write_bytes(raw[: len(raw) * 3 // 4])
    log = read_mcap(tmp_path / "cut.mcap")
    assert np.array_equal(log["joint_pos"], values[: len(log)])
    assert len(log) > 900  # one chunk would be lost whole


def test_what_holds_no_message_is_refused(tmp_path: Path) -> None:
    for name, content in {"empty": b"", "magic": MAGIC, "text": b"hello " * 100}.items():
        path = tmp_path / f"{name}.mcap"
        path.write_bytes(content)
        with pytest.raises(TrueupError, match="nothing to recover"):
            recover(path)
        assert not (tmp_path / f"{name}.recovered.mcap").exists()


def test_the_source_is_never_overwritten(tmp_path: Path) -> None:
    write_log(full_log(rows=3), tmp_path / "log.mcap")
    with pytest.raises(TrueupError, match="must not overwrite"):
        recover(tmp_path / "log.mcap", tmp_path / "log.mcap")
    with pytest.raises(TrueupError, match="no such file"):
        recover(tmp_path / "nowhere.mcap")
