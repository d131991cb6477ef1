"""Active excitation and export from the command line, in this process."""

import sys
from functools import partial
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "calibrate"))
from made_calibration import made_calibration

from trueup.calibrate import active
from trueup.calibrate.result import write_calibration
from trueup.cli import main
from trueup.data.files import read_log
from trueup.robot.load import load_robot

PENDULUM = load_robot("pendulum")


@pytest.fixture
def weak(tmp_path: Path) -> Path:
    result = made_calibration(PENDULUM, ("armature", "friction", "delay"), deviation={"armature": 0.4})
    return write_calibration(result, tmp_path / "fit").parent


def exit_code(*args: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(arg) for arg in args])
    return int(ended.value.code or 0)


@pytest.mark.medium
def test_an_active_recording_says_what_it_should_tell_and_is_named_in_its_log(
    weak, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    short = partial(active.ActiveCfg, generations=2, population=4, draws=1)
    monkeypatch.setattr(active, "ActiveCfg", short)
    log = tmp_path / "next.mcap"
    code = exit_code(
        *("record", "pendulum", "--driver", "twin:pace?seed=3", "--lockstep", "--seconds", "5.5"),
        *("--excitation", "active", "--for", weak, "--out", log),
    )
    shown = capsys.readouterr().out
    assert code == 0, shown
    assert "armature joint" in shown
    assert "should identify every weak parameter" in shown
    assert "multisine" in shown
    excitation = read_log(log).meta["excitation"]
    assert isinstance(excitation, dict)
    assert excitation["kind"] == "active"
    assert excitation["for"] == ["armature joint"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "needs --for DIR"),
        (("--for", "nowhere"), "cannot be read"),
        (("--for", "{fit}", "--joints", "joint"), "chooses its joints itself"),
        (("--for", "{fit}", "--seconds", "2"), "at least one segment"),
    ],
)
def test_an_active_recording_that_cannot_be_planned_says_why(more, words, weak, capsys):
    given = [str(weak) if arg == "{fit}" else arg for arg in more]
    assert exit_code("record", "pendulum", "--excitation", "active", "--dry-run", *given) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("to", "file"),
    [("mjcf", "spec.toml"), ("urdf", "joints.urdf.xml"), ("isaaclab", "actuators_isaaclab.py")],
)
def test_a_calibrated_robot_is_exported_with_its_losses(to, file, weak, tmp_path, capsys):
    out = tmp_path / to
    assert exit_code("robot", "export", weak, "--to", to, "--out", out, "--physics", 150) == 0
    assert (out / file).is_file()
    assert "lost: delay" in capsys.readouterr().out
    assert "delay" in (out / "LOSSES.md").read_text()
    if to == "mjcf":
        assert load_robot(out).spec.name == "pendulum"
