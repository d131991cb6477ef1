"""Frames made by hand: what rewards and terminations see, field by field."""

import numpy as np

from trueup.tasks.sensing.frame import Frame


def frame(**fields):
    """Two quadrupeds: both stand still in the default pose, asked to walk and to stand."""
    f = Frame(2, {}, None)
    f.dt = 0.02
    f.joint_pos = np.zeros((2, 12), np.float32)
    f.joint_vel = np.zeros((2, 12), np.float32)
    f.joint_torque = np.zeros((2, 12), np.float32)
    f.joint_low, f.joint_high = np.full(12, -1.0, np.float32), np.full(12, 1.0, np.float32)
    f.torque_limit, f.default_pose = np.full(12, 20.0, np.float32), np.zeros(12, np.float32)
    f.action, f.last_action = np.zeros((2, 12), np.float32), np.zeros((2, 12), np.float32)
    f.command = np.array([[0.5, 0.0, 0.0], [0.0, 0.0, 0.0]], np.float32)
    f.asked = f.command.copy()
    f.base_vel, f.base_spin = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    f.gravity = np.tile(np.array([0, 0, -1], np.float32), (2, 1))
    f.base_height = np.full(2, 0.3, np.float32)
    f.foot_contact, f.touchdown = np.ones((2, 4), bool), np.zeros((2, 4), bool)
    f.foot_height, f.foot_vel = np.zeros((2, 4), np.float32), np.zeros((2, 4, 3), np.float32)
    f.air_time, f.duty = np.zeros((2, 4), np.float32), np.ones((2, 4), np.float32)
    f.swing_peak = np.zeros((2, 4), np.float32)
    f.body_contact = np.zeros(2, bool)
    f.tool_error = np.zeros((2, 6), np.float32)
    for name, values in fields.items():
        getattr(f, name)[...] = values
    return f
