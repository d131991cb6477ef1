"""Which drive and torque each joint gets: sliding, saturated, holding; by hand-computed numbers."""

import numpy as np
import pytest

from trueup.world.engines.physx_joints import PhysxJoints

DT, INERTIA = 0.005, 0.02  # mass = 4 N m s/rad


class Drive:
    """Remembers what PhysX would be told."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, float]] = []

    def set_drive_properties(self, stiffness: float, damping: float, limit: float, mode: str) -> None:
        assert (stiffness, mode) == (0.0, "force")
        self.calls.append((float(damping), float(limit)))


@pytest.fixture
def joint():
    """One joint: kp 20, kd 0.5, damping 0.1, friction 0.4, limit 10."""
    drive = Drive()
    joints = PhysxJoints([[drive]], DT, np.array([INERTIA]))
    for name, value in {"kp": 20.0, "kd": 0.5, "limit": 10.0, "damping": 0.1, "friction": 0.4}.items():
        getattr(joints, name)[:] = value
    joints.drive = drive
    return joints


def act(joints: PhysxJoints, target: float, dq: float, **more) -> float:
    return float(joints.act(np.array([[target]]), np.zeros((1, 1)), np.array([[dq]]), **more)[0, 0])


def test_a_moving_joint_has_friction_against_its_motion_and_damping_in_the_drive(joint):
    assert act(joint, 0.1, 3.0) == pytest.approx(20 * 0.1 - 0.4)
    assert joint.drive.calls[-1][0] == pytest.approx(0.6)
    assert joint.drive.calls[-1][1] > 1e30
    assert joint.torque[0, 0] == pytest.approx(2.0 - 0.5 * 3.0)  # the servo alone, at the speed before the step
    assert act(joint, 0.1, -3.0) == pytest.approx(2.0 + 0.4)


def test_a_saturated_servo_gives_its_limit_and_damps_no_more(joint):
    assert act(joint, 1.0, 3.0) == pytest.approx(10.0 - 0.4)
    assert joint.drive.calls[-1][0] == pytest.approx(0.1)
    assert joint.torque[0, 0] == 10.0


def test_a_motors_line_cuts_the_torque_along_the_motion_only(joint):
    joint.motor = np.array([[[12.0]], [[8.0]]])  # stall torque, no-load speed
    assert act(joint, 1.0, 6.0) == pytest.approx(12.0 * (1 - 6 / 8) - 0.4)
    assert act(joint, -1.0, 6.0) == pytest.approx(-10.0 - 0.4)
    assert act(joint, 1.0, 10.0) == pytest.approx(-3.0 - 0.4)  # beyond it the motor brakes


def test_a_slow_joint_is_held_by_a_drive_of_at_most_its_friction(joint):
    slow = 0.9 * 2 * 0.4 / (INERTIA / DT + 0.6)
    torque = act(joint, 0.01, slow)
    damping, limit = joint.drive.calls[-1]
    assert damping > 1e3
    assert limit == pytest.approx(0.4)
    share = 4.0 / 4.6  # explicit damping that never turns the joint round
    assert torque == pytest.approx(0.2 - share * 0.6 * slow)
    assert act(joint, 0.01, 1.2 * slow / 0.9) == pytest.approx(0.2 - 0.4)


def test_with_a_known_load_a_joint_holds_what_friction_can_stop(joint):
    held = np.array([[0.5]])  # N m of gravity to balance
    assert act(joint, 0.04, 0.0, bias=held) == pytest.approx(0.8)  # 0.3 is left: below 0.4
    assert joint.drive.calls[-1][1] == pytest.approx(0.4)
    assert act(joint, 0.05, 0.0, bias=held) == pytest.approx(1.0 - 0.4)  # 0.5 is left
    assert act(joint, 0.0, 0.0, bias=held) == pytest.approx(0.4)  # gravity pulls it back
    assert act(joint, 0.04, 0.03, bias=held) == pytest.approx(0.8 - 0.4)  # 4 x 0.03 of swing comes on top


def test_rows_without_a_known_load_follow_the_speed(joint):
    assert act(joint, 0.05, 0.0, bias=np.array([[np.nan]])) == pytest.approx(1.0)


def test_offset_spring_and_feed_forward_add_up(joint):
    joint.friction[:] = 0.0
    joint.offset[:], joint.stiffness[:], joint.rest[:] = 0.3, 2.0, 0.1
    assert act(joint, 0.1, 1.0, feed=0.7) == pytest.approx(2.0 + 0.7 + 0.3 + 0.2)
    assert joint.torque[0, 0] == pytest.approx(2.7 - 0.5)


def test_drives_are_written_only_when_a_mode_or_a_number_changes(joint):
    for _ in range(3):
        act(joint, 0.1, 3.0)
    assert len(joint.drive.calls) == 1
    act(joint, 0.1, 0.0)
    assert len(joint.drive.calls) == 2
    joint.kd[:] = 1.0
    joint.renew()
    act(joint, 0.1, 3.0)
    assert joint.drive.calls[-1][0] == pytest.approx(1.1)
