"""Kinematics of motions: the tree against MuJoCo's own, rotations by hand, contacts."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.motion import rotations
from trueup.motion.bodies import BodyTree, complete
from trueup.motion.motion import Motion
from trueup.robot.load import load_robot
from trueup.robot.model import compile_model, joint_index

SQUARE = np.sqrt(0.5)


def test_a_quarter_turn_about_z_takes_x_to_y():
    turn = rotations.about_z(np.array([np.pi / 2]))
    np.testing.assert_allclose(turn, [[SQUARE, 0, 0, SQUARE]], atol=1e-12)
    np.testing.assert_allclose(rotations.rotate(turn, np.array([[1.0, 0, 0]])), [[0, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(rotations.rotation_vector(turn), [[0, 0, np.pi / 2]], atol=1e-12)
    np.testing.assert_allclose(rotations.rotation_vector(-turn), [[0, 0, np.pi / 2]], atol=1e-12)
    np.testing.assert_allclose(rotations.yaw_of(turn), [np.pi / 2], atol=1e-12)


def test_a_steady_spin_comes_out_of_its_quaternions():
    time = np.arange(20) / 50.0
    quat = rotations.about_axis(np.array([0.0, 0.6, 0.8]), 3.0 * time)
    quat[7:12] *= -1.0  # the same rotations
    np.testing.assert_allclose(rotations.spin(rotations.continuous(quat), 50.0), [[0, 1.8, 2.4]] * 20, atol=1e-9)
    assert (np.sum(rotations.continuous(quat)[1:] * rotations.continuous(quat)[:-1], axis=1) > 0).all()


@pytest.mark.parametrize("name", ["g1", "g1_23", "go2"])
def test_poses_velocities_and_centre_of_mass_are_the_engines(name):
    robot = load_robot(name)
    tree, model = BodyTree(robot), compile_model(robot)
    data, index, rng = mujoco.MjData(model), joint_index(model, robot), np.random.default_rng(3)
    joints, speeds = rng.uniform(-0.6, 0.6, robot.spec.njoint), rng.normal(size=robot.spec.njoint)
    quat, velocity = rng.normal(size=4), rng.normal(size=6)
    quat /= np.linalg.norm(quat)
    data.qpos[:3], data.qpos[3:7], data.qpos[index.qpos] = (1.0, 2.0, 3.0), quat, joints
    data.qvel[:6], data.qvel[index.dof] = velocity, speeds
    mujoco.mj_forward(model, data)
    spin = rotations.rotate(quat[None], velocity[None, 3:])
    given = (np.array([[1.0, 2.0, 3.0]]), quat[None], joints[None])
    bodies = tree.place(*given, (velocity[None, :3], spin, speeds[None]))
    wanted = np.zeros(6)
    for k, body in enumerate(tree.names):
        number = model.body(body).id
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, number, wanted, 0)
        np.testing.assert_allclose(bodies.pos[0, k], data.xpos[number], atol=1e-9)
        assert abs(bodies.quat[0, k] @ data.xquat[number]) == pytest.approx(1.0, abs=1e-9)
        np.testing.assert_allclose(bodies.spin[0, k], wanted[:3], atol=1e-9)
        np.testing.assert_allclose(bodies.vel[0, k], wanted[3:], atol=1e-9)
    np.testing.assert_allclose(tree.centre(bodies)[0], data.subtree_com[model.body(tree.names[0]).id], atol=1e-9)


def test_a_foot_is_where_its_lowest_ball_ends():
    robot = load_robot("g1")
    tree = BodyTree(robot)
    stand = np.array([[0.0, 0.0, robot.spec.base.stand_height + 0.1]])
    bodies = tree.place(stand, np.array([[1.0, 0, 0, 0]]), robot.spec.default_pose[None])
    np.testing.assert_allclose(tree.lowest(bodies), [[0.1, 0.1]], atol=1e-4)
    assert tree.points(bodies).shape == (1, 2, 4, 3)


def test_joints_come_into_the_robots_order_and_feet_that_stand_are_contacts():
    robot, rows = load_robot("go2"), 10
    spec = robot.spec
    height = np.where(np.arange(rows) < 5, 0.0, 0.2)
    names = spec.joint_names[::-1]
    motion = Motion(
        rate_hz=50.0,
        root_pos=np.stack([np.zeros(rows), np.zeros(rows), spec.base.stand_height + height], axis=1),
        root_quat=np.tile([1.0, 0, 0, 0], (rows, 1)),
        joint_names=names,
        joint_pos=np.tile(spec.default_pose[::-1], (rows, 1)),
    )
    whole = complete(motion, robot)
    assert whole.joint_names == spec.joint_names
    np.testing.assert_array_equal(whole.joint_pos[0], spec.default_pose)
    assert whole.contacts[:4].all()
    assert not whole.contacts[5:].any()
    assert whole.body_pos.shape == (rows, len(whole.body_names), 3)


def test_a_motion_that_lacks_a_joint_is_refused_by_its_name():
    held = load_robot("g1_23").spec
    rows = {"root_pos": np.zeros((3, 3)), "root_quat": np.tile([1.0, 0, 0, 0], (3, 1))}
    motion = Motion(rate_hz=30.0, joint_names=held.joint_names, joint_pos=np.zeros((3, 23)), **rows)
    with pytest.raises(TrueupError, match="left_wrist_roll_joint"):
        complete(motion, load_robot("g1"))
