"""States between MuJoCo's layout and PhysX's: frames of velocities, zeros of angles, loads of joints."""

import mujoco
import numpy as np
import pytest

from trueup.robot.load import load_robot
from trueup.world.batch import SimCfg
from trueup.world.engines.conformance.contact_cases import BLOCK
from trueup.world.engines.physx_motion import turned
from trueup.world.engines.sapien_sim import SapienSim

pytest.importorskip("sapien", reason="the second engine is not installed (extra physx)")


def test_vectors_turn_with_their_body():
    quarter = np.array([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)])  # about z
    np.testing.assert_allclose(turned(quarter, np.array([1.0, 0.0, 0.0])), [0.0, 1.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(turned(quarter, np.array([0.0, 0.0, 2.0])), [0.0, 0.0, 2.0], atol=1e-12)


def test_the_velocity_of_a_spinning_base_is_that_of_its_frame_not_of_its_centre_of_mass():
    sim = SapienSim(load_robot(BLOCK), SimCfg(nsim=2, threads=1))
    sim.params.set("com_offset", [[[0.0, 0.0, 0.0]], [[0.05, 0.0, 0.0]]], of="block")
    qpos, qvel = np.tile(sim.default_qpos, (2, 1)), np.zeros((2, 7))
    qpos[:, 2], qvel[:, 5] = 1.0, 4.0  # turning about z of the frame
    sim.reset(qpos=qpos, qvel=qvel)
    sim.motion.read_base()
    np.testing.assert_allclose(sim.qvel[:, :6], qvel[:, :6], atol=1e-6)
    centres = np.array([row.articulation.root_linear_velocity for row in sim.physx.rows])
    np.testing.assert_allclose(centres, [[0.0, 0.0, 0.0], [0.0, 0.2, 0.0]], atol=1e-6)  # 4 rad/s at 0.05 m


def test_turning_rates_are_in_the_frame_of_the_base():
    sim = SapienSim(load_robot(BLOCK), SimCfg(threads=1))
    qpos, qvel = sim.default_qpos[None].copy(), np.zeros((1, 7))
    qpos[0, 3:7] = np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0  # rolled by 90 degrees: its y points up
    qvel[0, 4] = 1.5
    sim.reset(qpos=qpos, qvel=qvel)
    np.testing.assert_allclose(sim.physx.rows[0].articulation.root_angular_velocity, [0.0, 0.0, 1.5], atol=1e-6)
    np.testing.assert_allclose(sim.motion.of().gravity, [[0.0, -1.0, 0.0]], atol=1e-6)


def test_the_load_of_joints_is_mujocos():
    robot = load_robot("z1")
    sim = SapienSim(robot, SimCfg(nsim=2, threads=1))
    rng, data = np.random.default_rng(5), mujoco.MjData(sim.model)
    qpos = rng.uniform(robot.spec.position_low, robot.spec.position_high, (2, 7))
    qvel = rng.normal(size=(2, 7))
    sim.reset(qpos=qpos, qvel=qvel)
    for k, bias in enumerate(sim.motion.bias()):
        data.qpos[:], data.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_forward(sim.model, data)
        np.testing.assert_allclose(bias, data.qfrc_bias, atol=1e-4)


def test_what_is_read_is_a_copy():
    sim = SapienSim(load_robot("go2"), SimCfg(nsim=2, threads=1))
    sim.motion.of().joint_pos[:] = 9.0
    sim.qpos[:] = 9.0
    assert np.abs(sim.joint_pos).max() < 2.0
    part = sim.motion.of(np.array([1]))
    assert part.joint_pos.shape == (1, 12)
    assert part.base_pose is not None
    assert part.base_pose.shape == (1, 7)
