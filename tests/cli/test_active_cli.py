"""Active excitation and export from the command line, in this process."""

from functools import partial
from pathlib import Path

import msgspec
import pytest
from made_calibration import made_calibration

from trueup.calibrate.active import plan as active
from trueup.calibrate.active.plan import driver_for
from trueup.cli import main
from trueup.data.files import read_log
from trueup.robot.load import load_robot
from trueup.world.fitted.calibration import Calibration, write_calibration

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
def test_an_active_recording_says_what_it_should_tell_and_is_named_in_its_log(weak, tmp_path, monkeypatch, capsys):
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


def recorded_from(*drivers: str | None) -> Calibration:
    """A calibration whose logs name these drivers."""
    result = made_calibration(PENDULUM, ("armature",))
    logs = [{"sha256": "0", "rows": 1, "meta": {} if name is None else {"driver": name}} for name in drivers]
    return msgspec.structs.replace(result, provenance={"logs": logs})


@pytest.mark.medium
def test_a_recording_for_a_fit_is_of_the_twin_that_the_fit_came_from(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fit = write_calibration(recorded_from("twin:pace?seed=3&lockstep=1"), tmp_path / "fit").parent
    short = ("--lockstep", "--seconds", "3", "--for", fit)
    assert exit_code("record", "pendulum", *short, "--out", tmp_path / "next.mcap") == 0
    assert "driver twin:pace?seed=3, as in the calibration's logs" in capsys.readouterr().out
    assert read_log(tmp_path / "next.mcap").meta["driver"] == "twin:pace?seed=3"
    other = ("--driver", "twin:mild", "--out", tmp_path / "other.mcap")
    assert exit_code("record", "pendulum", *short, *other) == 0
    assert "warning: --driver twin:mild is another robot" in capsys.readouterr().out
    assert read_log(tmp_path / "other.mcap").meta["driver"] == "twin:mild"


@pytest.mark.parametrize(
    ("drivers", "named"),
    [
        (("twin:pace?seed=3", "twin:pace?seed=4"), "twin:pace?seed=3, twin:pace?seed=4"),
        (("twin:pace", None), "twin:pace?seed=0, unknown"),
        ((None,), "unknown"),
        ((), "unknown"),
        (("twin@127.0.0.1:7000",), "twin@127.0.0.1:7000"),
        (("own.py:make",), "own.py:make"),  # a file must not choose which code runs
    ],
)
def test_a_fit_of_several_or_unknown_robots_asks_for_the_driver(drivers, named, tmp_path, capsys):
    fit = write_calibration(recorded_from(*drivers), tmp_path / "fit").parent
    assert exit_code("record", "pendulum", "--for", fit, "--out", tmp_path / "next.mcap") == 2
    shown = capsys.readouterr().err
    assert f"came from: {named}." in shown
    assert "--driver" in shown


@pytest.mark.parametrize("asked", ["twin:pace", "twin:pace?seed=0&lockstep=1", "twin:pace?hz=500"])
def test_other_words_for_the_same_twin_are_no_other_robot(asked):
    assert driver_for(recorded_from("twin:pace?seed=0"), asked) == (asked, "")
    assert driver_for(recorded_from("twin:pace?seed=1"), asked)[1].startswith("warning")
    assert driver_for(recorded_from(None), asked) == (asked, "")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "needs --for DIR"),
        (("--for", "nowhere"), "no calibration here"),
        (("--for", "{fit}", "--joints", "joint"), "chooses its joints itself"),
        (("--for", "{fit}", "--seconds", "2"), "at least one segment"),
    ],
)
def test_an_active_recording_that_cannot_be_planned_says_why(more, words, weak, capsys):
    given = [str(weak) if arg == "{fit}" else arg for arg in more]
    assert exit_code("record", "pendulum", "--excitation", "active", "--dry-run", *given) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("to", "file"), [("mjcf", "spec.toml"), ("urdf", "joints.urdf.xml"), ("isaaclab", "actuators_isaaclab.py")]
)
def test_a_calibrated_robot_is_exported_with_its_losses(to, file, weak, tmp_path, capsys):
    out = tmp_path / to
    assert exit_code("robot", "export", weak, "--to", to, "--out", out, "--physics", 150) == 0
    assert (out / file).is_file()
    assert "lost: delay" in capsys.readouterr().out
    assert "delay" in (out / "LOSSES.md").read_text()
    if to == "mjcf":
        assert load_robot(out).spec.name == "pendulum"
