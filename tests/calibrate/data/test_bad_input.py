"""Bad input through the real command: a refusal or a warning that names the remedy."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planted_logs import draw_truth, planted_log

from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg
from trueup.cli import main
from trueup.core.errors import TrueupError
from trueup.data.files import write_log_file
from trueup.data.log import Log
from trueup.robot.load import load_robot
from trueup.world.fitted.calibration import read_calibration

ROBOT = load_robot("go2")
LOG = planted_log(ROBOT, draw_truth(ROBOT, 3), seconds=6.0)


def run(log: Log, folder: Path, capsys, *options: str, robot: str = "go2") -> tuple[int, str]:
    path = write_log_file(log, folder / "log.mcap")
    words = ["calibrate", str(path), "--robot", robot, "--out", str(folder / "out"), "--no-page"]
    try:
        code = main([*words, "--physics", "200", "--method", "local", *options]) or 0
    except SystemExit as end:
        code = int(end.code or 0)
    printed = capsys.readouterr()
    return code, " ".join((printed.out + printed.err).split())


def test_a_log_of_another_robot_is_refused_and_its_joints_named(tmp_path, capsys):
    code, said = run(LOG, tmp_path, capsys, robot="so101")
    assert code != 0
    assert "another robot" in said
    assert "FL_hip_joint" in said
    assert "--robot" in said


def test_a_missing_joint_is_named(tmp_path, capsys):
    keep = [k for k in range(12) if k != 4]
    signals = {name: values[:, keep] for name, values in LOG.signals.items()}
    names = tuple(LOG.joint_names[k] for k in keep)
    code, said = run(Log(time=LOG.time, joint_names=names, signals=signals), tmp_path, capsys)
    assert code != 0
    assert "no joint 'FR_thigh_joint' (1 of 12 are missing)" in said
    assert "record all joints" in said


def test_three_seconds_are_too_short(tmp_path, capsys):
    code, said = run(LOG.window(0, 600), tmp_path, capsys)
    assert code != 0
    assert "too short to calibrate from; record at least 20 s" in said


def test_a_log_without_motion_is_refused(tmp_path, capsys):
    still = planted_log(ROBOT, draw_truth(ROBOT, 3), seconds=6.0, still=tuple(range(12)))
    code, said = run(still, tmp_path, capsys)
    assert code != 0
    assert "12 of 12 joints move by less" in said
    assert "Record" in said
    with pytest.raises(TrueupError, match="no joint was moved.*trueup record"):
        calibrate(ROBOT, [still], CalibrateCfg(physics_hz=200.0, check=False))


@pytest.mark.medium
@pytest.mark.parametrize("rows", [1, 2])
def test_commands_written_down_late_are_refused_or_warned_about(rows, tmp_path, capsys):
    truth = draw_truth(ROBOT, 3) | {"delay": np.full(12, 0.002)}
    log = planted_log(ROBOT, truth, seconds=6.0)
    shifted = dict(log.signals, target_pos=np.roll(log["target_pos"], rows, axis=0))
    code, said = run(replace(log, signals=shifted).window(rows, len(log)), tmp_path, capsys)
    if code == 0:
        said = " ".join(read_calibration(tmp_path / "out").notes)
        assert "shift target_pos by a row" in said
    else:
        assert "before the command" in said
