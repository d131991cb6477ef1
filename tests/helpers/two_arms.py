"""A scene of two so101 arms and a cube between them, and a task in it."""

from dataclasses import replace

import mujoco
import numpy as np

from trueup.robot.load import load_robot
from trueup.tasks.load import load_task
from trueup.tasks.task import Actions, Servo, Start, Task
from trueup.world.scene.scene import Camera, Mounted, Object, Scene, SceneLink

TURNED = (0.0, 0.0, 0.0, 1.0)  # by half a turn about z: the arms face each other


def two_arms() -> Scene:
    so101 = load_robot("so101")
    return Scene(
        robots=(
            Mounted(robot=so101, prefix="left_", pos=(-0.35, 0.0, 0.0)),
            Mounted(robot=so101, prefix="right_", pos=(0.35, 0.0, 0.0), quat=TURNED),
        ),
        objects=(Object(name="cube", shape="box", size=(0.04, 0.04, 0.04), pos=(0.0, 0.12, 0.04)),),
        links=(
            SceneLink(name="left_holds", kind="weld", a="left_gripper", b="cube"),
            SceneLink(name="pinned", kind="connect", a="cube", anchor=(0.0, 0.0, 0.04)),
        ),
        cameras=(Camera(name="above", pos=(0.0, 0.0, 1.2)),),
    )


def two_arms_task() -> Task:
    return replace(
        load_task("pendulum-swingup"),
        name="two-arms",
        robot="so101",
        scene=two_arms(),
        servo=Servo(),
        actions=Actions(scale=0.3),
        start=Start(),
    )


def paint(model: mujoco.MjModel) -> mujoco.MjModel:
    """The left arm red, the right one blue, the cube green."""
    for geom in range(model.ngeom):
        body = model.body(int(model.geom_bodyid[geom])).name
        for start, colour in (("left_", (1, 0, 0, 1)), ("right_", (0, 0, 1, 1)), ("cube", (0, 1, 0, 1))):
            if body.startswith(start):
                model.geom_rgba[geom] = colour
    return model


def count_colours(pixels: np.ndarray) -> dict[str, int]:
    """How many of the pixels (..., 3) are red, green and blue."""
    colour = pixels.reshape(-1, 3).astype(np.int64)
    out = {}
    for k, name in enumerate(("red", "green", "blue")):
        others = np.delete(colour, k, axis=1).max(axis=1)
        out[name] = int(((colour[:, k] > 60) & (2 * colour[:, k] > 3 * others)).sum())
    return out
