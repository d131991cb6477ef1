"""What the guard records, and that it never disturbs control: a full or slow disk, a missing package, kill -9."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from guard_doubles import ROBOT, SPEC, command, drive, reference, rows, state, times

from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.write import LogWriter
from trueup.hardware.guard import recorder as recorder_module
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.driver import GuardDriver
from trueup.hardware.guard.recorder import GuardRecorder
from trueup.robot.load import load_robot


def events_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_rows_are_an_ordinary_log_of_states_and_the_commands_that_followed(tmp_path: Path) -> None:
    recorder = GuardRecorder(tmp_path, SPEC.joint_names, {"robot": "two"})
    for k in range(100):
        recorder.row(state(k, joint_pos=[0.01 * k, -1.0]), rows([0.5, -1.0]))
    recorder.event("clips", 1.5, counts={"step": 3})
    recorder.close({"trip": "because"})
    log = read_mcap(tmp_path / "robot.mcap")
    assert len(log) == recorder.rows == 100
    np.testing.assert_array_equal(log["joint_pos"][:, 0], 0.01 * np.arange(100))
    np.testing.assert_array_equal(log["target_kp"][7], [20.0, 40.0])
    assert log["imu_quat"][3].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert (log.meta["robot"], log.meta["trip"]) == ("two", "because")
    assert events_of(tmp_path) == [{"event": "clips", "time_s": 1.5, "robot_s": 0.198, "counts": {"step": 3}}]


def test_a_report_with_nan_is_recorded_as_it_came_and_one_with_a_broken_clock_is_not(tmp_path: Path) -> None:
    recorder = GuardRecorder(tmp_path, SPEC.joint_names, {})
    for broken in (state(0), state(1, joint_pos=[np.nan, -1.0]), state(1), state(2, time_s=np.nan), state(0)):
        recorder.row(broken, rows())
    recorder.row(state(3, time_s=-1.0), rows())
    recorder.close()
    log = read_mcap(tmp_path / "robot.mcap")
    assert len(log) == 2
    assert np.isnan(log["joint_pos"][1, 0])


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = GuardRecorder(None, SPEC.joint_names, {})
    recorder.row(state(0), rows())
    recorder.event("trip", 0.0)
    recorder.close()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_too_slow_costs_rows_and_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = LogWriter.append

    def slow(self: LogWriter, time_s: float, **signals: object) -> None:
        time.sleep(0.05)
        append(self, time_s, **signals)  # type: ignore[arg-type]

    monkeypatch.setattr(LogWriter, "append", slow)
    monkeypatch.setattr(recorder_module, "_LONGEST", 10)
    recorder = GuardRecorder(tmp_path, SPEC.joint_names, {})
    began = time.monotonic()
    for k in range(500):
        recorder.row(state(k), rows())
    assert time.monotonic() - began < 0.2  # 500 rows at the disk's pace would take 25 s
    recorder.close()
    assert recorder.dropped >= 480
    assert recorder.rows + recorder.dropped == 500


def test_a_missing_package_costs_the_log_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "trueup.data.mcap.write", None)
    recorder = GuardRecorder(tmp_path, SPEC.joint_names, {})
    for k in range(20):
        recorder.row(state(k), rows())
        time.sleep(0.001)
    recorder.event("trip", 0.0, reason="why")
    recorder.close()
    assert recorder.dropped == 20
    assert len(caplog.records) == 1
    assert "pip install" in caplog.text
    assert events_of(tmp_path)[0]["reason"] == "why"


def test_a_folder_that_takes_no_files_costs_the_log(tmp_path: Path) -> None:
    (tmp_path / "robot.mcap").write_bytes(b"an older one")
    recorder = GuardRecorder(tmp_path, SPEC.joint_names, {})
    time.sleep(0.05)
    recorder.row(state(0), rows())
    recorder.close()
    assert "already" in recorder.problem
    assert recorder.dropped == 1
    assert (tmp_path / "robot.mcap").read_bytes() == b"an older one"


# --- real processes ---
@pytest.mark.medium
def test_a_full_disk_does_not_disturb_control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    robot = load_robot("pendulum")
    driver = GuardDriver("twin:ideal", robot, out=tmp_path / "out", lockstep=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, before[1]))  # the kernel refuses the guard what lies beyond
    try:
        driver.connect()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    for _ in range(400):
        driver.read()
        driver.write(command(robot.spec.default_pose, robot))
    driver.close()
    assert driver.summary is not None
    assert driver.trip is None
    assert driver.summary.status.unrecorded > 100
    assert driver.summary.tap["accepted"] >= 400
    assert (tmp_path / "out" / "robot.mcap").stat().st_size <= 40_000


@pytest.mark.medium
@pytest.mark.parametrize("wait_s", [0.3, 0.437, 0.611])
def test_a_guard_killed_in_mid_run_leaves_all_but_the_last_50_ms(wait_s: float, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    driver = GuardDriver(reference(log), ROBOT, GuardCfg(silence_s=0.5), out=tmp_path, command_hz=500.0)
    driver.connect()
    drive(driver, 0.3 + wait_s)
    os.kill(driver.guard_pid, signal.SIGKILL)
    driver.close()
    last_s = times(log, "write").max() - times(log, "connect").min()  # on the robot's clock
    kept = read_mcap(tmp_path / "robot.mcap")
    assert last_s - kept.time[-1] < 0.05
    assert len(kept) > 100


@pytest.mark.medium
def test_a_run_leaves_every_state_with_what_was_sent_and_what_happened(tmp_path: Path) -> None:
    driver = GuardDriver(
        reference(tmp_path / "log", "spike"), ROBOT, GuardCfg(silence_s=0.5), out=tmp_path, command_hz=500.0
    )
    driver.connect()
    with pytest.raises(Exception, match="jumped"):
        drive(driver, 2.0)
    driver.close()
    log = read_mcap(tmp_path / "robot.mcap")
    assert driver.summary is not None
    assert len(log) == driver.summary.rows
    assert log["target_kp"][-1].tolist() == [0.0, 0.0]  # damping at the end
    assert (log["target_kp"] == [20.0, 40.0]).all(axis=1).sum() > 50
    assert (log["joint_pos"][:, 0] > 0.5).any()  # the outliers as they came
    kinds = [event["event"] for event in events_of(tmp_path)]
    assert [kind for kind in kinds if kind in ("phase", "trip", "summary")][-3:] == ["phase", "trip", "summary"]
