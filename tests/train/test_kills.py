"""kill -9 at random moments of a real process: nothing is lost, and the end is the same bit for bit."""

import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.train.checkpoint import read_checkpoint
from trueup.train.folder import RunFolder

STEPS = 64 * 16 * 40
TRAIN = [
    *(sys.executable, "-m", "trueup.cli", "train", "pendulum-swingup", "--steps", str(STEPS), "--nenv", "64"),
    *("--threads", "1", "--save-seconds", "0", "--film-minutes", "0"),
]


def _lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _kill_somewhere(command, folder, rng):
    """Start, wait for a random number of further iterations, kill; False if it ended first."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    goal = _lines(folder.metrics) + rng.randint(1, 9)
    while _lines(folder.metrics) < goal and process.poll() is None:
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.1))
    process.send_signal(signal.SIGKILL)
    complaint = process.communicate()[1]
    assert process.returncode in (0, -signal.SIGKILL), complaint
    return process.returncode != 0


def _whole(folder):
    good = 0
    for path in folder.checkpoints.folders():
        try:
            read_checkpoint(path)
            good += 1
        except TrueupError:
            assert path == folder.checkpoints.folders()[0]  # only the newest may be unfinished
    return good


@pytest.mark.medium
@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_killed_and_resumed_equals_uninterrupted(tmp_path, kills):
    rng = random.Random(kills)
    subprocess.run([*TRAIN, "--out", str(tmp_path / "whole")], check=True, stdout=subprocess.DEVNULL)
    folder = RunFolder(tmp_path / "killed")
    done, command = 0, [*TRAIN, "--out", str(folder.path)]
    while done < kills and _kill_somewhere(command, folder, rng):
        done += 1
        assert _whole(folder) >= 1
        command = [*TRAIN[:3], "train", "--resume", str(folder.path), *TRAIN[5:]]
    assert done >= 3
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    whole, killed = RunFolder(tmp_path / "whole").checkpoints.newest(), folder.checkpoints.newest()
    assert whole.facts["steps"] == killed.facts["steps"] == STEPS
    assert whole.arrays.keys() == killed.arrays.keys()
    for name, value in whole.arrays.items():
        np.testing.assert_array_equal(value, killed.arrays[name], err_msg=name)
