"""Start states from numbers written down, and ranges that grow."""

from dataclasses import replace

import numpy as np
import pytest
from given_random import GivenRandom

from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.policy.chain import matrices
from trueup.robot.load import load_robot
from trueup.tasks.task import Start
from trueup.tasks.terrain import Climb
from trueup.tasks.variation import Starts, Variation, heading_and_tilt
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.push import PushCfg
from trueup.world.randomization.adr import AdrCfg
from trueup.world.randomization.randomize import Draw
from trueup.world.terrain import Terrain, TerrainCfg


@pytest.fixture(scope="module")
def go2():
    return BatchSim(load_robot("go2"), SimCfg(nsim=1, threads=1, control_hz=50.0, physics_hz=200.0))


@pytest.fixture(scope="module")
def pendulum():
    return BatchSim(load_robot("pendulum"), SimCfg(nsim=2, threads=1, control_hz=50.0, physics_hz=200.0))


def drawn(sim, start, joints=0.5, speeds=0.5, base=(0.5,) * 9, climb=None):
    """Start state of one row for numbers in [0, 1): 0.5 is no noise, 1.0 all of it."""
    n = sim.robot.spec.njoint
    unit = [[joints] * n + [speeds] * n + list(base)]
    qpos, qvel = Starts(start, sim, GivenRandom(1, unit)).draw(np.arange(1), climb)
    return qpos[0], qvel[0]


NOISY = Start(joint_pos=0.1, joint_vel=2.0, tilt=0.2, vel=0.3, spin=0.4, any_yaw=True)


def test_without_noise_an_episode_begins_in_the_default_pose_at_rest(go2):
    qpos, qvel = drawn(go2, NOISY)
    np.testing.assert_allclose(qpos, go2.default_qpos, atol=1e-12)
    assert not qvel.any()


def test_joints_of_a_start_pose_begin_there_and_the_others_in_the_default_pose(go2):
    default, names = go2.robot.spec.default_pose, go2.robot.spec.joint_names
    qpos, _ = drawn(go2, Start(pose={names[1]: 0.7}, joint_pos=0.1), joints=1.0)
    np.testing.assert_allclose(qpos[go2.index.qpos], np.where(np.arange(12) == 1, 0.7, default) + 0.1)
    with pytest.raises(TrueupError, match="'knee'.*'go2' lacks"):
        Starts(Start(pose={"knee": 0.7}), go2, GivenRandom(1))


def test_noise_of_joints_is_their_half_width(go2):
    qpos, qvel = drawn(go2, NOISY, joints=0.75, speeds=0.0)
    np.testing.assert_allclose(qpos[go2.index.qpos], go2.robot.spec.default_pose + 0.05)
    np.testing.assert_allclose(qvel[go2.index.dof], -2.0)


def test_joints_begin_within_their_limits(go2):
    qpos, _ = drawn(go2, replace(NOISY, joint_pos=100.0), joints=1.0)
    np.testing.assert_allclose(qpos[go2.index.qpos], go2.robot.spec.position_high)


def test_velocities_of_the_base_are_drawn_on_each_axis(go2):
    _, qvel = drawn(go2, NOISY, base=(0.5, 0.5, 0.5, 1.0, 0.0, 0.75, 0.0, 1.0, 0.25))
    np.testing.assert_allclose(qvel[:6], [0.3, -0.3, 0.15, -0.4, 0.4, -0.2], atol=1e-12)


def test_a_heading_is_drawn_from_the_whole_circle_only_where_asked(go2):
    quarter = (0.5, 0.5, 0.75, *(0.5,) * 6)  # half of the way from 0 to 180 degrees
    half = np.sqrt(0.5)
    np.testing.assert_allclose(drawn(go2, NOISY, base=quarter)[0][3:7], [half, 0, 0, half], atol=1e-12)
    np.testing.assert_allclose(drawn(go2, replace(NOISY, any_yaw=False), base=quarter)[0][3:7], [1, 0, 0, 0])


