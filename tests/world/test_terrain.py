"""Terrain: the lookup against the engine's own height field, and what the kinds look like."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.world.terrain import KINDS, Terrain, TerrainCfg, patch


def test_lookup_is_what_the_engine_collides_with():
    terrain = Terrain(TerrainCfg(levels=3, patch_m=4.0), seed=1)
    spec = mujoco.MjSpec()
    terrain.add_to(spec)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    rng = np.random.default_rng(0)
    # Beside points of the grid: between them the engine has triangles where the lookup is bilinear.
    x = np.round(rng.uniform(0.0, 12.0, 200) / 0.1) * 0.1
    y = np.round(rng.uniform(0.0, 36.0, 200) / 0.1) * 0.1
    found = terrain.height_at(x.astype(np.float32), y.astype(np.float32))
    for k in range(200):
        hit = np.zeros(1, np.int32)
        way = mujoco.mj_ray(
            model, data, np.array([x[k] + 2e-4, y[k] + 1e-4, 10.0]), np.array([0, 0, -1.0]), None, 1, -1, hit
        )
        assert abs(10.0 - way - found[k]) < 2e-3


def test_lookup_interpolates_between_points():
    terrain = Terrain(TerrainCfg(kinds=("slope_up",), levels=1), seed=0)
    x = np.linspace(4.0, 5.5, 7, dtype=np.float32)
    np.testing.assert_allclose(terrain.height_at(x, np.full(7, 3.0, np.float32)), 0.05 * (x - 3.6), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_robots_start_on_even_ground_and_harder_is_rougher(kind):
    patches = [patch(kind, 61, 0.1, d, np.random.default_rng(0)) for d in (0.0, 1.0)]
    for one in patches:
        assert np.ptp(one[26:35, 26:35]) == 0.0
    if kind not in ("flat", "gaps", "stones"):
        assert np.ptp(patches[1]) > 2.0 * np.ptp(patches[0])
    if kind in ("gaps", "stones"):
        assert (patches[1] < -0.3).sum() > (patches[0] < -0.3).sum()


def test_stairs_have_steps_of_the_height_asked_for():
    heights = np.unique(patch("stairs_up", 61, 0.1, 1.0, np.random.default_rng(0)))
    np.testing.assert_allclose(np.diff(heights), 0.15)


def test_an_unknown_kind_is_named():
    with pytest.raises(TrueupError, match="stairs_up"):
        TerrainCfg(kinds=("stair_up",))
