"""The static model in NumPy against hand-computed torques and against MuJoCo."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from trueup.deploy.wiggle.analysis.limb_model import read_limbs, rotation
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg, compile_model, joint_index
from trueup.robot.spec import BaseSpec, JointSpec, RobotSpec

DOWN = np.array([0.0, 0.0, -9.81])


def robot_of(folder: Path, xml: str, names: tuple[str, ...]) -> Robot:
    file = folder / "model.xml"
    file.write_text(xml)
    joints = tuple(JointSpec(name=n, position=(-3.0, 3.0), velocity=5.0, torque=9.0, kp=9.0, kd=0.1) for n in names)
    spec = RobotSpec(
        schema=1,
        name="made",
        model="model.xml",
        control_hz=50,
        physics_hz=500,
        base=BaseSpec(body="base"),
        joints=joints,
    )
    return Robot(spec=spec, model_path=file, built_in=True)


def test_a_pendulum_is_held_by_m_g_l_sine():
    robot = load_robot("pendulum:load_mass=1.0,load_length=0.3")
    angles = np.array([[0.0], [np.pi / 2], [-np.pi / 6], [np.pi]])
    torque = read_limbs(robot).gravity_torque(angles, DOWN)
    np.testing.assert_allclose(torque[:, 0], 9.81 * 0.3 * np.sin(angles[:, 0]), atol=1e-12)


@pytest.mark.parametrize("name", ["go2", "so101", "z1", "g1", "pendulum:load_mass=2.0"])
def test_holding_torques_equal_the_engine_bias_forces(name):
    robot = load_robot(name)
    model = compile_model(robot, ModelCfg(base="fixed"))
    data, index = mujoco.MjData(model), joint_index(model, robot)
    poses = np.random.default_rng(0).uniform(robot.spec.position_low, robot.spec.position_high, (20, robot.spec.njoint))
    tilted = np.array([1.0, -2.0, -9.0])
    model.opt.gravity[:] = tilted
    expected = []
    for pose in poses:
        data.qpos[index.qpos] = pose
        mujoco.mj_forward(model, data)
        expected.append(data.qfrc_bias[index.dof].copy())
    np.testing.assert_allclose(read_limbs(robot).gravity_torque(poses, tilted), expected, atol=1e-10)


def test_classes_slides_anchors_degrees_and_euler_angles_are_read(tmp_path):
    xml = """<mujoco><compiler angle="degree"/><default><default class="a"><joint axis="1 0 0"/></default></default>
    <worldbody><body name="base"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="one" pos="0.1 0 0" euler="0 90 0" childclass="a">
        <inertial pos="0 0.2 0" mass="2" diaginertia="1 1 1"/><joint name="j1" pos="0 0 0.05"/>
        <body name="two" pos="0 0 0.3" axisangle="1 0 0 30">
          <inertial pos="0 0 0.1" mass="3" diaginertia="1 1 1"/><joint name="j2" type="slide" axis="0 1 2"/></body>
      </body></body></worldbody></mujoco>"""
    robot = robot_of(tmp_path, xml, ("j1", "j2"))
    limbs = read_limbs(robot)
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for pose in ([0.0, 0.0], [0.7, 0.2], [-1.3, -0.4]):
        data.qpos[:] = pose
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(limbs.gravity_torque(np.array([pose]), DOWN)[0], data.qfrc_bias, atol=1e-9)


def test_masses_left_to_shapes_give_no_model(tmp_path):
    xml = """<mujoco><worldbody><body name="base"><body name="one"><joint name="j1"/>
    <geom type="sphere" size="0.1"/></body></body></worldbody></mujoco>"""
    assert read_limbs(robot_of(tmp_path, xml, ("j1",))) is None


def test_a_joint_that_the_file_does_not_have_gives_no_model(tmp_path):
    xml = """<mujoco><worldbody><body name="base"><body name="one"><joint name="j1"/>
    <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></body></worldbody></mujoco>"""
    assert read_limbs(robot_of(tmp_path, xml, ("j1", "j2"))) is None


def test_legs_are_limbs_and_an_arm_is_one():
    assert read_limbs(load_robot("go2")).limbs == (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)
    assert set(read_limbs(load_robot("so101")).limbs) == {0}


def test_a_quaternion_turns_as_it_should():
    half = np.sqrt(0.5)
    np.testing.assert_allclose(rotation(np.array([half, 0, 0, half])) @ [1.0, 0, 0], [0.0, 1.0, 0.0], atol=1e-12)
