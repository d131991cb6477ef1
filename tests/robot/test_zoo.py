"""What must hold for every robot of the zoo."""

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest

from trueup.robot.load import ZOO, load_robot, zoo_names
from trueup.robot.model import ModelCfg, compile_model, default_qpos, joint_index
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.parameters.inertia import compose

ROBOTS = zoo_names()
FIGURES = Path(__file__).resolve().parents[3] / "shared" / "robots"
FIGURE_FILE = {"g1": "g1", "go2": "go2", "so101": "so101", "z1": "z1_gripper"}
FITTED = {"g1", "go2", "so101"}  # joint dynamics from recordings or from figures of the motors: see their SOURCES.md
BALANCED = {
    "g1": 12.0,
    "g1_23": 12.0,
}  # a policy balances it; alone it stands with servos this much stiffer than its own


def source_table(name: str) -> dict[str, tuple[float, np.ndarray, np.ndarray]]:
    """body -> (mass, com, inertia) as SOURCES.md states them."""
    rows = {}
    lines = (ZOO / name / "SOURCES.md").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| body |"))
    for line in lines[start + 2 :]:
        body, mass, com, inertia = (cell.strip() for cell in line.strip("| \n").split("|"))
        rows[body] = (float(mass), np.array(com.split(), float), np.array(inertia.split(), float))
    return rows


def compiled_inertials(name: str) -> dict[str, tuple[float, np.ndarray, np.ndarray]]:
    model = compile_model(load_robot(name))
    six = compose(model.body_inertia, model.body_iquat)
    return {
        model.body(i).name: (float(model.body_mass[i]), model.body_ipos[i], six[i])
        for i in range(1, model.nbody)
        if model.body_mass[i] > 0
    }


def assert_same_inertials(found, wanted) -> None:
    assert found.keys() == wanted.keys()
    for body, (mass, com, inertia) in wanted.items():
        assert found[body][0] == pytest.approx(mass, rel=1e-9), body
        np.testing.assert_allclose(found[body][1], com, rtol=1e-9, atol=1e-12, err_msg=body)
        np.testing.assert_allclose(found[body][2], inertia, rtol=1e-5, atol=1e-11, err_msg=body)


def test_the_zoo_has_the_five_robots():
    assert set(ROBOTS) >= {"g1", "go2", "pendulum", "so101", "z1"}


@pytest.mark.parametrize("name", ROBOTS)
def test_masses_and_inertias_equal_the_source(name):
    assert_same_inertials(compiled_inertials(name), source_table(name))


@pytest.mark.skipif(not FIGURES.is_dir(), reason="the public figures are not beside the checkout")
@pytest.mark.parametrize("name", sorted(FIGURE_FILE))
def test_masses_and_inertias_equal_the_public_figures(name):
    figures = json.loads((FIGURES / f"{FIGURE_FILE[name]}.json").read_text())
    wanted = {
        body["name"]: (body["mass"], np.array(body["com"]), np.array(body["inertia_xx_yy_zz_xy_xz_yz_at_com"]))
        for body in figures["bodies"]
        if body.get("mass")
    }
    assert_same_inertials(compiled_inertials(name), wanted)
    assert sum(mass for mass, _, _ in wanted.values()) == pytest.approx(figures["total_mass"], rel=1e-4)


@pytest.mark.skipif(not FIGURES.is_dir(), reason="the public figures are not beside the checkout")
@pytest.mark.parametrize("name", sorted(FIGURE_FILE))
def test_joints_equal_the_public_figures(name):
    figures = json.loads((FIGURES / f"{FIGURE_FILE[name]}.json").read_text())
    model, spec = compile_model(load_robot(name)), load_robot(name).spec
    limits = {joint.name: joint.position for joint in spec.joints}
    for body in figures["bodies"]:
        for joint in body.get("joints", []):
            if joint["type"] != "hinge":
                continue
            view = model.joint(joint["name"])
            np.testing.assert_allclose(view.axis, joint["axis"], atol=1e-9)
            np.testing.assert_allclose(limits[joint["name"]], joint["range"], atol=1e-9)
            if name not in FITTED:
                assert view.damping[0] == joint["damping"]
                assert view.armature[0] == joint["armature"]
                assert view.frictionloss[0] == joint["frictionloss"]


