"""What the frame says of feet and trunk, for robots that are not built as go2 is."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from trueup.robot.load import ZOO, Robot, load_robot
from trueup.tasks.sensing.frame import Sense
from trueup.tasks.terrain import Ground
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.engines.foot_sensors import add_foot_sensors


def sense_of(robot: Robot) -> Sense:
    sim = BatchSim(robot, SimCfg(nsim=1, threads=1), prepare=lambda spec: add_foot_sensors(spec, robot))
    sense = Sense(sim, Ground(None), robot.spec.njoint, 3, None)
    sim.reset()
    for _ in range(50):
        sim.step(robot.spec.default_pose)
    sense.read(np.zeros((1, 3), np.float32))
    return sense


def go2(folder: Path, foot: str, contacts: tuple[str, ...] = ()) -> Robot:
    """go2 whose first foot is another shape, with more contact geoms."""
    text = (ZOO / "go2" / "model.xml").read_text()
    ball = '<geom name="FL_foot" class="contact" type="sphere" size="0.022" pos="-0.002 0 -0.213"/>'
    assert ball in text
    (folder / "model.xml").write_text(text.replace(ball, foot))
    robot = load_robot("go2")
    spec = msgspec.structs.replace(robot.spec, contact_geoms=(*robot.spec.contact_geoms, *contacts))
    return replace(robot, spec=spec, model_path=folder / "model.xml")


def test_a_shin_that_touches_the_ground_is_no_trunk(tmp_path: Path) -> None:
    ball = '<geom name="FL_foot" class="contact" type="sphere" size="0.022" pos="-0.002 0 -0.213"/>'
    shin = '<geom name="FL_shin" type="sphere" size="0.022" pos="-0.002 0 -0.213"/>'
    frame = sense_of(go2(tmp_path, ball + shin, ("FL_shin",))).frame
    assert frame.foot_contact[0, 0]
    assert not frame.body_contact.any()


@pytest.mark.parametrize(
    "shape",
    [
        'type="box" size="0.03 0.02 0.022"',
        'type="cylinder" size="0.03 0.02" euler="1.5708 0 0"',
        'type="sphere" size="0.022"',
    ],
)
def test_soles_of_any_shape_stand_at_the_height_of_the_ground(tmp_path: Path, shape: str) -> None:
    foot = f'<geom name="FL_foot" class="contact" {shape} pos="-0.002 0 -0.213"/>'
    frame = sense_of(go2(tmp_path, foot)).frame
    assert frame.foot_contact[0, 0]
    assert abs(frame.foot_height[0, 0]) < 0.006
