"""What is shown of a robot, whatever groups its author chose."""

import mujoco
import pytest

from trueup.robot.load import load_robot, zoo_names
from trueup.robot.model import HIDDEN, SHOWN, ModelCfg, compile_model, show_visuals

INTANGIBLE = 'contype="0" conaffinity="0"'


def shown(body: str, other: str = '<geom name="other" size="0.1"/>') -> set[str]:
    spec = mujoco.MjSpec.from_string(
        f'<mujoco><worldbody><geom name="wall" type="box" size="1 1 1" group="4"/>'
        f'<body name="a">{body}<body name="b" pos="0 0 1">{other}</body></body></worldbody></mujoco>'
    )
    show_visuals(spec)
    assert {geom.name: geom.group for geom in spec.worldbody.geoms} == {"wall": 4}
    robot = [geom for geom in spec.geoms if geom.name != "wall"]
    assert {geom.group for geom in robot} <= {SHOWN, HIDDEN}
    return {geom.name for geom in robot if geom.group == SHOWN}


def geom(name: str, group: int, more: str = "") -> str:
    return f'<geom name="{name}" size="0.1" group="{group}" {more}/>'


@pytest.mark.parametrize("group", range(6))
def test_collision_geoms_are_shown_where_there_is_nothing_else(group):
    assert shown(geom("hull", group)) == {"hull", "other"}


@pytest.mark.parametrize(("visual", "collision"), [(2, 3), (1, 0), (4, 3), (5, 0), (0, 1)])
def test_visual_geoms_are_shown_instead_of_the_collision_geoms_of_their_body(visual, collision):
    body = geom("skin", visual, INTANGIBLE) + geom("hull", collision)
    assert shown(body, geom("foot", collision)) == {"skin", "foot"}


def test_decoration_in_the_group_of_the_hull_hides_nothing():
    assert shown(geom("eye", 0, INTANGIBLE) + geom("hull", 0)) == {"eye", "hull", "other"}


def test_what_the_author_hid_stays_hidden():
    body = geom("skin", 2, INTANGIBLE) + geom("zone", 5, INTANGIBLE) + geom("hull", 3)
    assert shown(body, geom("zone2", 5, INTANGIBLE) + geom("foot", 3)) == {"skin", "foot"}


def test_a_transparent_geom_is_no_visual():
    assert shown(geom("ghost", 1, INTANGIBLE + ' rgba="1 0 0 0"') + geom("hull", 3)) == {"hull", "other"}


@pytest.mark.parametrize("name", zoo_names())
def test_every_shape_of_a_built_in_robot_is_shown(name):
    model = compile_model(load_robot(name), ModelCfg(visual=True))
    assert (model.geom_group[model.geom_bodyid > 0] == SHOWN).all()
