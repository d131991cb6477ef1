"""The verb from a log file to params.json and a page; a twin whose truth is hidden."""

from pathlib import Path

import numpy as np
import pytest
from planted_logs import draw_truth, planted_log

from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg
from trueup.calibrate.verbs import CalibrateVerb
from trueup.core.errors import TrueupError
from trueup.data.files import write_log_file
from trueup.record.session import record
from trueup.report.calibration.calibrate import run_calibrate
from trueup.robot.load import load_robot
from trueup.twin.truth.seal import reveal
from trueup.world.fitted.calibration import read_calibration

ROBOT = load_robot("go2")
TRUTH = draw_truth(ROBOT, 2)


@pytest.mark.medium
def test_the_verb_writes_parameters_and_a_page_and_prints_verdicts(tmp_path, capsys):
    only = {"armature": TRUTH["armature"], "delay": TRUTH["delay"]}
    log = write_log_file(planted_log(ROBOT, only, seconds=6.0), tmp_path / "log.mcap")
    cfg = CalibrateCfg(params="armature,delay", physics_hz=200.0, fit=FitCfg(method="local"))
    verb = CalibrateVerb(logs=(log,), robot="go2", out=tmp_path / "out", cfg=cfg)
    assert run_calibrate(verb) == 0
    result = read_calibration(tmp_path / "out")
    assert abs(result.find("delay").value - TRUTH["delay"][0]) < 0.5e-3
    values = [e.value for e in result.estimates if e.parameter.name == "armature"]
    np.testing.assert_allclose(values, TRUTH["armature"], rtol=0.05)
    printed = capsys.readouterr().out
    assert "identified" in printed
    assert "mean, open loop" in printed
    page = (tmp_path / "out" / "index.html").read_text()
    assert "armature FL_hip_joint" in page
    assert "Spectrum of the error" in page


def test_a_missing_log_is_refused_before_anything_runs():
    with pytest.raises(TrueupError, match="no such file"):
        run_calibrate(CalibrateVerb(logs=(Path("nowhere.mcap"),), robot="go2", out=Path("out")))


@pytest.mark.medium
def test_a_twin_with_hidden_pace_parameters_is_found_out(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    log = record(ROBOT, driver="twin:pace?seed=3", seconds=8)
    result = calibrate(ROBOT, [log], CalibrateCfg(fit=FitCfg(method="local"))).calibration
    truth = reveal("go2-pace-3")
    joints = truth["joint"]
    assert isinstance(joints, dict)
    good = []
    for k, estimate in enumerate(result.estimates):
        entry = estimate.parameter
        if entry.name == "delay":
            assert abs(estimate.value - truth["delay_s"]) < 0.5e-3
            continue
        true = joints[entry.name][ROBOT.spec.joint_names.index(entry.of[0])]
        near = abs(result.x[k] - entry.to_x(true)) < 2 * estimate.ratio
        good.append(near or abs(estimate.value / true - 1) < 0.05)
    assert np.mean(good) >= 0.95
    assert result.holdout_calibrated is not None
    assert result.holdout_calibrated.open_loop_mean < 1e-3
