"""Export: the calibrated robot opens again with the estimates in it, and every loss is declared."""

import ast
import xml.etree.ElementTree as ET

import msgspec
import numpy as np
import pytest
from made_calibration import made_calibration
from planted_logs import planted_log

from trueup.calibrate.export import REASONS, calibrated_spec, export_calibration, export_robot, reason
from trueup.calibrate.rules import RULES
from trueup.core.errors import TrueupError
from trueup.models.friction import COEFFICIENTS, LAWS
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration, read_calibration
from trueup.world.replay.replay import replay

ROBOT = load_robot("go2")
CFG = SimCfg(model=ModelCfg(base="fixed"))
NAMES = ("armature", "damping", "friction", "encoder_bias", "delay", "kp", "kd", "torque_limit")
MASSES = ("mass_scale", "com_offset")


@pytest.fixture(scope="module")
def result() -> Calibration:
    return made_calibration(ROBOT, (*NAMES, *MASSES), bodies=("FL_calf",))


def test_the_exported_robot_equals_the_calibrated_simulation_but_for_the_declared_losses(result, tmp_path):
    export = export_robot(ROBOT, result, tmp_path / "robot")
    assert {loss.split()[0].rstrip(":") for loss in export.losses} == {"delay", "encoder_bias"}
    calibrated = BatchSim(ROBOT, CFG)
    result.apply(calibrated)
    written = BatchSim(load_robot(export.folder), CFG)
    for name in ("armature", "friction", "damping", "kp", "kd", "torque_limit", "inertia"):
        np.testing.assert_allclose(written.params.get(name), calibrated.params.get(name), rtol=1e-6, atol=1e-12)
    for field in ("body_mass", "body_ipos"):
        mine, theirs = written.batch.expand(field), calibrated.batch.expand(field)
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def test_the_exported_robot_replays_as_the_calibrated_one_does(tmp_path):
    held = made_calibration(ROBOT, ("armature", "damping", "friction", "mass_scale"), bodies=("FL_calf",))
    folder = export_robot(ROBOT, held, tmp_path / "robot").folder
    log = planted_log(ROBOT, {}, seconds=2.0)
    there, here = replay(load_robot(folder), log), replay(ROBOT, log, prepare=held.apply)
    np.testing.assert_allclose(there.joint_pos, here.joint_pos, atol=1e-7)
    assert np.abs(here.joint_pos - replay(ROBOT, log).joint_pos).max() > 1e-3