def test_tilt_is_about_x_and_about_y(go2):
    rolled, _ = drawn(go2, NOISY, base=(1.0, *(0.5,) * 8))
    pitched, _ = drawn(go2, NOISY, base=(0.5, 1.0, *(0.5,) * 7))
    np.testing.assert_allclose(rolled[3:7], [np.cos(0.1), np.sin(0.1), 0, 0], atol=1e-12)
    np.testing.assert_allclose(pitched[3:7], [np.cos(0.1), 0, np.sin(0.1), 0], atol=1e-12)


def test_heading_comes_first_then_pitch_then_roll():
    yaw, roll, pitch = np.array([0.7]), np.array([0.3]), np.array([-0.4])
    (cy, cr, cp), (sy, sr, sp) = ([f(each[0]) for each in (yaw, roll, pitch)] for f in (np.cos, np.sin))
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    np.testing.assert_allclose(matrices(heading_and_tilt(yaw, roll, pitch))[0], about_z @ about_y @ about_x, atol=1e-12)


def test_on_terrain_a_robot_begins_in_the_middle_of_its_patch_on_the_ground(go2):
    terrain = Terrain(TerrainCfg(kinds=("flat", "stairs_up"), levels=2))
    climb = Climb(terrain, 1, RowRandom(0, "climb", 1), 1, 1)  # second kind, second level
    qpos, _ = drawn(go2, Start(), climb=climb)
    np.testing.assert_allclose(qpos[:2], [9.0, 9.0])  # patches of 6 m
    ground = terrain.height_at(np.float32([9.0]), np.float32([9.0]))[0]
    assert qpos[2] == pytest.approx(go2.default_qpos[2] + ground)


def test_a_bolted_robot_has_only_joints_to_begin_with(pendulum):
    qpos, qvel = drawn(pendulum, NOISY, joints=1.0, speeds=1.0, base=(1.0,) * 9)
    np.testing.assert_allclose(qpos, pendulum.robot.spec.default_pose + 0.1)
    np.testing.assert_allclose(qvel, [2.0])


# --- ranges ---
RANGES = {"kp": Draw(operation="scale", low=0.5, high=2.0)}


def test_ranges_grow_from_a_point_to_their_whole_width(pendulum):
    varied = Variation(pendulum, RANGES, None, ramp_s=(1.0, 3.0))  # 50 to 150 steps
    widths = []
    for steps in (0, 50, 75, 150, 1000):
        varied.widen(steps)
        widths.append(np.ptp(varied.randomizer.bounds))
    np.testing.assert_allclose(np.array(widths) / widths[-1], [0.0, 0.0, 0.25, 1.0, 1.0], atol=1e-12)
    assert widths[-1] > 0.0


def test_without_a_ramp_ranges_are_whole_from_the_start(pendulum):
    varied = Variation(pendulum, RANGES, None)
    assert varied.share == 1.0
    assert np.ptp(varied.randomizer.bounds) > 0.0


def test_nothing_to_vary_leaves_no_factors_and_nothing_to_remember(pendulum):
    varied = Variation(pendulum, {}, PushCfg())  # a bolted robot is not pushed
    varied.begin(np.arange(2))
    varied.begun(np.arange(2))
    varied.advance()
    assert varied.factors.shape == (2, 0)
    assert varied.memory() == {}
    assert varied.metrics() == {}


def test_an_episode_draws_for_its_own_row(pendulum):
    varied = Variation(pendulum, {"kp": Draw(operation="scale", low=0.5, high=2.0, factor=True)}, None)
    varied.begin(np.arange(2))
    before = varied.factors.copy()
    varied.begin(np.array([1]))
    np.testing.assert_array_equal(varied.factors[0], before[0])
    assert varied.factors[1] != before[1]


def test_adr_without_ranges_is_refused(pendulum):
    with pytest.raises(TrueupError, match="ADR needs ranges to grow"):
        Variation(pendulum, {}, None, adr=AdrCfg())
