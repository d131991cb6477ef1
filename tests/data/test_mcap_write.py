"""Logs written as MCAP: exact, readable by others, cheap, and in the kernel's hands in time."""

from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.reader import make_reader
from mcap_logs import JOINTS, assert_same, full_log
from mcap_ros2.decoder import DecoderFactory
from mcap_ros2.writer import serialize_dynamic

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.records import Damage, Messages
from trueup.data.mcap.ros2 import PLACES, definition
from trueup.data.mcap.scan import scan
from trueup.data.mcap.streams import seconds
from trueup.data.mcap.write import LogWriter, nanoseconds, write_log


def row_of(log: Log, k: int) -> dict[str, np.ndarray]:
    return {name: values[k] for name, values in log.signals.items()}


def test_a_whole_log_comes_back_bit_for_bit(tmp_path: Path) -> None:
    log = full_log()
    odd = [np.nan, np.inf, -np.inf, -0.0, 5e-324, 1.7976931348623157e308]
    log["joint_vel"][3, :6] = odd
    log["imu_acc"][4] = odd[:3]
    write_log(log, tmp_path / "log.mcap")
    assert_same(read_mcap(tmp_path / "log.mcap"), log)


def test_a_log_recorded_row_by_row_comes_back_bit_for_bit(tmp_path: Path) -> None:
    log = full_log(rows=137)
    with LogWriter(tmp_path / "log.mcap", log.joint_names, log.meta) as writer:
        for k, time_s in enumerate(log.time):
            writer.append(time_s, **row_of(log, k))
    assert writer.rows == 137
    assert_same(read_mcap(tmp_path / "log.mcap"), log)


@pytest.mark.parametrize("signals", [(), ("voltage",), ("joint_pos", "imu_gyro"), ("base_vel",), ("base_quat",)])
def test_a_log_with_few_signals_comes_back(tmp_path: Path, signals: tuple[str, ...]) -> None:
    log = full_log(rows=5)
    few = Log(time=log.time, joint_names=JOINTS, signals={name: log[name] for name in signals}, meta={})
    write_log(few, tmp_path / "few.mcap")
    assert_same(read_mcap(tmp_path / "few.mcap"), few)


@pytest.mark.parametrize("joints", [(), ("only",)])
def test_a_log_of_no_joint_or_one_comes_back(tmp_path: Path, joints: tuple[str, ...]) -> None:
    log = full_log(rows=3, joints=joints)
    write_log(log, tmp_path / "log.mcap")
    assert_same(read_mcap(tmp_path / "log.mcap"), log)


def test_a_log_without_rows_comes_back(tmp_path: Path) -> None:
    log = full_log(rows=0)
    write_log(log, tmp_path / "log.mcap")
    assert_same(read_mcap(tmp_path / "log.mcap"), log)


def test_times_that_repeat_or_go_back_are_kept(tmp_path: Path) -> None:
    log = full_log(rows=5)
    log.time[:] = [1.0, 1.002, 1.002, 0.5, 1.004]
    write_log(log, tmp_path / "log.mcap")
    assert read_mcap(tmp_path / "log.mcap").time.tolist() == [1.0, 1.002, 1.002, 0.5, 1.004]


@given(st.floats(min_value=0.0, max_value=2.0**31 - 1))
def test_a_time_moves_by_at_most_half_a_nanosecond_and_only_once(time_s: float) -> None:
    def stored(value: float) -> float:
        return float(seconds(np.array([nanoseconds(value)], np.uint64))[0])

    once = stored(time_s)
    assert abs(once - time_s) <= 0.5e-9 + np.spacing(time_s)
    assert stored(once) == once


@pytest.mark.parametrize("time_s", [-0.001, float("nan"), float("inf"), 2.0**31])
def test_a_time_that_ros_cannot_hold_is_refused(tmp_path: Path, time_s: float) -> None:
    with LogWriter(tmp_path / "log.mcap", JOINTS) as writer, pytest.raises(TrueupError, match="from 0 to 2"):
        writer.append(time_s, joint_pos=np.zeros(12))


def test_a_signal_left_out_of_a_row_is_nan_there(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "log.mcap", JOINTS) as writer:
        writer.append(0.0, joint_pos=np.ones(12), voltage=24.0, imu_gyro=np.ones(3))
        writer.append(0.002, joint_pos=np.ones(12))
    log = read_mcap(tmp_path / "log.mcap")
    assert log["voltage"][0, 0] == 24.0
    assert np.isnan(log["voltage"][1]).all()
    assert np.isnan(log["imu_gyro"][1]).all()
    assert np.array_equal(log["joint_pos"], np.ones((2, 12)))