def numbers(text: str) -> dict[str, object]:
    """Keyword arguments of every call in a Python text that hold literals."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return {word.arg: ast.literal_eval(word.value) for call in calls for word in call.keywords}


def test_isaac_lab_gets_the_calibrated_numbers_and_delays_in_its_steps(result, tmp_path):
    export = export_calibration(ROBOT, result, "isaaclab", tmp_path / "lab", 200.0)
    found = numbers((export.folder / "actuators_isaaclab.py").read_text())
    sim = BatchSim(ROBOT, CFG)
    result.apply(sim)
    for field, name in {"stiffness": "kp", "armature": "armature", "viscous_friction": "damping"}.items():
        want = dict(zip(ROBOT.spec.joint_names, sim.params.get(name)[0], strict=True))
        assert found[field] == pytest.approx(want, rel=1e-5)
    assert found["friction"] == found["dynamic_friction"]
    seconds = result.find("delay").value
    assert found["min_delay"] == found["max_delay"] == round(seconds * 200)
    words = (export.folder / "LOSSES.md").read_text()
    assert f"delay: {1e3 * seconds:.2f} ms" in words
    assert "encoder_bias" in words
    assert "mass_scale FL_calf: masses are in the model" in words


def test_mjlab_gets_one_actuator_a_joint(result, tmp_path):
    export = export_calibration(ROBOT, result, "mjlab", tmp_path / "lab")
    text = (export.folder / "actuators_mjlab.py").read_text()
    assert text.count("BuiltinPositionActuatorCfg(") == ROBOT.spec.njoint
    assert f"armature={result.find('armature', 'FL_hip_joint').value:.6g}" in text
    assert read_calibration(export.folder) == result


def test_urdf_gets_friction_and_damping_and_says_that_armature_is_lost(result, tmp_path):
    export = export_calibration(ROBOT, result, "urdf", tmp_path / "urdf")
    joints = ET.parse(export.folder / "joints.urdf.xml").getroot().findall("joint")
    assert [joint.get("name") for joint in joints] == list(ROBOT.spec.joint_names)
    friction = float(joints[3].find("dynamics").get("friction"))
    assert friction == pytest.approx(result.find("friction", ROBOT.spec.joint_names[3]).value, rel=1e-5)
    lost = " ".join(export.losses)
    assert all(word in lost for word in ("armature", "kp, kd", "delay", "encoder_bias"))


def test_load_dependent_friction_is_declared_as_reduced(tmp_path):
    names = ("friction", "friction_kl", "stop_low")
    held = made_calibration(load_robot("pendulum"), names)
    for to in ("mjcf", "isaaclab"):
        export = export_calibration(load_robot("pendulum"), held, to, tmp_path / to)
        lost = " ".join(export.losses)
        assert "friction_kl" in lost
        assert "constant" in lost
        assert "stop_low" in lost


@pytest.mark.parametrize("law", ["M4", "M6"])  # together they have all coefficients
@pytest.mark.parametrize("to", ["mjcf", "urdf", "isaaclab", "mjlab"])
def test_every_parameter_that_can_be_fitted_is_exported_or_declared_lost(to, law, tmp_path):
    others = {f"friction_{name}" for name in COEFFICIENTS} - {f"friction_{name}" for name in LAWS[law].coefficients}
    names = [name for name in RULES if not name.startswith("servo_") and name not in others]
    fit = made_calibration(ROBOT, names, bodies=("FL_calf",), deviation=dict.fromkeys(names, 0.8))
    export = export_calibration(ROBOT, fit, to, tmp_path / to)
    lost = {loss.split(":")[0].split()[0].split("[")[0] for loss in export.losses}
    held = {
        "mjcf": {"armature", "damping", "friction", "stiffness", "kp", "kd", "torque_limit", "no_load_speed"}
        | set(MASSES),
        "urdf": {"damping", "friction", "torque_limit"},
        "isaaclab": {"armature", "damping", "friction", "kp", "kd", "torque_limit"},
        "mjlab": {"armature", "damping", "friction", "kp", "kd", "torque_limit"},
    }[to]
    if to == "urdf":
        assert any(loss.startswith("kp, kd:") for loss in export.losses)
        held |= {"kp", "kd"}
    assert set(names) - held - lost == set()
    assert len(read_calibration(export.folder).estimates) == len(fit.estimates)


def test_a_folder_that_holds_something_is_left_alone(result, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    for to in ("mjcf", "urdf"):
        with pytest.raises(TrueupError, match="not empty"):
            export_calibration(ROBOT, result, to, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_body_without_its_own_inertial_is_a_declared_loss(result, tmp_path):
    estimate = result.find("mass_scale")
    entry = msgspec.structs.replace(estimate.parameter, of=("nobody",))
    odd = msgspec.structs.replace(
        result, estimates=(msgspec.structs.replace(estimate, parameter=entry),), x=[0.3], covariance=[[0.01]]
    )
    export = export_robot(ROBOT, odd, tmp_path / "robot")
    assert any("nobody" in loss for loss in export.losses)


def test_a_result_of_other_joints_is_refused(result):
    other = msgspec.structs.replace(result, joint_names=("a", "b"))
    with pytest.raises(TrueupError, match="other joints"):
        other.apply(BatchSim(ROBOT, CFG))


def test_an_export_that_holds_everything_says_so(tmp_path):
    held = made_calibration(ROBOT, ("armature", "damping", "friction"))
    export = export_calibration(ROBOT, held, "mjcf", tmp_path / "robot")
    assert export.losses == ()
    assert "Nothing was lost." in (export.folder / "LOSSES.md").read_text()


@pytest.mark.parametrize(("rate", "steps", "off"), [(100.0, 1, "-3.00"), (1000.0, 13, ""), (400.0, 5, "-0.50")])
def test_a_delay_is_rounded_to_steps_and_the_rest_declared(rate, steps, off, tmp_path):
    pendulum = load_robot("pendulum")
    held = made_calibration(pendulum, ("delay",), x=0.3)  # 10 ms and 0.3 widths of 10 ms: 13 ms
    export = export_calibration(pendulum, held, "isaaclab", tmp_path / "lab", rate)
    found = numbers((export.folder / "actuators_isaaclab.py").read_text())
    assert found["min_delay"] == found["max_delay"] == steps
    lost = [loss for loss in export.losses if loss.startswith("delay")]
    if off:
        assert lost == [f"delay: 13.00 ms is {0.013 * rate:.2f} steps at {rate:g} Hz; rounded to {steps} ({off} ms)"]
    else:
        assert lost == []


def test_gains_and_limits_of_the_spec_are_multiplied_joint_by_joint():
    pendulum = load_robot("pendulum")
    held = made_calibration(pendulum, ("kp", "torque_limit"), x=0.5)
    spec = calibrated_spec(pendulum.spec, held)
    np.testing.assert_allclose(spec.kp, np.exp(0.15) * pendulum.spec.kp)  # width 0.3 on the logarithm
    np.testing.assert_allclose(spec.torque_limit, np.exp(0.15) * pendulum.spec.torque_limit)
    np.testing.assert_array_equal(spec.kd, pendulum.spec.kd)


def test_a_robot_s_options_are_a_declared_loss(tmp_path):
    loaded = load_robot("pendulum:load_mass=0.3")
    export = export_robot(loaded, made_calibration(loaded, ("damping",)), tmp_path / "robot")
    assert [loss for loss in export.losses if "load_mass=0.3" in loss]


def test_formats_and_rates_that_do_not_exist_are_refused(result, tmp_path):
    with pytest.raises(TrueupError, match="no export called 'sdf'; there are mjcf, urdf, isaaclab, mjlab"):
        export_calibration(ROBOT, result, "sdf", tmp_path / "a")
    with pytest.raises(TrueupError, match="physics_hz must be positive"):
        export_calibration(ROBOT, result, "mjlab", tmp_path / "b", -200.0)
    assert not (tmp_path / "a" / "params.json").exists()


def test_every_reason_is_of_a_parameter_and_an_unknown_one_points_to_the_whole_file():
    assert set(REASONS) <= set(RULES)
    assert "params.json" in reason("something_new")
    assert "constant part" in reason("friction_kms")
