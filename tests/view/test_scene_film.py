"""Films of scenes: both arms, the object and the ground are in the pictures, and they move."""

from __future__ import annotations

import subprocess
from pathlib import Path

import mujoco
import numpy as np
import pytest
from two_arms import count_colours, paint, two_arms

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.view.film import CameraCfg, film, find_ffmpeg, visual_model
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.scene.scene import Scene
from trueup.world.terrain import Terrain, TerrainCfg

WIDTH, HEIGHT = 160, 120


def frames_of(path: Path) -> np.ndarray:
    """Pictures (T, height, width, 3) of a film."""
    command = [find_ffmpeg(), "-loglevel", "error", "-i", str(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    return np.frombuffer(raw, np.uint8).reshape(-1, HEIGHT, WIDTH, 3)


def motion() -> np.ndarray:
    """The cube falls while both arms turn."""
    sim = BatchSim(two_arms(), SimCfg(threads=1))
    sim.reset(objects={"cube": [0.0, 0.12, 0.3, 1.0, 0.0, 0.0, 0.0]})
    out = []
    for t in range(30):
        out.append(sim.qpos[0].copy())
        target = sim.robot.spec.default_pose
        target[[0, 6]] = 0.02 * t
        sim.step(target)
    return np.array(out)


@pytest.mark.parametrize("camera", [CameraCfg(), CameraCfg(scene_camera="above")])
def test_both_arms_and_the_cube_are_in_every_picture(tmp_path, camera):
    model = paint(visual_model(two_arms()))
    path = film(model, motion(), tmp_path / "arms.mp4", sample_hz=50, fps=10, width=WIDTH, height=HEIGHT, camera=camera)
    pictures = frames_of(path)
    assert len(pictures) == 6
    for picture in pictures:
        seen = count_colours(picture)
        assert min(seen.values()) > 30, seen
    assert np.abs(pictures[0].astype(int) - pictures[-1]).max() > 60  # they move


def test_the_picture_has_the_qpos_of_the_simulation():
    for scene, base in ((two_arms(), None), (load_robot("go2"), "mount"), (load_robot("go2"), "fixed")):
        sim = BatchSim(scene, SimCfg(threads=1, model=ModelCfg(base=base)))
        model = visual_model(sim.scene, sim.cfg.model)
        names = [[one.joint(k).name for k in range(one.njnt)] for one in (model, sim.model)]
        assert names[0] == names[1]


def test_terrain_is_shown_in_the_place_of_the_floor():
    terrain = Terrain(TerrainCfg(kinds=("stairs_up",), levels=2))
    scene = Scene(terrain=terrain).with_robot(load_robot("go2"))
    for model in (visual_model(scene), scene.compile()):
        ground = model.geom("floor")
        assert ground.type[0] == mujoco.mjtGeom.mjGEOM_HFIELD
        assert model.nhfield == 1


def test_an_unknown_camera_is_named_with_those_of_the_scene(tmp_path):
    with pytest.raises(TrueupError, match="no camera 'abov'.*above"):
        film(
            visual_model(two_arms()),
            motion()[:2],
            tmp_path / "arms.mp4",
            sample_hz=50,
            camera=CameraCfg(scene_camera="abov"),
        )
