"""Noise, bias and latency of observations."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.sensors import SensorCfg


def test_noise_has_the_standard_deviation_asked_for():
    cfg = SensorCfg(joint_pos_rad=0.01, joint_vel_rad_s=0.5, gyro_rad_s=0.1, gravity=0.02)
    sim = BatchSim(load_robot("go2"), SimCfg(nsim=2000, sensors=cfg))
    seen = sim.observe()
    assert (seen.joint_pos - sim.joint_pos).std() == pytest.approx(0.01, rel=0.02)
    assert (seen.joint_vel - sim.joint_vel).std() == pytest.approx(0.5, rel=0.02)
    assert seen.gyro.std() == pytest.approx(0.1, rel=0.04)
    assert (seen.gravity - [0, 0, -1]).std() == pytest.approx(0.02, rel=0.04)


@pytest.mark.parametrize("latency_steps", [0.0, 1.0, 2.25])
def test_latency_returns_the_past(latency_steps):
    robot = load_robot("go2")
    latency = latency_steps / robot.spec.control_hz
    sim = BatchSim(robot, SimCfg(nsim=2, sensors=SensorCfg(latency_s=(latency, latency))))
    history = []
    for t in range(12):
        sim.step(robot.spec.default_pose + 0.3 * np.sin(t))
        history.append(sim.joint_pos.copy())
        seen = sim.observe().joint_pos
    whole = int(latency_steps)
    part = latency_steps - whole
    wanted = history[-1 - whole] * (1 - part) + history[-2 - whole] * part
    np.testing.assert_allclose(seen, wanted, atol=1e-12)


def test_gravity_and_gyro_equal_the_engines_sensors():
    robot = load_robot("go2")
    sim = BatchSim(robot, SimCfg(nsim=5))
    rng = np.random.default_rng(0)
    qpos = np.tile(sim.default_qpos, (5, 1))
    quat = rng.normal(size=(5, 4))
    qpos[:, 3:7] = quat / np.linalg.norm(quat, axis=1, keepdims=True)
    qvel = rng.normal(size=(5, 18))
    sim.reset(qpos=qpos, qvel=qvel)
    seen = sim.observe()
    for k in range(5):
        data, model = sim.batch.get_data(k), sim.batch.get_model(k)
        mujoco.mj_forward(model, data)
        world_from_imu = data.site("imu").xmat.reshape(3, 3)
        np.testing.assert_allclose(seen.gravity[k], world_from_imu.T @ [0, 0, -1], atol=1e-12)
        velocity = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_SITE, model.site("imu").id, velocity, 1)
        np.testing.assert_allclose(seen.gyro[k], velocity[:3], atol=1e-12)


def test_gravity_points_down_when_upright():
    np.testing.assert_array_equal(gravity_in_body(np.array([[1.0, 0, 0, 0]])), [[0, 0, -1]])


def test_a_held_robot_has_no_imu():
    seen = BatchSim(load_robot("so101")).observe()
    assert seen.gyro is None
    assert seen.gravity is None


def test_impossible_sensors_are_refused():
    with pytest.raises(TrueupError, match="latency"):
        SensorCfg(latency_s=(0.02, 0.01))
    with pytest.raises(TrueupError, match="noise"):
        SensorCfg(joint_pos_rad=-0.1)
