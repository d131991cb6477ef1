"""A fit that is killed goes on where it was; its state belongs to one problem."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from planted_logs import draw_truth, planted_log
from safetensors import safe_open

from trueup.calibrate.config import CalibrateCfg, WindowCfg
from trueup.calibrate.fit.fit import Fitter
from trueup.calibrate.fit.problem import make_problem
from trueup.calibrate.fit.search import STATE_FILE, FitState
from trueup.core.checkpoint import Checkpoint, StateFile
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


def read_state(out: Path) -> FitState | None:
    """What a fit has written, whatever its key."""
    if not (out / STATE_FILE).exists():
        return None
    with safe_open(out / STATE_FILE, framework="numpy") as file:
        return msgspec.json.decode(file.metadata()["facts"], type=FitState)


def wait_for_state(out: Path, process: subprocess.Popen[str], phase: int) -> FitState:
    for _ in range(3000):
        found = read_state(out)
        if found is not None and found.phase >= phase:
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


def kept(state: FitState) -> Checkpoint:
    return Checkpoint(arrays={}, facts=msgspec.to_builtins(state))


def state_file(folder: Path, key: str) -> StateFile:
    return StateFile(folder / STATE_FILE, key, what="fit", every_s=0.5)


def test_the_state_of_another_fit_or_a_broken_one_is_refused(tmp_path):
    mine = state_file(tmp_path, "key")
    assert mine.load() is None
    other = state_file(tmp_path, "other")
    other.save(kept(FitState(x=[1.0])), now=True)
    with pytest.raises(TrueupError, match="another fit"):
        mine.load()
    assert other.load() == kept(FitState(x=[1.0]))
    other.path.write_text("{")
    with pytest.raises(TrueupError, match="not the state of a fit"):
        other.load()
    other.clear()
    assert not other.path.exists()


def test_numbers_come_back_as_they_were(tmp_path):
    keeper, arrays = state_file(tmp_path, "key"), {"a/b": np.arange(6.0).reshape(2, 3)[:, ::2]}
    keeper.save(Checkpoint(arrays=arrays, facts={"x": [0.1, 1e300, -1e-310]}))
    found = keeper.load()
    assert found is not None
    np.testing.assert_array_equal(found.arrays["a/b"], arrays["a/b"])
    assert found.facts == {"x": [0.1, 1e300, -1e-310]}


def test_saving_is_rare_unless_it_must_be_now(tmp_path):
    keeper = state_file(tmp_path, "key")
    keeper.save(kept(FitState(iterations=1)))
    keeper.save(kept(FitState(iterations=2)))
    assert read_state(tmp_path).iterations == 1
    keeper.save(kept(FitState(iterations=3)), now=True)
    assert read_state(tmp_path).iterations == 3
    assert os.listdir(tmp_path) == [STATE_FILE]


@pytest.mark.medium
@pytest.mark.parametrize("after", [3, 9, 14])
def test_a_fit_that_was_interrupted_anywhere_ends_bit_for_bit_as_one_that_was_not(after):
    """`after` steps: within the first descent, with the coarse Jacobian, with its own."""
    cfg = CalibrateCfg(params="pace", physics_hz=400.0, window=WindowCfg(max_windows=3))
    logs = [planted_log(ROBOT, TRUTH)]
    whole = Fitter(make_problem(ROBOT, logs, cfg), cfg.fit).run()
    stopping = Fitter(make_problem(ROBOT, logs, cfg), cfg.fit)
    states: list[bytes] = []
    stopping._save = lambda *, now=False: states.append(msgspec.json.encode(stopping.state))  # type: ignore[method-assign]
    stopping.run()
    assert after < len(states), "the fit ended before it could be interrupted"
    left = Checkpoint(arrays={}, facts=msgspec.json.decode(states[after]))
    again = Fitter(make_problem(ROBOT, logs, cfg), cfg.fit).run(resumed=left)
    np.testing.assert_array_equal(again.x, whole.x)
    np.testing.assert_array_equal(again.jacobian, whole.jacobian)
