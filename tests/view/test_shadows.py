"""Shadows on flat ground: projected along the light, nowhere else, and no dots where a shadow map would end."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from trueup.robot.load import load_robot
from trueup.robot.shapes import lowest_point
from trueup.view.camera import CameraCfg, MotionFrames, TrackingCamera
from trueup.view.draw import Painter, visual_model
from trueup.view.shadows import FloorShadows, flat_floor, half_height

BALL = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1" pos="0 0 0.5"/>
<body pos="1 0 2.5"><freejoint/><geom type="sphere" size="0.2"/></body>
<body pos="0 0 -1"><freejoint/><geom type="sphere" size="0.2"/></body></worldbody></mujoco>"""


def test_a_ball_casts_one_shadow_where_the_light_takes_it_and_none_from_below_the_floor():
    model = mujoco.MjModel.from_xml_string(BALL)
    data, scene = mujoco.MjData(model), mujoco.MjvScene(model, maxgeom=100)
    mujoco.mj_forward(model, data)
    every = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, mujoco.MjvCamera(), every, scene)
    before = scene.ngeom
    FloorShadows(0.5, np.array([0.5, 0.25, -1.0])).add(scene)
    assert scene.ngeom == before + 1
    shadow = scene.geoms[before]
    np.testing.assert_allclose(shadow.pos, [1 + 0.5 * 2, 0.25 * 2, 0.504], atol=1e-6)  # 2 m above the floor
    assert np.abs(shadow.mat[2]).max() < 0.01  # flat


SUNK = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 .1"/>
<body pos="0 0 0.1"><freejoint/><geom type="{shape}" size="0.02 0.2" quat="{quat}"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("shape", ["capsule", "cylinder"])
@pytest.mark.parametrize("quat", ["1 0 0 0", "0.9239 0.3827 0 0"])
def test_what_is_sunk_into_the_floor_casts_no_shadow_against_the_light(shape, quat):
    model = mujoco.MjModel.from_xml_string(SUNK.format(shape=shape, quat=quat))
    data, scene = mujoco.MjData(model), mujoco.MjvScene(model, maxgeom=100)
    mujoco.mj_forward(model, data)
    every = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, mujoco.MjvCamera(), every, scene)
    rod = scene.geoms[scene.ngeom - 1]
    top, reach = rod.pos[2] + half_height(rod), 0.2 * abs(rod.mat[0, 2])
    FloorShadows(0.0, np.array([1.0, 0.0, -1.0])).add(scene)  # a shadow is as long as the height above the floor
    shadow = scene.geoms[scene.ngeom - 1]
    ends = [shadow.pos[0] + sign * 0.2 * shadow.mat[0, 2] for sign in (-1.0, 1.0)]  # of the rod's axis
    assert min(ends) > -reach - 0.025
    assert max(ends) == pytest.approx(top + reach, abs=0.025)


def test_half_heights_are_those_of_the_vertices():
    rng, text = np.random.default_rng(0), ""
    for shape in ("box", "ellipsoid", "sphere", "capsule", "cylinder"):
        quat = " ".join(map(str, rng.normal(size=4)))
        text += f'<geom type="{shape}" size="0.1 0.2 0.3" quat="{quat}"/>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    data, scene = mujoco.MjData(model), mujoco.MjvScene(model, maxgeom=100)
    mujoco.mj_forward(model, data)
    every = mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(model, data, mujoco.MjvOption(), None, mujoco.MjvCamera(), every, scene)
    for number in range(5):
        lowest = lowest_point(model, data, number)  # another computation, of the collision shape
        assert half_height(scene.geoms[number]) == pytest.approx(-lowest, rel=1e-5)


def test_only_a_level_floor_takes_projected_shadows():
    model = visual_model(load_robot("pendulum"))
    assert flat_floor(model) == 0.0
    assert flat_floor(mujoco.MjModel.from_xml_string("<mujoco><worldbody/></mujoco>")) is None


@pytest.mark.parametrize("azimuth", [197.0, 20.0])
def test_the_lit_floor_has_no_stray_dark_dots(azimuth):
    model = visual_model(load_robot("go2"))
    with Painter(model, 320, 180, azimuth=azimuth) as painter:
        motion = MotionFrames(painter.model, model.qpos0[None], 30.0, 30.0)
        view = TrackingCamera(motion, CameraCfg(azimuth=azimuth), aspect=16 / 9, fps=30.0)
        brightness = painter.paint(motion.place(0), view.at(0)).mean(axis=2)
    left = brightness[60:, :70]  # floor alone: the robot and its shadow are in the middle
    assert left.min() > 140
    assert brightness[:, 70:250].min() < 90  # the robot, so that the picture is not empty
