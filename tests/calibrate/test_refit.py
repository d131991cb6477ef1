"""A diagnosis' request widens a fit: parameters, bodies, bounds; what the air cannot show is said."""

import pytest

from trueup.calibrate.config import CalibrateCfg
from trueup.calibrate.parameters import parameters_for, reaching
from trueup.calibrate.refit import with_request
from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.world.batch import SimCfg
from trueup.world.fitted.refit import RefitRequest, Suspect


def _request(*suspects, params, robot="go2", bodies=()):
    return RefitRequest(
        robot=robot, base="fixed", params=params, bodies=bodies, suspects=suspects, logs=("a.mcap",), hashes=("00",)
    )


def test_suspects_are_fitted_beside_the_usual_parameters():
    suspect = Suspect(name="kp", of=(), low=0.3, high=1.2, unit="times")
    cfg, notes = with_request(load_robot("go2"), CalibrateCfg(), _request(suspect, params=("pace", "kp")))
    assert cfg.params == "pace,kp"
    assert "kp" in notes[0]


def test_bounds_reach_as_far_as_the_diagnosis_saw():
    robot = load_robot("go2")
    far = Suspect(name="encoder_bias", of=("FL_hip_joint",), low=0.1, high=0.4, unit="rad")
    late = Suspect(name="delay", of=(), low=0.02, high=0.08, unit="s")
    cfg, _ = with_request(robot, CalibrateCfg(), _request(far, late, params=("pace", "encoder_bias", "delay")))
    assert cfg.window.max_delay_s == pytest.approx(0.1)
    usual = parameters_for(robot, SimCfg(max_delay_s=0.1), ("encoder_bias", "armature", "delay"))
    wide = {one.label: one for one in reaching(usual, cfg.reach)}
    assert wide["encoder_bias FL_hip_joint"].high == pytest.approx(0.5)
    assert wide["encoder_bias FL_hip_joint"].low == pytest.approx(-0.1)
    assert wide["delay"].high == pytest.approx(0.1)
    assert [one for one in usual if one.name == "armature"] == [one for one in wide.values() if one.name == "armature"]


def test_a_load_is_not_asked_of_a_robot_in_the_air():
    suspect = Suspect(name="mass_scale", of=(), low=1.0, high=4.0, unit="times")
    asked = _request(suspect, params=("pace", "mass_scale"), bodies=("trunk",))
    cfg, notes = with_request(load_robot("go2"), CalibrateCfg(), asked)
    assert cfg.params == "pace"
    assert cfg.bodies == ()
    assert "calibrate load" in notes[-1]


def test_a_request_for_another_robot_is_refused():
    with pytest.raises(TrueupError, match="so101"):
        with_request(load_robot("go2"), CalibrateCfg(), _request(params=("pace",), robot="so101"))
