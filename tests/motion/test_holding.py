"""Targets that hold a motion: torques of a hand-made case, and robots that are asked for nothing else."""

import re
from dataclasses import replace

import numpy as np
import pytest

from trueup.motion.bodies import BodyTree, complete
from trueup.motion.holding import holding_targets, joint_torques
from trueup.motion.made.make import make_motion
from trueup.motion.motion import Motion
from trueup.motion.rotations import rotate
from trueup.robot.load import load_robot
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task
from trueup.tasks.task import Start
from trueup.world.sensors import SensorCfg

G1 = load_robot("g1")
TREE = BodyTree(G1)
NAMES = G1.spec.joint_names


def standing(**changes):
    """g1 in its default pose for half a second."""
    pose = np.tile(G1.spec.default_pose, (26, 1))
    root = np.tile([0.0, 0.0, G1.spec.base.stand_height], (26, 1))
    quat = np.tile([1.0, 0, 0, 0], (26, 1))
    found = Motion(rate_hz=50.0, root_pos=root, root_quat=quat, joint_names=NAMES, joint_pos=pose)
    return replace(complete(found, G1, TREE), **changes)


def test_an_arm_that_hangs_in_the_air_asks_for_the_torque_of_its_weight():
    """Held out sideways, the arm's weight times its lever about the shoulder's axis."""
    motion = standing()
    k = NAMES.index("left_shoulder_roll_joint")
    pose = motion.joint_pos.copy()
    pose[:, k] = np.pi / 2
    motion = complete(replace(motion, joint_pos=pose), G1, TREE)
    bodies = TREE.place(motion.root_pos[:1], motion.root_quat[:1], pose[:1])
    shoulder = TREE.index("left_shoulder_roll_link")
    own = [b for b, name in enumerate(TREE.names) if re.match("left_(shoulder_(roll|yaw)|elbow|wrist)", name)]
    centre = bodies.pos[0, own] + rotate(bodies.quat[0, own], TREE.com[own])
    moment = np.cross(centre - bodies.pos[0, shoulder], [0.0, 0.0, 9.81]) * TREE.mass[own, None]  # that holds it
    axis = rotate(bodies.quat[:1, shoulder], TREE.axis[shoulder][None])[0]
    weight = float(moment.sum(axis=0) @ axis)
    assert abs(weight) > 2.0
    assert joint_torques(motion, G1, TREE)[10, k] == pytest.approx(weight, rel=0.01)


def test_in_the_air_no_foot_carries_and_on_the_ground_ankles_do():
    flying = standing(contacts=np.zeros((26, 2), bool))
    ankle = NAMES.index("left_ankle_pitch_joint")
    in_air, on_ground = (joint_torques(motion, G1, TREE)[10, ankle] for motion in (flying, standing()))
    assert abs(in_air) < 0.5  # the weight of a foot
    assert abs(on_ground) > 3.0


def test_both_legs_carry_alike_where_a_robot_stands_evenly():
    torque = joint_torques(standing(), G1, TREE)[10]
    left, right = (torque[[NAMES.index(f"{side}_{joint}_joint") for joint in ("knee", "hip_pitch", "ankle_pitch")]]
                   for side in ("left", "right"))  # fmt: skip
    np.testing.assert_allclose(left, right, rtol=0.05, atol=0.1)


def test_offsets_stay_within_what_motors_can():
    motion = make_motion("jump", G1)
    limit = (G1.spec.torque_limit + np.abs(G1.spec.kd * motion.joint_vel)) / G1.spec.kp
    assert (np.abs(holding_targets(motion, G1, TREE) - motion.joint_pos) <= limit + 1e-9).all()


@pytest.mark.parametrize("name", ["g1-track:squat", "g1-track:side_step"])
def test_a_robot_that_is_asked_for_them_follows_until_it_falls_over(name):
    """In the first second; asked for the joints of the motion alone it sags."""

    def error_mm(*, held):
        task = replace(load_task(name), start=Start(), sensors=SensorCfg())
        env = TaskEnv(task, EnvCfg(nenv=1, threads=1, randomize=False, pushes=False, stagger=False))
        if not held:
            env.goal._rows[:, :29] = env.goal.reference.joint_pos - G1.spec.default_pose
            env.reset()
        for _ in range(40):
            env.step(np.zeros((1, 29), np.float32))
        gap = env.frame.body_gap[0]
        return 1e3 * np.linalg.norm(gap - gap[0], axis=1).mean()

    assert error_mm(held=True) < 0.5 * error_mm(held=False)
    assert error_mm(held=True) < 20.0
