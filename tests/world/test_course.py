"""Courses: heights against the engine's rays, and ground that feet do not stumble on where it is even."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.model import FLOOR
from trueup.world.course import COURSES, Course
from trueup.world.terrain import SIZES, TerrainCfg, difficulty_of, patch

SIZE = {"slope_up": 15.0, "slope_down": 15.0, "noise": 0.03}


def built(kind: str) -> tuple[Course, mujoco.MjModel, mujoco.MjData]:
    course, spec = Course(kind, SIZE.get(kind, 0.15), 6.0, seed=1), mujoco.MjSpec()
    spec.worldbody.add_geom(name=FLOOR, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    course.add_to(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return course, model, data


@pytest.mark.parametrize("kind", COURSES)
def test_heights_are_what_the_engine_collides_with(kind):
    course, model, data = built(kind)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform((-1.0, -1.9), (6.5, 1.9), (200, 2)):
        way = mujoco.mj_ray(
            model, data, np.array([x, y, 10.0]), np.array([0, 0, -1.0]), None, 1, -1, np.zeros(1, np.int32)
        )
        assert abs(10.0 - way - course.height_at(np.float32(x), np.float32(y))) < 1e-5


@pytest.mark.parametrize("kind", COURSES)
def test_robots_start_on_even_ground(kind):
    course = built(kind)[0]
    x, y = np.meshgrid(np.linspace(-0.9, 0.9, 19, dtype=np.float32), np.linspace(-0.9, 0.9, 19, dtype=np.float32))
    assert not course.height_at(x, y).any()
    assert not course.middle(np.zeros(3, np.int64), np.zeros(3, np.int64)).any()


def test_sizes_are_those_asked_for():
    x, zero = np.array([1.5, 2.0, 3.0], np.float32), np.zeros(3, np.float32)
    np.testing.assert_allclose(
        Course("slope_up", 15.0, 6.0).height_at(x, zero), np.tan(np.radians(15)) * (x - 1), rtol=1e-5
    )
    np.testing.assert_allclose(Course("stairs_down", 0.1, 6.0).height_at(x, zero), [-0.2, -0.4, -0.7], atol=1e-6)
    slabs = Course("noise", 0.03, 6.0, seed=2)
    wide = slabs.height_at(
        *np.meshgrid(np.linspace(1, 6, 200, dtype=np.float32), np.linspace(-2, 2, 99, dtype=np.float32))
    )
    assert 0.025 < np.abs(wide).max() <= 0.03
    gaps = Course("gaps", 0.2, 6.0).height_at(np.linspace(1.0, 2.2, 1201, dtype=np.float32), np.zeros(1201, np.float32))
    assert (gaps < 0).mean() * 1.2 == pytest.approx(0.2, abs=2e-3)


def test_an_unknown_course_is_named():
    with pytest.raises(TrueupError, match="stairs_up"):
        Course("stair_up", 0.1, 6.0)


@pytest.mark.parametrize("kind", SIZES)
def test_a_difficulty_gives_the_size_that_it_was_asked_for(kind):
    low, high = SIZES[kind]
    assert difficulty_of(kind, low) == 0.0
    assert difficulty_of(kind, high) == 1.0
    assert difficulty_of(kind, 2 * high - low) == pytest.approx(2.0)
    if kind.startswith("stairs"):
        heights = np.unique(patch(kind, 61, 0.1, difficulty_of(kind, 0.1), np.random.default_rng(0)))
        np.testing.assert_allclose(np.diff(heights), 0.1)


def test_a_terrain_of_one_level_may_be_of_any_difficulty():
    assert TerrainCfg(levels=1).difficulty(0) == 0.0
    assert TerrainCfg(levels=1, hardest=0.7).difficulty(0) == 0.7
    assert TerrainCfg(levels=3).difficulty(1) == 0.5
    assert TerrainCfg(levels=3, hardest=0.6).difficulty(2) == pytest.approx(0.6)


def test_joints_between_even_slabs_cost_a_rolling_ball_less_than_a_percent_of_its_way():
    ways = []
    for make in ("plane", "slabs"):
        spec = mujoco.MjSpec()
        spec.worldbody.add_geom(name=FLOOR, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
        if make == "slabs":
            Course("noise", 0.0, 6.0).add_to(spec)
        ball = spec.worldbody.add_body(pos=[0.5, 0.03, 0.022])
        ball.add_freejoint()
        ball.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.022, 0, 0], mass=0.5)
        model = spec.compile()
        data = mujoco.MjData(model)
        data.qvel[0] = 2.0
        while data.time < 1.0:
            mujoco.mj_step(model, data)
        ways.append(data.qpos[:3].copy())
    assert abs(ways[1][0] - ways[0][0]) < 0.01 * (ways[0][0] - 0.5)
    np.testing.assert_allclose(ways[1][1:], ways[0][1:], atol=1e-4)
