"""Parameters as data: sets, ties, scaling."""

import numpy as np
import pytest
from made_calibration import made_calibration

from trueup.calibrate.config import WindowCfg
from trueup.calibrate.data.windows import cut_windows
from trueup.calibrate.parameters import make_parameters, near_stops, parameter_names, tied
from trueup.calibrate.rules import FULL, PACE, STOPS
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import load_robot, zoo_names
from trueup.robot.model import ModelCfg
from trueup.world.actuators.engine import ActuatorCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.fit_parameter import ParamWriter


def held(name: str = "go2", **more) -> BatchSim:
    return BatchSim(load_robot(name), SimCfg(model=ModelCfg(base="fixed"), **more))


def test_sets_and_lists_are_read_and_a_wrong_name_is_answered_with_the_nearest():
    assert parameter_names("pace") == PACE
    assert parameter_names("armature, delay") == ("armature", "delay")
    assert parameter_names("pace,kp,armature") == (*PACE, "kp")
    with pytest.raises(TrueupError, match="did you mean 'armature'"):
        parameter_names("armatur")


@pytest.mark.parametrize("name", zoo_names())
def test_pace_has_four_per_joint_and_one_delay_and_no_prior_on_a_bound(name):
    sim = held(name)
    parameters = make_parameters(sim, PACE)
    assert len(parameters) == 4 * sim.robot.spec.njoint + 1
    for entry in parameters:
        low, high = entry.x_bounds
        assert low < -0.2
        assert high > 0.2
        for x in (low, -0.1, 0.0, 0.15, high):
            assert entry.to_x(float(entry.to_value(np.array(x)))) == pytest.approx(x, abs=1e-9)


def test_slope_is_the_derivative_of_the_value():
    for entry in make_parameters(held(), ("friction", "delay", "kp")):
        value = float(entry.to_value(np.array(0.2)))
        change = float(entry.to_value(np.array(0.2 + 1e-6)) - entry.to_value(np.array(0.2 - 1e-6))) / 2e-6
        assert entry.slope(value) == pytest.approx(change, rel=1e-6)


def test_zero_friction_can_be_reached():
    entry = make_parameters(held(), ("friction",))[0]
    assert entry.to_value(np.array(entry.x_bounds[0])) == pytest.approx(0.0, abs=1e-12)


def test_left_and_right_are_tied_by_name():
    names = ("FL_hip_joint", "FR_hip_joint", "RL_hip_joint", "RR_hip_joint")
    assert tied(names, "side") == [names[:2], names[2:]]
    assert tied(("left_knee", "right_knee", "waist"), "side") == [("left_knee", "right_knee"), ("waist",)]
    assert tied(("Rotation", "Pitch"), "side") == [("Rotation",), ("Pitch",)]
    assert tied(names, "all") == [names]


def test_joints_of_a_kind_are_tied_over_all_legs() -> None:
    """Four like motors share a value, however the legs are named."""
    legs = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
    assert tied(tuple(legs), "kind") == [tuple(legs[k::3]) for k in range(3)]
    words = ("front_left_knee", "front_right_knee", "hind_left_knee", "left_elbow", "waist")
    assert tied(words, "kind") == [words[:3], words[3:4], words[4:]]


def test_full_fits_masses_of_the_bodies_named_only():
    sim = held(actuator=ActuatorCfg(kind="dcmotor"))
    parameters = make_parameters(sim, FULL, bodies=("FL_calf",))
    assert [entry.label for entry in parameters if entry.name == "com_offset"] == [
        f"com_offset[{axis}] FL_calf" for axis in "xyz"
    ]
    with pytest.raises(TrueupError, match="no body"):
        make_parameters(sim, FULL, bodies=("FL_claf",))
    with pytest.raises(TrueupError, match="need their bodies named"):
        make_parameters(sim, ("mass_scale",))


def test_values_reach_the_simulation_and_a_second_call_leaves_nothing_of_the_first():
    sim = held(nsim=2)
    parameters = make_parameters(sim, ("kp", "armature", "com_offset"), bodies=("FL_calf",))
    base = {name: sim.params.get(name) for name in ("kp", "armature", "com_offset")}
    values = np.ones((2, len(parameters)))
    values[:, 0] = (0.5, 2.0)  # kp of the first joint, times nominal
    values[:, 12:24] = 0.02
    values[:, 24:] = (0.01, 0.0, -0.01)
    for _ in range(2):
        ParamWriter(sim, parameters).write(values, base)
        np.testing.assert_allclose(sim.params.get("kp")[:, 0], [10.0, 40.0])
        np.testing.assert_allclose(sim.params.get("armature"), 0.02)
        at = sim.params.body_names.index("FL_calf")
        np.testing.assert_allclose(sim.params.get("com_offset")[:, at], [[0.01, 0, -0.01]] * 2, atol=1e-12)


