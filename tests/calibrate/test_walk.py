"""The walk through the code: how many modules a reader meets from a log to params.json and the page."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from planted_logs import planted_log

from trueup.data.files import write_log_file
from trueup.robot.load import load_robot

ROBOT = load_robot("pendulum")
TRUTH = {"armature": np.array([0.03]), "damping": np.array([0.5]), "delay": np.array([0.012])}
MOST = 30
WALK = """
import sys, threading
from pathlib import Path
import trueup
from trueup.calibrate.verbs import CalibrateVerb
from trueup.report.calibration.calibrate import run_calibrate
from trueup.calibrate.config import CalibrateCfg

root, met = Path(trueup.__file__).parent, set()

def watch(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(root)):
        met.add(str(Path(code.co_filename).relative_to(root).with_suffix("")))

log, out = map(Path, sys.argv[1:])
verb = CalibrateVerb(logs=(log,), robot="pendulum", out=out, cfg=CalibrateCfg(physics_hz=200.0))
threading.setprofile(watch)
sys.setprofile(watch)
run_calibrate(verb)
sys.setprofile(None)
print("MET", *sorted(met))
"""
# the stage itself; below it are the readers of files, the validator, the robot and the physics
STAGE = ("calibrate/", "report/", "world/fitted/", "world/replay/", "cli", "core/checkpoint")


@pytest.mark.medium
def test_from_a_log_to_parameters_and_page_a_reader_meets_at_most_thirty_modules(tmp_path: Path) -> None:
    log = write_log_file(planted_log(ROBOT, TRUTH, seconds=8.0), tmp_path / "log.mcap")
    command = [sys.executable, "-c", WALK, str(log), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    met = done.stdout.split("MET")[1].split()
    mine = [name for name in met if name.startswith(STAGE)]
    assert {"calibrate/calibrate", "report/calibration/calibrate", "world/replay/replay"} <= set(mine)
    assert (tmp_path / "out" / "params.json").exists()
    assert (tmp_path / "out" / "index.html").exists()
    assert len(mine) <= MOST, f"{len(mine)} of {len(met)}: {mine}"
