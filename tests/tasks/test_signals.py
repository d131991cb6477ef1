"""Signals: what they read from states set by hand, their units and mirror rules, and when they are computed."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.policy.chain import matrices
from trueup.robot.load import load_robot
from trueup.tasks.build import EnvCfg, build
from trueup.tasks.load import load_task
from trueup.tasks.sensing.frame import Frame, Sense
from trueup.tasks.sensing.signals import SIGNALS, Signal, object_signals, rotate_back, signal
from trueup.tasks.terrain import Ground
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.engines.foot_sensors import add_foot_sensors
from trueup.world.terrain import Terrain, TerrainCfg

HALF = np.sqrt(0.5)
LEFT, ROLLED = (HALF, 0.0, 0.0, HALF), (HALF, HALF, 0.0, 0.0)  # a quarter turn about z, about x
LEGGED = [name for name in SIGNALS if not name.startswith("tool_")]


def sense_of(name, nsim=3, **more):
    robot = load_robot(name)
    sim = BatchSim(robot, SimCfg(nsim=nsim, threads=1), prepare=lambda spec: add_foot_sensors(spec, robot))
    return Sense(sim, Ground(None), robot.spec.njoint, 3, **more)


@pytest.fixture(scope="module")
def made():
    return sense_of("go2")


@pytest.fixture
def go2(made):
    """Three robots in the default pose: as they are, a quarter turn to the left, rolled onto a side."""
    sim = made.sim
    sim.reset()
    sim.qpos[1, 3:7], sim.qpos[2, 3:7] = LEFT, ROLLED
    return made


def read(sense):
    """Put the simulation into the state that was written into it, and read it."""
    sense.sim.reset(qpos=sense.sim.qpos.copy(), qvel=sense.sim.qvel.copy())
    sense.sim.batch.forward()
    return sense.read(np.zeros((sense.sim.nsim, 3), np.float32))


# --- values ---
def test_velocity_is_told_in_the_frame_of_the_base(go2):
    go2.sim.qvel[:, :3] = [0.0, 1.0, 0.5]
    frame = read(go2)
    np.testing.assert_allclose(frame.base_vel[0], [0.0, 1.0, 0.5], atol=1e-6)
    np.testing.assert_allclose(frame.base_vel[1], [1.0, 0.0, 0.5], atol=1e-6)  # it faces where it goes
    np.testing.assert_allclose(frame.base_vel[2], [0.0, 0.5, -1.0], atol=1e-6)  # its left side is up


def test_turning_rates_are_those_about_the_bases_own_axes(go2):
    go2.sim.qvel[:, 3:6] = [0.1, 0.2, 0.3]  # the engine has them in the base frame
    np.testing.assert_allclose(read(go2).base_spin, [[0.1, 0.2, 0.3]] * 3, atol=1e-6)


def test_gravity_points_down_as_the_base_sees_it(go2):
    np.testing.assert_allclose(read(go2).gravity, [[0, 0, -1], [0, 0, -1], [0, -1, 0]], atol=1e-6)


def test_heights_of_base_and_soles_are_above_the_ground(go2):
    go2.sim.qpos[:, 2] = [0.5, 0.6, 0.7]
    frame = read(go2)
    np.testing.assert_allclose(frame.base_height, [0.5, 0.6, 0.7], atol=1e-6)
    np.testing.assert_allclose(frame.foot_height[1] - frame.foot_height[0], 0.1, atol=1e-5)
    data = mujoco.MjData(go2.sim.model)
    data.qpos[:] = go2.sim.qpos[0]
    mujoco.mj_kinematics(go2.sim.model, data)
    ball = data.geom("FL_foot").xpos[2] - go2.sim.model.geom("FL_foot").size[0]
    np.testing.assert_allclose(frame.foot_height[0, 0], ball, atol=1e-5)


def test_feet_of_a_body_that_is_carried_along_move_with_it(go2):
    go2.sim.qpos[:, 2], go2.sim.qvel[:, :3] = 1.0, [0.3, -0.2, 0.1]
    np.testing.assert_allclose(read(go2).foot_vel, np.tile([0.3, -0.2, 0.1], (3, 4, 1)), atol=1e-5)


def test_feet_in_the_air_touch_nothing_and_a_sunken_trunk_does(go2):
    go2.sim.qpos[:, 2] = [1.0, 0.05, 1.0]
    frame = read(go2)
    assert not frame.foot_contact[[0, 2]].any()
    np.testing.assert_array_equal(frame.body_contact, [False, True, False])


def test_joints_are_read_in_the_order_of_the_spec(go2):
    angles = np.linspace(-0.3, 0.3, 12)
    go2.sim.qpos[:, go2.sim.index.qpos] = angles
    go2.sim.qvel[:, go2.sim.index.dof] = 2.0 * angles
    frame = read(go2)
    np.testing.assert_allclose(frame.joint_pos[1], angles, atol=1e-6)
    np.testing.assert_allclose(frame.joint_vel[1], 2.0 * angles, atol=1e-6)


def test_torque_is_the_servos_in_newton_metres():
    sense = sense_of("pendulum", nsim=1)
    sim, spec = sense.sim, sense.sim.robot.spec
    sim.reset()
    target = spec.default_pose + 0.5 * spec.torque_limit / spec.kp  # half of the limit at the first instant
    sim.step(target)
    torque = sense.read(np.zeros((1, 3), np.float32)).joint_torque[0, 0]
    assert 0.0 < torque <= 0.5 * spec.torque_limit[0] + 1e-6
    sim.step(spec.default_pose + 100.0)
    np.testing.assert_allclose(sense.read(np.zeros((1, 3), np.float32)).joint_torque[0], spec.torque_limit, rtol=1e-5)


def test_rotating_back_is_the_transposed_rotation():
    rng = np.random.default_rng(0)
    quat, vectors = rng.normal(size=(20, 4)), rng.normal(size=(20, 3))
    quat /= np.linalg.norm(quat, axis=1, keepdims=True)
    expected = np.einsum("nji,nj->ni", matrices(quat), vectors)
    np.testing.assert_allclose(
        rotate_back(*(part.T.astype(np.float32) for part in (quat, vectors))), expected, atol=1e-5
    )


@pytest.mark.parametrize("name", LEGGED)
def test_some_rows_are_read_as_they_are_among_all(go2, name):
    go2.sim.qvel[:] = np.random.default_rng(1).normal(size=go2.sim.qvel.shape)
    whole, ids = getattr(read(go2), name), np.array([2, 0])
    np.testing.assert_array_equal(SIGNALS[name].read(go2, ids), whole[ids])
    assert whole.dtype in (np.float32, np.bool_)


# --- tools and objects ---
def test_a_tool_that_is_where_it_should_be_has_no_error():
    parts = build(load_task("z1-reach"), EnvCfg(nenv=2, threads=1))
    sense, sim = parts.sense, parts.sim
    position, _ = parts.goal.chain.tool_pose(sim.joint_pos)
    command = np.zeros((2, 7), np.float32)
    command[:, :3] = position
    command[:, 3:] = parts.goal.values[:, 3:]
    command[1, 2] += 0.1
    sense.frame.command = command
    sense.frame.forget()
    np.testing.assert_allclose(sense.frame.tool_pos, position, atol=1e-6)
    np.testing.assert_allclose(sense.frame.tool_error[:, :3], [[0, 0, 0], [0, 0, 0.1]], atol=1e-6)


def test_an_objects_pose_and_velocity_are_those_of_the_engine():
    parts = build(load_task("so101-push"), EnvCfg(nenv=2, threads=1))
    sim, frame = parts.sim, parts.sense.frame
    at = int(sim.model.joint(int(sim.model.body("cube").jntadr[0])).qposadr[0])
    dof = int(sim.model.body("cube").dofadr[0])
    sim.qpos[1, at : at + 7] = [0.3, -0.1, 0.2, *LEFT]
    sim.qvel[1, dof : dof + 6] = [0.1, 0.2, 0.3, 7.0, 8.0, 9.0]
    sim.batch.forward()
    frame.forget()
    np.testing.assert_allclose(frame.cube_pos[1], [0.3, -0.1, 0.2], atol=1e-6)
    np.testing.assert_allclose(frame.cube_quat[1], LEFT, atol=1e-6)
    np.testing.assert_allclose(frame.cube_vel[1], [0.1, 0.2, 0.3], atol=1e-6)
    for name, one in parts.sense.signals.items():
        if name.startswith("cube_"):
            np.testing.assert_array_equal(one.read(parts.sense, np.array([1])), getattr(frame, name)[1:])


def test_places_and_velocities_of_objects_mirror_as_vectors():
    made = object_signals("box")
    assert {name: (one.unit, one.mirror) for name, one in made.items()} == {
        "box_pos": ("m", "vector"),
        "box_quat": ("1", "same"),
        "box_vel": ("m/s", "vector"),
    }


# --- units and mirror rules ---
@pytest.mark.parametrize(
    ("unit", "names"),
    [
        ("rad", {"joint_pos"}),
        ("rad/s", {"joint_vel", "base_spin"}),
        ("N m", {"joint_torque"}),
        ("m/s", {"base_vel", "foot_vel"}),
        ("m", {"base_height", "heights", "foot_height", "tool_pos"}),
        ("1", {"gravity", "foot_contact", "body_contact"}),
    ],
)
def test_units_are_si(unit, names):
    assert {name for name, one in SIGNALS.items() if one.unit == unit} == names


def test_rates_mirror_as_pseudovectors_and_velocities_as_vectors():
    assert SIGNALS["base_spin"].mirror == "pseudovector"
    assert {name for name, one in SIGNALS.items() if one.mirror == "vector"} == {"base_vel", "gravity"}
    assert {name for name, one in SIGNALS.items() if one.mirror == "feet"} == {"foot_contact", "foot_height"}


# --- when they are computed ---
def counted():
    calls = []

    def count(sense, ids):
        calls.append(ids)
        return np.full(3 if ids is None else len(ids), float(len(calls)), np.float32)

    return Frame(3, {"count": Signal(count)}, None), calls


def test_a_signal_is_computed_once_a_step_and_only_if_it_is_read():
    frame, calls = counted()
    frame.forget()
    assert calls == []
    assert frame.count is frame.count
    assert len(calls) == 1
    frame.forget()
    np.testing.assert_array_equal(frame.count, 2.0)


def test_rows_that_begin_anew_are_brought_up_to_date_alone():
    frame, calls = counted()
    frame.refresh(np.array([1]))  # nobody has read it: nothing to do
    assert calls == []
    np.testing.assert_array_equal(frame.count, 1.0)
    frame.refresh(np.array([1]))
    np.testing.assert_array_equal(frame.count, [1.0, 2.0, 1.0])


def test_a_signal_that_does_not_exist_is_told_with_the_nearest_name(go2):
    with pytest.raises(AttributeError, match="no signal 'base_hight'.*base_height"):
        _ = go2.frame.base_hight


def test_a_reader_that_fails_is_not_taken_for_a_missing_signal():
    frame = Frame(1, {"broken": Signal(lambda sense, ids: sense.nothing)}, object())
    with pytest.raises(TrueupError, match="'broken' cannot be read.*nothing"):
        _ = frame.broken


def test_a_task_brings_signals_of_its_own_beside_the_others():
    own = {"twice": Signal(lambda sense, ids: 2.0 * sense.frame.joint_pos, "rad", "joints")}
    sense = sense_of("pendulum", nsim=2, signals=own)
    sense.sim.qpos[:] = 0.4
    frame = read(sense)
    np.testing.assert_allclose(frame.twice, 0.8, rtol=1e-6)
    assert "twice" not in SIGNALS
    assert sense.width("twice") == 1


def test_a_decorated_function_is_a_signal_by_its_name():
    try:

        @signal("K", "joints")
        def motor_heat(sense, ids):
            return np.zeros(1)

        assert SIGNALS["motor_heat"] == Signal(motor_heat, "K", "joints")
    finally:
        SIGNALS.pop("motor_heat", None)


@pytest.mark.parametrize("name", ["base_vel", "base_spin", "gravity", "base_height"])
def test_a_bolted_robot_has_no_motion_of_its_base(name):
    sense = sense_of("pendulum", nsim=1)
    with pytest.raises(TrueupError, match="floating base, which robot 'pendulum' has not"):
        getattr(sense.frame, name)


def test_a_tool_needs_a_goal_that_knows_the_chain(go2):
    with pytest.raises(TrueupError, match="chain"):
        _ = go2.frame.tool_pos


def test_actions_are_remembered_for_one_step_and_forgotten_with_the_episode(go2):
    go2.reset(np.arange(3), np.zeros((3, 3), np.float32))
    for value in (1.0, 2.0):
        go2.act(np.full((3, 12), value, np.float32))
    assert (go2.frame.action == 2.0).all()
    assert (go2.frame.last_action == 1.0).all()
    go2.reset(np.array([1]), np.ones((3, 3), np.float32))
    np.testing.assert_array_equal(go2.frame.action[:, 0], [2.0, 0.0, 2.0])
    np.testing.assert_array_equal(go2.frame.last_action[:, 0], [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(go2.frame.command[:, 0], [0.0, 1.0, 0.0])


# --- the ground around a robot ---
@pytest.fixture(scope="module")
def slope():
    """Ground that rises by 0.1 m with each metre along x and by 0.02 m with each along y."""
    terrain = Terrain(TerrainCfg(kinds=("flat",), levels=1))
    x, y = (np.arange(n) * terrain.cfg.cell_m - terrain.cfg.border_m for n in terrain.heights.shape)
    terrain.heights[:] = 0.1 * x[:, None] + 0.02 * y
    terrain._flat = terrain.heights.ravel().astype(np.float32)
    return Ground(terrain)


def test_heights_around_a_robot_follow_its_heading(slope):
    position = np.array([[3.0, 3.0], [3.0, 3.0]], np.float32)
    quat = tuple(np.array([[1.0, 0.0, 0.0, 0.0], LEFT], np.float32).T)
    below = slope.below(*position)
    np.testing.assert_allclose(below, 0.36, atol=1e-5)
    straight, turned = slope.around(position, quat, below).reshape(2, 11, 7)
    ahead, left = np.linspace(-0.5, 0.5, 11)[:, None], np.linspace(-0.3, 0.3, 7)
    np.testing.assert_allclose(straight, 0.1 * ahead + 0.02 * left, atol=1e-5)
    # turned to the left, the robot has y ahead of it and x to its right
    np.testing.assert_allclose(turned, 0.02 * ahead - 0.1 * left, atol=1e-5)


def test_flat_ground_is_at_zero_and_has_no_map():
    ground, three = Ground(None), np.full(3, 2.0, np.float32)
    np.testing.assert_array_equal(ground.below(three, three), 0.0)
    assert ground.around(np.stack([three, three]), (three,) * 4, three).shape == (3, 0)
    assert ground.grid == (0, 0)
