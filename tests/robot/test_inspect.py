"""Inspection: the built-in robots are clean, and each planted fault is found, with its number."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from foreign_robots import locate
from test_untrusted import mesh, mjcf, urdf

from trueup.core.errors import TrueupError
from trueup.robot.inspection.inspect import Inspection, Lint, inspect_robot
from trueup.robot.load import Robot, load_robot, zoo_names
from trueup.robot.spec import BaseSpec, JointSpec

BODY = """<body name="base"><geom name="foot" size="0.1" mass="2"/><body name="arm" pos="0 0 0.3">
  <joint name="a" axis="0 1 0" range="-1 2" armature="0.01"/>
  <inertial pos="0 0 0.2" mass="{mass}" diaginertia="{inertia}"/>
  <geom name="rod" type="capsule" size="0.02" fromto="0 0 0 0 0 {length}"/></body></body>"""
SERVO = '<actuator><position joint="a" kp="30" kv="2" forcerange="-20 20"/></actuator>'


def plant(
    folder: Path,
    mass: str = "1",
    inertia: str = "0.01 0.01 0.001",
    length: str = "0.4",
    head: str = "",
    extra: str = "",
) -> Robot:
    """A bare one-joint robot with a fault in it."""
    world = BODY.format(mass=mass, inertia=inertia, length=length) + extra
    (folder / "model.xml").write_text(mjcf('<compiler angle="radian"/>' + head, world, SERVO))
    return load_robot(folder / "model.xml")


def change_joint(robot: Robot, **changes: object) -> Robot:
    joint = msgspec.structs.replace(robot.spec.joints[0], **changes)
    spec = msgspec.structs.replace(robot.spec, joints=(joint,))
    return Robot(spec=spec, model_path=robot.model_path)


def change_spec(robot: Robot, **changes: object) -> Robot:
    return Robot(spec=msgspec.structs.replace(robot.spec, **changes), model_path=robot.model_path)


def found(inspection: Inspection, code: str) -> Lint:
    matches = [finding for finding in inspection.findings if finding.code == code]
    assert matches, f"{code} not among {[finding.code for finding in inspection.findings]}"
    assert matches[0].message
    assert matches[0].fix
    return matches[0]


def codes(robot: Robot) -> set[str]:
    return {finding.code for finding in inspect_robot(robot).findings if finding.level != "note"}


@pytest.mark.parametrize("name", zoo_names())
def test_built_in_robots_are_ready_without_a_single_finding(name: str) -> None:
    inspection = inspect_robot(load_robot(name))
    assert inspection.findings == ()
    assert inspection.verdict == "ready"


def test_tables_hold_the_numbers_of_the_model(tmp_path: Path) -> None:
    inspection = inspect_robot(plant(tmp_path))
    joint, arm = inspection.joints[0], inspection.bodies[1]
    assert joint.inertia == pytest.approx(0.01 + 1 * 0.2**2 + 0.01)
    assert joint.servo_hz == pytest.approx((30 / joint.inertia) ** 0.5 / 6.283185307)
    assert (arm.name, arm.parent, arm.mass, arm.com) == ("arm", "base", 1.0, (0.0, 0.0, 0.2))
    assert inspection.total_mass == pytest.approx(3.0)
    assert inspection.counts["actuators in the file"] == 1


def test_the_inspection_is_json(tmp_path: Path) -> None:
    table = json.loads(json.dumps(inspect_robot(plant(tmp_path)).as_dict()))
    assert table["verdict"] == "usable with warnings"
    assert table["joints"][0]["name"] == "a"


def test_a_sound_file_has_only_its_unknown_speed_to_complain_of(tmp_path: Path) -> None:
    assert codes(plant(tmp_path)) == {"no-velocity-limits"}


def test_missing_limits_are_listed_by_joint(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(
        mjcf(world=BODY.replace('range="-1 2"', "").format(mass=1, inertia="0.01 0.01 0.001", length=0.4))
    )
    inspection = inspect_robot(load_robot(tmp_path / "model.xml"))
    for code in ("no-position-limits", "no-torque-limits", "no-velocity-limits", "no-gains", "no-keyframe"):
        assert found(inspection, code).where == "a"


def test_an_inertia_in_wrong_units_is_found(tmp_path: Path) -> None:
    large = found(inspect_robot(plant(tmp_path, inertia="10 10 1")), "inertia-too-large")
    assert large.where == "arm"
    assert "3.162 m" in large.message
    assert found(inspect_robot(plant(tmp_path, inertia="1e-5 1e-5 1e-6")), "inertia-too-small").where == "arm"


def test_an_impossible_inertia_is_found(tmp_path: Path) -> None:
    finding = found(inspect_robot(plant(tmp_path, inertia="0.01 0.001 0.001")), "repaired-balance")
    assert finding.where == "element 'arm'"
    assert "A + B >= C" in finding.message


def test_lead_and_feathers_are_found(tmp_path: Path) -> None:
    assert found(inspect_robot(plant(tmp_path, mass="500", inertia="5 5 0.5")), "too-dense").where == "arm"
    light = plant(tmp_path, mass="1e-5", inertia="1e-7 1e-7 1e-7")
    assert found(inspect_robot(light), "tiny-mass").where == "arm"
    heavy = plant(tmp_path, extra='<body name="anvil" pos="9 9 9"><geom size="1" mass="5000"/></body>')
    assert "5003 kg" in found(inspect_robot(heavy), "odd-mass").message


def test_overlapping_parts_are_named_with_their_depth(tmp_path: Path) -> None:
    wall = '<body name="wall" pos="0.07 0 0.6"><geom name="wall" type="box" size="0.06 0.1 0.05"/></body>'
    finding = found(inspect_robot(plant(tmp_path, extra=wall)), "pose-collides")
    assert set(finding.where.split(" and ")) == {"rod", "wall"}
    assert "10.0 mm" in finding.message


def test_limits_wider_than_the_files_are_found(tmp_path: Path) -> None:
    robot = change_joint(plant(tmp_path), position=(-3.0, 2.0))
    assert "[-1.000, 2.000]" in found(inspect_robot(robot), "limits-differ").message
    assert "limits-differ" not in codes(change_joint(plant(tmp_path), position=(-0.5, 2.0)))


def test_gains_that_shake_are_found_by_simulation(tmp_path: Path) -> None:
    robot = plant(tmp_path)
    assert "unstable-gains" not in codes(robot)
    shaking = change_joint(robot, kp=2e6, kd=0.0, torque=1e5)
    finding = found(inspect_robot(shaking), "unstable-gains")
    assert finding.where == "a"
    assert "sqrt(kp/I) dt" in finding.message


def test_stiff_gains_that_the_simulation_holds_are_not_reported() -> None:
    """z1's wrist has kd dt/I far above 2, which an explicit integrator could not hold; ours does."""
    inspection = inspect_robot(load_robot("z1"))
    wrist = inspection.joints[5]
    assert wrist.kd / 500.0 / wrist.inertia > 2.0
    assert inspection.verdict == "ready"


