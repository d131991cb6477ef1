"""Shapes and trees of a model in PhysX: each kind rests as high as it should, and what cannot be built is refused."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg, compile_model
from trueup.world.batch import SimCfg
from trueup.world.engines.physx_scene import PhysxCfg, PhysxScene, field_mesh, hull_points
from trueup.world.engines.sapien_sim import SapienSim

pytest.importorskip("sapien", reason="the second engine is not installed (extra physx)")

# shape of a body of 1 kg, and the height of its frame at rest
SHAPES = {
    "sphere": ('type="sphere" size="0.07"', 0.07),
    "box": ('type="box" size="0.1 0.1 0.04"', 0.04),
    "capsule lying": ('type="capsule" size="0.03 0.2" quat="0.7071068 0 0.7071068 0"', 0.03),
    "cylinder standing": ('type="cylinder" size="0.1 0.06"', 0.06),
    "cylinder lying": ('type="cylinder" size="0.05 0.2" quat="0.7071068 0.7071068 0 0"', 0.05),
    "flat ellipsoid": ('type="ellipsoid" size="0.2 0.2 0.05"', 0.05),
    "shape off its body": ('type="box" size="0.1 0.1 0.04" pos="0 0 -0.1"', 0.14),
}


def model_of(inside: str, before: str = "", after: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(
        f'<mujoco>{before}<worldbody><geom name="floor" type="plane" size="0 0 1"/>{inside}</worldbody>{after}</mujoco>'
    )


def thing(geom: str, mesh: str = "") -> mujoco.MjModel:
    inertial = '<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/>'
    return model_of(f'<body name="b" pos="0 0 0.5"><freejoint/>{inertial}<geom {geom}/></body>', mesh)


def rest(model: mujoco.MjModel) -> float:
    """Height of the body's frame after 2 s of falling and resting."""
    scene = PhysxScene(model, 1, 0.005, PhysxCfg())
    scene.rows[0].articulation.set_root_pose(scene._sapien.Pose([0, 0, 0.25]))
    for _ in range(400):
        scene.system.step()
    return float(scene.rows[0].articulation.root_pose.p[2])


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_rests_as_high_as_it_reaches_down(name):
    geom, height = SHAPES[name]
    assert rest(thing(geom)) == pytest.approx(height, abs=1.5e-3)


def test_a_mesh_is_its_hull():
    corners = " ".join(f"{x} {y} {z}" for x in (-0.1, 0.1) for y in (-0.08, 0.08) for z in (-0.05, 0.05))
    model = thing('type="mesh" mesh="m"', f'<asset><mesh name="m" vertex="{corners}" inertia="convex"/></asset>')
    points = hull_points(model, 1)
    np.testing.assert_allclose(np.sort(np.ptp(points, axis=0)), [0.1, 0.16, 0.2], atol=1e-6)
    assert rest(model) == pytest.approx(0.05, abs=1.5e-3)


def test_a_height_field_keeps_its_points_and_looks_up():
    heights = "0 0 0 0  0 1 0 0  0 0 0 0.5"
    field = f'<asset><hfield name="h" nrow="3" ncol="4" size="1.5 1 0.6 0.1" elevation="{heights}"/></asset>'
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco>{field}<worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>'
    )
    vertices, triangles = field_mesh(model, 0)
    assert vertices.shape == (12, 3)
    assert triangles.shape == (12, 3)
    assert vertices[:, 2].max() == pytest.approx(0.6)
    (peak,) = vertices[vertices[:, 2] > 0.5]
    rows_from_top = model.hfield_data.reshape(3, 4)
    row, column = np.argwhere(rows_from_top == 1.0)[0]
    np.testing.assert_allclose(peak[:2], [-1.5 + column, -1.0 + row], atol=1e-6)
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    assert (np.cross(b - a, c - a)[:, 2] > 0).all()


