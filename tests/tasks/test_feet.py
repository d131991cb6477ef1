"""Feet through the air: how long, how high, and what share of the time on the ground."""

import numpy as np
import pytest

from trueup.robot.load import load_robot
from trueup.tasks.sensing.feet import Feet, add_foot_sensors
from trueup.tasks.sensing.frame import Frame
from trueup.world.batch import BatchSim, SimCfg

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
