"""policy.rows as MCAP: every number comes back through readers that are not ours, on the robot's clock."""

import json

import msgspec
import numpy as np
import pytest
from made_deploys import HEADER, toy_state
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from trueup.cli import main
from trueup.core.errors import TrueupError
from trueup.deploy.session.recording import RowWriter, read_rows, state_columns
from trueup.hardware.policy_mcap import convert_rows

TERMS = [["gyro", 3], ["joint_pos/1_ago", 30], ["last_action", 3]]


def run_folder(folder, header=HEADER, count=20):
    """A ramp of five rows and a policy's after it, and what the guard noted meanwhile."""
    random = np.random.default_rng(0)
    writer = RowWriter(folder / "policy.rows", header)
    for k in range(count):
        more = {} if k < 5 else {"observation": random.normal(size=36), "target": random.normal(size=3)}
        writer.add(tick=k, late_s=1e-4 * k, flags=0, sent_kp=(20.0,) * 3, **state_columns(toy_state(k)), **more)
    writer.close()
    events = [{"event": "phase", "time_s": 9.0, "robot_s": None, "phase": "active"}]
    events += [{"event": "trip", "time_s": 9.4, "robot_s": 0.38, "guard": "tilt", "reason": "leans"}]
    lines = [msgspec.json.encode(event) for event in events]
    (folder / "events.jsonl").write_bytes(b"\n".join(lines) + b'\n{"event": "summ')  # killed while it wrote
    return folder


def messages(path):
    """Topic -> [(seconds, message)] by the maintainers' own reader."""
    found = {}
    with open(path, "rb") as file:
        factory = DecoderFactory()
        for schema, channel, message in make_reader(file, decoder_factories=[factory]).iter_messages():
            decoder = factory.decoder_for(channel.message_encoding, schema)
            decoded = json.loads(message.data) if decoder is None else decoder(message.data)
            found.setdefault(channel.topic, []).append((message.log_time / 1e9, decoded))
    return found


def test_every_number_comes_back_by_name_on_the_robots_clock(tmp_path):
    folder = run_folder(tmp_path, msgspec.structs.replace(HEADER, meta={"terms": TERMS}))
    done = convert_rows(folder, tmp_path / "run.mcap")
    assert (done.rows, done.events, done.damaged) == (20, 2, 0)
    rows, found = read_rows(folder / "policy.rows"), messages(tmp_path / "run.mcap")
    for k, (seconds, state) in enumerate(found["/joint_states"]):
        assert seconds == pytest.approx(0.02 * k)
        assert state.name == list(HEADER.joint_names)
        assert state.position == rows.columns["joint_pos"][k].tolist()
        assert state.velocity == rows.columns["joint_vel"][k].tolist()
    quat = found["/imu"][3][1].orientation
    assert [quat.w, quat.x, quat.y, quat.z] == rows.columns["imu_quat"][3].tolist()
    assert [one.data[0] for _, one in found["/policy/late_s"]] == rows.columns["late_s"][:, 0].tolist()
    assert [one.position for _, one in found["/policy/target"]] == rows.columns["target"][5:].tolist()
    assert len(found["/policy/sent_kp"]) == 20
    assert "/policy/raw" not in found  # nothing was ever there
    observed = rows.columns["observation"][5:]
    for topic, part in {"gyro": slice(0, 3), "joint_pos/1_ago": slice(3, 33), "last_action": slice(33, 36)}.items():
        assert [list(one.data) for _, one in found[f"/policy/observation/{topic}"]] == observed[:, part].tolist()
    seconds, event = found["/guard/events"][1]
    assert (seconds, event["guard"], event["reason"]) == (0.38, "tilt", "leans")


def test_rosbags_reads_it_too(tmp_path):
    convert_rows(run_folder(tmp_path), tmp_path / "run.mcap")
    (tmp_path / "events.jsonl").unlink()  # JSON is not ROS: rosbags knows no such channel
    convert_rows(tmp_path, tmp_path / "plain.mcap")
    rows = read_rows(tmp_path / "policy.rows")
    with AnyReader([tmp_path / "plain.mcap"], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
        wanted = [one for one in reader.connections if one.topic == "/policy/observation"]
        found = [reader.deserialize(data, one.msgtype).data for one, _, data in reader.messages(connections=wanted)]
    assert np.array_equal(found, rows.columns["observation"][5:])


@pytest.mark.parametrize("terms", [None, "gyro", [["gyro", 35]], [["gyro", 37], ["x", -1]], [["a", 36.5]]])
def test_an_observation_whose_terms_are_not_told_soundly_is_one_topic(tmp_path, terms):
    folder = run_folder(tmp_path, msgspec.structs.replace(HEADER, meta={"terms": terms}))
    convert_rows(folder, tmp_path / "run.mcap")
    found = messages(tmp_path / "run.mcap")
    assert [name for name in found if "observation" in name] == ["/policy/observation"]


def test_a_recording_that_was_cut_short_is_converted_up_to_its_last_whole_row(tmp_path):
    run_folder(tmp_path)
    path = tmp_path / "policy.rows"
    path.write_bytes(path.read_bytes()[:-7])
    assert convert_rows(path, tmp_path / "run.mcap").rows == 19


def test_what_cannot_be_converted_is_refused_and_nothing_is_written(tmp_path):
    run_folder(tmp_path, count=0)
    with pytest.raises(TrueupError, match="no whole row"):
        convert_rows(tmp_path, tmp_path / "run.mcap")
    with pytest.raises(TrueupError, match="is converted to .mcap"):
        convert_rows(tmp_path, tmp_path / "run.csv")
    assert not list(tmp_path.glob("run.*"))


def test_the_command_line_takes_the_folder_of_a_run(tmp_path, capsys):
    run_folder(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["data", "convert", str(tmp_path), str(tmp_path / "run.mcap")])
    assert end.value.code == 0
    assert "20 control steps, 2 events of the guard" in capsys.readouterr().out
    assert len(messages(tmp_path / "run.mcap")["/joint_states"]) == 20
