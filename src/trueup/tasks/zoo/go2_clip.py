"""go2-clip: a quadruped follows a reference motion, here a trot drawn by hand."""

from __future__ import annotations

import numpy as np

from trueup.policy.observation import Term
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.robot.spec import RobotSpec
from trueup.tasks.goals.reference_motion import Clip, ReferenceMotionGoal
from trueup.tasks.sensing.frame import Float32, Frame
from trueup.tasks.task import Actions, CriticTerm, Observations, Rates, Reward, Servo, Start, Task
from trueup.tasks.terms import rewards as r
from trueup.world.randomization.randomize import locomotion_ranges
from trueup.world.sensors import SensorCfg

TASKS = {"go2-clip": "go2_clip"}
_PERIOD_S, _ROWS, _SPEED = 0.5, 50, 0.4


def trot_clip(robot: RobotSpec) -> Clip:
    """A trot of 2 Hz and 0.4 m/s: thighs swing to and fro, calves fold while the foot is in the air.

    Diagonal legs move together. On the ground, the thigh turns so far that the foot travels with the ground: leg length
    times angle is speed times half a period.
    """
    phase = 2.0 * np.pi * np.arange(_ROWS) / _ROWS
    swing = _SPEED * 0.5 * _PERIOD_S / (2.0 * 0.3)  # rad, for legs that stand 0.3 m high
    pose = np.tile(robot.default_pose, (_ROWS, 1))
    for k, name in enumerate(robot.joint_names):
        turn = phase if name[:2] in ("FL", "RR") else phase + np.pi
        if "thigh" in name:
            pose[:, k] += swing * np.cos(turn)
        elif "calf" in name:
            pose[:, k] -= 0.5 * np.maximum(0.0, np.sin(turn - np.pi)) ** 2
    ahead = np.tile([_SPEED, 0.0, 0.0], (_ROWS, 1))
    height = np.full(_ROWS, robot.base.stand_height)
    return Clip(rate_hz=_ROWS / _PERIOD_S, joint_pos=pose, base_vel=ahead, base_height=height)


def pose_error(frame: Frame) -> Float32:
    """Root mean square of joint positions minus the clip's, rad."""
    return np.sqrt(np.square(_apart(frame)).mean(axis=1))


def follow_pose(frame: Frame) -> Float32:
    """exp(-|q - q*|^2 / 0.2)."""
    return np.exp(np.float32(-5.0) * np.square(_apart(frame)).sum(axis=1))


def follow_base(frame: Frame) -> Float32:
    """exp(-|v - v*|^2 / 0.1) of the base's horizontal velocity."""
    return np.exp(np.float32(-10.0) * np.square(frame.base_vel[:, :2] - frame.asked[:, -4:-2]).sum(axis=1))


def speed_error(frame: Frame) -> Float32:
    """|v - v*|, m/s."""
    return np.linalg.norm(frame.base_vel[:, :2] - frame.asked[:, -4:-2], axis=1)


def _apart(frame: Frame) -> Float32:
    out: Float32 = frame.joint_pos - frame.default_pose - frame.asked[:, : frame.joint_pos.shape[1]]
    return out


def go2_clip() -> Task:
    """Starts at random phases of the clip, in its own state there."""
    return Task(
        name="go2-clip",
        robot="go2",
        rates=Rates(control_hz=50.0, physics_hz=200.0, episode_s=10.0),
        observations=Observations(
            actor=(
                Term("gyro", 0.25),
                Term("gravity"),
                Term("command"),
                Term("joint_pos"),
                Term("joint_vel", 0.05),
                Term("action", 0.5),
            ),
            critic=(CriticTerm("base_vel", 2.0), CriticTerm("base_height", 3.0), CriticTerm("foot_contact")),
        ),
        servo=Servo(kp=25.0, kd=0.5),
        actions=Actions(scale=0.25),
        goal=ReferenceMotionGoal(clip=trot_clip),
        rewards={
            "follow_pose": Reward(follow_pose, 2.0),
            "follow_base": Reward(follow_base, 1.0),
            "tilt": Reward(r.tilt, -2.0),
            "energy": Reward(r.energy, -0.0005),
            "action_rate": Reward(r.action_rate, -0.005),
            "fall": Reward(r.fall, -100.0),
        },
        terminations={"fallen": r.fallen, "trunk_down": r.trunk_down},
        metrics={"pose_error": pose_error, "speed_error": speed_error},
        score="follow_pose",
        start=Start(joint_pos=0.05, tilt=0.05, any_yaw=True),
        randomize=locomotion_ranges("base"),
        ramp_s=(25.0, 75.0),
        sensors=SensorCfg(joint_pos_rad=0.01, joint_vel_rad_s=0.5, gyro_rad_s=0.1, gravity=0.03),
        learner=PpoCfg(gamma=0.97, kl_target=0.02, net=NetCfg(std=1.0)),
    )
