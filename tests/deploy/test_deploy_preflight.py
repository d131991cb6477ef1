"""Preflight: every mismatch is refused with both values; sound robots pass."""

from types import SimpleNamespace

import numpy as np
import pytest
from made_bundles import OBSERVATION, make_passport
from made_deploys import ToyDriver, changed, toy_robot, toy_spec, toy_state, wide_ranges

from trueup.core.errors import TrueupError
from trueup.deploy.preflight import check_driver, check_passport, check_states, refuse
from trueup.policy.bundle.passport import RobotIdentity, term_facts
from trueup.policy.observation import Term
from trueup.robot.load import Robot

REST = {"imu_quat": np.array([1.0, 0.0, 0.0, 0.0]), "imu_gyro": np.zeros(3), "joint_vel": np.zeros(3)}


@pytest.fixture
def robot(tmp_path):
    return toy_robot(tmp_path)


@pytest.fixture
def passport(robot):
    return make_passport(
        robot=RobotIdentity(name="toy", model_sha256=robot.model_sha256), ranges=wide_ranges(OBSERVATION.nactor)
    )


def found(findings):
    return [(one.name, f"{one.asked} | {one.found}") for one in findings]


def with_spec(robot, **parts):
    return Robot(spec=changed(robot.spec, **parts), model_path=robot.model_path)


def with_joint(robot, name, **parts):
    joints = tuple(changed(joint, **parts) if joint.name == name else joint for joint in robot.spec.joints)
    return with_spec(robot, joints=joints)


def test_a_passport_that_fits_has_no_findings(passport, robot):
    assert check_passport(passport, robot) == []


def test_another_robot_is_named(passport, robot):
    ((name, text),) = found(check_passport(passport, with_spec(robot, name="tall")))
    assert name == "passport"
    assert "'toy'" in text
    assert "'tall'" in text


def test_another_model_is_refused_by_its_hash_and_can_be_allowed(passport, robot):
    robot.model_path.write_text("<mujoco> </mujoco>")
    findings = check_passport(passport, robot)
    assert [one.name for one in findings] == ["model"]
    assert robot.model_sha256[:12] in findings[0].found
    assert refuse(findings, ["model"]) == tuple(findings)


@pytest.mark.parametrize(
    ("joint", "parts", "words"),
    [
        ("hip", {"default": 0.2}, ("default pose of hip", "0.1 rad", "0.2 rad")),
        ("hip", {"position": (0.2, 1.5), "default": 0.3}, ("default pose of hip", "0.2 to 1.5")),
        ("knee", {"kp": 1.0}, ("kp of knee", "20", "10")),
        ("knee", {"kp": 2000.0}, ("kp of knee", "20", "40")),
        ("ankle", {"torque": 5.0}, ("ankle", "10", "5")),
        ("ankle", {"torque": 900.0}, ("ankle", "10", "900")),
    ],
)
def test_joints_that_differ_are_named_with_both_values(passport, robot, joint, parts, words):
    text = " ".join(text for _, text in found(check_passport(passport, with_joint(robot, joint, **parts))))
    for word in words:
        assert word in text


def test_a_joint_that_only_one_of_them_has_is_named(passport, robot):
    joints = tuple(changed(j, name="toe") if j.name == "ankle" else j for j in robot.spec.joints)
    assert "ankle, toe" in str(found(check_passport(passport, with_spec(robot, joints=joints))))


def test_a_rate_far_from_the_robots_is_refused(passport, robot):
    faster = with_spec(robot, control_hz=400.0, physics_hz=400.0)
    assert "it runs at 50 Hz, the robot at 400 Hz" in str(found(check_passport(passport, faster)))


def test_a_signal_that_no_robot_measures_is_refused(passport, robot):
    seen = changed(OBSERVATION, terms=(*OBSERVATION.terms, Term("heights")), widths={"heights": 5})
    ranges = wide_ranges(seen.nactor)
    odd = changed(passport, policy=changed(passport.policy, observation=seen), terms=term_facts(seen), ranges=ranges)
    assert ("signals", "the policy observes 'heights' | a robot behind a driver does not measure it") in found(
        check_passport(odd, robot)
    )


def test_without_training_ranges_there_is_nothing_to_watch(passport, robot):
    findings = check_passport(changed(passport, ranges=None, ranges_missing="never ran"), robot)
    assert [one.name for one in findings] == ["ranges"]
    assert "never ran" in findings[0].found


# --- driver ---
def test_a_driver_with_joints_in_another_order_is_refused(passport, robot):
    driver = ToyDriver(toy_spec(("hip", "ankle", "knee")))
    ((name, text),) = found(check_driver(passport, robot, driver))
    assert name == "joints"
    assert "0: hip for ankle; 1: ankle for hip" in text


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        ({"realtime": True, "command_hz": 25.0}, ("states at 50 Hz", "25 Hz")),
        ({"realtime": False, "command_hz": 200.0}, ("20 ms", "5 ms")),
        ({"realtime": False, "command_hz": 500.0, "control_hz": 25.0}, ("20 ms", "40 ms")),
    ],
)
def test_a_driver_at_another_rate_is_refused(passport, robot, driver, words):
    driver = SimpleNamespace(joint_names=robot.spec.joint_names, **driver)
    ((name, text),) = found(check_driver(passport, robot, driver))
    assert name == "driver-rate"
    assert all(word in text for word in words)


