"""The terrain curriculum: up at the edge, down when idle, anywhere after the last level."""

import numpy as np

from trueup.core.rows import RowRandom
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.tasks.terrain import Climb
from trueup.world.terrain import Terrain, TerrainCfg


def make(level=None):
    terrain = Terrain(TerrainCfg(kinds=("flat", "noise"), levels=4))
    return Climb(terrain, 4, RowRandom(0, "climb", 4), 0, level)


def test_levels_follow_the_way_that_was_made():
    climb = make()
    climb.level[:] = [1, 1, 1, 3]
    climb.asked[:, 1] = [5.0, 5.0, 2.0, 5.0]
    place = climb.middle(np.arange(4))
    place[:, 0] += [2.6, 1.0, 1.5, 2.6]  # to the edge; too little; enough; off the last level
    climb.ended(np.arange(4), place)
    np.testing.assert_array_equal(climb.level[:3], [2, 0, 1])
    assert 0 <= climb.level[3] < 4
    np.testing.assert_array_equal(climb.asked, 0.0)
    np.testing.assert_array_equal(climb.heading, 0.0)


def test_who_is_told_to_walk_in_circles_is_not_sent_down():
    climb = make()
    climb.level[:] = 1
    command = np.tile(np.float32([1.0, 0.0, 0.0]), (4, 1))
    command[:2, 2] = 1.0  # 1 m/s and 1 rad/s: a circle of 1 m
    for _ in range(314):
        climb.advance(command, 0.02)
    np.testing.assert_allclose(np.linalg.norm(climb.asked[:2], axis=1), 0.0, atol=0.02)
    np.testing.assert_allclose(climb.asked[2:], [[6.28, 0.0]] * 2, atol=1e-3)
    climb.ended(np.arange(4), climb.middle(np.arange(4)))  # none of them has moved
    np.testing.assert_array_equal(climb.level, [1, 1, 0, 0])


def test_nobody_falls_below_the_first_level_and_a_fixed_level_stays():
    climb = make()
    climb.level[:] = 0
    climb.asked[:] = 5.0
    climb.ended(np.arange(4), climb.middle(np.arange(4)))
    np.testing.assert_array_equal(climb.level, 0)
    fixed = make(level=2)
    fixed.asked[:] = 5.0
    fixed.ended(np.arange(4), fixed.middle(np.arange(4)))
    np.testing.assert_array_equal(fixed.level, 2)


def test_robots_stand_on_their_patch_and_see_the_ground():
    env = make_env(load_task("go2-velocity-rough"), EnvCfg(nenv=18, threads=1, seed=1, level=7))
    for _ in range(25):
        env.step(np.zeros((18, 12), np.float32))
    frame = env._sense.frame
    steady = ~env.sim.diverged & (frame.base_height > 0.2) & (frame.base_height < 0.4)
    assert steady.mean() > 0.8
    assert frame.heights.shape == (18, 77)
    up, down = (list(env.climb.terrain.cfg.kinds).index(kind) for kind in ("stairs_up", "stairs_down"))
    flat = env.climb.terrain.cfg.kinds.index("flat")
    assert np.abs(frame.heights[env.climb.kind == flat]).max() < 1e-6
    assert frame.heights[env.climb.kind == up].max() >= 0.0
    assert frame.heights[env.climb.kind == down].min() <= 0.0


def test_the_actor_may_see_the_ground_and_its_mirror_image():
    from dataclasses import replace

    from trueup.policy.observation import Term

    task = load_task("go2-velocity-rough")
    seen = replace(task.observations, actor=(*task.observations.actor, Term("heights", 5.0)))
    env = make_env(replace(task, observations=seen), EnvCfg(nenv=9, threads=1, seed=1, level=5))
    step = env.step(np.zeros((9, 12), np.float32))
    np.testing.assert_allclose(step.obs.actor[:, -77:], 5.0 * env._sense.frame.heights, atol=1e-6)
    grid = np.arange(77).reshape(11, 7)
    np.testing.assert_array_equal(env.mirror.actor_index[-77:] - (env.nactor - 77), grid[:, ::-1].ravel())
