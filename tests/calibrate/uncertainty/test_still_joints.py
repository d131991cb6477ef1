"""Which joints count as not moved, and what is said when a delay wants to be negative."""

from types import SimpleNamespace

import numpy as np

from trueup.calibrate.uncertainty.assess import still_joints

NAMES = ("hip", "knee", "ankle")


def windows(**changes: object) -> SimpleNamespace:
    rng = np.random.default_rng(0)
    target = 0.2 * rng.standard_normal((2, 50, 3))
    target[..., 1] = 0.7
    content = {
        "joint_names": NAMES,
        "sigma": np.full(6, 5e-4),
        "target": target,
        "torque": None,
        "still": np.array([False, False, True]),
    }
    return SimpleNamespace(**(content | changes))


def test_a_joint_that_was_not_asked_to_move_is_still_even_if_it_shakes():
    assert still_joints(windows()) == {"knee", "ankle"}


def test_the_way_to_a_pose_and_back_asks_for_nothing():
    slow = windows()
    slow.target[0, :, 0] = np.linspace(0.3, 0.35, 50)
    slow.target[1, :, 0] = np.linspace(0.35, 0.3, 50)
    assert "hip" in still_joints(slow)


def test_a_joint_that_is_moved_by_torque_commands_is_not_still():
    torque = np.zeros((2, 50, 3))
    torque[:, ::2, 1] = 3.0
    assert still_joints(windows(torque=torque)) == {"ankle"}


def test_commands_within_the_noise_ask_for_nothing():
    small = windows()
    small.target[..., 0] = 0.3 + 1e-3 * np.sin(np.arange(50))
    assert "hip" in still_joints(small)
