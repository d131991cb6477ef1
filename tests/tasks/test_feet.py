"""Feet through the air: how long, how high, and what share of the time on the ground."""

import numpy as np
import pytest

from trueup.robot.load import load_robot
from trueup.tasks.sensing.feet import Feet
from trueup.tasks.sensing.frame import Frame
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.engines.foot_sensors import add_foot_sensors

DT = 0.02


@pytest.fixture(scope="module")
def sim():
    robot = load_robot("go2")
    return BatchSim(robot, SimCfg(nsim=2, threads=1), prepare=lambda spec: add_foot_sensors(spec, robot))


@pytest.fixture
def walk(sim):
    """Follow the first foot of both rows through steps of (touches, height); the others stay on the ground."""
    frame = Frame(2, {}, None)
    frame.dt = DT
    feet = Feet(sim, frame)

    def step(touches, height=0.0):
        frame.foot_contact = np.ones((2, 4), bool)
        frame.foot_height = np.zeros((2, 4), np.float32)
        frame.foot_contact[:, 0], frame.foot_height[:, 0] = touches, height
        feet.follow(frame)
        return frame

    step.feet = feet
    return step


def test_time_in_the_air_grows_and_is_readable_at_touchdown(walk):
    walk(True)
    for k in range(1, 6):
        assert walk(False).air_time[0, 0] == pytest.approx(k * DT)
    frame = walk(True)
    assert frame.touchdown[0, 0]
    assert frame.air_time[0, 0] == pytest.approx(6 * DT)  # from the last step on the ground to this one
    frame = walk(True)
    assert not frame.touchdown.any()
    assert frame.air_time[0, 0] == 0.0


def test_the_peak_is_the_highest_sole_of_the_step(walk):
    for height in (0.02, 0.07, 0.04):
        frame = walk(False, height)
    assert frame.swing_peak[0, 0] == pytest.approx(0.07)
    assert walk(True, 0.0).swing_peak[0, 0] == pytest.approx(0.07)  # readable when the step ends
    assert walk(True, 0.0).swing_peak[0, 0] == 0.0
    assert walk(False, 0.01).swing_peak[0, 0] == pytest.approx(0.01)  # the next one begins anew


def test_duty_forgets_within_a_second(walk):
    for _ in range(50):
        frame = walk(False)
    assert frame.duty[0, 0] == pytest.approx((1.0 - DT) ** 50, rel=1e-4)  # about 1/e
    assert frame.duty[0, 1] == 1.0


def test_feet_that_stay_on_the_ground_make_no_step(walk):
    for _ in range(3):
        frame = walk(False, 0.05)
    assert not frame.touchdown[:, 1:].any()
    assert not frame.air_time[:, 1:].any()
    assert not frame.swing_peak[:, 1:].any()


def test_a_new_episode_forgets_the_step_of_its_own_row(walk):
    for _ in range(3):
        frame = walk(False, 0.05)
    walk.feet.reset(np.array([1]))
    np.testing.assert_allclose(frame.air_time[:, 0], [3 * DT, 0.0], rtol=1e-5)
    np.testing.assert_allclose(frame.swing_peak[:, 0], [0.05, 0.0], rtol=1e-5)
    assert frame.duty[0, 0] < frame.duty[1, 0] == 1.0
    np.testing.assert_array_equal(walk(True).touchdown[:, 0], [True, False])  # no step ends that never began


def test_memory_is_alive_and_enough_to_go_on(walk, sim):
    walk(False, 0.03)
    frame = Frame(2, {}, None)
    frame.dt = DT
    other = Feet(sim, frame)
    for name, values in other.memory.items():
        values[...] = walk.feet.memory[name]
    here = walk(True)
    frame.foot_contact, frame.foot_height = here.foot_contact, here.foot_height
    other.follow(frame)
    for name in ("touchdown", "air_time", "swing_peak", "duty"):
        np.testing.assert_array_equal(getattr(frame, name), getattr(here, name))
    assert frame.touchdown[0, 0]


def test_a_robot_without_feet_has_none_to_follow():
    robot = load_robot("pendulum")
    sim = BatchSim(robot, SimCfg(nsim=1, threads=1), prepare=lambda spec: add_foot_sensors(spec, robot))
    assert sim.model.nsensor == BatchSim(robot, SimCfg(nsim=1, threads=1)).model.nsensor
    frame = Frame(1, {}, None)
    Feet(sim, frame).follow(frame)
    assert frame.air_time.shape == (1, 0)


# --- soles of several points ---
@pytest.fixture(scope="module")
def humanoid():
    robot = load_robot("g1")
    return BatchSim(robot, SimCfg(nsim=1, threads=1), prepare=lambda spec: add_foot_sensors(spec, robot))


def posed(sim, height=0.0, pitch=0.0, **joints):
    """Contacts of feet and trunk of a g1 whose soles are `height` above the ground, pitched by `pitch` (nose down)."""
    qpos = sim.default_qpos.copy()
    qpos[2] += height
    qpos[3:7] = np.cos(pitch / 2), 0.0, np.sin(pitch / 2), 0.0
    for name, angle in joints.items():
        qpos[sim.index.qpos[sim.robot.spec.joint_names.index(f"{name}_joint")]] += angle
    sim.reset(qpos=qpos[None])
    sim.batch.forward()
    feet = sim.feet
    return feet.contact(slice(None))[0].tolist(), bool(feet.trunk_contact(slice(None))[0]), feet


def test_a_sole_touches_where_any_of_its_points_does(humanoid):
    assert posed(humanoid, -0.001)[:2] == ([True, True], False)
    assert posed(humanoid, 0.02)[:2] == ([False, False], False)
    # toes up by 0.2 rad: heels, 0.05 m behind the ankle, reach 1 cm lower and are what touches
    assert posed(humanoid, 0.005, left_ankle_pitch=-0.2, right_ankle_pitch=-0.2)[0] == [True, True]
    # toes of the left foot down by 0.2 rad: only they reach the ground
    assert posed(humanoid, 0.01, left_ankle_pitch=0.2)[0] == [True, False]


def test_points_of_a_sole_are_no_trunk_and_other_shapes_are(humanoid):
    kinds = [humanoid.model.sensor(k).name for k in range(humanoid.model.nsensor)]
    watched = [name.removesuffix("_mjSENS_CONTACT") for name in kinds if name.endswith("_mjSENS_CONTACT")]
    assert watched[:2] == ["left_toe", "right_toe"]
    assert {"pelvis", "torso", "head", "left_shin", "right_hand"} <= set(watched[2:])
    assert not any("heel" in name or "inside" in name for name in watched)
    _, trunk, _ = posed(humanoid, -0.72, pitch=np.pi / 2)
    assert trunk


def test_place_and_speed_of_a_sole_are_those_of_the_named_point(humanoid):
    _, _, feet = posed(humanoid, 0.03)
    assert feet.sole == pytest.approx([0.005, 0.005])
    _, y, z = (values[0] for values in feet.position(slice(None)))
    np.testing.assert_allclose(z - feet.sole, 0.03, atol=1e-4)
    np.testing.assert_allclose(y, [0.1485, -0.1485], atol=1e-3)
    humanoid.qvel[0, 0] = 0.4
    humanoid.batch.forward()
    np.testing.assert_allclose(feet.velocity(slice(None))[0], [[0.4, 0.0, 0.0]] * 2, atol=1e-6)