def test_bodies_keep_their_mass_centre_inertia_and_rotor():
    model = compile_model(load_robot("go2"))
    (row,) = PhysxScene(model, 1, 0.005, PhysxCfg()).rows
    for body, link in row.links.items():
        assert link.mass == pytest.approx(model.body_mass[body], rel=1e-6)
        np.testing.assert_allclose(link.cmass_local_pose.p, model.body_ipos[body], atol=1e-7)
        np.testing.assert_allclose(link.inertia, model.body_inertia[body], rtol=1e-6)
        assert link.angular_damping == 0.0
    for joint, found in row.joints.items():
        assert found.armature[0] == pytest.approx(model.dof_armature[model.jnt_dofadr[joint]])
        assert found.friction == 0.0
        np.testing.assert_allclose(found.limits[0], model.jnt_range[joint], atol=1e-6)
    assert set(row.shapes) == {k for k in range(model.ngeom) if model.geom_bodyid[k] and model.geom_contype[k]}


def test_links_are_where_kinematics_puts_them_also_behind_fixed_bodies_and_moved_joints(tmp_path):
    arm = """<mujoco><worldbody><body name="base"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
      <body name="upper" pos="0.1 0.2 0.3" euler="20 30 40">
      <joint name="a" axis="0 0.6 0.8" pos="0.05 -0.02 0.1" ref="0.4"/>
      <inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.2 0.25"/>
      <body name="plate" pos="0 0 0.2" euler="0 0 90"><inertial pos="0 0 0" mass="0.3" diaginertia="0.01 0.01 0.01"/>
      <body name="hand" pos="0.3 0 0"><joint name="b" type="slide" axis="1 0 0" range="-1 1"/>
      <inertial pos="0 0.1 0" mass="0.5" diaginertia="0.1 0.1 0.1"/></body></body></body></body></worldbody></mujoco>"""
    (tmp_path / "arm.xml").write_text(arm)
    sim = SapienSim(load_robot(tmp_path / "arm.xml"), SimCfg(nsim=2, threads=1))
    pose = np.array([[0.7, 0.2], [-0.3, -0.4]])
    sim.reset(qpos=pose)
    data = mujoco.MjData(sim.model)
    for k, row in enumerate(sim.physx.rows):
        data.qpos[:] = pose[k]
        mujoco.mj_kinematics(sim.model, data)
        for body in range(1, sim.model.nbody):
            place = row.links[body].entity_pose.p - sim.physx.places[k]
            np.testing.assert_allclose(place, data.xpos[body], atol=1e-5)
    np.testing.assert_allclose(sim.joint_pos, pose, atol=1e-6)


@pytest.mark.parametrize(
    ("inside", "after", "text"),
    [
        ('<body name="b"><joint type="ball"/><geom size="0.1"/></body>', "", "one hinge or slide in a body"),
        ('<body name="b"><joint name="x"/><joint name="y"/><geom size="0.1"/></body>', "", "not joint 'x'"),
        (
            '<body name="b"><freejoint/><geom size="0.1"/></body><body name="c"><joint/><geom size="0.1"/></body>',
            "",
            "beside its floating base",
        ),
        (
            '<body><joint/><geom size="0.1"/></body><body><freejoint name="f"/><geom size="0.1"/></body>',
            "",
            "'f' moves another body",
        ),
        (
            '<body name="b"><joint name="j"/><geom size="0.1"/></body>',
            '<equality><joint joint1="j"/></equality>',
            "no equality constraints: this model has 1",
        ),
    ],
)
def test_models_that_physx_is_not_given_are_refused(inside, after, text):
    with pytest.raises(TrueupError, match=text):
        PhysxScene(model_of(inside, after=after), 1, 0.005, PhysxCfg())


def test_full_collisions_keep_legs_apart_in_one_row():
    robot = load_robot("go2")
    light, full = (
        SapienSim(robot, SimCfg(threads=1, model=ModelCfg(base="fixed", collisions=mode))) for mode in ("light", "full")
    )
    crossed = robot.spec.default_pose.copy()
    crossed[[0, 3]] = -0.9, 0.9  # front legs inwards, through each other
    for sim in (light, full):
        for _ in range(60):
            sim.step(crossed)
    assert light.joint_pos[0, 0] < -0.75
    assert full.joint_pos[0, 0] > light.joint_pos[0, 0] + 0.02
