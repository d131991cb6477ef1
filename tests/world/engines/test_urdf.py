"""A robot's URDF, read back by MuJoCo, moves as the original: masses, mass matrix, gravity, limits, shapes."""

import mujoco
import numpy as np
import pytest
from foreign_robots import locate

from trueup.core.errors import TrueupError
from trueup.robot.foreign.untrusted import read_model
from trueup.robot.load import Robot, load_robot, zoo_names
from trueup.robot.model import ModelCfg, compile_model
from trueup.world.engines.urdf import export_urdf, to_urdf


def read_back(file, robot: Robot) -> mujoco.MjModel:
    """The written file as MuJoCo's model, on a free joint if the robot floats."""
    spec = read_model(file).spec
    if robot.spec.base.floating:
        spec.body(robot.spec.base.body).add_freejoint()
    return spec.compile()


def dynamics(model: mujoco.MjModel, names, pose, base) -> tuple[np.ndarray, np.ndarray]:
    """Mass matrix without rotors and gravity torques, in the order: free base, joints by name."""
    model.dof_armature[:] = 0.0
    data = mujoco.MjData(model)
    joints = [model.joint(name) for name in names]
    for joint, value in zip(joints, pose, strict=True):
        data.qpos[joint.qposadr[0]] = value
    free = model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    if free:
        data.qpos[:7] = base
    mujoco.mj_forward(model, data)
    full = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, full)
    dofs = [*range(6 if free else 0), *(int(joint.dofadr[0]) for joint in joints)]
    return full[np.ix_(dofs, dofs)], data.qfrc_bias[dofs]


def check(robot: Robot, tmp_path) -> None:
    file = export_urdf(robot, tmp_path / "out").file
    ours, theirs = compile_model(robot, ModelCfg(collisions="full", floor=False)), read_back(file, robot)
    assert theirs.body_mass.sum() == pytest.approx(ours.body_mass.sum(), rel=1e-9)
    rng, spec = np.random.default_rng(0), robot.spec
    for _ in range(5):
        pose = rng.uniform(spec.position_low, spec.position_high)
        turn = rng.normal(size=4)
        base = np.concatenate([rng.normal(size=3), turn / np.linalg.norm(turn)])
        (m0, g0), (m1, g1) = (dynamics(model, spec.joint_names, pose, base) for model in (ours, theirs))
        np.testing.assert_allclose(m1, m0, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(g1, g0, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", zoo_names())
def test_a_built_in_robot_reads_back_with_the_same_dynamics(name, tmp_path):
    check(load_robot(name), tmp_path)


@pytest.mark.medium
@pytest.mark.parametrize("name", ["aliengo", "b2"])
def test_a_strangers_quadruped_reads_back_with_the_same_dynamics(name, tmp_path):
    file, root = locate(name)
    check(load_robot(file, root=root), tmp_path)


def test_an_option_of_a_robot_is_in_its_urdf(tmp_path):
    check(load_robot("pendulum:load_mass=1.0,load_length=0.2"), tmp_path)


def test_a_joint_away_from_its_bodys_frame_is_where_it_was(tmp_path):
    xml = """<mujoco><worldbody><body name="base"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="arm" pos="0.1 0.2 0.3" euler="20 30 40"><joint name="a" axis="0 1 0" pos="0.05 -0.02 0.1"/>
      <inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.2 0.25"/>
      <body name="hand" pos="0.3 0 0"><joint name="b" type="slide" axis="1 0 0" pos="0 0.3 0"/>
      <inertial pos="0 0.1 0" mass="0.5" diaginertia="0.1 0.1 0.1"/></body></body></body></worldbody></mujoco>"""
    (tmp_path / "own.xml").write_text(xml)
    check(load_robot(tmp_path / "own.xml"), tmp_path)


def test_limits_dry_friction_and_shapes_are_written_and_losses_declared():
    text, losses = to_urdf(load_robot("go2"))
    assert 'lower="-1.0472" upper="1.0472" effort="23.7" velocity="30.1"' in text
    assert '<dynamics damping="0.15" friction="0.5"/>' in text
    assert '<collision name="FL_foot">' in text
    assert '<sphere radius="0.022"/>' in text
    assert "<visual" not in text
    assert any("armature" in loss and "0.017" in loss for loss in losses)


def test_a_capsule_is_a_cylinder_with_two_balls():
    text, _ = to_urdf(load_robot("pendulum"))
    assert text.count('name="arm_shape0') == 3
    assert '<cylinder radius="0.006" length="0.1"/>' in text


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(TrueupError, match="not empty"):
        export_urdf(load_robot("pendulum"), tmp_path)
