"""A fit that is killed goes on where it was; its state belongs to one problem."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from planted_logs import draw_truth, planted_log

from trueup.calibrate.fit.checkpoint import STATE_FILE, Checkpoint, FitState
from trueup.core.errors import TrueupError
from trueup.data.files import write_log_file
from trueup.robot.load import load_robot
from trueup.world.fitted.calibration import read_calibration

ROBOT = load_robot("go2")
TRUTH = draw_truth(ROBOT, 6)


def start(log: Path, out: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trueup.cli", "calibrate", str(log), "--robot", "go2", "--out", str(out)]
    options = ["--params", "pace", "--physics", "200", "--no-page", *more]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for_state(out: Path, process: subprocess.Popen[str], phase: int) -> FitState:
    for _ in range(3000):
        state = Checkpoint(out).path
        if state.exists():
            found = Checkpoint(out)._read()
            if found.phase >= phase:
                return found
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
    raise AssertionError("the fit never wrote its state")


@pytest.fixture(scope="module")
def log(tmp_path_factory) -> Path:
    return write_log_file(planted_log(ROBOT, TRUTH), tmp_path_factory.mktemp("log") / "log.mcap")


@pytest.mark.medium
def test_a_fit_that_was_killed_goes_on_and_one_that_was_stopped_keeps_its_best(log, tmp_path):
    out = tmp_path / "out"
    process = start(log, out)
    left = wait_for_state(out, process, 1)
    process.kill()
    process.communicate()
    assert left.phase >= 1
    assert not (out / "params.json").exists()

    process = start(log, out, "--resume")
    wait_for_state(out, process, 2)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 130, printed
    stopped = read_calibration(out)
    assert stopped.effort.interrupted
    assert any("--resume" in note for note in stopped.notes)
    assert (out / STATE_FILE).exists()

    process = start(log, out, "--resume")
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    done = read_calibration(out)
    assert not done.effort.interrupted
    assert not (out / STATE_FILE).exists()
    assert abs(done.find("delay").value - TRUTH["delay"][0]) < 0.5e-3
    assert done.effort.iterations > left.iterations


def test_the_state_of_another_fit_or_a_broken_one_is_refused(tmp_path):
    keeper = Checkpoint(tmp_path)
    assert keeper.load("key", "auto") is None
    keeper.save(FitState(key="other", method="auto", x=[1.0]), now=True)
    with pytest.raises(TrueupError, match="another fit"):
        keeper.load("key", "auto")
    assert keeper.load("other", "auto") == FitState(key="other", method="auto", x=[1.0])
    keeper.path.write_text("{")
    with pytest.raises(TrueupError, match="not the state of a fit"):
        keeper.load("other", "auto")
    keeper.clear()
    assert not keeper.path.exists()


def test_saving_is_rare_unless_it_must_be_now(tmp_path):
    keeper = Checkpoint(tmp_path)
    keeper.save(FitState(iterations=1))
    keeper.save(FitState(iterations=2))
    assert keeper._read().iterations == 1
    keeper.save(FitState(iterations=3), now=True)
    assert keeper._read().iterations == 3
    assert os.listdir(tmp_path) == [STATE_FILE]
    assert np.isfinite(keeper._read().best_cost)
