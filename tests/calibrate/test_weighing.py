"""Squats on the ground weigh what a robot carries; the calibration hands it on."""

from dataclasses import replace as with_field
from pathlib import Path

import mujoco
import numpy as np
import pytest
from made_params import made_params, one

from trueup.calibrate.weighing import Load, weigh, with_load
from trueup.cli import main
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.record.session import run_session
from trueup.record.verbs import RecordSessionCfg
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg, compile_model, default_qpos, joint_index, trunk_body
from trueup.robot.shapes import lowest_place
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
    session = run_session(GO2, RecordSessionCfg(driver=f"twin:{preset}?seed=3&base=free"), excitation)
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


def stood(extra: float, place: tuple[float, float], *, rows: int = 651, rate: float = 50.0) -> Log:
    """A go2 that stands still under a load: its servos' commands from the statics, worked out without the scale."""
    model, spec = compile_model(GO2, ModelCfg(base="free")), GO2.spec
    trunk = model.body(trunk_body(model, GO2)).id
    own, total = model.body_mass[trunk], model.body_mass[trunk] + extra
    model.body_ipos[trunk][:2] += extra / total * (np.array(place) - model.body_ipos[trunk][:2])
    model.body_mass[trunk] = own + extra
    data, index = mujoco.MjData(model), joint_index(model, GO2)
    data.qpos[:] = default_qpos(model, GO2)
    mujoco.mj_forward(model, data)
    jacobian = np.zeros((len(spec.feet), 3, model.nv))
    for k, name in enumerate(spec.feet):
        geom = model.geom(name).id
        mujoco.mj_jac(model, data, jacobian[k], None, lowest_place(model, data, geom), int(model.geom_bodyid[geom]))
    flat = jacobian.reshape(-1, model.nv)
    force = np.linalg.lstsq(flat[:, :6].T, data.qfrc_bias[:6], rcond=None)[0]  # the feet carry trunk and load
    torque = data.qfrc_bias[index.dof] - flat[:, index.dof].T @ force
    pos = np.tile(spec.default_pose, (rows, 1))
    signals = {"joint_pos": pos, "target_pos": pos + torque / spec.kp}
    meta = {"excitation": {"kind": "squat"}, "phases": {"plan": 0}}
    return Log(time=np.arange(rows) / rate, joint_names=spec.joint_names, signals=signals, meta=meta)


@pytest.mark.parametrize(("extra", "place"), [(3.0, (0.1, -0.05)), (5.0, (-0.08, 0.02)), (0.0, (0.0, 0.0))])
def test_statics_by_hand_give_the_load_and_its_place(extra, place):
    found = weigh(GO2, [stood(extra, place)])
    assert found.mass == pytest.approx(extra, abs=1e-3)
    assert found.squats == 2  # three, less the first, which settles
    assert found.is_seen == (extra > 0.0)
    if extra:
        np.testing.assert_allclose(found.place, place, atol=1e-3)
        carried = found.robot + extra
        assert found.standard_error == pytest.approx(carried * 0.02 / 2.0, rel=1e-3)  # levers of four legs


def test_torques_smaller_than_the_gains_say_look_like_a_load():
    log = stood(0.0, (0.0, 0.0))
    offset = log["target_pos"] - log["joint_pos"]
    weak = with_field(log, signals={**log.signals, "target_pos": log["joint_pos"] + 1.25 * offset})
    found = weigh(GO2, [weak])  # motors that give 80 % need commands 1/0.8 as far away
    # a quarter of the robot, but for what the legs weigh themselves: their weight does not grow with the torques
    assert 0.2 * found.robot < found.mass < 0.25 * found.robot
    assert "less than their gains say look the same" in str(found)


def test_one_whole_squat_is_not_enough():
    with pytest.raises(TrueupError, match="1 whole squats were found after the first, two are needed"):
        weigh(GO2, [stood(0.0, (0.0, 0.0), rows=451)])
    assert weigh(GO2, [stood(0.0, (0.0, 0.0), rows=451)] * 2).squats == 2  # of two logs together


def test_a_load_is_seen_from_two_standard_errors_on():
    assert not with_field(LOAD, mass=1.0).is_seen
    assert with_field(LOAD, mass=1.01).is_seen
    assert with_field(LOAD, mass=-1.01).is_seen


def test_more_taken_away_than_the_trunk_has_is_refused(calibration):
    with pytest.raises(TrueupError, match="is this the right robot model"):
        with_load(GO2, calibration, with_field(LOAD, mass=-6.9))


def test_what_was_weighed_joins_the_estimates_with_its_own_certainty(calibration):
    loaded = with_load(GO2, calibration, LOAD)
    own = float(compile_model(GO2).body("base").mass[0])
    mass, *shift, height = loaded.estimates[1:]
    assert mass.standard_error == pytest.approx(0.5 / own)
    assert [one.parameter.axis for one in (*shift, height)] == [0, 1, 2]
    assert height.verdict == "not visible"
    assert mass.nominal_excluded
    assert not height.nominal_excluded
    covariance = np.array(loaded.covariance)
    np.testing.assert_allclose(covariance[0], [1, 0, 0, 0, 0])  # what was fitted before stands, alone
    np.testing.assert_allclose(np.diag(covariance)[1:], [one.ratio**2 for one in loaded.estimates[1:]])
    for estimate, x in zip(loaded.estimates, loaded.x, strict=True):
        assert float(estimate.parameter.to_value(np.array(x))) == pytest.approx(estimate.value)