def test_rows_that_do_not_fit_are_refused_and_leave_no_trace(tmp_path: Path) -> None:
    with LogWriter(tmp_path / "log.mcap", JOINTS) as writer:
        writer.append(0.0, joint_pos=np.ones(12))
        with pytest.raises(TrueupError, match="12 values, found 11"):
            writer.append(0.002, joint_pos=np.ones(11))
        with pytest.raises(TrueupError, match="recorded without 'voltage'"):
            writer.append(0.002, voltage=1.0)
        with pytest.raises(TrueupError, match="must be numbers"):
            writer.append(0.002, joint_pos="north")
        with pytest.raises(TrueupError, match="did you mean 'joint_pos'"):
            writer.append(0.002, joint_poss=np.ones(12))
        writer.append(0.002, joint_pos=np.zeros(12))
    assert len(read_mcap(tmp_path / "log.mcap")) == 2


def test_what_cannot_be_recorded_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="names must differ"):
        LogWriter(tmp_path / "a.mcap", ("hip", "hip")).append(0.0, joint_pos=np.zeros(2))
    with pytest.raises(TrueupError, match="plain strings, finite numbers"):
        LogWriter(tmp_path / "b.mcap", JOINTS, {"x": float("nan")}).append(0.0, joint_pos=np.zeros(12))
    with pytest.raises(TrueupError, match="plain strings, finite numbers"):
        write_log(Log(time=np.zeros(0), joint_names=(), signals={}, meta={"x": object()}), tmp_path / "c.mcap")
    with pytest.raises(TrueupError, match="did you mean 'voltage'"):
        LogWriter(tmp_path / "d.mcap", JOINTS).append(0.0, volage=1.0)


def test_a_recording_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "log.mcap"
    LogWriter(path, JOINTS).close()
    with pytest.raises(TrueupError, match="already"):
        LogWriter(path, JOINTS)
    with LogWriter(path, JOINTS, overwrite=True) as writer:
        writer.append(0.0, voltage=1.0)
    assert len(read_mcap(path)) == 1
    writer.close()
    with pytest.raises(TrueupError, match="closed"):
        writer.append(0.1, voltage=1.0)


