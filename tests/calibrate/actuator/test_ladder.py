"""The ladder on planted logs: what it recommends, what it keeps on disk, how it goes on."""

import numpy as np
import pytest
from planted_logs import draw_truth, planted_log

import trueup as tu
from trueup.calibrate.actuator import ladder as stage
from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.costs import Costs
from trueup.calibrate.actuator.folder import read_actuator, read_ladder
from trueup.calibrate.actuator.ladder import run_ladder
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.trials import MOST_RAD, predict, run_on_twin, track
from trueup.calibrate.verbs import ActuatorVerb
from trueup.cli import main
from trueup.core.errors import TrueupError
from trueup.data.files import write_log_file
from trueup.report.calibration.actuators import run_actuator
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg

ROBOT = load_robot("pendulum")
SIM = SimCfg(physics_hz=1000.0, model=ModelCfg(base="fixed"))
TRUTH = draw_truth(ROBOT, 3)
CFG = LadderCfg(rungs="pd,pace,motor,fir", long_s=(5.0,), physics_hz=200.0, check=False)


def planted(seed: int):
    return planted_log(ROBOT, TRUTH, seconds=8.0, seed=seed, size=0.4)


@pytest.fixture(scope="module")
def climbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ladder")
    return folder, run_ladder(ROBOT, [planted(1), planted(2)], CFG, holdout=[planted(9)], folder=folder)


@pytest.mark.medium
def test_where_pace_is_the_truth_the_ladder_recommends_pace(climbed):
    _, ladder = climbed
    assert ladder.file.recommendation.rung == "pace"
    scores = {r.rung: r.scores for r in ladder.file.rungs}
    assert scores["pace"].whole.mean < 0.3 * scores["delay"].whole.mean < scores["pd"].whole.mean
    delay = ladder.chosen.params.find("delay").value
    assert abs(delay - TRUTH["delay"][0]) < 1e-3


@pytest.mark.medium
def test_what_the_data_cannot_support_is_shown_with_its_reason(climbed):
    _, ladder = climbed
    by = {r.rung: r for r in ladder.file.rungs}
    assert by["fir"].status == "not supported"
    assert "needs measured torque" in by["fir"].reason
    assert by["motor"].status == "not excited"  # never near the torque limit
    assert "record" in by["motor"].reason
    assert by["motor"].scores is not None


@pytest.mark.medium
def test_the_folder_holds_what_a_simulator_needs(climbed):
    folder, ladder = climbed
    assert read_ladder(folder) == ladder.file
    again = read_actuator(folder / "rungs" / "pace")
    np.testing.assert_array_equal(again.params.values, ladder.chosen.params.values)
    assert len(ladder.file.provenance["logs"]) == 2
    assert "sha256" in ladder.file.provenance["holdout"][0]
    assert not list(folder.glob("rungs/*/state-*"))


@pytest.mark.medium
def test_resume_fits_nothing_again_and_other_data_is_another_problem(climbed, monkeypatch):
    folder, ladder = climbed

    def never(*args):
        raise AssertionError("a rung was fitted again")

    monkeypatch.setattr(stage, "fit_rung", never)
    logs = [planted(1), planted(2)]
    again = run_ladder(ROBOT, logs, CFG, holdout=[planted(9)], folder=folder, resume=True)
    assert again.file == ladder.file
    with pytest.raises(AssertionError, match="fitted again"):
        run_ladder(ROBOT, logs, CFG, holdout=[planted(8)], folder=folder, resume=True)


@pytest.mark.medium
def test_a_stop_loses_no_rung_that_is_done(tmp_path, monkeypatch):
    real, fitted = stage.fit_rung, []

    def stopped(rung, job):
        if rung.name == "delay" and "stopped" not in fitted:
            fitted.append("stopped")
            raise KeyboardInterrupt
        fitted.append(rung.name)
        return real(rung, job)

    monkeypatch.setattr(stage, "fit_rung", stopped)
    cfg = LadderCfg(rungs="pd,delay", long_s=(), physics_hz=200.0, check=False)
    with pytest.raises(KeyboardInterrupt):
        run_ladder(ROBOT, [planted(1)], cfg, folder=tmp_path)
    run_ladder(ROBOT, [planted(1)], cfg, folder=tmp_path, resume=True)
    assert fitted == ["pd", "stopped", "delay"]


