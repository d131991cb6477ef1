"""Rehearsal: collisions and limits are found in the model, and the plan is made smaller until it passes."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.excitation.plan import Plan, join_plans, move_plan
from trueup.robot.load import Robot, load_robot, zoo_names
from trueup.robot.model import ModelCfg, compile_model, default_qpos, joint_index
from trueup.world.rehearse import Rehearsal, RehearseCfg, plan_figure_data, rehearse

FloatArray = NDArray[np.float64]


def to_pose(robot: Robot, rate_hz: float = 200.0, **joints: float) -> Plan:
    """From the default pose to another one and back."""
    spec = robot.spec
    pose = spec.default_pose.copy()
    for name, value in joints.items():
        pose[spec.joint_names.index(name)] = value
    there = move_plan(spec, spec.default_pose, pose, rate_hz=rate_hz, velocity_fraction=0.2)
    back = move_plan(spec, pose, spec.default_pose, rate_hz=rate_hz, velocity_fraction=0.2)
    return join_plans(there, back)


def contacts(robot: Robot, poses: FloatArray) -> int:
    """An independent look at poses (T, n): how many contacts there are in all."""
    floor = not robot.spec.base.floating
    model = compile_model(robot, ModelCfg(base="fixed", collisions="full", floor=floor))
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    index, count = joint_index(model, robot), 0
    for pose in poses:
        data.qpos[index.qpos] = pose
        mujoco.mj_forward(model, data)
        count += data.ncon
    return count


# the servos of g1's waist are hardly stiffer (28 N m/rad) than the trunk on them is heavy: other joints shake them
SOFT = dict.fromkeys(("g1", "g1_23"), ("waist_roll_joint", "waist_pitch_joint"))


@pytest.mark.medium
@pytest.mark.parametrize("name", zoo_names())
@pytest.mark.parametrize("kind", ["multisine", "steps", "random_holds", "square_ladder"])
def test_default_excitation_of_every_robot_passes(name: str, kind: str) -> None:
    robot = load_robot(name)
    plan = excite(robot.spec, ExcitationCfg(kind=kind, seconds=19.5))  # type: ignore[arg-type]
    rehearsal = rehearse(robot, plan)
    stiff = [joint not in SOFT.get(name, ()) for joint in robot.spec.joint_names]
    assert rehearsal.scale[stiff].min() > 0.3
    assert (rehearsal.peak_torque <= 0.9 * robot.spec.torque_limit).all()
    assert (rehearsal.peak_velocity <= 0.9 * robot.spec.velocity_limit).all()
    assert contacts(robot, rehearsal.joint_pos[::20]) == 0


def test_a_plan_that_passes_is_left_alone() -> None:
    robot = load_robot("z1")
    plan = excite(robot.spec, ExcitationCfg(seconds=4.0))
    rehearsal = rehearse(robot, plan)
    assert (rehearsal.plan.target_pos == plan.target_pos).all()
    assert (rehearsal.scale == 1.0).all()
    assert rehearsal.notes == ()


def test_legs_that_would_cross_are_named_with_the_time() -> None:
    robot = load_robot("go2")
    plan = to_pose(robot, FL_hip_joint=-1.0, FR_hip_joint=1.0)
    with pytest.raises(TrueupError, match=r"'FL_\w+' touches 'FR_\w+' at \d\.\d\d s .*'FL_hip_joint'"):
        rehearse(robot, plan, RehearseCfg(scale=False))


def test_a_collision_shrinks_the_joints_between_and_no_others() -> None:
    robot = load_robot("go2")
    plan = to_pose(robot, FL_hip_joint=-1.0, FR_hip_joint=1.0, RL_calf_joint=-2.0)
    rehearsal = rehearse(robot, plan)
    names = robot.spec.joint_names
    shrunk = {name for name, scale in zip(names, rehearsal.scale, strict=True) if scale < 1.0}
    assert shrunk == {"FL_hip_joint", "FR_hip_joint"}
    assert {note.split("'")[1] for note in rehearsal.notes} == shrunk
    assert contacts(robot, plan.target_pos) > 0  # as asked for it does collide
    assert contacts(robot, rehearsal.plan.target_pos) == 0


def test_an_arm_does_not_drive_into_the_table() -> None:
    robot = load_robot("so101")
    plan = to_pose(robot, shoulder_lift=1.5, elbow_flex=0.0)
    with pytest.raises(TrueupError, match="'floor' touches"):
        rehearse(robot, plan, RehearseCfg(scale=False))
    lifted = rehearse(robot, plan, RehearseCfg(floor=False, torque_fraction=10.0))
    assert (lifted.scale == 1.0).all()  # without a table the same way is free


def test_the_commanded_path_is_checked_too() -> None:
    """Servos this weak never get to the collision; a robot that follows would."""
    robot = load_robot("go2")
    weak = tuple(msgspec.structs.replace(joint, kp=0.5, kd=0.5) for joint in robot.spec.joints)
    limp = replace(robot, spec=msgspec.structs.replace(robot.spec, joints=weak))
    plan = to_pose(limp, FL_hip_joint=-1.0, FR_hip_joint=1.0)
    with pytest.raises(TrueupError, match="touches"):
        rehearse(limp, plan, RehearseCfg(scale=False))


def test_torque_beyond_the_limit_shrinks_that_joint() -> None:
    robot = load_robot("pendulum:load_mass=2.0,load_length=0.4")
    cfg = ExcitationCfg(
        kind="chirp", seconds=6.0, limits=LimitCfg(amplitude_rad=1.5, velocity_fraction=0.9, rise_s=0.05)
    )
    plan = excite(robot.spec, cfg)
    with pytest.raises(TrueupError, match="'joint' reaches a torque of"):
        rehearse(robot, plan, RehearseCfg(scale=False))
    rehearsal = rehearse(robot, plan)
    assert 0.05 < rehearsal.scale[0] < 1.0
    assert rehearsal.peak_torque[0] <= 0.9 * robot.spec.torque_limit[0]
    assert rehearsal.peak_torque[0] > 0.6 * robot.spec.torque_limit[0]  # smaller, not timid
    assert "torque" in rehearsal.notes[0]


def test_a_load_that_cannot_be_held_is_refused_by_name() -> None:
    robot = load_robot("pendulum:load_mass=2.0,load_length=0.4")
    horizontal = msgspec.structs.replace(robot.spec.joints[0], default=1.57, torque=5.0)
    weak = replace(robot, spec=msgspec.structs.replace(robot.spec, joints=(horizontal,)))
    plan = excite(weak.spec, ExcitationCfg(seconds=3.0))
    with pytest.raises(TrueupError, match="'joint' reaches a torque of"):
        rehearse(weak, plan)


def test_torque_of_a_held_pendulum_is_that_of_gravity() -> None:
    """By hand: m g l sin(q) plus the rod's share, from the model's own inverse dynamics at rest."""
    robot = load_robot("pendulum:load_mass=1.0,load_length=0.3")
    up = msgspec.structs.replace(robot.spec.joints[0], default=0.7)
    robot = replace(robot, spec=msgspec.structs.replace(robot.spec, joints=(up,)))
    rehearsal = rehearse(robot, excite(robot.spec, ExcitationCfg(kind="hold", seconds=3.0)))
    model = compile_model(robot, ModelCfg(base="fixed"))
    data = mujoco.MjData(model)
    data.qpos[0] = rehearsal.joint_pos[-1, 0]
    mujoco.mj_forward(model, data)
    friction = float(model.dof_frictionloss[0])
    assert rehearsal.torque[-1, 0] == pytest.approx(float(data.qfrc_bias[0]), abs=friction + 1e-3)
    assert abs(float(data.qfrc_bias[0])) > 1.0


def test_states_and_commands_are_paired_as_in_a_log() -> None:
    robot = load_robot("go2")
    robot = replace(robot, spec=msgspec.structs.replace(robot.spec, delay_s=0.0))
    rehearsal = rehearse(robot, excite(robot.spec, ExcitationCfg(seconds=3.0, rate_hz=1000.0)))
    asked = robot.spec.kp * (rehearsal.plan.target_pos - rehearsal.joint_pos) - robot.spec.kd * rehearsal.joint_vel
    # one physics step a row: the torque of row t is made of state and command of row t
    assert rehearsal.torque == pytest.approx(asked, abs=1e-9)


def test_velocity_targets_reach_the_servos() -> None:
    robot = load_robot("z1")
    cfg = ExcitationCfg(seconds=4.0, kind="chirp")
    lagging, led = (rehearse(robot, excite(robot.spec, replace(cfg, with_velocity=on))) for on in (False, True))

    def error(rehearsal: Rehearsal) -> float:
        return float(np.abs(rehearsal.joint_pos - rehearsal.plan.target_pos)[:, 0].max())

    assert error(led) < 0.5 * error(lagging)


def test_figure_data_has_one_clock() -> None:
    robot = load_robot("so101")
    plan = excite(robot.spec, ExcitationCfg(seconds=3.0))
    assert plan_figure_data(plan).keys() == {"position", "velocity"}
    rehearsal = rehearse(robot, plan)
    data = plan_figure_data(plan, rehearsal)
    assert data.keys() == {"position", "velocity", "torque"}
    shapes = {values.shape for traces in data.values() for values in traces.values()}
    assert shapes == {(len(plan), 6)}
    assert (data["position"]["target"] == rehearsal.plan.target_pos).all()


def test_a_plan_for_another_robot_is_refused() -> None:
    plan = excite(load_robot("z1").spec, ExcitationCfg(seconds=3.0))
    with pytest.raises(TrueupError, match="other joints"):
        rehearse(load_robot("so101"), plan)


def test_the_result_is_the_same_every_time() -> None:
    robot = load_robot("so101")
    plan = excite(robot.spec, ExcitationCfg(seconds=3.0))
    one, two = rehearse(robot, plan), rehearse(robot, plan)
    assert (one.torque == two.torque).all()
    assert one.notes == two.notes
