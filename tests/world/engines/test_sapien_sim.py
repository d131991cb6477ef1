"""The second engine: BatchSim's joints and interface, rows that do not know each other, states in and out."""

import sys
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.target_stages import ConstantDelta
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.engines.choose import make_sim
from trueup.world.engines.conformance.contact_cases import BLOCK
from trueup.world.engines.sapien_sim import PhysxCfg, SapienSim
from trueup.world.push import PushCfg, Pushes
from trueup.world.scene.scene import Mounted, Object, Scene
from trueup.world.sensors import SensorCfg

pytest.importorskip("sapien", reason="the second engine is not installed (extra physx)")

GO2 = load_robot("go2")
POSE = GO2.spec.default_pose
HELD = SimCfg(nsim=2, threads=1, model=ModelCfg(base="fixed"))
ALL = slice(None)


def wave(t: int) -> np.ndarray:
    return POSE + 0.3 * np.sin(2 * np.pi * 0.02 * t + np.arange(12))


def apart(one, other, steps: int = 60) -> float:
    """Largest difference of joint positions on the way, rad."""
    worst = 0.0
    for t in range(steps):
        one.step(wave(t))
        other.step(wave(t))
        worst = max(worst, float(np.abs(one.joint_pos - other.joint_pos).max()))
    return worst


def both(cfg: SimCfg, **params) -> tuple[BatchSim, SapienSim]:
    sims = BatchSim(GO2, cfg), SapienSim(GO2, cfg)
    for sim in sims:
        for name, value in params.items():
            sim.params.set(name, value)
        sim.reset()
    return sims


# --- joints ---
def test_legs_in_the_air_move_as_in_mujoco():
    assert apart(*both(HELD, friction=0.0)) < 5e-5


def test_dry_friction_moves_legs_nearly_as_in_mujoco():
    assert apart(*both(HELD)) < 8e-3  # MuJoCo's friction is soft


def test_delay_bias_gains_and_limits_act_as_in_mujoco():
    rng = np.random.default_rng(0)
    params = {
        "delay": np.array([[0.013], [0.0]]),
        "encoder_bias": rng.uniform(-0.1, 0.1, (2, 12)),
        "kp": rng.uniform(10, 40, (2, 12)),
        "kd": rng.uniform(0.3, 1.5, (2, 12)),
        "torque_limit": np.array([[3.0], [20.0]]),
        "damping": rng.uniform(0.05, 0.3, (2, 12)),
        "armature": rng.uniform(0.01, 0.03, (2, 12)),
        "torque_offset": rng.uniform(-0.5, 0.5, (2, 12)),
    }
    one, other = both(HELD, friction=0.0, **params)
    assert apart(one, other) < 2e-3
    np.testing.assert_allclose(other.joint_torque, one.joint_torque, atol=0.1)
    np.testing.assert_allclose(other.observe().joint_pos, one.observe().joint_pos, atol=2e-3)


def test_feed_forward_torque_and_target_stages_reach_the_joints():
    plain, fed = SapienSim(GO2, HELD), SapienSim(GO2, HELD)
    moved = SapienSim(GO2, HELD, target_stages=[ConstantDelta(0.05)])
    for sim in (plain, fed, moved):
        sim.params.set("friction", 0.0)
        sim.params.set("delay", 0.0)
    for _ in range(50):
        plain.step(POSE + 0.05)
        moved.step(POSE)
        fed.step(POSE, torque=np.full(12, 1.0))  # 20 N m/rad times 0.05 rad
    np.testing.assert_allclose(moved.joint_pos, plain.joint_pos, atol=1e-6)
    np.testing.assert_allclose(fed.joint_pos, plain.joint_pos, atol=1e-5)


def test_a_stiff_arm_of_light_links_moves_as_in_mujoco():
    robot = load_robot("z1")
    one, other = BatchSim(robot, SimCfg(threads=1)), SapienSim(robot, SimCfg(threads=1))
    for t in range(100):
        target = robot.spec.default_pose + 0.2 * np.sin(0.1 * t)
        one.step(target)
        other.step(target)
    np.testing.assert_allclose(other.joint_pos, one.joint_pos, atol=5e-3)


