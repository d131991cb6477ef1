"""The true flaws of two public recordings, when they are at hand (TRUEUP_RECORDINGS names their folder)."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from trueup.data.check.check import Report, check_log
from trueup.data.log import Log

FOLDER = Path(os.environ.get("TRUEUP_RECORDINGS", "no recordings"))
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="TRUEUP_RECORDINGS names no folder")


def go2_air() -> Log:
    with gzip.open(FOLDER / "go2_air" / "go2_air_35s.csv.gz", "rt") as file:
        table = np.genfromtxt(file, delimiter=",", names=True)
    names = tuple(f"{leg}_{joint}" for leg in ("FL", "FR", "RL", "RR") for joint in ("hip", "thigh", "calf"))
    columns = {"joint_pos": "jpos{}", "joint_vel": "jvel{}", "target_pos": "jpos{}_des"}
    signals = {s: np.stack([table[c.format(i)] for i in range(12)], axis=1) for s, c in columns.items()}
    return Log(time=np.arange(len(table)) / 200, joint_names=names, signals=signals)


def so101(motion: str) -> Log:
    def table(name: str, *columns: str) -> list[np.ndarray]:
        with gzip.open(FOLDER / "so101" / motion / name, "rt") as file:
            rows = list(csv.DictReader(file))
        stamps = np.array([float(row["timestamp"]) for row in rows]) * 1e-6
        return [stamps, *(np.array([json.loads(row[c]) for row in rows]) for c in columns)]

    _, target = table("control.csv.gz", "positions")
    time, pos, vel, torque = table("state_motor.csv.gz", "positions", "velocities", "torques")
    names = tuple((FOLDER / "so101" / motion / "joint_list.txt").read_text().split())
    signals = {"joint_pos": pos, "joint_vel": vel, "joint_torque": torque, "target_pos": target}
    return Log(time=time, joint_names=names, signals=signals)


def motions() -> list[str]:
    return sorted(path.name for path in (FOLDER / "so101").iterdir()) if FOLDER.is_dir() else []


def alarms(report: Report) -> set[str]:
    return {finding.code for finding in report.alarms}


def test_the_dog_in_the_air_is_paired_and_its_velocities_read_high() -> None:
    report = check_log(go2_air())
    assert alarms(report) == {"velocity_scale"}
    assert report.measured["hold_rows"] == 4
    assert -1 < report.measured["command_lag_rows"] < 2


def test_the_dogs_commands_one_control_step_late_would_be_found() -> None:
    log = go2_air()
    target = np.roll(log["target_pos"], 4, axis=0)
    late = Log(time=log.time, joint_names=log.joint_names, signals={**log.signals, "target_pos": target})
    assert "command_late" in check_log(late).codes


@pytest.mark.parametrize("motion", motions())
def test_the_arms_true_flaws_are_told_and_nothing_else(motion: str) -> None:
    report = check_log(so101(motion))
    assert report.usable
    assert "torque_unsigned" in alarms(report)
    assert alarms(report) <= {"torque_unsigned", "unit_normalised", "low_excitation"}
    assert {"rate_low", "quantisation"} <= report.codes