@pytest.mark.medium
def test_a_quick_ladder_says_before_how_long_and_after_what_it_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stage, "measured_costs", lambda *_: Costs(probe_s=1.0))  # a very slow machine
    files = tuple(write_log_file(planted(k), tmp_path / f"{k}.mcap") for k in (1, 2))
    cfg = LadderCfg(physics_hz=200.0, long_s=(2.0,), check=False, minutes=1.0)
    verb = ActuatorVerb(logs=files, robot="pendulum", out=tmp_path / "out", cfg=cfg)
    assert run_actuator(verb) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.index("at most 01:00") < shown.index("ideal PD") < shown.index("use pace")
    assert "--thorough compares all rungs" in shown
    file = read_ladder(tmp_path / "out")
    assert {"pd", "delay", "pace"} <= {result.rung for result in file.rungs}
    assert "uan (about 8.0 min)" in file.left_out
    assert "M3, M4, M5, M6, net_long belong to the thorough form" in file.left_out
    assert file.left_out[1:] in (tmp_path / "out" / "index.html").read_text()


@pytest.mark.medium
def test_the_verb_climbs_from_files_and_prints_the_recommendation(tmp_path, capsys):
    files = tuple(write_log_file(planted(k), tmp_path / f"{k}.mcap") for k in (1, 2))
    cfg = LadderCfg(rungs="delay", physics_hz=200.0)
    verb = ActuatorVerb(logs=files, robot="pendulum", out=tmp_path / "out", page=False, cfg=cfg)
    assert run_actuator(verb) == 0
    shown = capsys.readouterr().out
    assert "PD + delay" in shown
    assert "use " in shown
    assert "held out: the last 1 of 2 logs" in shown
    assert (tmp_path / "out" / "ladder.json").exists()


def test_the_verb_has_two_words_and_calibrate_alone_keeps_its_own(capsys):
    for words, shown in ((["calibrate", "actuator"], "--rungs"), (["calibrate"], "--tie")):
        with pytest.raises(SystemExit) as end:
            main([*words, "--help"])
        assert end.value.code == 0
        assert shown in capsys.readouterr().out


def test_the_face_is_reached_through_calibrate():
    assert callable(tu.calibrate.actuator)
    with pytest.raises(TrueupError, match="no rung 'nonsense'"):
        tu.calibrate.actuator("pendulum", [planted(1)], rungs="nonsense")


def test_an_outer_loop_follows_a_perfect_servo_and_bounds_its_corrections():
    reference = np.linspace(0.0, 0.2, 50)[:, None]
    moved = track(reference, np.zeros(1), lambda command: command)
    assert np.abs(moved - reference).max() < 0.05
    sent = []
    track(reference, np.zeros(1), lambda command: sent.append(command) or np.full(1, -5.0))
    assert max(abs(u - r) for u, r in zip(np.ravel(sent), reference.ravel(), strict=True)) <= MOST_RAD + 1e-12


def test_the_closed_loop_check_refuses_what_is_not_a_twin():
    with pytest.raises(TrueupError, match="twins"):
        run_on_twin(ROBOT, "my_robot.py:make")


@pytest.mark.medium
def test_the_model_of_an_ideal_twin_predicts_the_controller(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    recorded = run_on_twin(ROBOT, "twin:ideal?seed=1", 4.0)
    found = predict(ROBOT, Actuator(rung=rung_named("pd")), SIM, recorded)
    assert found.difference < 0.05 * found.twin
    assert found.model == pytest.approx(found.twin, rel=0.05)


@pytest.mark.medium
def test_a_rung_that_cannot_be_fitted_does_not_take_the_others_with_it(monkeypatch):
    real = stage.fit_rung

    def failing(rung, job):
        if rung.name == "delay":
            raise TrueupError("something is wrong with it")
        return real(rung, job)

    monkeypatch.setattr(stage, "fit_rung", failing)
    cfg = LadderCfg(rungs="pd,pace", long_s=(), physics_hz=200.0, check=False)
    by = {r.rung: r for r in run_ladder(ROBOT, [planted(1)], cfg).file.rungs}
    assert by["pd"].status == "done"
    assert by["delay"].reason == "could not be fitted: something is wrong with it"
    assert by["pace"].reason == "stands on delay, which is not there"
