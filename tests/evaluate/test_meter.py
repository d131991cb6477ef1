"""Metrics of a trial, against numbers computed by hand from frames made by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
from hand_frames import frame

from trueup.evaluate.scenarios.scenario import Scenario, Success
from trueup.evaluate.trials.meter import CONTINUOUS, METRICS, Meter
from trueup.evaluate.trials.run import failure_reasons
from trueup.tasks.load import load_task

TASK = load_task("go2-velocity")
DT, STEPS = 0.02, 100  # 2 s


class HandWorld:
    """Two quadrupeds of 10 and 20 kg, asked for 0.5 m/s, whose base moves at `speed` along its heading."""

    def __init__(self, speed=0.5, heading=0.0):
        self.nrow, self.control_dt, self.mass = 2, DT, np.array([10.0, 20.0])
        self.robot = SimpleNamespace(
            njoint=12,
            feet=("a", "b", "c", "d"),
            torque_limit=np.full(12, 20.0),
            position_low=np.full(12, -1.0),
            position_high=np.full(12, 1.0),
        )
        self.sim = SimpleNamespace(free_base=True)
        self.command = np.tile([0.5, 0.0, 0.0], (2, 1))
        self.goal = SimpleNamespace(course=lambda: self.command.astype(np.float32))
        self.scenario = Scenario(name="hand")
        self.torque_limit, self.diverged = np.full((2, 12), 20.0), np.zeros(2, bool)
        self.target = np.zeros((2, 12))
        self._way, self._speed, self._heading = 0.0, speed, heading

    def base(self):
        pose = np.zeros((2, 7))
        pose[:, 0], pose[:, 1] = self._way * np.cos(self._heading), self._way * np.sin(self._heading)
        pose[:, 3], pose[:, 6] = np.cos(0.5 * self._heading), np.sin(0.5 * self._heading)
        return pose

    def go(self):
        self._way += self._speed * DT


def run(world, make=lambda k: frame(), steps=STEPS, ranges=None, fall_at=None):
    meter = Meter(world, TASK, ranges)
    standing = np.ones(2, bool)
    for k in range(steps):
        world.go()
        if k == fall_at:
            standing = np.array([True, False])
        meter(make(k), np.zeros((2, 4), np.float32), standing)
    return meter.table()


def test_energy_and_cost_of_transport_are_those_computed_by_hand():
    # two joints with 3 N m at 2 rad/s and one with -4 N m at 5 rad/s: 6 + 6 + 20 = 32 W, 64 J in 2 s
    def make(k):
        made = frame(base_vel=[0.5, 0.0, 0.0])
        made.joint_torque[:, :3], made.joint_vel[:, :3] = (3.0, 3.0, -4.0), (2.0, 2.0, 5.0)
        return made

    table = run(HandWorld(), make)
    np.testing.assert_allclose(table["power"], 32.0, rtol=1e-6)
    np.testing.assert_allclose(table["energy"], 64.0, rtol=1e-6)
    # P / (m g v): 32 / (10 * 9.81 * 0.5) and half of that for twice the mass
    np.testing.assert_allclose(table["cost_of_transport"], [32 / 49.05, 32 / 98.1], rtol=1e-6)


def test_a_robot_that_stands_has_no_cost_of_transport():
    assert np.isnan(run(HandWorld(speed=0.0))["cost_of_transport"]).all()


def test_torque_thermal_load_and_limit_are_of_the_hardest_working_joint():
    def make(k):
        made = frame()
        made.joint_torque[:, 0] = 19.5 if k % 2 else 0.0
        made.joint_torque[:, 1] = 5.0
        return made

    table = run(HandWorld(), make)
    rms = np.sqrt(0.5) * 19.5
    np.testing.assert_allclose(table["torque"], rms / 20.0, rtol=1e-5)
    np.testing.assert_allclose(table["thermal"], (rms / (CONTINUOUS * 20.0)) ** 2, rtol=1e-5)
    np.testing.assert_allclose(table["at_limit"], 0.5 / 12, rtol=1e-6)  # 19.5 is above 95 % of 20, half of the time


def test_error_is_counted_after_the_first_second_and_way_along_the_heading():
    for heading in (0.0, 2.0):
        world = HandWorld(speed=0.4, heading=heading)
        table = run(world, lambda k: frame(base_vel=[0.0 if k < 50 else 0.4, 0.0, 0.0]))
        np.testing.assert_allclose(table["error"], [0.1, 0.4], rtol=1e-5)  # row 1 of the frames is asked to stand
        np.testing.assert_allclose(table["distance"], 0.8, rtol=1e-6)


def test_a_row_that_falls_counts_no_further():
    table = run(HandWorld(), lambda k: frame(gravity=[0.0, 0.9, -0.4]), fall_at=60)
    np.testing.assert_allclose(table["seconds"], [2.0, 1.2])
    assert table["distance"][1] == pytest.approx(0.5 * 1.2 / 1.0)
    assert table["lean"].tolist() == [0.0, 1.0]


def test_slip_and_stance_count_feet_on_the_ground_only():
    def make(k):
        made = frame()
        made.foot_vel[:, 0, :2] = (0.3, 0.4)
        made.foot_vel[:, 1, 0] = 9.0
        made.foot_contact[:, 1] = False
        return made

    table = run(HandWorld(), make)
    np.testing.assert_allclose(table["slip"], 0.5 / 3, rtol=1e-6)
    np.testing.assert_allclose(table["uneven"], 1.0)


def test_clearance_is_the_median_peak_of_the_swings_of_each_row():
    peaks = [0.04, 0.08, 0.06, 0.05, 0.1]

    def make(k):
        made = frame()
        swing, at = divmod(k, 20)
        made.foot_height[0, 0] = peaks[swing] * np.sin(np.pi * at / 10) if at < 10 else 0.0
        return made

    table = run(HandWorld(), make)
    assert table["clearance"][0] == pytest.approx(0.06, rel=1e-3)
    assert np.isnan(table["clearance"][1])


def test_jerkiness_is_the_rms_acceleration_of_targets():
    world = HandWorld()
    meter = Meter(world, TASK)
    for k in range(12):
        world.target = np.full((2, 12), 0.5 * 3.0 * (k * DT) ** 2)  # 3 rad/s^2 throughout
        meter(frame(), np.zeros((2, 4), np.float32), np.ones(2, bool))
    np.testing.assert_allclose(meter.table()["jerkiness"], 3.0, rtol=1e-6)


def test_margin_and_observations_outside_their_range():
    low, high = np.array([-1.0, 0.5, -1.0, -1.0]), np.array([1.0, 1.0, 1.0, -0.5])
    table = run(HandWorld(), lambda k: frame(joint_pos=0.9 if k == 7 else 0.0), ranges=(low, high))
    np.testing.assert_allclose(table["joint_margin"], 0.05, rtol=1e-5)
    np.testing.assert_allclose(table["outside"], 0.5)  # zeros lie outside two of four columns


def test_every_number_has_a_name_and_a_unit():
    table = run(HandWorld(), ranges=(np.zeros(4), np.zeros(4)))
    assert set(table) <= set(METRICS)
    assert all(values.shape == (2,) for values in table.values())


def test_a_trial_fails_by_the_first_thing_that_goes_wrong():
    table = {"error": np.array([0.1, 0.5, 0.5, np.nan]), "distance": np.array([0.9, 0.1, 0.9, 0.0])}
    world = SimpleNamespace(nrow=4, diverged=np.array([False, False, False, True]))
    standing = np.array([True, True, True, False])
    asked = Success(error=0.3, distance=0.5, turn_error=0.1)
    assert failure_reasons(table, standing, world, asked) == ("", "error", "error", "fell")
    assert failure_reasons(table, standing, world, Success(distance=0.5)) == ("", "distance", "", "fell")
    assert failure_reasons(table, np.ones(4, bool), world, Success()) == ("", "", "", "diverged")