# --- states ---
def test_a_state_that_was_put_in_is_read_back():
    sim = SapienSim(GO2, SimCfg(nsim=3, threads=1))
    rng = np.random.default_rng(1)
    qpos, qvel = np.tile(sim.default_qpos, (3, 1)), rng.normal(size=(3, 18))
    qpos[:, :3] += rng.normal(size=(3, 3))
    qpos[:, 3:7] = rng.normal(size=(3, 4))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    sim.reset(qpos=qpos, qvel=qvel)
    sim.motion.stepped()
    sim.motion.read_base()
    np.testing.assert_allclose(np.abs(sim.qpos), np.abs(qpos), atol=1e-5)  # a quaternion may change its sign
    np.testing.assert_allclose(sim.qvel, qvel, atol=1e-5)


def test_a_thrown_robot_flies_as_in_mujoco():
    cfg = SimCfg(nsim=1, threads=1)
    start = {"qpos": BatchSim(GO2, cfg).default_qpos[None].copy(), "qvel": np.zeros((1, 18))}
    start["qpos"][0, 2] = 3.0
    start["qvel"][0, :6] = (1.0, -0.5, 1.0, 2.0, 1.0, -3.0)
    sims = both(cfg, friction=0.0)
    for sim in sims:
        sim.reset(**start)
        for _ in range(20):
            sim.step(POSE)
    np.testing.assert_allclose(sims[1].qpos[0, :3], sims[0].qpos[0, :3], atol=2e-3)
    np.testing.assert_allclose(sims[1].qvel[0, :6], sims[0].qvel[0, :6], atol=0.05)


def test_the_same_batch_gives_the_same_numbers_and_a_saved_state_goes_on():
    cfg = SimCfg(nsim=3, threads=1, seed=4, sensors=SensorCfg(joint_pos_rad=0.01, latency_s=(0.0, 0.03)))
    one, other = SapienSim(GO2, cfg), SapienSim(GO2, cfg)
    for t in range(20):
        one.step(wave(t))
        other.step(wave(t))
    np.testing.assert_array_equal(one.qpos, other.qpos)
    np.testing.assert_array_equal(one.observe().joint_pos, other.observe().joint_pos)
    kept = one.state()
    one.step(wave(20))
    after = one.joint_pos
    one.step(wave(21))
    one.restore(kept)
    one.step(wave(20))
    np.testing.assert_allclose(one.joint_pos, after, atol=2e-3)  # contacts begin anew


def test_rows_reset_alone_and_do_not_touch_each_other():
    sim = SapienSim(GO2, SimCfg(nsim=4, threads=1))
    place = np.tile(sim.default_qpos, (4, 1))
    place[:, :2] = -sim.physx.places[:, :2]  # all in one place of the scene
    sim.reset(qpos=place)
    for _ in range(25):
        sim.step(POSE)
    height = sim.qpos[:, 2]
    np.testing.assert_allclose(height, height[0], atol=1e-4)
    sim.reset(np.array([2]))
    assert sim.qpos[2, 2] == pytest.approx(GO2.spec.base.stand_height)
    assert sim.qpos[1, 2] == pytest.approx(height[1])


def test_a_wild_state_is_reported():
    sim = SapienSim(GO2, SimCfg(nsim=2, threads=1))
    speed = np.zeros((2, 18))
    speed[1, 0] = 1e5
    sim.reset(qvel=speed)
    assert sim.diverged.tolist() == [False, True]


# --- feet, forces, ground ---
def test_feet_are_where_mujoco_has_them_and_touch_when_the_robot_stands():
    one, other = (make_sim(engine, GO2, SimCfg(nsim=2, threads=1)) for engine in ("mujoco", "sapien"))
    data = mujoco.MjData(other.model)
    for sim in (one, other):
        for _ in range(40):
            sim.step(POSE)
        assert sim.feet.contact(ALL).all()
        assert not sim.feet.trunk_contact(ALL).any()
        np.testing.assert_allclose(sim.feet.position(ALL)[2], 0.022, atol=2e-3)
        np.testing.assert_allclose(sim.feet.velocity(ALL), 0.0, atol=0.05)
    data.qpos[:], data.qvel[:] = other.qpos[1], other.qvel[1]
    mujoco.mj_forward(other.model, data)
    places = np.stack(other.feet.position(ALL), axis=-1)[1]
    wanted = [data.geom_xpos[other.model.geom(name).id] for name in GO2.spec.feet]
    np.testing.assert_allclose(places, wanted, atol=1e-5)
    np.testing.assert_array_equal(one.feet.sole, other.feet.sole)


