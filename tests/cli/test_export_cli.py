"""`trueup robot export ROBOT --to urdf`: a whole robot without a calibration."""

import pytest

from trueup.cli import main
from trueup.robot.load import load_robot


def run(*args) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in args])
    return ended.value.code


def test_a_built_in_robot_becomes_a_urdf_that_opens(tmp_path, capsys):
    assert run("robot", "export", "go2", "--to", "urdf", "--out", tmp_path / "out") == 0
    shown = capsys.readouterr().out
    assert "lost: armature" in shown
    assert "go2.urdf" in shown
    robot = load_robot(tmp_path / "out" / "go2.urdf")
    assert robot.spec.base.floating
    assert set(robot.spec.joint_names) == set(load_robot("go2").spec.joint_names)


def test_ones_own_robot_becomes_a_urdf_by_folder_and_by_file(tmp_path):
    first = tmp_path / "one"
    assert run("robot", "export", "pendulum:load_mass=1.0", "--to", "urdf", "--out", first) == 0
    folder = tmp_path / "own"
    assert run("robot", "init", first / "pendulum.urdf", "--out", folder) == 0
    assert run("robot", "export", folder, "--to", "urdf", "--out", tmp_path / "two") == 0
    assert run("robot", "export", first / "pendulum.urdf", "--to", "urdf", "--out", tmp_path / "three") == 0
    for copy in ("two", "three"):
        (file,) = (tmp_path / copy).iterdir()
        assert '<mass value="1.0"/>' in file.read_text()


def test_other_forms_need_a_calibration(tmp_path, capsys):
    assert run("robot", "export", "go2", "--to", "isaaclab", "--out", tmp_path / "out") == 2
    assert "isaaclab needs one (`trueup calibrate`)" in capsys.readouterr().err
    assert run("robot", "export", "nothing", "--out", tmp_path / "out") == 2
    assert "no calibration here" in capsys.readouterr().err