def test_go2_has_the_joint_dynamics_that_its_sources_state():
    model = compile_model(load_robot("go2"))
    lines = (ZOO / "go2" / "SOURCES.md").read_text().splitlines()
    for name, what in (("armature", "armature, kg"), ("damping", "damping, N"), ("frictionloss", "dry friction, N")):
        cells = next(line for line in lines if line.startswith(f"| {what}")).split("|")
        for leg in ("FL", "FR", "RL", "RR"):
            found = [getattr(model.joint(f"{leg}_{kind}_joint"), name)[0] for kind in ("hip", "thigh", "calf")]
            assert found == [float(cell) for cell in cells[2:5]], name
    delay = next(line for line in lines if line.startswith("| delay, ms")).split("|")
    assert load_robot("go2").spec.delay_s == pytest.approx(1e-3 * float(delay[2]))


def test_g1_has_the_motors_that_its_sources_state_and_gains_by_the_rule():
    spec, model = load_robot("g1").spec, compile_model(load_robot("g1"))
    lines = (ZOO / "g1" / "SOURCES.md").read_text().splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("| motor |"))
    found = {}
    for line in lines[start + 2 : start + 7]:
        _, kinds, _, speeds, *numbers = (cell.strip() for cell in line.strip("| ").split("|"))
        row = [float(speeds.split("/")[1]), *map(float, numbers)]
        found |= dict.fromkeys(kinds.split(", "), row)
    for joint in spec.joints:
        kind = joint.name.removeprefix("left_").removeprefix("right_").removesuffix("_joint")
        no_load, friction, damping, armature, limit, knee = found[kind]
        view = model.joint(joint.name)
        assert (view.frictionloss[0], view.damping[0]) == (friction, damping)
        assert view.armature[0] == pytest.approx(armature)
        assert (joint.velocity, joint.torque, joint.knee_speed) == (no_load, limit, knee)
        rate = 2 * np.pi * 10.0
        assert joint.kp == pytest.approx(armature * rate**2, rel=5e-4)
        assert joint.kd == pytest.approx(4 * armature * rate, rel=5e-4)


def test_joints_of_g1_are_in_the_order_of_its_sdk():
    names = load_robot("g1").spec.joint_names
    assert names[:6] == tuple(name.replace("right", "left") for name in names[6:12])
    assert names[12:15] == ("waist_yaw_joint", "waist_roll_joint", "waist_pitch_joint")
    assert names[15:22] == tuple(name.replace("right", "left") for name in names[22:])
    assert (names[0], names[5], names[15], names[28]) == (
        "left_hip_pitch_joint",
        "left_ankle_roll_joint",
        "left_shoulder_pitch_joint",
        "right_wrist_yaw_joint",
    )


@pytest.mark.parametrize("name", ROBOTS)
def test_the_specs_numbers_reach_the_compiled_model(name):
    robot = load_robot(name)
    spec = robot.spec
    sim = BatchSim(robot)
    model, index = sim.model, sim.index
    assert [model.joint(i).name for i in index.joint_id] == list(spec.joint_names)
    np.testing.assert_array_equal(model.jnt_range[index.joint_id, 0], spec.position_low)
    np.testing.assert_array_equal(model.jnt_range[index.joint_id, 1], spec.position_high)
    assert model.jnt_limited[index.joint_id].all()
    assert [model.actuator(i).name for i in range(model.nu)] == list(spec.joint_names)
    np.testing.assert_array_equal(model.actuator_forcerange, np.stack([-spec.torque_limit, spec.torque_limit], 1))
    np.testing.assert_array_equal(sim.params.get("kp")[0], spec.kp)
    np.testing.assert_array_equal(sim.params.get("kd")[0], spec.kd)
    assert model.opt.timestep == pytest.approx(1 / spec.physics_hz, rel=1e-12)
    np.testing.assert_array_equal(sim.joint_pos[0], spec.default_pose)
    for foot in spec.feet:
        assert mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, foot) >= 0
    for site in filter(None, (spec.imu, spec.end_effector)):
        assert mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, site) >= 0


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("collisions", ["light", "full"])
def test_no_contact_in_the_default_pose_in_the_air(name, collisions):
    robot = load_robot(name)
    model = compile_model(robot, ModelCfg(base="fixed", collisions=collisions))
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    mujoco.mj_forward(model, data)
    assert data.ncon == 0