def test_feet_move_as_kinematics_says_and_a_robot_on_its_belly_touches_with_the_trunk():
    sim = SapienSim(GO2, SimCfg(nsim=1, threads=1))
    start = sim.default_qpos[None].copy()
    start[0, 2] = 2.0
    sim.reset(qpos=start, qvel=np.random.default_rng(2).normal(size=(1, 18)))
    data = mujoco.MjData(sim.model)
    data.qpos[:], data.qvel[:] = sim.qpos[0], sim.qvel[0]
    mujoco.mj_forward(sim.model, data)
    foot, speed = sim.model.geom("FL_foot").id, np.zeros(6)
    mujoco.mj_objectVelocity(sim.model, data, mujoco.mjtObj.mjOBJ_GEOM, foot, speed, 0)
    np.testing.assert_allclose(sim.feet.velocity(ALL)[0, 0], speed[3:], atol=1e-4)
    start[0, 2] = 0.08
    folded = np.tile([0.0, 2.5, -2.7], 4)
    start[0, 7:] = folded
    sim.reset(qpos=start)
    for _ in range(10):
        sim.step(folded)
    assert sim.feet.trunk_contact(ALL).all()


def test_a_force_on_the_base_accelerates_it_and_ends_with_a_reset():
    sim = SapienSim(load_robot(BLOCK), SimCfg(nsim=2, threads=1))
    up = sim.default_qpos[None].repeat(2, axis=0)
    up[:, 2] = 5.0
    sim.reset(qpos=up)
    sim.base_force[1] = (4.0, -2.0, 0.0)
    for _ in range(10):
        sim.step(0.0)
    np.testing.assert_allclose(sim.qvel[0, :2], 0.0, atol=1e-6)
    np.testing.assert_allclose(sim.qvel[1, :2], 0.2 * np.array([4.0, -2.0]) / 2.001, rtol=1e-4)
    sim.reset()
    assert not sim.base_force.any()


def test_pushes_of_a_task_reach_the_second_engine():
    sim = SapienSim(GO2, SimCfg(nsim=2, threads=1))
    pushes = Pushes(sim, PushCfg(newton=100.0, seconds=0.1, every_s=(0.1, 0.1)))
    pushes.reset(np.arange(2))
    for _ in range(5):
        pushes.advance()
    assert (np.linalg.norm(sim.base_force, axis=1) > 0.0).all()


def test_friction_of_the_ground_is_each_rows_own():
    sim = SapienSim(load_robot(BLOCK), SimCfg(nsim=3, threads=1))
    friction = np.array([0.2, 0.5, 1.0])
    sim.params.set("contact_friction", friction)
    speed = np.zeros((3, 7))
    speed[:, 0] = 1.0
    sim.reset(qvel=speed)
    for _ in range(60):
        sim.step(0.0)
    np.testing.assert_allclose(sim.qpos[:, 0], 1.0 / (2 * 9.81 * friction), rtol=0.06)  # 1 m/s for one step: 5 mm


# --- what it refuses ---
def test_scenes_and_models_that_it_cannot_have_are_refused():
    two = Scene(robots=(Mounted(robot=GO2), Mounted(robot=GO2, prefix="b_", pos=(2.0, 0.0, 0.0))))
    ball = replace(Scene.of(GO2), objects=(Object(name="ball", shape="sphere", size=(0.1,)),))
    for scene in (two, ball):
        with pytest.raises(TrueupError, match="simulates one robot"):
            SapienSim(scene)
    for cfg, text in (
        (SimCfg(friction="M4"), "friction model M4"),
        (SimCfg(model=ModelCfg(base="mount")), "no stand"),
        (SimCfg(nsim=2, model=ModelCfg(collisions="full")), "full collisions need nsim = 1"),
        (SimCfg(control_hz=50, physics_hz=120), "whole multiple"),
    ):
        with pytest.raises(TrueupError, match=text):
            SapienSim(GO2, cfg)
    sim = SapienSim(GO2, SimCfg(threads=1))
    with pytest.raises(TrueupError, match="must broadcast"):
        sim.step(np.zeros(11))
    with pytest.raises(TrueupError, match="no objects"):
        sim.object_pose("ball")


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sapien", None)
    with pytest.raises(TrueupError, match=r"trueup\[physx\]"):
        SapienSim(GO2, SimCfg(threads=1))


def test_the_solver_can_be_chosen():
    sim = SapienSim(GO2, HELD, PhysxCfg(solver="tgs", position_iterations=8))
    assert apart(sim, BatchSim(GO2, HELD), 20) < 0.02
