"""kill -9 at random moments of a real process: nothing is lost, and the end is the same bit for bit."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from trueup.core.checkpoint import read_checkpoint
from trueup.core.errors import TrueupError
from trueup.train.folder import RunFolder

ITERATION = 64 * 16
CLI = (sys.executable, "-m", "trueup.cli", "train")
FLAGS = ("--nenv", "64", "--threads", "1", "--save-seconds", "0", "--film-minutes", "0")


def _lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _kill_somewhere(command, folder, rng):
    """Start, wait for a random number of further iterations, kill; False if it ended first."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    goal = _lines(folder.metrics) + rng.randint(2, 9)
    while _lines(folder.metrics) < goal and process.poll() is None:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.1))
    process.send_signal(signal.SIGKILL)
    complaint = process.communicate()[1]
    assert process.returncode in (0, -signal.SIGKILL), complaint
    return process.returncode != 0


def _whole(folder):
    """Count whole checkpoints; besides one being written, the newest, and one being removed, the third, all must be."""
    good = 0
    for k, path in enumerate(folder.checkpoints.folders()):
        try:
            read_checkpoint(path)
            good += 1
        except TrueupError:
            assert k != 1, path
    return good


@pytest.mark.medium
@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_killed_and_resumed_equals_uninterrupted(tmp_path, kills):
    rng, steps = random.Random(kills), ITERATION * (12 * kills + 10)
    flags = (*FLAGS, "--steps", str(steps))
    begin = (*CLI, "pendulum-swingup", *flags, "--out")
    subprocess.run([*begin, str(tmp_path / "whole")], check=True, stdout=subprocess.DEVNULL)
    folder = RunFolder(tmp_path / "killed")
    go_on = (*CLI, "--resume", str(folder.path), *flags)
    for done in range(kills):
        command = (*begin, str(folder.path)) if done == 0 else go_on
        assert _kill_somewhere(command, folder, rng), f"ended by itself after {done} kills"
        assert _whole(folder) >= 1
    subprocess.run(go_on, check=True, stdout=subprocess.DEVNULL)
    whole, killed = RunFolder(tmp_path / "whole").checkpoints.newest(), folder.checkpoints.newest()
    assert whole.facts["steps"] == killed.facts["steps"] == steps
    assert whole.arrays.keys() == killed.arrays.keys()
    for name, value in whole.arrays.items():
        np.testing.assert_array_equal(value, killed.arrays[name], err_msg=name)
