"""Recordings of others: topics at different rates, odd senders, rosbag2 folders."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest
from mcap_logs import ForeignBag, full_log, joint_state
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.enums import CompressionFormat, CompressionMode
from rosbags.typesys import Stores, get_typestore

from trueup.core.errors import TrueupError
from trueup.data.mcap.assemble import assemble
from trueup.data.mcap.bags import collect
from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.write import write_log

STATE = "sensor_msgs/JointState"


def test_commands_are_held_and_sensors_interpolated_on_the_clock_of_the_states(tmp_path: Path) -> None:
    bag = ForeignBag(tmp_path / "bag.mcap")
    for k in range(11):  # 100 Hz
        message = joint_state(k / 100, ["a", "b"], position=[k / 100, -k / 100], velocity=[1.0, -1.0])
        bag.add("/joint_states", STATE, message, k / 100)
    for k in range(3):  # 25 Hz, starts late, other order, one joint unknown to the states
        time_s = 0.02 + k / 25
        bag.add("/cmd", STATE, joint_state(time_s, ["b", "x", "a"], position=[float(k), 9.0, -float(k)]), time_s)
    for k in range(30):
        time_s = k / 250
        imu = {
            "header": {"stamp": {"sec": 0, "nanosec": round(time_s * 1e9)}},
            "orientation": {"w": 1.0},
            "angular_velocity": {"x": time_s, "y": 2 * time_s, "z": 0.0},
            "linear_acceleration_covariance": [-1.0] + [0.0] * 8,
        }
        bag.add("/sensor/imu", "sensor_msgs/Imu", imu, time_s)
    bag.close()
    log = read_mcap(tmp_path / "bag.mcap")
    assert log.joint_names == ("a", "b")
    assert np.allclose(log.time, np.arange(11) / 100)
    assert np.array_equal(log["joint_pos"][:, 0], log.time)
    held = [np.nan, np.nan, 0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert np.array_equal(log["target_pos"][:, 1], held, equal_nan=True)
    assert np.array_equal(log["target_pos"][:, 0], -np.array(held), equal_nan=True)
    assert np.allclose(log["imu_gyro"][:, 1], 2 * log.time)
    assert np.allclose(log["imu_quat"], [1, 0, 0, 0])
    assert "imu_acc" not in log
    assert log.meta["clock"] == "header"
    assert "joint_torque" not in log


def test_duplicate_and_backward_stamps_stay_as_they_are(tmp_path: Path) -> None:
    stamps = [0.0, 0.01, 0.01, 0.03, 0.02, 0.05]
    bag = ForeignBag(tmp_path / "bag.mcap")
    for k, stamp in enumerate(stamps):
        bag.add("/joint_states", STATE, joint_state(stamp, ["a"], position=[float(k)]), 100 + k / 100)
    bag.close()
    stream = collect(tmp_path / "bag.mcap")[0].streams()["/joint_states"]
    assert stream.time_header.tolist() == stamps
    assert np.allclose(stream.time_log, 100 + np.arange(6) / 100)
    assert stream.columns["position"][:, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert read_mcap(tmp_path / "bag.mcap").time.tolist() == stamps


def test_unstamped_messages_take_the_recorders_clock(tmp_path: Path) -> None:
    bag = ForeignBag(tmp_path / "bag.mcap")
    for k in range(4):
        bag.add("/joint_states", STATE, joint_state(0.0, ["a"], position=[1.0]), 1.7e9 + k)
    bag.close()
    log = read_mcap(tmp_path / "bag.mcap")
    assert log.time.tolist() == [1.7e9, 1.7e9 + 1, 1.7e9 + 2, 1.7e9 + 3]
    assert log.meta["clock"] == "log"


def test_clocks_that_never_meet_are_paired_by_the_recorders_clock(tmp_path: Path) -> None:
    bag = ForeignBag(tmp_path / "bag.mcap")
    for k in range(5):
        bag.add("/joint_states", STATE, joint_state(1.7e9 + k, ["a"], position=[float(k)]), 10.0 + k)
        bag.add("/joint_commands", STATE, joint_state(5.0 + k, ["a"], position=[10.0 + k]), 10.5 + k)
    bag.close()
    log = read_mcap(tmp_path / "bag.mcap")
    assert np.array_equal(log["target_pos"][:, 0], [np.nan, 10, 11, 12, 13], equal_nan=True)


def test_a_topic_shared_by_two_senders_is_split_and_joined_again(tmp_path: Path) -> None:
    bag = ForeignBag(tmp_path / "bag.mcap")
    for k in range(20):
        time_s = k / 100
        names = ["a", "b"] if k % 3 else ["b", "a"]
        bag.add("/joint_states", STATE, joint_state(time_s, names, position=[1.0, 2.0]), time_s)
        if k % 2 == 0:
            bag.add("/joint_states", STATE, joint_state(time_s, ["grip"], position=[time_s]), time_s)
    bag.close()
    streams = collect(tmp_path / "bag.mcap")[0].streams()
    assert {name: len(stream) for name, stream in streams.items()} == {"/joint_states": 20, "/joint_states#2": 10}
    log = assemble(streams)
    assert log.joint_names == ("b", "a", "grip")
    swapped = np.arange(20) % 3 > 0
    assert np.array_equal(log["joint_pos"][:, 0], np.where(swapped, 2.0, 1.0))
    assert np.allclose(log["joint_pos"][:19, 2], log.time[:19])
    assert np.isnan(log["joint_pos"][19, 2])


def test_states_without_names_get_numbers(tmp_path: Path) -> None:
    bag = ForeignBag(tmp_path / "bag.mcap")
    bag.add("/joint_states", STATE, joint_state(1.0, [], position=[1.0, 2.0], velocity=[3.0, 4.0]), 1.0)
    bag.close()
    log = read_mcap(tmp_path / "bag.mcap")
    assert log.joint_names == ("joint_0", "joint_1")
    assert log["joint_vel"].tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (joint_state(0, ["a", "b"], position=[1.0]), "2 names and 1 values"),
        (joint_state(0, ["a", "a"], position=[1.0, 2.0]), "names a joint twice"),
        (joint_state(0, [f"j{k}" for k in range(2000)]), "at most 1024"),
        (joint_state(0, ["x" * 3000], position=[1.0]), "at most 1024"),
    ],
)
def test_joint_states_that_make_no_sense_are_refused(tmp_path: Path, message: dict[str, object], said: str) -> None:
    bag = ForeignBag(tmp_path / "bag.mcap")
    bag.add("/joint_states", STATE, message, 0.0)
    bag.close()
    with pytest.raises(TrueupError, match=said) as caught:
        read_mcap(tmp_path / "bag.mcap")
    assert caught.value.place


def test_a_bag_without_joint_states_says_what_it_has(tmp_path: Path) -> None:
    bag = ForeignBag(tmp_path / "bag.mcap")
    bag.add("/joint_commands", STATE, joint_state(0, ["a"], position=[1.0]), 0.0)
    bag.close()
    with pytest.raises(TrueupError, match=r"found /joint_commands \(sensor_msgs/JointState\)"):
        read_mcap(tmp_path / "bag.mcap")


def write_rosbag2(path: Path, storage: StoragePlugin, compression: CompressionMode | None = None) -> np.ndarray:
    """A rosbag2 folder from the `rosbags` library: states, a battery, and a topic that is none of ours."""
    types = get_typestore(Stores.ROS2_HUMBLE)
    t = types.types
    values = np.random.default_rng(0).normal(size=(50, 3))
    writer = Writer(path, version=9, storage_plugin=storage)
    if compression:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        state = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=types)
        battery = writer.add_connection("/battery", "sensor_msgs/msg/BatteryState", typestore=types)
        text = writer.add_connection("/chatter", "std_msgs/msg/String", typestore=types)
        for k, row in enumerate(values):
            time_ns = 1_700_000_000_000_000_000 + k * 10_000_000
            stamp = t["builtin_interfaces/msg/Time"](sec=time_ns // 10**9, nanosec=time_ns % 10**9)
            header = t["std_msgs/msg/Header"](stamp=stamp, frame_id="base")
            none = np.zeros(0)
            message = t["sensor_msgs/msg/JointState"](
                header=header, name=["a", "b", "c"], position=row, velocity=2 * row, effort=none
            )
            writer.write(state, time_ns, types.serialize_cdr(message, "sensor_msgs/msg/JointState"))
            full = {"header": header, "voltage": 24.5, "temperature": 20.0, "current": 1.0, "charge": 1.0}
            rest = {"capacity": 1.0, "design_capacity": 1.0, "percentage": 0.5, "power_supply_status": 1}
            more = {"power_supply_health": 1, "power_supply_technology": 1, "present": True}
            cells = {"cell_voltage": np.zeros(k % 3, np.float32), "cell_temperature": np.zeros(2, np.float32)}
            names = {"location": "slot", "serial_number": str(k)}
            charge = t["sensor_msgs/msg/BatteryState"](**full, **rest, **more, **cells, **names)
            writer.write(battery, time_ns, types.serialize_cdr(charge, "sensor_msgs/msg/BatteryState"))
            word = t["std_msgs/msg/String"](data="hello")
            writer.write(text, time_ns, types.serialize_cdr(word, "std_msgs/msg/String"))
    return values


@pytest.mark.parametrize("storage", list(StoragePlugin))
def test_a_rosbag2_folder_is_read(tmp_path: Path, storage: StoragePlugin) -> None:
    values = write_rosbag2(tmp_path / "bag", storage)
    log = read_mcap(tmp_path / "bag")
    assert log.joint_names == ("a", "b", "c")
    assert np.array_equal(log["joint_pos"], values)
    assert np.array_equal(log["joint_vel"], 2 * values)
    assert "joint_torque" not in log
    assert np.allclose(np.diff(log.time), 0.01, atol=1e-6)
    assert np.array_equal(log["voltage"], np.full((50, 1), 24.5))
    assert log.meta["topics_not_read"] == ["/chatter: std_msgs/msg/String (cdr)"]


def test_messages_compressed_one_by_one_are_read(tmp_path: Path) -> None:
    values = write_rosbag2(tmp_path / "bag", StoragePlugin.SQLITE3, CompressionMode.MESSAGE)
    assert np.array_equal(read_mcap(tmp_path / "bag")["joint_pos"], values)


def test_a_database_compressed_as_a_whole_is_refused_with_the_remedy(tmp_path: Path) -> None:
    write_rosbag2(tmp_path / "bag", StoragePlugin.SQLITE3, CompressionMode.FILE)
    with pytest.raises(TrueupError, match="zstd -d"):
        read_mcap(tmp_path / "bag")


def test_the_parts_of_a_split_recording_follow_their_numbers(tmp_path: Path) -> None:
    for part in (10, 2, 1):
        bag = ForeignBag(tmp_path / f"run_{part}.mcap")
        bag.add("/joint_states", STATE, joint_state(part, ["a"], position=[float(part)]), part)
        bag.close()
    assert read_mcap(tmp_path)["joint_pos"][:, 0].tolist() == [1.0, 2.0, 10.0]


def test_a_folder_without_a_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="no log here: it is empty"):
        read_mcap(tmp_path)


HOSTILE = {
    "endless view": """CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT);
        CREATE VIEW messages AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
        SELECT x AS topic_id, x AS timestamp, zeroblob(1000) AS data FROM n;""",
    "computed column": """CREATE TABLE topics(id INTEGER, name TEXT, type TEXT, serialization_format TEXT);
        CREATE TABLE messages(id INTEGER, topic_id INTEGER, timestamp INTEGER,
        data BLOB GENERATED ALWAYS AS (zeroblob(900000000)) VIRTUAL);
        INSERT INTO messages VALUES (1, 1, 1);""",
    "wrong types": """CREATE TABLE topics(id, name, type, serialization_format);
        CREATE TABLE messages(id, topic_id, timestamp, data);
        INSERT INTO topics VALUES ('one', 2, 3, 4);""",
    "no tables": "CREATE TABLE other(x);",
    "undeclared topic": """CREATE TABLE topics(id, name, type, serialization_format);
        CREATE TABLE messages(id, topic_id, timestamp, data);
        INSERT INTO messages VALUES (1, 1, 1, x'00010000');""",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_database_is_refused_at_once(tmp_path: Path, name: str) -> None:
    database = sqlite3.connect(tmp_path / "bag.db3")
    database.executescript(HOSTILE[name])
    database.commit()
    database.close()
    start = time.process_time()
    with pytest.raises(TrueupError) as caught:
        read_mcap(tmp_path / "bag.db3")
    assert caught.value.file == str(tmp_path / "bag.db3")
    assert time.process_time() - start < 2.0


@pytest.mark.medium
def test_mutated_databases_are_read_or_refused(tmp_path: Path) -> None:
    write_rosbag2(tmp_path / "bag", StoragePlugin.SQLITE3)
    raw = next((tmp_path / "bag").glob("*.db3")).read_bytes()
    rng = np.random.default_rng(3)
    bad = tmp_path / "bad.db3"
    worst_s, read, unplaced = 0.0, 0, 0
    for k in range(300):
        changed = bytearray(raw)
        places = rng.integers(0, len(raw) if k % 2 else 3000, int(rng.integers(1, 30)))
        for place in places:
            changed[place] = int(rng.integers(256))
        bad.write_bytes(changed[: int(rng.integers(1, len(raw)))] if k % 5 == 0 else changed)
        start = time.process_time()
        try:
            read_mcap(bad)
            read += 1
        except TrueupError as error:
            unplaced += not (error.file and error.place)
        worst_s = max(worst_s, time.process_time() - start)
    print(f"300 mutated databases: {read} read, worst {worst_s:.2f} s")
    assert worst_s < 2.0
    assert 0 < read < 300
    assert unplaced == 0


def test_our_own_log_reads_as_a_foreign_one_too(tmp_path: Path) -> None:
    log = full_log(rows=40)
    write_log(log, tmp_path / "log.mcap")
    found = assemble(collect(tmp_path / "log.mcap")[0].streams())
    for name in ("joint_pos", "joint_torque", "target_vel", "imu_gyro", "base_pos"):
        assert np.array_equal(found[name], log[name]), name
    assert np.allclose(found["base_vel"], log["base_vel"], atol=1e-12)
    same = np.sign(np.sum(found["base_quat"] * log["base_quat"], axis=1, keepdims=True))
    assert np.allclose(same * found["base_quat"], log["base_quat"], atol=1e-12)