@pytest.mark.parametrize("name", ROBOTS)
def test_the_default_pose_stands_or_holds_for_five_seconds(name):
    robot = load_robot(name)
    sim = BatchSim(robot, SimCfg(nsim=1))
    stiffer = BALANCED.get(name, 1.0)
    sim.params.set("kp", stiffer * robot.spec.kp)
    sim.params.set("kd", np.sqrt(stiffer) * robot.spec.kd)
    start_height = sim.qpos[0, 2] if sim.free_base else None
    for _ in range(round(5 / sim.control_dt)):
        sim.step(robot.spec.default_pose)
    assert not sim.diverged.any()
    assert np.abs(sim.joint_vel).max() < 0.05
    if start_height is None:
        sag = np.abs(gravity_torque(robot, robot.spec.default_pose)) / robot.spec.kp
        assert (np.abs(sim.joint_pos[0] - robot.spec.default_pose) < sag + 0.005).all()
        return
    assert sim.qpos[0, 2] > 0.7 * start_height
    assert sim.observe().gravity[0, 2] < -0.99  # upright
    data, model = sim.batch.get_data(0), sim.batch.get_model(0)
    mujoco.mj_forward(model, data)
    touching = {model.geom(geom).name for contact in data.contact for geom in contact.geom}
    soles = {model.geom_bodyid[model.geom(foot).id] for foot in robot.spec.feet}  # with all their points
    points = {geom for geom in robot.spec.contact_geoms if model.geom_bodyid[model.geom(geom).id] in soles}
    assert touching == {*robot.spec.feet, *points, "floor"}


def test_g1_holds_its_pose_in_the_air_and_does_not_stand_on_constant_targets():
    """Two ankles of 28.5 N m/rad under a pendulum of 209: only a policy balances it."""
    robot = load_robot("g1")
    held, free = (BatchSim(robot, SimCfg(nsim=1, model=ModelCfg(base=base))) for base in ("fixed", "free"))
    for _ in range(round(3 / held.control_dt)):
        held.step(robot.spec.default_pose)
        free.step(robot.spec.default_pose)
    assert np.abs(held.joint_vel).max() < 0.05
    assert np.abs(held.joint_pos[0] - robot.spec.default_pose).max() < 0.1
    assert free.observe().gravity[0, 2] > -0.5


def gravity_torque(robot, pose) -> np.ndarray:
    """Torque that holds the robot still in a pose, spec order, N m."""
    model = compile_model(robot)
    data, index = mujoco.MjData(model), joint_index(model, robot)
    data.qpos[index.qpos] = pose
    mujoco.mj_forward(model, data)
    return data.qfrc_bias[index.dof]


def test_so101_sags_under_its_own_weight_as_the_real_arm_does():
    """A public recording (motion `multisine`) begins with the arm at rest 70 mrad of the elbow below its command."""
    robot = load_robot("so101")
    sim = BatchSim(robot)
    command = np.array([0.039, 0.039, 0.539, 0.039, 0.039, 0.861])
    measured = np.array([0.035, 0.051, 0.610, 0.035, 0.023, 0.858])
    start = sim.default_qpos.copy()
    start[..., sim.index.qpos] = measured
    sim.reset(qpos=start)
    for _ in range(round(3 / sim.control_dt)):
        sim.step(command)
    off = sim.joint_pos[0] - command
    assert 0.01 < off[2] < 0.1
    assert np.abs(off - (measured - command)).max() < 0.05


