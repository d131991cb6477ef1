"""Base state from legs, accelerometer and orientation: on a simulated stand and a simulated push it is right."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from trueup.data.log import Log
from trueup.gap.causes.sensors import tilt_by_acceleration, turned_back
from trueup.gap.legs import base_at, by_legs, feet_in_base
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

RATE = 200.0


@pytest.fixture(scope="module")
def stood():
    """A go2 that sways up and down on its legs: pose, velocity and joints over time."""
    robot = load_robot("go2")
    sim = BatchSim(robot, SimCfg(threads=1, control_hz=RATE, model=ModelCfg(base="free")))
    sim.reset()
    time = np.arange(300) / RATE
    sway = 0.1 * np.sin(2.0 * np.pi * 1.0 * time)[:, None] * np.tile([0.0, 1.0, -2.0], 4)
    out = sim.rollout((robot.spec.default_pose + sway)[None], record=("qpos", "qvel"))
    qpos, qvel = out["qpos"][0][100:], out["qvel"][0][100:]
    b, d = sim.base_qpos, sim.base_dof
    return robot, qpos[:, b : b + 7], qvel[:, d : d + 6], qpos[:, sim.index.qpos], qvel[:, sim.index.dof]


def test_standing_legs_tell_height_and_velocity(stood):
    robot, pose, speed, pos, vel = stood
    velocity, spread, height = by_legs(robot, pose[:, 3:], speed[:, 3:], pos, vel)
    assert np.abs(velocity - speed[:, :3]).max() < 0.05
    assert np.abs(height - pose[:, 2]).max() < 0.006
    assert (spread >= 0.0).all()


def test_the_smoother_joins_legs_and_accelerometer(stood):
    robot, pose, speed, pos, vel = stood
    world = np.gradient(speed[:, :3], 1.0 / RATE, axis=0) + np.array([0.0, 0.0, 9.81])
    acc = Rotation.from_quat(pose[:, 3:], scalar_first=True).inv().apply(world)
    at = np.array([20, 100, 180])
    noisy = vel + 0.2 * np.random.default_rng(0).standard_normal(vel.shape)
    place, found = base_at(robot, pose[:, 3:], speed[:, 3:], acc, pos, noisy, at, RATE)
    assert np.abs(found - speed[at, :3]).max() < 0.04
    assert np.abs(place[:, 2] - pose[at, 2]).max() < 0.006


def test_feet_stand_where_the_pose_has_them(stood):
    robot = stood[0]
    feet = feet_in_base(robot, np.tile(robot.spec.default_pose, (2, 1)))
    assert feet.shape == (2, len(robot.spec.feet), 3)
    assert (feet[..., 2] < -0.2).all()
    assert np.allclose(feet[0], feet[1])


def test_a_drift_of_the_imu_is_seen_by_its_accelerometer_and_turned_back():
    time, angle = np.arange(2000) / RATE, np.zeros((2000, 3))
    angle[:, 0], angle[:, 1] = 0.2 * time / time[-1], 0.05
    quat = Rotation.from_rotvec(angle).as_quat(scalar_first=True)
    acc = np.tile([0.0, 0.0, 9.81], (2000, 1))
    signals = {"imu_quat": quat, "imu_acc": acc, "joint_pos": np.zeros((2000, 1)), "target_pos": np.zeros((2000, 1))}
    log = Log(time=time, joint_names=("a",), signals=signals)
    begin, drift = tilt_by_acceleration(log)
    assert begin == pytest.approx((0.0, 0.05), abs=0.01)
    assert drift == pytest.approx((0.2, 0.0), abs=0.01)
    mended = turned_back(log, begin, drift)
    assert np.abs(gravity_in_body(mended["imu_quat"]) - (0.0, 0.0, -1.0)).max() < 0.015
