"""The numbered examples run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.medium
def test_the_calibration_example_records_fits_and_exports(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = ROOT / "examples" / "03_calibrate.py"
    done = subprocess.run(
        [sys.executable, str(script), "--out", str(tmp_path / "out"), "--seconds", "6"],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    for name in ("index.html", "params.json", "robot/model.xml", "robot/LOSSES.md"):
        assert (tmp_path / "out" / name).is_file()
    assert "identified" in done.stdout
    assert 30 <= len(script.read_text().splitlines()) <= 60


@pytest.mark.medium
def test_the_scene_example_lifts_the_cube_in_one_simulation_and_films_it(tmp_path):
    script, out = ROOT / "examples" / "04_two_arms.py", tmp_path / "arms.mp4"
    done = subprocess.run(
        [sys.executable, str(script), "--out", str(out), "--seconds", "1"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    low, high = (float(part.split()[0]) for part in done.stdout.split(": ")[1].splitlines()[0].split(", "))
    assert low < 0.04 < 0.08 < high
    assert out.stat().st_size > 1000
    assert 30 <= len(script.read_text().splitlines()) <= 60


@pytest.mark.medium
@pytest.mark.parametrize("script", ["01_first_five_minutes.py", "02_twin_record_check.py"])
def test_the_demo_runs_and_writes_a_page(script, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / script), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert list((tmp_path / "out").rglob("*.html"))


@pytest.mark.medium
def test_the_arm_of_real_recordings_gets_its_page(tmp_path):
    recordings = ROOT.parent / "shared" / "data" / "so101"
    if not recordings.is_dir():
        pytest.skip("the recordings are not here")
    script, out = ROOT / "examples" / "so101" / "arm.sh", tmp_path / "out"
    done = subprocess.run(
        ["sh", str(script), str(recordings), str(out), "--until", "check", "--no-films"],
        capture_output=True,
        text=True,
        timeout=200,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Recordings that were given" in (out / "loop" / "index.html").read_text()
    assert len(list((out / "loop" / "round-1" / "record").glob("*.mcap"))) == 4
