"""What goes wrong in a newcomer's first hour ends in one line that says what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trueup.cli import _EXAMPLES, _VERBS, _load, _parsed, main
from trueup.core.errors import found_instead


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with things that are given where others are asked for."""
    for folder, mark in (("run", "config.json"), ("fit", "params.json"), ("ladder", "ladder.json"), ("empty", "")):
        (tmp_path / folder).mkdir()
        if mark:
            (tmp_path / folder / mark).write_text("{}")
    (tmp_path / "notes.txt").write_text("not a log")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("calibrat log.mcap", "did you mean 'calibrate'"),
        ("robots list", "did you mean 'robot'"),
        ("robot inspekt go2", "did you mean 'inspect'"),
        ("robot inspect go3", "did you mean 'go2'"),
        ("robot inspect my_arm.urdf", "neither built in nor a path"),
        ("robot inspect empty", "trueup robot init"),
        ("robot inspect notes.txt", "a folder, a spec or a model file"),
        ("robot init my_arm.urdf --out arm", "my_arm.urdf: no such file"),
        ("robot init go2 --out arm", "is built in"),
        ("robot init notes.txt --out arm", "not valid XML"),
        ("robot export ladder --to isaaclab --out lab", "its rungs, in rungs/, are calibrations"),
        ("record go2 --excitation active --for run --out x.mcap", "this is a run of `trueup train`"),
        ("record go2 --excitation active --out x.mcap", "needs --for DIR"),
        ("data check missing.mcap", "trueup record"),
        ("data check empty", "it is empty"),
        ("data check notes.txt", "not a log"),
        ("calibrate missing.mcap --robot go2 --out new", "no such file"),
        ("calibrate fit --robot go2 --out new", "this is a calibration"),
        ("calibrate --robot go2 --out new", "no log was named"),
        ("sim go2 --params empty", "no calibration here: it is empty"),
        ("sim go2 --params missing", "there is no 'missing' here"),
        ("sim go2 --params fit", "is not a calibration"),
        ("train go2-velosity --minutes 1 --out new", "did you mean 'go2-velocity'"),
        ("train go2 --minutes 1 --out new", "tasks of robot 'go2': "),
        ("train my_task.py --minutes 1 --out new", "my_task.py:FUNCTION"),
        ("train go2-velocity --out new", "--minutes, --steps or --target"),
        ("train go2-velocity --minutes -1 --out new", "above 0"),
        ("train go2-velocity --params run --minutes 1 --out new", "this is a run of `trueup train`"),
        ("train go2-velocity --robot so101 --minutes 1 --out new", "lacks floating base, feet"),
        ("train go2-velocity --robot g1 --minutes 1 --out new", "trueup task init g1"),
        ("play fit", "this is a calibration"),
        ("export fit --out new.bundle", "trueup train TASK --out RUN"),
        ("evaluate run --out new", "trueup export"),
        ("verify fit", "this is a calibration"),
        ("deploy missing.bundle", "no bundle here: no such folder"),
        ("task init go2 --like go2-velocty --out t.py", "did you mean 'go2-velocity'"),
    ],
)
def test_one_line_says_what_to_do(command: str, words: str, place: Path, capsys: pytest.CaptureFixture[str]):
    before = sorted(place.iterdir())
    with pytest.raises(SystemExit) as end:
        main(command.split())
    said = capsys.readouterr()
    assert end.value.code == 2
    assert words in said.err
    assert len(said.err.strip().splitlines()) == 1, said.err
    assert sorted(place.iterdir()) == before  # nothing is left of what could not be done


@pytest.mark.parametrize("verb", _EXAMPLES)
def test_every_example_is_a_command_that_can_be_read(verb: str, place: Path):
    words = _EXAMPLES[verb].split()
    count = len(verb.split())
    assert words[:count] == verb.split()
    assert _parsed(verb, _load(_VERBS[verb][0]), words[count:]) is not None


def test_a_command_that_cannot_be_read_is_followed_by_one_that_can(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as end:
        main(["record", "go2", "--excitation", "chrip", "--out", "x.mcap"])
    assert end.value.code == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("trueup: for example: trueup record go2")


def test_what_lies_there_instead_is_named(place: Path):
    assert found_instead("nothing") == "there is no 'nothing' here"
    assert found_instead("notes.txt") == "this is a file (.txt)"
    (place / "empty" / "a").touch()
    assert found_instead("empty") == "this folder holds a"


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("torch", "train pendulum-swingup --steps 1 --out new"),
        ("mujoco", "sim pendulum"),
        ("plotly", "calibrate l.mcap"),
    ],
)
def test_a_missing_extra_is_named_before_any_work(package: str, command: str, place: Path):
    (place / f"{package}.py").write_text(f"raise ModuleNotFoundError('no', name={package!r})")
    more = ["--robot", "go2", "--out", "new"] if package == "plotly" else []
    code = f"import sys; sys.path.insert(0, {str(place)!r}); from trueup.cli import main; main(sys.argv[1:])"
    found = subprocess.run(
        [sys.executable, "-c", code, *command.split(), *more], capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 2
    assert "pip install 'trueup[" in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
