"""policy.rows: everything comes back bit for bit, whatever cut it short, and the loop never waits for the disk."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from made_deploys import HEADER, toy_state

from trueup.core.errors import TrueupError
from trueup.deploy.session import recording
from trueup.deploy.session.recording import RowWriter, read_rows, state_columns


def write(path, count, **more):
    writer = RowWriter(path, HEADER)
    for k in range(count):
        writer.add(tick=k, **state_columns(toy_state(k)), **more)
    return writer.close()


def test_states_and_columns_come_back_bit_for_bit(tmp_path):
    raw = np.array([0.1, -1e-30, 1.0 / 3.0], np.float32)
    written = write(tmp_path / "policy.rows", 20, raw=raw, asked=(0.1, 0.2, 0.3))
    found = read_rows(tmp_path / "policy.rows")
    assert (written.rows, written.dropped, written.error, len(found), found.damaged) == (20, 0, "", 20, 0)
    assert found.header == HEADER
    for k in range(20):
        for name, value in vars(toy_state(k)).items():
            assert np.array_equal(getattr(found.state(k), name), value), name
        assert np.array_equal(found.columns["raw"][k].astype(np.float32), raw)
    assert np.isnan(found.columns["target"]).all()  # never given


def test_a_robot_without_imu_comes_back_without(tmp_path):
    writer = RowWriter(tmp_path / "r", recording.msgspec.structs.replace(HEADER, has_imu=False))
    writer.add(tick=0, **state_columns(toy_state(imu_quat=None, imu_gyro=None, imu_acc=None)))
    writer.close()
    assert read_rows(tmp_path / "r").state(0).imu_quat is None


@pytest.mark.parametrize("cut", [1, 7, 100, 1000])
def test_a_file_that_was_cut_reads_up_to_its_last_whole_row(tmp_path, cut):
    path = tmp_path / "policy.rows"
    write(path, 10)
    size = 8 * (sum(HEADER.columns.values()) + 1)
    os.truncate(path, path.stat().st_size - cut)
    assert len(read_rows(path)) == 10 - -(-cut // size)


def test_a_flipped_bit_costs_its_row_and_is_counted(tmp_path):
    path = tmp_path / "policy.rows"
    write(path, 5)
    data = bytearray(path.read_bytes())
    data[-100] ^= 4
    path.write_bytes(bytes(data))
    found = read_rows(path)
    assert (len(found), found.damaged) == (4, 1)


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"{}\n", b"nonsense\n", b"\xff\xfe\n", b'{"schema": 9}\n', b"[" * 100_000 + b"\n"]
)
def test_other_files_are_refused_with_their_name(tmp_path, text):
    (tmp_path / "x").write_bytes(text)
    with pytest.raises(TrueupError, match="x: "):
        read_rows(tmp_path / "x")


@pytest.mark.parametrize("columns", [{}, {"tick": -1}, {"tick": 10**9}, {"tick": 1}])
def test_a_header_without_sensible_columns_is_refused(tmp_path, columns):
    header = recording.msgspec.structs.replace(HEADER, columns=columns)
    (tmp_path / "x").write_bytes(recording.msgspec.json.encode(header) + b"\n")
    with pytest.raises(TrueupError, match="column"):
        read_rows(tmp_path / "x")


def test_a_recording_is_never_overwritten(tmp_path):
    write(tmp_path / "r", 1)
    with pytest.raises(TrueupError, match="cannot be written"):
        RowWriter(tmp_path / "r", HEADER)


def test_a_full_disk_stops_the_recording_and_nothing_else():
    writer = RowWriter.__new__(RowWriter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording.os, "open", lambda *_: os.dup(DEV_FULL))
        patch.setattr(recording.os, "write", _first_then_full())
        RowWriter.__init__(writer, recording.Path("/tmp/never"), HEADER)
        for k in range(10):
            writer.add(tick=k)
        written = writer.close()
    assert (written.rows, written.dropped) == (0, 10)
    assert "No space left" in written.error


DEV_FULL = os.open("/dev/full", os.O_WRONLY)


def _first_then_full():
    real, calls = os.write, []

    def write_(file, data):
        calls.append(data)
        return len(data) if len(calls) == 1 else real(DEV_FULL, data)

    return write_


def test_a_disk_that_stands_still_does_not_hold_up_the_loop(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "MOST_WAITING", 50)
    writer = RowWriter(tmp_path / "r", HEADER)
    monkeypatch.setattr(recording, "_write_all", lambda *_: time.sleep(0.2))
    began = time.perf_counter()
    for k in range(200):
        writer.add(tick=k)
    assert time.perf_counter() - began < 0.2
    assert writer._dropped >= 140  # counted, not waited for


@pytest.mark.medium
def test_kill_9_loses_at_most_50_ms(tmp_path):
    path = tmp_path / "policy.rows"
    script = (
        "import sys, time; sys.path.insert(0, 'tests/helpers')\n"
        "from test_deploy_recording import RowWriter, state_columns\nfrom made_deploys import HEADER, toy_state\n"
        f"writer, start = RowWriter(__import__('pathlib').Path({str(path)!r}), HEADER), time.monotonic()\n"
        "for k in range(100000):\n"
        "    writer.add(tick=k, wall_s=time.monotonic(), **state_columns(toy_state(k)))\n"
        "    print(time.monotonic(), flush=True)\n"
        "    time.sleep(max(0.0, start + 0.02 * (k + 1) - time.monotonic()))\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"tests/helpers:{os.path.dirname(__file__)}"}
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment)
    assert child.stdout is not None
    said = [float(child.stdout.readline()) for _ in range(40)]
    child.send_signal(signal.SIGKILL)
    said += [float(line) for line in child.stdout.read().split()]
    child.wait()
    found = read_rows(path)
    assert found.damaged == 0
    assert said[-1] - found.columns["wall_s"][-1, 0] <= 0.05
