"""The cycle of a made march: whose turn it is, and that left and right are alike."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from trueup.motion.made.march import MarchCycle
from trueup.robot.load import load_robot

ROBOT = load_robot("g1")
LEGS = ROBOT.spec.joint_names[:12]
KNEES = [LEGS.index(f"{side}_knee_joint") for side in ("left", "right")]


@pytest.fixture(scope="module")
def cycle():
    return MarchCycle()(ROBOT, LEGS)


def test_a_period_has_a_row_for_each_control_step_at_50_hz(cycle):
    assert np.array(cycle.rows).shape == (40, 12)


def test_the_left_knee_bends_before_half_of_the_period_the_right_one_after(cycle):
    bend = np.array(cycle.rows)[:, KNEES]
    left, right = bend.argmax(axis=0) / 40
    assert 0.2 < left < 0.4
    assert right - left == pytest.approx(0.5, abs=0.03)
    assert (bend.max(axis=0) > 0.4).all()


def test_half_a_period_later_each_leg_does_what_the_other_did(cycle):
    rows = np.array(cycle.rows)
    other = np.concatenate([rows[:, 6:], rows[:, :6]], axis=1) * np.tile([1, -1, -1, 1, 1, -1], 2)
    np.testing.assert_allclose(np.roll(rows, 20, axis=0), other, atol=0.02)


def test_servos_with_softer_springs_are_led_farther(cycle):
    spec = ROBOT.spec
    joints = tuple(msgspec.structs.replace(joint, kp=0.5 * joint.kp) for joint in spec.joints)
    soft = MarchCycle()(replace(ROBOT, spec=msgspec.structs.replace(spec, joints=joints)), LEGS)
    assert np.abs(np.array(soft.rows)).max() > np.abs(np.array(cycle.rows)).max() + 0.05
