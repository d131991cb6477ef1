"""The whole fit on planted truth: recovery, honest verdicts, results on disk, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from planted_logs import draw_truth, planted_log

from trueup.calibrate.calibrate import Fit, calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg
from trueup.calibrate.fit.descent import Descent
from trueup.calibrate.fit.residuals import Shooting
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration, read_calibration, write_calibration

ROBOT = load_robot("go2")
TRUTH = draw_truth(ROBOT, 1)
CFG = CalibrateCfg(physics_hz=200.0, fit=FitCfg(method="local"))
STILL = (3, 4, 5)


def errors(result: Calibration, truth: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Relative error, and error in standard errors, of every estimate."""
    relative, score = [], []
    for k, estimate in enumerate(result.estimates):
        entry = estimate.parameter
        true = float(truth[entry.name][ROBOT.spec.joint_names.index(entry.of[0])])
        relative.append(abs(estimate.value / true - 1))
        score.append(abs(result.x[k] - entry.to_x(true)) / estimate.ratio)
    return np.array(relative), np.array(score)


@pytest.fixture(scope="module")
def fit() -> Fit:
    """Eight seconds, in which one leg is held still."""
    return calibrate(ROBOT, [planted_log(ROBOT, TRUTH, still=STILL)], replace(CFG, check=False))


@pytest.mark.medium
def test_planted_parameters_are_recovered_with_honest_intervals(fit):
    relative, score = errors(fit.calibration, TRUTH)
    moved = np.array([e.verdict == "identified" for e in fit.calibration.estimates])
    assert moved.sum() >= 33  # of those that the motion shows, known to 5 %
    assert ((relative < 0.05) | (score < 2))[moved].mean() >= 0.95
    assert (score < 2)[moved].mean() > 0.85
    assert abs(fit.calibration.find("delay").value - TRUTH["delay"][0]) < 0.5e-3


@pytest.mark.medium
def test_joints_that_did_not_move_are_not_called_identified(fit):
    for joint in STILL:
        for name in ("armature", "damping", "friction"):
            estimate = fit.calibration.find(name, ROBOT.spec.joint_names[joint])
            assert estimate.verdict == "not visible"
            assert estimate.ratio == 1.0
            assert "was not moved" in estimate.advice


@pytest.mark.medium
def test_held_out_error_falls_to_the_noise(fit):
    nominal, calibrated = fit.calibration.holdout_nominal, fit.calibration.holdout_calibrated
    assert nominal is not None
    assert calibrated is not None
    assert nominal.open_loop_mean > 5e-3
    assert calibrated.open_loop_mean < 6e-4
    assert calibrated.spread[0] <= calibrated.open_loop_mean <= calibrated.spread[1] * 1.05
    assert len(calibrated.joint_spread) == ROBOT.spec.njoint
    assert all(low <= high for low, high in calibrated.joint_spread)
    assert not fit.calibration.misfit.structured


@pytest.mark.medium
def test_the_result_survives_the_disk_and_sets_a_simulation(fit, tmp_path):
    again = read_calibration(write_calibration(fit.calibration, tmp_path))
    assert again == fit.calibration
    assert read_calibration(tmp_path) == again
    sim = BatchSim(ROBOT, SimCfg(nsim=3, model=ModelCfg(base="fixed")))
    again.apply(sim)
    np.testing.assert_allclose(sim.params.get("delay"), again.find("delay").value)
    draws = again.sample(np.random.default_rng(0), 3)
    again.apply(sim, draws)
    np.testing.assert_allclose(sim.params.get("armature")[:, 0], draws[:, 0])
    many = again.sample(np.random.default_rng(1), 4000)
    for k, estimate in enumerate(again.estimates):
        assert (many[:, k] >= estimate.parameter.low).all()
        assert (many[:, k] <= estimate.parameter.high).all()
    visible = [k for k, e in enumerate(again.estimates) if e.verdict == "identified"]
    wanted = [again.estimates[k].standard_error for k in visible]
    np.testing.assert_allclose(many[:, visible].std(axis=0), wanted, rtol=0.15)


@pytest.mark.medium
def test_a_fit_that_begins_at_an_earlier_result_is_done_at_once(fit):
    log = planted_log(ROBOT, TRUTH, still=STILL)
    again = calibrate(ROBOT, [log], replace(CFG, check=False), start=fit.calibration)
    assert again.calibration.effort.iterations < fit.calibration.effort.iterations
    for old, new in zip(fit.calibration.estimates, again.calibration.estimates, strict=True):
        if old.verdict == "identified":
            assert abs(new.value - old.value) < 0.5 * old.standard_error


@pytest.mark.medium
def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    log, plain, calls = planted_log(ROBOT, TRUTH), Shooting.jacobian, []

    def interrupt(self, x, at_x):
        calls.append(x)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return plain(self, x, at_x)

    monkeypatch.setattr(Shooting, "jacobian", interrupt)
    result = calibrate(ROBOT, [log], CFG).calibration
    assert result.effort.interrupted
    assert result.fit_calibrated.open_loop_mean < 0.5 * result.fit_nominal.open_loop_mean


def test_a_calibration_with_unknown_keys_or_of_another_robot_is_refused(tmp_path):
    (tmp_path / "params.json").write_text('{"schema": 2, "surprise": 2}')
    with pytest.raises(TrueupError, match="is not a calibration"):
        read_calibration(tmp_path)
    with pytest.raises(TrueupError, match="no calibration here"):
        read_calibration(tmp_path / "nowhere")


def test_bad_logs_are_refused_with_a_remedy():
    log = planted_log(ROBOT, TRUTH, seconds=6.0)
    with pytest.raises(TrueupError, match="too short to calibrate.*record"):
        calibrate(ROBOT, [log.window(0, 600)], CFG)
    with pytest.raises(TrueupError, match="no joint"):
        calibrate(load_robot("so101"), [log], CFG)
    bare = Log(time=log.time, joint_names=log.joint_names, signals={"joint_pos": log["joint_pos"]})
    with pytest.raises(TrueupError, match="no 'target_pos'"):
        calibrate(ROBOT, [bare], CFG)


def test_a_fit_needs_sane_settings():
    with pytest.raises(TrueupError, match="at least 1"):
        FitCfg(starts=0)
    with pytest.raises(TrueupError, match="between 0 and 0.8"):
        CalibrateCfg(holdout_share=1.5)


def test_steps_stay_inside_the_box():
    entry = Descent.__new__(Descent)
    entry.low, entry.high = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    entry.owner = np.array([0, -1])
    hessian, gradient = np.array([[2.0, 0.9], [0.9, 1.0]]), np.array([-4.0, 0.1])
    x = np.array([0.5, 0.0])
    new = entry.step(hessian, gradient, x, np.zeros(2))
    assert new[0] == pytest.approx(1.0)
    # with the first held at its bound the second minimises what is left: d1 = -(0.1 + 0.9 * 0.5) / 1
    assert new[1] == pytest.approx(-0.55, abs=1e-6)