def test_a_motor_too_weak_for_gravity_is_found(tmp_path: Path) -> None:
    robot = change_joint(plant(tmp_path), torque=0.5, default=1.5)
    assert f"{9.81 * 0.2:.2f}"[:3] in found(inspect_robot(robot), "too-weak").message


def test_unknown_names_make_a_robot_unusable(tmp_path: Path) -> None:
    inspection = inspect_robot(change_spec(plant(tmp_path), imu="nowhere"))
    assert found(inspection, "unknown-name").level == "error"
    assert inspection.verdict == "not usable"
    joint = JointSpec(name="b", position=(-1, 1), velocity=1, torque=1, kp=1, kd=1)
    inspection = inspect_robot(change_spec(plant(tmp_path), joints=(joint,)))
    assert "no joint 'b'" in found(inspection, "does-not-build").message
    assert inspection.verdict == "not usable"


def test_joints_that_the_spec_leaves_out_are_noted(tmp_path: Path) -> None:
    extra = '<body name="flap" pos="1 0 0"><joint name="loose"/><geom size="0.1"/></body>'
    finding = found(inspect_robot(plant(tmp_path, extra=extra)), "passive-joints")
    assert (finding.where, finding.level) == ("loose", "note")


def test_a_floating_robot_needs_feet_and_the_right_height(tmp_path: Path) -> None:
    robot = plant(tmp_path)
    floating = BaseSpec(body="base", floating=True, stand_height=0.1)
    assert found(inspect_robot(change_spec(robot, base=floating)), "no-feet").level == "warning"
    footed = change_spec(robot, base=floating, feet=("foot",))
    assert "stand-height" not in codes(footed)
    high = change_spec(footed, base=BaseSpec(body="base", floating=True, stand_height=0.5))
    assert "set stand_height = 0.100" in found(inspect_robot(high), "stand-height").fix


def test_a_legged_robot_without_joint_dynamics_is_noted() -> None:
    path, root = locate("a1")
    assert found(inspect_robot(load_robot(path, root=root)), "no-joint-dynamics").level == "note"
    assert "no-joint-dynamics" not in codes(load_robot("go2"))


def test_parts_that_were_left_out_are_findings(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(
        urdf(arm=mesh("visual", "a.dae") + mesh("visual", "b.dae") + mesh("collision", "c.dae"))
    )
    inspection = inspect_robot(load_robot(tmp_path / "r.urdf"))
    visual = found(inspection, "visual-mesh-dropped")
    assert visual.level == "note"
    assert "and 1 more" in visual.message
    assert found(inspection, "collision-mesh-dropped").level == "warning"


def test_mass_that_differs_from_the_urdf_is_found(tmp_path: Path) -> None:
    """A link that moves and has no <inertial> gets mass from its shapes, which the URDF never said."""
    box = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
    extra = (
        f'<link name="hand">{box}</link><joint name="k" type="revolute"><parent link="arm"/><child link="hand"/>'
        '<origin xyz="0 0 1"/><axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
    )
    (tmp_path / "r.urdf").write_text(urdf(extra=extra))
    message = found(inspect_robot(load_robot(tmp_path / "r.urdf")), "mass-differs").message
    assert "7.000 kg" in message
    assert "8.000 kg" in message


def test_a_file_that_cannot_be_read_raises(tmp_path: Path) -> None:
    robot = plant(tmp_path)
    robot.model_path.write_text("<mujoco>")
    with pytest.raises(TrueupError):
        inspect_robot(robot)
