"""From what a user types to a robot, and back out with a helpful error."""

import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import ZOO, load_robot, zoo_names
from trueup.robot.spec import read_spec, spec_to_toml


@pytest.fixture
def own_robot(tmp_path):
    for file in ("spec.toml", "model.xml"):
        (tmp_path / file).write_text((ZOO / "pendulum" / file).read_text())
    return tmp_path


def test_own_robot_loads_like_a_built_in_one(own_robot):
    assert load_robot(own_robot).spec == load_robot("pendulum").spec
    assert load_robot(own_robot / "spec.toml").spec == load_robot("pendulum").spec


@pytest.mark.parametrize("name", zoo_names())
def test_spec_text_round_trips(name, tmp_path):
    spec = load_robot(name).spec
    file = tmp_path / "spec.toml"
    file.write_text(spec_to_toml(spec))
    assert read_spec(file) == spec


def test_a_typo_in_a_name_suggests_the_robot():
    with pytest.raises(TrueupError, match="did you mean 'go2'"):
        load_robot("g02")


def test_unknown_and_out_of_range_options_are_named():
    with pytest.raises(TrueupError, match="no option 'mass'.*load_mass"):
        load_robot("pendulum:mass=1")
    with pytest.raises(TrueupError, match=r"load_mass.*100.*outside \[0.05, 2\]"):
        load_robot("pendulum:load_mass=100")
    with pytest.raises(TrueupError, match="needs a number"):
        load_robot("pendulum:load_mass=heavy")


def edited(own_robot, old: str, new: str):
    file = own_robot / "spec.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return file


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kp = 20.0", "kpp = 20.0", "unknown field `kpp`|missing required field `kp`"),
        ("kp = 20.0", "kp = nan", "finite"),
        ("kp = 20.0", "kp = -1.0", "negative"),
        ("kp = 20.0", 'kp = "stiff"', "Expected `float`"),
        ("position = [-3.3, 3.3]", "position = [3.3, -3.3]", "low < high"),
        ("default = 0.0", "default = 9.0", "outside position"),
        ("physics_hz = 1000.0", "physics_hz = 150.0", "whole multiple"),
        ("schema = 1", "schema = 99", "schema 99"),
        ('model = "model.xml"', 'model = "../model.xml"', "outside the robot's folder"),
        ('model = "model.xml"', 'model = "other.xml"', "does not exist"),
        ("schema = 1", "schema = = 1", "not valid TOML"),
    ],
)
def test_a_broken_spec_names_file_and_place(own_robot, old, new, message):
    file = edited(own_robot, old, new)
    with pytest.raises(TrueupError, match=message) as caught:
        load_robot(own_robot)
    assert caught.value.file == str(file)


def test_a_joint_the_model_lacks_is_named(own_robot):
    from trueup.robot.model import compile_model

    edited(own_robot, 'name = "joint"', 'name = "joinT"')
    with pytest.raises(TrueupError, match="no joint 'joinT'.*did you mean 'joint'"):
        compile_model(load_robot(own_robot))


def test_limits_of_a_model_in_degrees_are_those_of_the_spec(tmp_path):
    from trueup.robot.model import compile_model

    hinge = '<joint name="turn" axis="0 1 0" range="-90 45" limited="true"/>'
    slide = '<joint name="slide" type="slide" axis="0 0 1" range="-0.2 0.3" limited="true"/>'
    links = "".join(
        f'<body name="b{k}" pos="0 0 0.2">{joint}<geom size="0.05"/></body>' for k, joint in enumerate((hinge, slide))
    )
    file = tmp_path / "arm.xml"
    base = f'<body name="base"><geom size="0.05"/>{links}</body>'
    file.write_text(f'<mujoco><compiler angle="degree"/><worldbody>{base}</worldbody></mujoco>')
    robot = load_robot(file)
    model = compile_model(robot)
    for joint in robot.spec.joints:
        assert model.joint(joint.name).range == pytest.approx(joint.position)
    assert model.joint("turn").range == pytest.approx([-1.5708, 0.7854], abs=1e-4)
