"""The same model on the same log has the same error everywhere, to the last digit."""

import numpy as np
import pytest
from planted_logs import draw_truth, planted_log

import trueup as tu
from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.ladder import run_ladder
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import error_of, roll, score_rung
from trueup.calibrate.calibrate import Fit, calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg, WindowCfg
from trueup.calibrate.score_logs import score_logs, sim_of
from trueup.report.calibration.fit_page import fit_page
from trueup.report.calibration.score_logs import facts_of
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg
from trueup.world.replay.replay import ReplayCfg, replay

ROBOT = load_robot("go2")
PHYSICS_HZ = 400.0


@pytest.fixture(scope="module")
def fit() -> Fit:
    """A quick fit, scored on two held-out logs of different lengths."""
    truth = draw_truth(ROBOT, 1)
    train = planted_log(ROBOT, truth, seconds=6.0)
    held = [planted_log(ROBOT, truth, seconds=s, seed=k) for k, s in ((5, 3.0), (6, 4.5))]
    cfg = CalibrateCfg(
        physics_hz=PHYSICS_HZ, tie="all", window=WindowCfg(max_windows=4), fit=FitCfg(method="local", iterations=2)
    )
    return calibrate(ROBOT, [train], cfg, holdout=held)


@pytest.mark.medium
def test_calibrate_ladder_replay_and_scores_of_a_saved_fit_agree_to_the_last_digit(fit, tmp_path):
    done = fit.calibration.holdout_calibrated
    saved = tu.read_calibration(fit.write(tmp_path))
    held = list(fit.shown)
    again = score_logs(ROBOT, held, saved)
    assert again.calibrated.open_loop.rmse == done.open_loop
    assert again.calibrated.windows.rmse == done.window
    assert again.nominal.open_loop.rmse == fit.calibration.holdout_nominal.open_loop

    sim = SimCfg(physics_hz=PHYSICS_HZ, model=ModelCfg(base="fixed"))
    rung = Actuator(rung=rung_named("pace"), params=saved)
    ladder = score_rung(ROBOT, rung, held[:1], held, ["motion"] * 2, sim)
    assert ladder.whole.joints == done.open_loop
    assert ladder.whole.mean == done.open_loop_mean
    ideal = error_of(roll(ROBOT, held, Actuator(rung=rung_named("pd")), sim), None)
    assert ideal.joints == fit.calibration.holdout_nominal.open_loop

    for k, log in enumerate(held):  # alone as in company
        one = replay(ROBOT, log, ReplayCfg(sim=sim_of(ROBOT, saved)), prepare=saved.apply)
        assert one.rmse.tolist() == again.calibrated.replays[k].rmse.tolist()
        np.testing.assert_array_equal(one.joint_pos, fit.calibrated.replays[k].joint_pos)


@pytest.mark.medium
def test_the_report_shows_the_same_number(fit):
    shown = f"{1e3 * fit.calibration.holdout_calibrated.open_loop_mean:.2f} mrad"
    assert shown in fit_page(fit).html()
    assert shown == facts_of(tu.score(ROBOT, list(fit.shown), params=fit))["fit, open loop"]


@pytest.mark.medium
def test_a_rung_scores_as_the_calibration_that_it_is():
    logs = [planted_log(ROBOT, draw_truth(ROBOT, 2), seconds=5.0, seed=k) for k in range(2)]
    ladder = run_ladder(ROBOT, logs[:1], LadderCfg(rungs="pd,delay", long_s=(2.0,)), holdout=logs[1:])
    for name in ("pd", "delay"):
        scored = next(r.scores for r in ladder.file.rungs if r.rung == name)
        found = score_logs(ROBOT, logs[1:], ladder.actuators[name].params)
        model = found.nominal if name == "pd" else found.calibrated
        assert model.open_loop.rmse == scored.whole.joints