def test_an_exception_in_the_recorder_still_leaves_a_whole_file(tmp_path: Path) -> None:
    def record() -> None:
        with LogWriter(tmp_path / "log.mcap", JOINTS) as writer:
            writer.append(0.0, voltage=1.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        record()
    log = read_mcap(tmp_path / "log.mcap")
    assert len(log) == 1
    assert log.meta == {}  # no word of a recovery


def rows_in(path: Path) -> int:
    found = [item for item in scan(path, damage=[]) if isinstance(item, Messages)]
    return len({item.data[start + 11 : start + 15] for item in found for start in item.starts})  # sequences


@pytest.mark.parametrize(("rate_hz", "allowed"), [(1000, 20), (500, 10), (50, 1), (10, 0), (1, 0)])
def test_rows_reach_the_file_within_20_ms_of_log_time(tmp_path: Path, rate_hz: int, allowed: int) -> None:
    writer = LogWriter(tmp_path / "log.mcap", JOINTS)
    waiting = []
    for k in range(60):
        writer.append(k / rate_hz, joint_pos=np.zeros(12))
        waiting.append(k + 1 - rows_in(writer.path))
    writer.close()
    assert waiting[0] == 0
    assert max(waiting) <= allowed


def test_every_chunk_reaches_the_kernel_in_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cuts = tmp_path / "log.mcap", []

    class Watched(io.FileIO):
        def write(self, data: bytes) -> int:
            done = super().write(data)
            damage: list[Damage] = []
            rows = sum(len(item.starts) for item in scan(path, damage=damage) if isinstance(item, Messages))
            cuts.append((rows, [flaw.text for flaw in damage]))
            return done

    def watched(path: Path, mode: str, buffering: int) -> io.BufferedWriter:
        return io.BufferedWriter(Watched(path, mode), buffering)

    monkeypatch.setattr("trueup.data.mcap.write.open", watched, raising=False)
    with LogWriter(path, JOINTS) as writer:
        # a busy machine would end chunks by the wall clock
        monkeypatch.setattr(time, "monotonic", lambda: 0.0)
        for k in range(31):
            writer.append(k / 500, joint_pos=np.zeros(12))
        seen = list(cuts)
    # a kill after any of them leaves whole chunks and nothing else
    assert [rows for rows, _ in seen] == [0, 1, 11, 21, 31]
    assert all(texts == ["the file ends before its data does"] for _, texts in seen)


def test_rows_reach_the_file_though_the_log_clock_stands_still_or_goes_back(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "log.mcap", JOINTS)
    for time_s in (5.0, 5.0, 5.0, 1.0, 0.5):
        writer.append(time_s, voltage=1.0)
    assert rows_in(writer.path) == 5
    writer.close()


def test_a_full_disk_is_said_and_what_was_written_stays_readable(tmp_path: Path) -> None:
    """The limit on file size stands for the full disk; it holds for a process, hence the child."""
    code = f"""
import resource, signal, numpy as np
from trueup.core.errors import TrueupError
from trueup.data.mcap.write import LogWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))
writer = LogWriter({str(tmp_path / "log.mcap")!r}, ("a", "b"))
rng = np.random.default_rng(0)
try:
    for k in range(10**6):
        writer.append(k / 500, joint_pos=rng.normal(size=2))
except TrueupError as error:
    print(error)
try:
    writer.close()
except TrueupError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("cannot be written: File too large") == 2
    log = read_mcap(tmp_path / "log.mcap")
    assert len(log) > 100
    assert "recovered" in log.meta
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 60000


def test_the_messages_are_byte_for_byte_those_of_another_encoder(tmp_path: Path) -> None:
    log = full_log(rows=2)
    write_log(log, tmp_path / "log.mcap")
    seen = set()
    with (tmp_path / "log.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        for schema, channel, message, decoded in reader.iter_decoded_messages():
            assert schema is not None
            short = schema.name.replace("/msg/", "/")
            encode = serialize_dynamic(schema.name, definition(short))[schema.name]
            assert encode(decoded) == message.data, channel.topic
            seen.add(short)
    assert len(seen) == 4


def test_absent_signals_look_as_ros_prescribes(tmp_path: Path) -> None:
    log = full_log(rows=1)
    few = {name: log[name] for name in ("joint_vel", "imu_gyro", "base_pos")}
    write_log(Log(time=log.time, joint_names=JOINTS, signals=few, meta={}), tmp_path / "log.mcap")
    with (tmp_path / "log.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        found = {channel.topic: decoded for _, channel, _, decoded in reader.iter_decoded_messages()}
    assert found["/joint_states"].position == []
    assert list(found["/joint_states"].velocity) == log["joint_vel"][0].tolist()
    assert found["/imu"].orientation_covariance[0] == -1.0
    assert found["/imu"].angular_velocity_covariance[0] == 0.0
    assert found["/odom"].twist.covariance[0] == -1.0


def test_odometry_carries_the_velocity_in_the_base_frame(tmp_path: Path) -> None:
    half = np.sqrt(0.5)
    signals = {
        "base_quat": np.array([[half, 0.0, 0.0, half]]),  # a quarter turn to the left
        "base_vel": np.array([[0.0, 2.0, 1.0]]),
    }
    log = Log(time=np.zeros(1), joint_names=(), signals=signals, meta={})
    write_log(log, tmp_path / "log.mcap")
    with (tmp_path / "log.mcap").open("rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        odom = next(m for _, c, _, m in reader.iter_decoded_messages() if c.topic == "/odom")
    linear = odom.twist.twist.linear
    assert np.allclose([linear.x, linear.y, linear.z], [2.0, 0.0, 1.0], atol=1e-15)
    assert odom.child_frame_id == "base"


def stock_encoders(file: Path) -> list[tuple[Callable[[Any], bytes], Any]]:
    """The first message of every topic, decoded, with the encoder of mcap-ros2-support for it."""
    with file.open("rb") as stream:
        messages = make_reader(stream, decoder_factories=[DecoderFactory()]).iter_decoded_messages()
        first = {channel.topic: (schema.name, decoded) for schema, channel, _, decoded in messages}
    return [
        (serialize_dynamic(name, definition(name.replace("/msg/", "/")))[name], decoded)
        for name, decoded in first.values()
    ]


@pytest.mark.medium
def test_a_row_costs_less_than_0_6_of_the_stock_encoders_time(tmp_path: Path) -> None:
    """Writing included; both in turns and by CPU time, because the machine may be busy."""
    log = full_log(rows=2000)
    write_log(full_log(rows=1), tmp_path / "one.mcap")
    stock = stock_encoders(tmp_path / "one.mcap")
    ours_s, stock_s = [], []
    with LogWriter(tmp_path / "log.mcap", JOINTS) as writer:
        for start in range(0, len(log), 100):
            rows = [(float(log.time[k]), row_of(log, k)) for k in range(start, start + 100)]
            begun_s = time.thread_time()
            for time_s, row in rows:
                writer.append(time_s, **row)
            between_s = time.thread_time()
            for _ in range(100):
                for encode, message in stock:
                    encode(message)
            ours_s.append(between_s - begun_s)
            stock_s.append(time.thread_time() - between_s)
    ratio = np.median(np.array(ours_s) / np.array(stock_s))
    print(f"append: {1e4 * np.median(ours_s):.0f} us a row, {ratio:.2f} of the stock encoder's time")
    assert ratio < 0.6
    assert os.path.getsize(tmp_path / "log.mcap") < 2000 * 2000


def test_what_is_noted_at_the_end_is_in_the_log(tmp_path: Path) -> None:
    file = tmp_path / "log.mcap"
    with LogWriter(file, ("a",), {"robot": "r", "ended": "unknown"}) as writer:
        for k in range(3):
            writer.append(0.01 * k, joint_pos=[float(k)])
        writer.note({"ended": "done", "rows": 3})
        writer.append(0.03, joint_pos=[3.0])
    log = read_mcap(file)
    assert log.meta == {"robot": "r", "ended": "done", "rows": 3}
    assert log["joint_pos"][:, 0].tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("name", sorted({kind for kind, _ in PLACES.values()} | {"std_msgs/Float64MultiArray"}))
def test_definitions_are_those_of_rosbags(name: str) -> None:
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    assert definition(name) == store.generate_msgdef(name.replace("/", "/msg/"), ros_version=2)[0]