def test_the_stand_of_the_recording_is_left_behind_and_the_rest_carried_over():
    fit = made_calibration(load_robot("go2"), ("armature", "tilt", "mount_stiffness", "torque_offset"), x=0.5)
    stand = BatchSim(load_robot("go2"), SimCfg(model=ModelCfg(base="mount")))
    fit.apply(stand)
    assert stand.params.get("tilt")[0, 0] > 0
    free = BatchSim(load_robot("go2"), SimCfg())
    fit.apply(free)
    np.testing.assert_allclose(free.params.get("armature"), stand.params.get("armature"))
    np.testing.assert_allclose(free.params.get("torque_offset"), stand.params.get("torque_offset"))
    assert free.params.get("tilt")[0].tolist() == [0.0, 0.0]


def test_a_delay_is_one_for_all_and_what_is_set_by_hand_is_never_tied():
    sim = held()
    assert [entry.of for entry in make_parameters(sim, ("delay",))] == [sim.robot.spec.joint_names]
    assert len(make_parameters(sim, ("encoder_bias",), tie="all")) == 12
    (armature,) = make_parameters(sim, ("armature",), tie="all")
    assert armature.of == sim.robot.spec.joint_names
    assert armature.label == "armature of 12: FL_hip_joint, ..."


@pytest.mark.parametrize(("tie", "count"), [("none", 12), ("side", 6), ("kind", 3), ("all", 1)])
def test_ties_share_values_by_side_by_kind_or_all(tie, count):
    groups = [entry.of for entry in make_parameters(held(), ("damping",), tie=tie)]
    assert len(groups) == count
    assert sorted(name for group in groups for name in group) == sorted(load_robot("go2").spec.joint_names)


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("L_knee", "R_knee", True),
        ("knee_l", "knee_r", True),
        ("arm_left_1", "arm_right_1", True),
        ("wheel", "reel", False),
        ("left_knee", "left_hip", False),
    ],
)
def test_sides_are_told_by_whole_words_and_single_letters(one, other, together):
    assert (tied((one, other), "side") == [(one, other)]) == together


def test_ties_of_nothing_are_nothing():
    assert tied((), "all") == tied((), "side") == tied((), "none") == []


def test_bounds_follow_the_torque_limit_the_nominal_stop_and_a_nominal_value_beyond_them():
    sim = held()
    spec = sim.robot.spec
    offsets = make_parameters(sim, ("torque_offset",))
    np.testing.assert_allclose([entry.high for entry in offsets], 0.1 * spec.torque_limit)
    np.testing.assert_allclose([entry.width for entry in offsets], 0.015 * spec.torque_limit)
    stops = make_parameters(sim, ("stop_high",))
    np.testing.assert_allclose([entry.low for entry in stops], spec.position_high - 0.5)
    np.testing.assert_allclose([entry.prior for entry in stops], spec.position_high)
    sim.params.set("armature", 1.0)  # five times the upper bound of the rule
    heavy = make_parameters(sim, ("armature",))[0]
    assert heavy.high == 5.0
    assert heavy.prior == pytest.approx(0.0)  # log 1


def test_a_servo_s_gain_is_a_factor_on_the_gain_under_its_own_prior():
    servo, plain = (make_parameters(held(), (name,))[0] for name in ("servo_kp", "kp"))
    assert servo.name == plain.name == "kp"
    assert servo.mode == plain.mode == "times"
    assert float(servo.to_value(np.array(0.0))) == pytest.approx(0.2)
    assert float(plain.to_value(np.array(0.0))) == pytest.approx(1.0)


def pushed(beyond: float, short: float = 0.05):
    """Windows of a go2 whose first hip comes within `short` of its upper stop, commanded `beyond` it."""
    robot, time = load_robot("go2"), np.arange(800) / 200
    wave = np.sin(2 * np.pi * time)
    pos, target = (np.tile(robot.spec.default_pose, (800, 1)) for _ in range(2))
    high = robot.spec.position_high[0]
    pos[:, 0], target[:, 0] = (high - short) * wave.clip(0), (high + beyond) * wave.clip(0)
    log = Log(time=time, joint_names=robot.spec.joint_names, signals={"joint_pos": pos, "target_pos": target})
    return cut_windows(robot, [log], WindowCfg(window_s=1.0), mask_saturated=False)


def test_only_stops_that_were_pushed_against_are_fitted_from_where_the_joint_was_held():
    parameters, high = make_parameters(held(), STOPS), load_robot("go2").spec.position_high[0]
    left = near_stops(parameters, pushed(0.2))
    assert sorted(entry.name for entry in left) == ["stop_damping", "stop_high", "stop_stiffness"]
    assert {entry.of for entry in left} == {("FL_hip_joint",)}
    (stop,) = [entry for entry in left if entry.name == "stop_high"]
    assert stop.prior == pytest.approx(high - 0.05 - 0.2)  # a soft stop is pressed in by 0.2 rad
    assert near_stops(parameters, pushed(-0.1)) == ()  # held short of it by its own command
    assert near_stops(parameters, pushed(0.2, short=0.4)) == ()
