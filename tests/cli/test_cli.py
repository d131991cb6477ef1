"""The command line as a user meets it: in a process of its own."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trueup import __version__
from trueup.robot.load import ZOO


def trueup(*args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "trueup.cli", *map(str, args)], capture_output=True, text=True, cwd=cwd, timeout=120
    )


def test_version_and_help_in_loop_order():
    assert trueup("--version").stdout.strip() == f"trueup {__version__}"
    text = trueup("--help").stdout
    places = [text.index(f"• {verb}") for verb in ("robot", "sim", "doctor")]
    assert places == sorted(places)
    assert "Excite a robot or its twin and record it." in text
    assert "In:" not in text  # one sentence each; the rest is the verb's own help


@pytest.mark.parametrize("verb", [("robot", "list"), ("robot", "inspect"), ("robot", "init"), ("sim",), ("doctor",)])
def test_help_of_every_verb_starts_with_what_goes_in_and_out(verb):
    text = " ".join(trueup(*verb, "--help").stdout.split())
    assert text.index("In:") < text.index("Out:")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("robot", "inspect", "g02"), "did you mean 'go2'"),
        (("sim", "no/such.xml"), "no robot 'no/such.xml'"),
        (("robot", "init", "missing.urdf", "--out", "x"), "missing.urdf"),
        (("sim", "go2", "--base", "floating"), "free or fixed"),
        (("sim", "go2", "--seconds", "-1"), "seconds must lie"),
        (("sim", "go2", "--seconds", "0.1", "--film", "out.avi"), ".mp4"),
        (("sim", "pendulum:load_mass=99"), "outside [0.05, 2]"),
    ],
)
def test_a_mistake_ends_in_one_clear_line(args, words, tmp_path):
    done = trueup(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_mistyped_verb_or_flag_is_refused():
    for args in (("robto", "list"), ("sim", "go2", "--secnds", "1")):
        done = trueup(*args)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr + done.stdout


def test_list_and_inspect_speak_json():
    names = {row["name"] for row in json.loads(trueup("robot", "list", "--json").stdout)}
    assert names >= {"go2", "so101", "z1", "pendulum"}
    result = json.loads(trueup("robot", "inspect", "go2", "--json").stdout)
    assert result["verdict"] == "ready"
    assert len(result["joints"]) == 12


@pytest.mark.medium
def test_own_robot_from_model_file_to_film(tmp_path):
    source = tmp_path / "mine.xml"
    source.write_text((ZOO / "pendulum" / "model.xml").read_text())
    assert trueup("robot", "inspect", source).returncode == 0
    done = trueup("robot", "init", source, "--out", tmp_path / "mine")
    assert done.returncode == 0, done.stderr
    again = trueup("robot", "init", source, "--out", tmp_path / "mine")
    assert again.returncode == 2
    assert "--force" in again.stderr or "force" in again.stderr
    film, page = tmp_path / "out.mp4", tmp_path / "out.html"
    done = trueup("sim", tmp_path / "mine", "--seconds", "1", "--film", film, "--page", page)
    assert done.returncode == 0, done.stderr
    assert film.read_bytes()[4:8] == b"ftyp"
    assert "<html" in page.read_text()[:200]


@pytest.mark.medium
def test_ctrl_c_stops_at_once_and_leaves_no_half_film(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "trueup.cli", "sim", "go2", "--seconds", "60", "--film", str(tmp_path / "out.mp4")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(5.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, out + err
    assert "stopped" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.medium
def test_doctor_reports_and_estimates():
    result = json.loads(trueup("doctor", "--json").stdout)
    names = {check["name"] for check in result["checks"]}
    assert {"python", "cores", "physics", "films", "browser"} <= names
    assert result["costs"]


def test_tasks_are_listed_with_what_can_be_scaled():
    listed = {task["name"]: task for task in json.loads(trueup("task", "list", "--json").stdout)["tasks"]}
    assert listed["go2-velocity"]["scalable"]
    assert not listed["z1-reach"]["scalable"]
    assert "go2-velocity" in trueup("task", "list").stdout


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("z1", "--like", "go2-velocity"), "bolted down"),
        (("go2", "--like", "z1-reach"), "go2-velocity-rough"),
        (("go2", "--like", "go2-velocty"), "did you mean 'go2-velocity'"),
        (("go3", "--like", "go2-velocity"), "did you mean 'go2'"),
    ],
)
def test_a_task_that_cannot_be_scaled_is_refused_in_one_line(args, words, tmp_path):
    done = trueup("task", "init", *args, "--out", "t.py", cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "t.py").exists()


def test_a_task_for_another_robot_is_written_and_told(tmp_path):
    done = trueup("task", "init", "go2", "--like", "go2-velocity", "--out", "mine.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trueup train mine.py:go2_velocity" in done.stdout
    text = (tmp_path / "mine.py").read_text()
    assert 'ROBOT = "go2"' in text
    assert "kp=25.0" in text
