"""A first spec from a bare model: what is taken over, what is guessed, and that the guesses are marked."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from foreign_robots import locate
from test_fuzz_files import MJCF as SEED
from test_fuzz_files import PART, wedge_stl
from test_fuzz_files import urdf as quadruped
from test_untrusted import mjcf, urdf

from trueup.core.errors import TrueupError
from trueup.robot.draft import Draft, draft_spec, guess_gains, make_draft
from trueup.robot.untrusted import read_model


def draft(folder: Path, text: str, name: str = "model.xml") -> Draft:
    file = folder / name
    file.write_text(text)
    return make_draft(read_model(file))


ARM = """<body name="base" pos="0 0 0.7"><geom size="0.1"/><body name="arm">
  <joint name="a" axis="0 1 0" range="-1 2" {}/><geom name="g" type="capsule" size="0.02" fromto="0 0 0 0 0 0.4"/>
  <site name="tool" pos="0 0 0.4"/></body></body>"""


def test_a_position_actuator_gives_gains_and_torque(tmp_path: Path) -> None:
    tail = '<actuator><position joint="a" kp="30" kv="2" forcerange="-5 5" gear="2"/></actuator>'
    made = draft(tmp_path, mjcf('<compiler angle="radian"/>', ARM.format(""), tail))
    joint = made.spec.joints[0]
    assert (joint.kp, joint.kd, joint.torque, joint.position) == (120.0, 8.0, 10.0, (-1.0, 2.0))
    assert set(made.guesses) == {"velocity of a", "default of a"}
    assert made.spec.end_effector == "tool"
    assert (made.spec.base.body, made.spec.base.floating, made.spec.base.hold_height) == ("base", False, 0.7)


@pytest.mark.parametrize(
    ("joint", "tail", "torque"),
    [
        ('actuatorfrcrange="-4 4"', '<actuator><motor joint="a" forcerange="-9 9"/></actuator>', 4.0),
        ("", '<actuator><motor joint="a" ctrlrange="-2 2" gear="3"/></actuator>', 6.0),
        ("", '<actuator><motor joint="a" ctrlrange="-2 2" forcerange="-1 1"/></actuator>', 1.0),
    ],
)
def test_the_tightest_torque_limit_wins(tmp_path: Path, joint: str, tail: str, torque: float) -> None:
    made = draft(tmp_path, mjcf('<compiler angle="radian"/>', ARM.format(joint), tail))
    assert made.spec.joints[0].torque == torque
    assert "torque of a" not in made.guesses


def test_without_actuators_torque_and_gains_follow_from_gravity_and_inertia(tmp_path: Path) -> None:
    inertial = '<inertial pos="0.5 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>'
    body = f'<body name="b"><joint name="a" axis="0 1 0"/>{inertial}</body>'
    made = draft(tmp_path, mjcf(world=body))
    joint = made.spec.joints[0]
    inertia = 0.1 + 2 * 0.5**2
    assert joint.torque == pytest.approx(3 * 2 * 9.81 * 0.5, rel=1e-3)
    assert joint.kp == pytest.approx(min(inertia * (8 * math.pi) ** 2, 4 * joint.torque), rel=1e-3)
    assert joint.kd == pytest.approx(1.4 * math.sqrt(joint.kp * inertia), rel=1e-3)
    assert joint.position == (-math.pi, math.pi)
    assert {"position of a", "torque of a", "kp of a", "kd of a", "velocity of a"} <= set(made.guesses)


def test_guessed_gains_stay_stable_at_the_physics_rate() -> None:
    for inertia in (1e-6, 1e-3, 1.0):
        kp, kd = guess_gains(inertia, torque=50.0, physics_hz=500.0)
        assert math.sqrt(kp / inertia) / 500.0 <= 0.4 + 1e-12
        assert kd / inertia / 500.0 <= 2.0


def test_a_keyframe_gives_the_pose_and_passive_joints_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "wedge.stl").write_bytes(wedge_stl())
    (tmp_path / "part.xml").write_text(PART)
    made = draft(tmp_path, SEED)
    assert made.spec.joint_names == ("hip0", "knee0")
    assert list(made.spec.default_pose) == [0.4, -0.8]
    assert {"passive hip1", "passive knee1"} <= set(made.guesses)
    assert made.spec.imu == "imu"
    assert made.spec.base.floating


def test_urdf_limits_reach_the_spec(tmp_path: Path) -> None:
    joint = draft(tmp_path, urdf(), "r.urdf").spec.joints[0]
    assert (joint.velocity, joint.torque, joint.position) == (3.0, 7.0, (-1.0, 1.0))


def test_a_urdf_with_four_legs_floats_and_stands_on_its_feet(tmp_path: Path) -> None:
    made = draft(tmp_path, quadruped(), "quad.urdf")
    spec = made.spec
    knee = -1.25  # middle of its range; the hip turns half as far the other way
    assert spec.base.floating
    assert list(spec.default_pose[:2]) == [pytest.approx(-knee / 2), knee]
    lean = -knee / 2
    low = (
        0.2 * math.cos(lean) + 0.2 * math.cos(lean) + 0.02 * math.sin(lean)
    )  # thigh, shin, half a box's width
    assert spec.base.stand_height == pytest.approx(low, abs=1e-3)
    assert spec.feet == tuple(f"{leg}_knee_collision" for leg in ("FL", "FR", "RL", "RR"))
    assert "base.floating" in made.guesses


def test_a_urdf_bolted_to_world_does_not_float(tmp_path: Path) -> None:
    joint = '<joint name="w" type="fixed"><parent link="world"/><child link="trunk"/></joint>'
    bolt = f'<link name="world"/>{joint}</robot>'
    assert not draft(tmp_path, quadruped().replace("</robot>", bolt), "quad.urdf").spec.base.floating


@pytest.mark.parametrize(
    ("timestep", "hz"), [("0.002", 500.0), ("0.003", 350.0), ("0.5", 100.0), ("1e-9", 2000.0)]
)
def test_physics_rate_is_a_multiple_of_the_control_rate(tmp_path: Path, timestep: str, hz: float) -> None:
    made = draft(tmp_path, mjcf(f'<option timestep="{timestep}"/>'))
    assert made.spec.physics_hz == hz


def test_a_model_without_joints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="nothing to control"):
        draft(tmp_path, mjcf(world='<geom size="1"/>'))


@pytest.mark.parametrize(
    ("name", "floating", "joints", "feet"),
    [("go1", True, 12, 4), ("aliengo", True, 12, 4), ("a1", True, 12, 4), ("go2", True, 12, 4), ("solo12", True, 12, 4),
     ("anymal_b", True, 12, 4), ("z1", False, 7, 0), ("panda", False, 9, 0), ("so100", False, 6, 0)],
)  # fmt: skip
def test_foreign_robots_are_understood(name: str, floating: bool, joints: int, feet: int) -> None:
    path, root = locate(name)
    spec = draft_spec(path, root)
    assert (spec.base.floating, spec.njoint, len(spec.feet)) == (floating, joints, feet)
    assert (spec.base.stand_height > 0.15) == floating
