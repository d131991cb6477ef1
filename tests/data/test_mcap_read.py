"""MCAP logs read: by other tools, cut short, changed by a bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_logs import JOINTS, assert_same, full_log
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import Reader

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.write import LogWriter, write_log


def recorded(path: Path, log: Log) -> Path:
    with LogWriter(path, log.joint_names, log.meta) as writer:
        for k, time_s in enumerate(log.time):
            writer.append(time_s, **{name: values[k] for name, values in log.signals.items()})
    return path


@pytest.mark.parametrize("write", [recorded, lambda path, log: write_log(log, path)])
def test_the_mcap_library_reads_summary_and_messages(tmp_path: Path, write: object) -> None:
    log = full_log(rows=100)
    path = write(tmp_path / "log.mcap", log)
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_header().profile == "ros2"
        summary = reader.get_summary()
        topics = {channel.topic for channel in summary.channels.values()}
        assert {"/joint_states", "/joint_commands", "/imu", "/odom", "/trueup/voltage"} <= topics
        assert summary.statistics.message_count == 100 * len(topics)
        assert summary.statistics.message_start_time == 0
        assert summary.statistics.message_end_time == 198_000_000
        assert sum(len(index.message_index_offsets) for index in summary.chunk_indexes) >= len(topics)
        times = [message.log_time for _, _, message in reader.iter_messages(topics=["/joint_states"])]
        assert times == [2_000_000 * k for k in range(100)]
        some = list(reader.iter_messages(topics=["/imu"], starting_at=50_000_000, ending_before=60_000_000))
        assert [message.sequence for _, _, message in some] == [25, 26, 27, 28, 29]
        assert [record.name for record in reader.iter_metadata()] == ["trueup"]


def test_rosbags_reads_our_file(tmp_path: Path) -> None:
    log = full_log(rows=50)
    path = recorded(tmp_path / "log.mcap", log)
    with AnyReader([path]) as reader:
        assert reader.message_count == 50 * len(reader.topics)
        wanted = [connection for connection in reader.connections if connection.topic == "/joint_states"]
        found = [reader.deserialize(raw, item.msgtype) for item, _, raw in reader.messages(wanted)]
        assert [tuple(message.name) for message in found] == [JOINTS] * 50
        assert np.array_equal(np.array([message.position for message in found]), log["joint_pos"])
        for connection, _, raw in reader.messages():
            reader.deserialize(raw, connection.msgtype)
    with Reader(path) as reader2:
        assert reader2.topics["/odom"].msgtype == "nav_msgs/msg/Odometry"


def test_a_file_cut_anywhere_gives_the_rows_before_the_cut(tmp_path: Path) -> None:
    log = full_log(rows=60)
    raw = recorded(tmp_path / "log.mcap", log).read_bytes()
    cut = tmp_path / "cut.mcap"
    before = 0
    lengths = []
    for size in sorted(np.random.default_rng(0).integers(8, len(raw), 150).tolist()):
        cut.write_bytes(raw[:size])
        try:
            found = read_mcap(cut)
        except TrueupError:
            assert before == 0  # the definitions themselves are cut
            continue
        before = len(found)
        lengths.append(before)
        assert found.meta["recovered"]
        assert found.joint_names == JOINTS
        assert_same(
            Log(time=found.time, joint_names=JOINTS, signals=found.signals, meta=log.meta), log.window(0, before)
        )
    assert lengths == sorted(lengths)
    assert lengths[-1] == 60


def test_a_flipped_bit_anywhere_is_found(tmp_path: Path) -> None:
    log = full_log(rows=20)
    raw = recorded(tmp_path / "log.mcap", log).read_bytes()
    bad = tmp_path / "bad.mcap"
    rng = np.random.default_rng(1)
    places = [*range(60), *range(len(raw) - 60, len(raw) - 8), *rng.integers(0, len(raw) - 8, 300).tolist()]
    for place in places:
        changed = bytearray(raw)
        changed[place] ^= 1 << int(rng.integers(8))
        bad.write_bytes(changed)
        with pytest.raises(TrueupError) as caught:
            read_mcap(bad)
        assert caught.value.file == str(bad)
        assert caught.value.place


def test_damage_in_the_middle_of_a_cut_file_is_not_passed_over(tmp_path: Path) -> None:
    raw = bytearray(recorded(tmp_path / "log.mcap", full_log(rows=60)).read_bytes()[:-2000])
    raw[len(raw) // 2] ^= 0xFF
    (tmp_path / "bad.mcap").write_bytes(raw)
    with pytest.raises(TrueupError, match="data recover"):
        read_mcap(tmp_path / "bad.mcap")


@pytest.mark.parametrize("content", [b"", b"\x89MCAP0\r\n", b"not an mcap file at all", bytes(1000)])
def test_what_is_no_mcap_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.mcap"
    path.write_bytes(content)
    with pytest.raises(TrueupError) as caught:
        read_mcap(path)
    assert caught.value.file == str(path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="no such file"):
        read_mcap(tmp_path / "nowhere.mcap")


def test_a_log_of_a_newer_trueup_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueup.data.mcap.write.SCHEMA_VERSION", "2")
    write_log(full_log(rows=2), tmp_path / "log.mcap")
    with pytest.raises(TrueupError, match="schema '2', this trueup reads '1'"):
        read_mcap(tmp_path / "log.mcap")


def test_a_robot_that_stands_still_is_no_bomb(tmp_path: Path) -> None:
    """Constant signals compress best of all honest logs: the limits must let them through."""
    log = full_log(rows=8000)
    for values in log.signals.values():
        values[:] = values[0]
    write_log(log, tmp_path / "still.mcap")
    assert len(read_mcap(tmp_path / "still.mcap")) == 8000