@pytest.mark.parametrize("driver", [{"realtime": True, "command_hz": 500.0}, {"realtime": False, "command_hz": 50.0}])
def test_a_driver_that_fits_passes(passport, robot, driver):
    assert check_driver(passport, robot, SimpleNamespace(joint_names=robot.spec.joint_names, **driver)) == []


def test_gains_that_cannot_be_commanded_must_be_those_of_training(passport, robot):
    kp, kd = np.array([15.0, 20.0, 20.0]), np.array([0.4, 0.5, 0.5])  # ankle, hip, knee as trained
    driver = SimpleNamespace(joint_names=robot.spec.joint_names, realtime=True, command_hz=50.0, fixed_gains=(kp, kd))
    assert check_driver(passport, robot, driver) == []
    kp[1] = 22.0
    ((name, text),) = found(check_driver(passport, robot, driver))
    assert name == "gains"
    assert "kp of hip 20 (policy) | the servo's is 22" in text


def test_a_driver_that_sends_no_gains_has_those_of_the_robots_spec(passport, robot):
    driver = SimpleNamespace(joint_names=robot.spec.joint_names, realtime=True, command_hz=50.0, sends_gains=False)
    text = str(found(check_driver(passport, robot, driver)))
    assert "kp of ankle 15 (policy) | the servo's is 20" in text
    assert "hip" not in text


# --- states ---
def test_a_robot_at_rest_passes(passport, robot):
    assert check_states(passport, robot, [toy_state(0, **REST), toy_state(1, **REST)]) == []


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"joint_pos": np.array([0.0, np.nan, 0.0])}, "state", ("finite joint_pos", "hip report none")),
        ({"joint_pos": np.array([0.0, 1.7, 0.0])}, "state", ("hip within -1.5 to 1.5", "1.700")),
        ({"joint_vel": np.array([0.0, 0.0, 25.0])}, "state", ("knee below 20", "25.00")),
        ({"imu_quat": None}, "imu", ("no IMU",)),
        ({"imu_gyro": np.array([0.0, np.inf, 0.0])}, "imu", ("finite imu_gyro",)),
        ({"imu_quat": np.zeros(4)}, "imu", ("length 1", "0.000")),
        ({"imu_gyro": np.array([0.0, 0.0, 2.0])}, "imu", ("at rest", "2.0")),
        ({"imu_acc": np.array([9.81, 0.0, 0.0])}, "imu", ("90 deg apart",)),
        ({"imu_quat": np.array([0.0, 1.0, 0.0, 0.0])}, "imu", ("180 deg apart",)),
        ({"joint_temperature": np.array([20.0, 90.0, 20.0])}, "temperature", ("below 70", "hip is at 90")),
        ({"voltage": 0.0}, "voltage", ("0 V",)),
    ],
)
def test_states_that_are_not_sane_are_refused(passport, robot, changes, name, words):
    findings = check_states(passport, robot, [toy_state(1, **(REST | changes))])
    assert [one.name for one in findings] == [name]
    assert all(word in found(findings)[0][1] for word in words)


def test_what_is_not_measured_is_not_asked(passport, robot):
    state = toy_state(**REST, joint_temperature=np.full(3, np.nan), voltage=float("nan"), imu_acc=None)
    assert check_states(passport, robot, [state]) == []


def test_a_start_pose_too_far_away_is_refused_and_can_be_allowed(passport, robot):
    wide = with_joint(robot, "hip", position=(-4.0, 4.0))
    findings = check_states(passport, wide, [toy_state(**REST, joint_pos=np.array([0.3, 2.9, -0.4]))])
    assert [one.name for one in findings] == ["start-pose"]
    refuse(findings, ["start-pose"])


def test_states_out_of_order_are_refused(passport, robot):
    findings = check_states(passport, robot, [toy_state(5, **REST), toy_state(2, **REST)])
    assert [one.name for one in findings] == ["clock"]


def test_a_robot_that_another_moves_may_turn(passport, robot):
    state = toy_state(**REST | {"imu_gyro": np.array([0.0, 0.0, 2.0])})
    assert check_states(passport, robot, [state], moved=True) == []


# --- refusing ---
def test_a_refusal_shows_every_finding_and_what_could_be_allowed(passport, robot):
    robot.model_path.write_text("other")
    findings = check_passport(passport, with_joint(robot, "hip", default=0.2))
    with pytest.raises(TrueupError) as error:
        refuse(findings)
    assert "default pose of hip" in str(error.value)
    assert "--allow model would let model pass, not the others" in str(error.value)
    with pytest.raises(TrueupError, match="--allow model would let these pass; it is recorded"):
        refuse([one for one in findings if one.name == "model"])
    with pytest.raises(TrueupError, match="default pose"):
        refuse(findings, ["model"])


@pytest.mark.parametrize("name", ["passport", "joints", "state", "imu", "anything"])
def test_what_concerns_the_motors_cannot_be_allowed(name):
    with pytest.raises(TrueupError, match="can be allowed"):
        refuse([], [name])
