"""`trueup sim LOG... --params FIT`: a saved fit on new logs."""

from pathlib import Path

import numpy as np
import pytest
from planted_logs import planted_log

from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg
from trueup.cli import main
from trueup.data.files import write_log_file
from trueup.robot.load import load_robot

ROBOT = load_robot("pendulum")
TRUTH = {"armature": np.array([0.03]), "damping": np.array([0.5]), "delay": np.array([0.012])}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fit and two new logs."""
    folder = tmp_path_factory.mktemp("scored")
    cfg = CalibrateCfg(params="armature,damping,delay", physics_hz=200.0, fit=FitCfg(method="local"))
    calibrate(ROBOT, [planted_log(ROBOT, TRUTH, seconds=8.0)], cfg).write(folder / "fit")
    for k in (1, 2):
        write_log_file(planted_log(ROBOT, TRUTH, seconds=2.0 + k, seed=k), folder / f"new{k}.mcap")
    return folder


def run(capsys, *words: str | Path) -> tuple[int, str]:
    try:
        code = main([str(word) for word in words]) or 0
    except SystemExit as end:
        code = int(end.code or 0)
    printed = capsys.readouterr()
    return code, " ".join((printed.out + printed.err).split())


@pytest.mark.medium
def test_a_saved_fit_is_scored_on_new_logs_per_log_and_per_joint(made, capsys):
    logs = [made / "new1.mcap", made / "new2.mcap"]
    page = made / "out.html"
    code, said = run(capsys, "sim", *logs, "--robot", "pendulum", "--params", made / "fit", "--page", page)
    assert code == 0
    for words in ("Open loop, by log", "Open loop, by joint", "Windows of 0.5 s, by joint", "fit MAE", "1: 3.0 s"):
        assert words in said
    assert "WORSE" not in said
    assert "Recorded commands" in page.read_text()


@pytest.mark.medium
def test_a_fit_that_is_worse_than_nominal_is_told_first(made, capsys):
    log = write_log_file(planted_log(ROBOT, {}, seconds=3.0, seed=4), made / "nominal.mcap")
    code, said = run(capsys, "sim", log, "--params", made / "fit")  # a fit knows its built-in robot
    assert code == 0
    assert said.startswith("WORSE THAN NOMINAL")


@pytest.mark.medium
def test_logs_without_a_robot_or_of_another_one_are_refused_in_words(made, capsys):
    code, said = run(capsys, "sim", made / "new1.mcap")
    assert code != 0
    assert "--robot" in said
    code, said = run(capsys, "sim", made / "new1.mcap", "--robot", "go2")
    assert code != 0
    assert "another robot" in said


def test_a_robot_is_still_dropped(capsys):
    code, said = run(capsys, "sim", "pendulum", "--seconds", "0.2")
    assert code == 0
    assert "pendulum: 1 x 0.2 s simulated" in said
    code, said = run(capsys, "sim", "pendulum", "go2")
    assert code != 0
    assert "name one robot" in said