def test_g1_with_23_joints_is_g1_with_its_wrists_held():
    whole, held = load_robot("g1"), load_robot("g1_23")
    joints = {joint.name: joint for joint in whole.spec.joints}
    assert held.spec.njoint == 23
    assert [j.name for j in whole.spec.joints if "wrist" not in j.name] == list(held.spec.joint_names)
    assert all(joints[joint.name] == joint for joint in held.spec.joints)
    one, other = compile_model(whole), compile_model(held)
    a, b = mujoco.MjData(one), mujoco.MjData(other)
    index, fewer = joint_index(one, whole), joint_index(other, held)
    for name in held.spec.joint_names:
        for what in ("armature", "damping", "frictionloss"):
            assert getattr(one.joint(name), what)[0] == getattr(other.joint(name), what)[0]
    rng = np.random.default_rng(0)
    pose = rng.uniform(-0.5, 0.5, 23)
    kept = [whole.spec.joint_names.index(name) for name in held.spec.joint_names]
    a.qpos[index.qpos[kept]], b.qpos[fewer.qpos] = pose, pose  # wrists at zero
    mujoco.mj_forward(one, a)
    mujoco.mj_forward(other, b)
    for k in range(1, one.nbody):
        np.testing.assert_allclose(a.xipos[k], b.body(one.body(k).name).xipos, atol=1e-12)
    full, small = np.zeros((one.nv, one.nv)), np.zeros((other.nv, other.nv))
    mujoco.mj_fullM(one, a, full)
    mujoco.mj_fullM(other, b, small)
    rows, fewer_rows = index.dof[kept], fewer.dof
    np.testing.assert_allclose(full[np.ix_(rows, rows)], small[np.ix_(fewer_rows, fewer_rows)], atol=1e-9)


@pytest.mark.parametrize("name", ["go2", "g1", "g1_23"])
def test_standing_height_is_where_the_feet_touch(name):
    robot = load_robot(name)
    model = compile_model(robot)
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    mujoco.mj_forward(model, data)
    lowest = min(data.geom(foot).xpos[2] - model.geom(foot).size[0] for foot in robot.spec.feet)
    assert abs(lowest) < 1e-4


def test_pendulum_load_is_exchangeable():
    plain, heavy = load_robot("pendulum"), load_robot("pendulum:load_mass=1.5,load_length=0.3")
    nominal, changed = compile_model(plain), compile_model(heavy)
    assert changed.body("load").mass[0] == 1.5
    np.testing.assert_allclose(changed.body("load").inertia, nominal.body("load").inertia * 3, rtol=1e-12)
    np.testing.assert_allclose(changed.body("load").pos, [0, 0, -0.3], atol=1e-12)
    # period of a physical pendulum about its joint: gravity torque m g l, hand-computed
    data = mujoco.MjData(changed)
    data.qpos[joint_index(changed, heavy).qpos] = np.pi / 2
    mujoco.mj_forward(changed, data)
    assert abs(data.qfrc_bias[0]) == pytest.approx(1.5 * 9.81 * 0.3, rel=1e-6)


def test_light_collisions_keep_only_the_contact_geoms():
    model = compile_model(load_robot("go2"))
    names = {model.geom(i).name for i in range(model.ngeom)}
    assert names == {"floor", "trunk", "FL_foot", "FR_foot", "RL_foot", "RR_foot"}
    full = compile_model(load_robot("go2"), ModelCfg(collisions="full"))
    assert full.ngeom == 1 + 3 + 4 * 5


def test_light_collisions_leave_bodies_that_are_not_the_robots(tmp_path):
    for file in ("spec.toml", "model.xml"):
        (tmp_path / file).write_text((ZOO / "pendulum" / file).read_text())
    model_file = tmp_path / "model.xml"
    cube = '<body name="cube" pos="1 0 1"><freejoint/><geom name="cube" type="box" size=".1 .1 .1"/></body>'
    model_file.write_text(model_file.read_text().replace("</worldbody>", f"{cube}</worldbody>"))
    model, alone = compile_model(load_robot(tmp_path)), compile_model(load_robot("pendulum"))
    assert model.ngeom == alone.ngeom + 1
    assert model.geom("cube").contype[0] == model.geom("cube").conaffinity[0] == 1
    assert model.geom("load_disc").conaffinity[0] == 0
