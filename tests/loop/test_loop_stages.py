"""Stages of the loop as real processes: skipped when unchanged, done again when not, told when they fail."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trueup.core.errors import TrueupError
from trueup.loop.stage import Stage, StageCommand, run_stage
from trueup.loop.workspace import LOG, Workspace

MODULE = "stage_that_writes"
CODE = """
import sys, pathlib
folder, text, code = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
(folder / "out.txt").write_text(text)
with (folder / "runs.log").open("a") as log: log.write("x")
print("wrote", text)
sys.exit(code)
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    (tmp_path / f"{MODULE}.py").write_text(CODE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Workspace(tmp_path / "space")


def a_stage(text: str = "a", *, name: str = "record", code: int = 0, after: tuple[tuple[int, str], ...] = ()) -> Stage:
    return Stage(
        name=name,
        round=1,
        after=after,
        config={"text": text},
        commands=lambda folder: [StageCommand(words=(MODULE, str(folder), text, str(code)))],
        outputs=("out.txt",),
    )


def run(workspace: Workspace, stage: Stage) -> list[str]:
    told: list[str] = []
    run_stage(workspace, stage, lambda stage, what, seconds, line: told.append(what))
    return told


def runs(workspace: Workspace, name: str = "record") -> int:
    return len((workspace.folder(1, name) / "runs.log").read_text())


def test_an_unchanged_stage_is_skipped_and_a_changed_one_done_again(workspace: Workspace) -> None:
    assert run(workspace, a_stage()) == ["begins", "done"]
    assert run(workspace, a_stage()) == ["skipped"]
    before = workspace.hashes()
    assert run(workspace, a_stage("b")) == ["begins", "done"]
    assert (workspace.folder(1, "record") / "out.txt").read_text() == "b"
    assert workspace.hashes() != before


def test_an_output_that_was_changed_or_lost_is_made_again(workspace: Workspace) -> None:
    run(workspace, a_stage())
    out = workspace.folder(1, "record") / "out.txt"
    out.write_text("tampered")
    assert run(workspace, a_stage()) == ["begins", "done"]
    out.unlink()
    assert run(workspace, a_stage()) == ["begins", "done"]
    assert out.read_text() == "a"
    assert runs(workspace) == 3


def test_a_stage_is_done_again_when_its_parent_changed(workspace: Workspace) -> None:
    child = a_stage("c", name="check", after=((1, "record"),))
    with pytest.raises(TrueupError, match="needs 'record' of round 1"):
        run(workspace, child)
    run(workspace, a_stage("a"))
    run(workspace, child)
    assert run(workspace, child) == ["skipped"]
    run(workspace, a_stage("b"))
    assert run(workspace, child) == ["begins", "done"]
    manifest = workspace.manifest(1, "check")
    assert manifest is not None
    assert manifest.inputs == {"round-1/record": workspace.hashes()["round-1/record"]}


def test_a_failed_command_is_told_with_its_output_and_leaves_the_stage_undone(workspace: Workspace) -> None:
    with pytest.raises(TrueupError, match="failed with exit code 3: .*wrote a"):
        run(workspace, a_stage(code=3))
    assert workspace.manifest(1, "record") is None
    assert run(workspace, a_stage()) == ["begins", "done"]
    assert runs(workspace) == 2, "what the first try left is kept for the second to go on with"


def test_a_stage_that_cannot_be_done_here_is_recorded_as_such(workspace: Workspace) -> None:
    absent = Stage(name="gap", round=1, absent="not installed", commands=lambda folder: pytest.fail("must not run"))
    run(workspace, absent)
    manifest = workspace.manifest(1, "gap")
    assert manifest is not None
    assert manifest.note == "not installed"


def test_a_killed_loop_takes_its_command_with_it_and_the_stage_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "sleeper.py").write_text("import os, sys, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)\n")
    code = (
        "from pathlib import Path\n"
        "from trueup.loop.stage import Stage, StageCommand, run_stage\n"
        "from trueup.loop.workspace import Workspace\n"
        "stage = Stage(name='train', round=1, commands=lambda folder: [StageCommand(words=('sleeper',))])\n"
        "run_stage(Workspace(Path('space')), stage, lambda *told: None)\n"
    )
    loop = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    log = tmp_path / "space" / "round-1" / "train" / LOG
    until = time.monotonic() + 60.0
    while not (log.exists() and log.read_text().strip().splitlines()[-1].isdigit()):
        assert time.monotonic() < until, "the stage did not start"
        time.sleep(0.05)
    sleeper = int(log.read_text().strip().splitlines()[-1])
    loop.kill()
    loop.wait()
    while Path(f"/proc/{sleeper}").exists() and "(zombie)" not in Path(f"/proc/{sleeper}/status").read_text():
        assert time.monotonic() < until, "the command outlived its loop"
        time.sleep(0.05)
    assert Workspace(tmp_path / "space").manifest(1, "train") is None


def test_the_manifest_names_what_the_stage_was_made_of(workspace: Workspace) -> None:
    run(workspace, a_stage())
    written = json.loads((workspace.folder(1, "record") / "manifest.json").read_text())
    assert written["config"] == {"text": "a", "absent": ""}
    assert set(written["outputs"]) == {"out.txt"}
    assert workspace.times(1, "record").parts == 1
