"""Outputs that cannot be written: one line and exit code 2, before any work."""

import resource
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from trueup.cli import _VERBS, _load, main
from trueup.core.files import _marks

# what goes in does not exist either: an error about the output shows that it was looked at first
FILES = [
    ("sim", "nothing", "--page", "{}"),
    ("sim", "nothing", "--film", "{}"),
    ("play", "nothing", "--film", "{}"),
    ("record", "nothing", "--out", "{}"),
    ("record", "nothing", "--dry-run", "--page", "{}"),
    ("data", "check", "nothing.mcap", "--page", "{}"),
    ("data", "convert", "nothing.mcap", "{}"),
    ("data", "recover", "nothing.mcap", "--out", "{}"),
    ("data", "import", "nothing.csv", "--mapping", "nothing", "--out", "{}"),
]
FOLDERS = [
    ("train", "nothing", "--out", "{}"),
    ("train", "--resume", "{}"),
    ("robot", "init", "nothing.xml", "--out", "{}"),
    ("robot", "export", "nothing", "--out", "{}"),
    ("calibrate", "nothing.mcap", "--robot", "nothing", "--out", "{}"),
    ("calibrate", "actuator", "nothing.mcap", "--robot", "nothing", "--out", "{}"),
]


def complaint(args: tuple[str, ...], path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main([arg.format(path) for arg in args])
    shown = capsys.readouterr().err
    assert ended.value.code == 2
    assert shown.startswith(f"trueup: {path}: ")
    assert shown.count("\n") == 1
    return shown


@pytest.mark.parametrize("args", FILES + FOLDERS, ids=" ".join)
@pytest.mark.parametrize("place", ["{}/file/out.mcap", "{}/file/deep/out.mcap", "/proc/out.mcap"])
def test_a_place_that_cannot_be_is_refused_at_once(args, place, tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    assert "cannot be written" in complaint(args, Path(place.format(tmp_path)), capsys)


@pytest.mark.parametrize("args", FILES, ids=" ".join)
def test_a_folder_in_place_of_a_file_is_refused_at_once(args, tmp_path, capsys):
    (tmp_path / "out.mcap").mkdir()
    assert "is a folder; name a file" in complaint(args, tmp_path / "out.mcap", capsys)


@pytest.mark.parametrize("args", FOLDERS, ids=" ".join)
def test_a_file_in_place_of_a_folder_is_refused_at_once(args, tmp_path, capsys):
    (tmp_path / "out").write_text("x")
    assert "is a file; name a folder" in complaint(args, tmp_path / "out", capsys)
    assert (tmp_path / "out").read_text() == "x"


@pytest.mark.parametrize("name", _VERBS)
def test_every_output_of_every_verb_is_marked(name):
    verb = _load(_VERBS[name][0])
    hints = get_type_hints(verb, include_extras=True)
    places = [f.name for f in fields(verb) if f.name in ("out", "film", "page") and hints[f.name] is not bool]
    assert all(list(_marks(hints[name])) for name in places)


def test_a_disk_that_fills_up_ends_in_one_line(tmp_path):
    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    command = [sys.executable, "-m", "trueup", "sim", "pendulum", "--seconds", "0.1", "--page"]
    done = subprocess.run(
        [*command, str(tmp_path / "page.html")], capture_output=True, text=True, preexec_fn=small_disk
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "page.html: cannot be written: File too large" in done.stderr
    assert list(tmp_path.iterdir()) == []
