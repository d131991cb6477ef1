"""Squats on the ground weigh what a robot carries; the calibration hands it on."""

from dataclasses import replace as with_field
from pathlib import Path

import numpy as np
import pytest
from made_params import made_params, one

from trueup.calibrate.weighing import Load, weigh, with_load
from trueup.cli import main
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.record.session import SessionCfg, run_session
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.load import load_robot
from trueup.robot.model import compile_model
from trueup.twin.truth.seal import reveal
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration, read_calibration, write_calibration
from trueup.world.fitted.origins import origins
from trueup.world.fitted.posterior import Fitted
from trueup.world.randomization.randomize import locomotion_ranges

GO2 = load_robot("go2")
NONE = Load(mass=0.3, standard_error=0.5, place=(0.0, 0.0), place_error=0.1, squats=3, robot=15.2)
LOAD = Load(mass=3.0, standard_error=0.5, place=(0.1, -0.05), place_error=0.02, squats=3, robot=15.2)


def squats(preset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float = 16.0) -> Log:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    excitation = ExcitationCfg(kind="squat", seconds=seconds, limits=LimitCfg(amplitude_rad=0.8))
    session = run_session(GO2, SessionCfg(driver=f"twin:{preset}?seed=3&base=free", excitation=excitation))
    assert session.result.ended == "done", session.result.reason
    return session.log


@pytest.mark.medium
@pytest.mark.parametrize("preset", ["ideal", "payload"])
def test_what_a_twin_carries_is_weighed_within_two_standard_errors(preset, tmp_path, monkeypatch):
    found = weigh(GO2, [squats(preset, tmp_path, monkeypatch)])
    truth = reveal(f"go2-{preset}-3")
    carried = float(truth["payload"]["mass"]) if truth["payload"] else 0.0
    body = truth["body"]
    if body:
        own = compile_model(GO2)
        carried += sum((s - 1.0) * own.body(n).mass[0] for n, s in zip(body["names"], body["mass_scale"], strict=True))
    assert abs(found.mass - carried) < 2.0 * found.standard_error
    assert found.is_seen == (preset == "payload")


def test_a_load_that_is_not_seen_changes_nothing_but_the_notes(calibration):
    left = with_load(GO2, calibration, NONE)
    assert left.estimates == calibration.estimates
    assert left.covariance == calibration.covariance
    assert "no load" in left.notes[-1]


def test_the_trunk_gets_the_load_s_mass_and_moment_and_the_task_s_payload_is_not_added(calibration):
    loaded = with_load(GO2, calibration, LOAD)
    trunk = compile_model(GO2).body("base")
    mass = float(trunk.mass[0])
    assert loaded.find("mass_scale", "base").value == pytest.approx((mass + 3.0) / mass)
    sim = BatchSim(GO2, SimCfg(nsim=64))
    loaded.apply(sim)
    scale, offset = (
        sim.params.get(name)[0, sim.params.body_names.index("base")] for name in ("mass_scale", "com_offset")
    )
    moment = mass * trunk.ipos[:2] + 3.0 * np.array(LOAD.place)
    np.testing.assert_allclose(scale * mass * (trunk.ipos + offset)[:2], moment, rtol=1e-6)
    fitted = Fitted(loaded, BatchSim(GO2, SimCfg(nsim=1)))
    names = [one.name for one in origins(sim, locomotion_ranges("base"), fitted) if one.source == "range"]
    assert "payload" not in names
    assert "contact_friction" in names


def test_weighing_twice_replaces_the_first_load(calibration):
    twice = with_load(GO2, with_load(GO2, calibration, LOAD), with_field(LOAD, mass=1.5))
    labels = [one.parameter.label for one in twice.estimates]
    assert len(labels) == len(set(labels))
    assert twice.find("mass_scale", "base").value < with_load(GO2, calibration, LOAD).find("mass_scale").value


def test_a_log_of_another_motion_and_a_robot_without_feet_are_refused():
    still = {"joint_pos": np.zeros((400, 12)), "target_pos": np.zeros((400, 12))}
    log = Log(time=np.arange(400) / 50.0, joint_names=GO2.spec.joint_names, signals=still)
    with pytest.raises(TrueupError, match="--excitation squat"):
        weigh(GO2, [log])
    with pytest.raises(TrueupError, match="three feet"):
        weigh(load_robot("so101"), [log])


@pytest.fixture
def calibration() -> Calibration:
    names = GO2.spec.joint_names
    return made_params(names, [one("damping", names[:1], "bounded", 0.2)], [0.0], np.eye(1))


def test_words_name_what_looks_the_same():
    assert "less than their gains" in str(LOAD)
    assert "less than" not in str(with_field(LOAD, mass=-3.0))


@pytest.mark.medium
def test_from_the_command_line_squats_are_recorded_weighed_and_handed_on(calibration, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    write_calibration(calibration, tmp_path / "fit")
    driver = "twin:payload?seed=4&base=free"
    options = ["--seconds", "16", "--lockstep", "--out", "squat.mcap"]
    for args in (
        ["record", "go2", "--driver", driver, "--excitation", "squat", *options],
        ["calibrate", "load", "squat.mcap", "--robot", "go2", "--fit", "fit", "--out", "loaded"],
    ):
        with pytest.raises(SystemExit) as ended:
            main(args)
        assert ended.value.code == 0
    assert "a load of" in capsys.readouterr().out
    assert read_calibration("loaded").find("mass_scale", "base").value > 1.0
