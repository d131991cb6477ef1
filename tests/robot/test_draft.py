"""A first spec from a bare model: what is taken over, what is guessed, and that the guesses are marked."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from foreign_robots import locate
from test_fuzz_files import MJCF as SEED
from test_fuzz_files import PART, wedge_stl
from test_fuzz_files import urdf as quadruped
from test_untrusted import mjcf, urdf

from trueup.core.errors import TrueupError
from trueup.robot.drafts.draft import SAG_ARM, Draft, draft_spec, guess_gains, make_draft
from trueup.robot.foreign.untrusted import read_model
from trueup.robot.inspection.inspect import inspect_robot
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim
from trueup.world.config import SimCfg


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
    stiff = min(inertia * (8 * math.pi) ** 2, 4 * joint.torque)
    assert joint.kp == pytest.approx(max(stiff, 2 * 9.81 * 0.5 / SAG_ARM), rel=1e-3)
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
    low = 0.2 * math.cos(lean) + 0.2 * math.cos(lean) + 0.02 * math.sin(lean)  # thigh, shin, half a box's width
    assert spec.base.stand_height == pytest.approx(low, abs=1e-3)
    assert spec.feet == tuple(f"{leg}_knee_collision" for leg in ("FL", "FR", "RL", "RR"))
    assert "base.floating" in made.guesses


LEGS = """<body name="trunk" pos="0 0 1"><freejoint/><inertial pos="0 0 0" mass="10" diaginertia=".1 .1 .1"/>
  <geom name="belly" type="box" size=".3 .1 .05" mass="0"/>{legs}</body>"""
LEG = """<body name="{n}_thigh" pos="{x} {y} 0"><inertial pos="0 0 -.1" mass="1" diaginertia=".01 .01 .01"/>
  <joint name="{n}_hip" axis="0 1 0" range="-3 3"/><body name="{n}_shin" pos="0 0 -.2">
  <inertial pos="0 0 -.1" mass=".2" diaginertia=".001 .001 .001"/><joint name="{n}_knee" axis="0 {s} 0" range="-3 3"/>
  <geom name="{n}_bone" type="capsule" size=".01" fromto="0 0 0 0 0 -.15" mass="0"/>
  <geom name="{n}_foot" size=".02" pos="0 0 -.2" mass="0"/></body></body>"""


def four_legs(torque: str = "", tail: str = "") -> str:
    """Legs in an odd order, straight down at zero, knees of the right about -y."""
    places = {"RR": (-0.3, -0.1), "FL": (0.3, 0.1), "RL": (-0.3, 0.1), "FR": (0.3, -0.1)}
    legs = [LEG.format(n=n, x=x, y=y, s=1 if y > 0 else -1) for n, (x, y) in places.items()]
    motors = "".join(f'<motor joint="{n}_{j}" {torque}/>' for n in places for j in ("hip", "knee"))
    body = LEGS.format(legs="".join(legs))
    return mjcf('<compiler angle="radian"/>', body, f"<actuator>{motors}</actuator>{tail}")


def pose(made: Draft) -> dict[str, float]:
    return dict(zip(made.spec.joint_names, made.spec.default_pose.tolist(), strict=True))


def test_straight_legs_are_bent_with_the_knees_to_the_back(tmp_path: Path) -> None:
    made = draft(tmp_path, four_legs())
    found = pose(made)
    for side, sign in (("FL", 1), ("FR", -1), ("RL", 1), ("RR", -1)):
        assert found[f"{side}_hip"] == pytest.approx(0.75, abs=1e-3)
        assert found[f"{side}_knee"] == pytest.approx(-1.5 * sign, abs=1e-3)
    assert made.spec.base.stand_height == pytest.approx(0.4 * math.cos(0.75) + 0.02, abs=1e-3)
    assert "bent evenly" in made.guesses["default of FL_knee"]


def test_feet_come_in_order_and_shins_are_no_contacts(tmp_path: Path) -> None:
    spec = draft(tmp_path, four_legs()).spec
    assert spec.feet == ("FL_foot", "FR_foot", "RL_foot", "RR_foot")
    assert set(spec.contact_geoms) == {"belly", *spec.feet}


def test_a_keyframe_in_which_it_does_not_stand_is_passed_over(tmp_path: Path) -> None:
    joints = " ".join("2.5 -1.0" if name in ("FL", "RL") else "0.6 1.2" for name in ("RR", "FL", "RL", "FR"))
    bad = f'<keyframe><key name="home" qpos="0 0 1 1 0 0 0 {joints}"/></keyframe>'
    made = draft(tmp_path, four_legs(tail=bad))
    assert pose(made)["FL_hip"] == pytest.approx(0.75, abs=1e-3)
    assert "does not stand" in made.guesses["default of FL_hip"]
    good = " ".join(f"0.6 {-1.2 if name[1] == 'L' else 1.2}" for name in ("RR", "FL", "RL", "FR"))
    made = draft(tmp_path, four_legs(tail=bad.replace(joints, good)))
    assert pose(made)["FL_hip"] == 0.6
    assert "default of FL_hip" not in made.guesses


def test_torque_limits_that_no_robot_has_are_guesses(tmp_path: Path) -> None:
    real = draft(tmp_path, four_legs(torque='ctrlrange="-40 40"'))
    assert real.spec.joints[0].torque == 40.0
    made = draft(tmp_path, four_legs(torque='ctrlrange="-5000 5000"'))
    assert made.spec.joints[0].torque < 100.0
    assert "placeholder" in made.guesses["torque of FL_knee"]


def test_drafted_gains_carry_the_weight(tmp_path: Path) -> None:
    made = draft(tmp_path, four_legs(torque='ctrlrange="-40 40"'))
    knee = next(joint for joint in made.spec.joints if joint.name == "FL_knee")
    carried = (10.0 + 4 * 1.2) / 4 * 9.81 * 0.2 * math.sin(0.75)
    assert knee.kp == pytest.approx((carried - 0.2 * 9.81 * 0.1 * math.sin(0.75)) / 0.1, rel=0.02)  # less the shin's
    assert "sags by 0.1" in made.guesses["kp of FL_knee"]
    plain = guess_gains(0.01, 40.0, 500.0)
    assert guess_gains(0.01, 40.0, 500.0, load=6.0)[0] == 60.0 > plain[0]
    weak = guess_gains(0.01, 4.0, 500.0, load=6.0)
    assert weak == guess_gains(0.01, 4.0, 500.0, load=4.0)  # what the motor cannot hold asks for no gain


REACHING = """<body name="base" pos="0 0 0.7"><geom size="0.1"/><body name="upper"><inertial pos="0.3 0 0" mass="6"
  diaginertia="0.02 0.02 0.02"/><joint name="shoulder" axis="0 1 0" range="-2 2" actuatorfrcrange="-60 60"/>
  <body name="lower" pos="0.6 0 0"><inertial pos="0.2 0 0" mass="2" diaginertia="0.01 0.01 0.01"/>
  <joint name="elbow" axis="0 1 0" range="-2 2" actuatorfrcrange="-30 30"/></body></body></body>"""


def test_an_arm_that_reaches_out_is_held_where_the_draft_says(tmp_path: Path) -> None:
    """Simulated, not computed: the arm settles within the sag that the draft allows, and as far as it says."""
    file = tmp_path / "arm.xml"
    file.write_text(mjcf('<compiler angle="radian"/>', REACHING))
    robot = load_robot(file)
    sim = BatchSim(robot, SimCfg(nsim=1))
    sim.reset()
    for _ in range(round(3.0 * robot.spec.control_hz)):
        sim.step(robot.spec.default_pose)
    sag = np.abs(sim.joint_pos[0] - robot.spec.default_pose)
    load = 9.81 * np.array([6 * 0.3 + 2 * 0.8, 2 * 0.2])
    assert robot.spec.kp == pytest.approx(np.maximum(robot.spec.kp, load / SAG_ARM), rel=1e-3)
    assert sag.max() < 1.1 * SAG_ARM
    assert sag == pytest.approx(load / robot.spec.kp, rel=0.1)
    assert "sags" not in {finding.code for finding in inspect_robot(robot).findings}


def test_soft_gains_of_the_file_are_kept_and_said_to_sag(tmp_path: Path) -> None:
    file = tmp_path / "arm.xml"
    servos = "".join(f'<position joint="{name}" kp="100" kv="5"/>' for name in ("shoulder", "elbow"))
    file.write_text(mjcf('<compiler angle="radian"/>', REACHING, f"<actuator>{servos}</actuator>"))
    robot = load_robot(file)
    assert list(robot.spec.kp) == [100.0, 100.0]
    finding = next(one for one in inspect_robot(robot).findings if one.code == "sags")
    assert finding.where == "shoulder"
    assert f"settles {9.81 * 3.4 / 100:.2f} below" in finding.message
    assert finding.level == "warning"


@pytest.mark.parametrize("name", ["a1", "panda", "so100", "go1"])
def test_drafts_of_foreign_robots_sag_little(name: str) -> None:
    path, root = locate(name)
    codes = {finding.code for finding in inspect_robot(load_robot(path, root=root)).findings}
    assert not codes & {"sags", "unstable-gains"}


def test_speeds_that_no_joint_has_are_guesses(tmp_path: Path) -> None:
    made = draft(tmp_path, urdf().replace('velocity="3"', 'velocity="1000"'), "r.urdf")
    assert made.spec.joints[0].velocity == 10.0
    assert "placeholder" in made.guesses[f"velocity of {made.spec.joints[0].name}"]


def test_a_urdf_bolted_to_world_does_not_float(tmp_path: Path) -> None:
    joint = '<joint name="w" type="fixed"><parent link="world"/><child link="trunk"/></joint>'
    bolt = f'<link name="world"/>{joint}</robot>'
    assert not draft(tmp_path, quadruped().replace("</robot>", bolt), "quad.urdf").spec.base.floating


@pytest.mark.parametrize(("timestep", "hz"), [("0.002", 500.0), ("0.003", 350.0), ("0.5", 100.0), ("1e-9", 2000.0)])
def test_physics_rate_is_a_multiple_of_the_control_rate(tmp_path: Path, timestep: str, hz: float) -> None:
    made = draft(tmp_path, mjcf(f'<option timestep="{timestep}"/>'))
    assert made.spec.physics_hz == hz


def test_a_model_without_joints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="nothing to control"):
        draft(tmp_path, mjcf(world='<geom size="1"/>'))


@pytest.mark.parametrize(
    ("name", "floating", "joints", "feet"),
    [("go1", True, 12, 4), ("aliengo", True, 12, 4), ("mini_cheetah", True, 12, 4),
     ("a1", True, 12, 4), ("go2", True, 12, 4), ("solo12", True, 12, 4),
     ("anymal_b", True, 12, 4), ("z1", False, 7, 0), ("panda", False, 9, 0), ("so100", False, 6, 0)],
)  # fmt: skip
def test_foreign_robots_are_understood(name: str, floating: bool, joints: int, feet: int) -> None:
    path, root = locate(name)
    spec = draft_spec(path, root)
    assert (spec.base.floating, spec.njoint, len(spec.feet)) == (floating, joints, feet)
    assert (spec.base.stand_height > 0.15) == floating
