"""g1-track, g1_23-track and go2-track: the whole body follows a motion; which one is named behind a colon."""

from __future__ import annotations

import re
from dataclasses import replace

from trueup.motion.readers.open import open_motion
from trueup.policy.observation import Term
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.robot.load import load_robot
from trueup.tasks.goals.tracking import TrackingGoal
from trueup.tasks.sensing.tracking import TRACKING_SIGNALS
from trueup.tasks.task import Actions, CriticTerm, Observations, Rates, Reward, Servo, Start, Task
from trueup.tasks.terms import rewards as r
from trueup.tasks.terms import tracking as t
from trueup.world.randomization.randomize import Draw, locomotion_ranges
from trueup.world.sensors import SensorCfg

TASKS = {"g1-track": "g1_track", "g1_23-track": "g1_23_track", "go2-track": "go2_track"}
_SIDES = ("left", "right")
_LIMBS = ("hip_roll", "knee", "ankle_roll", "shoulder_roll", "elbow", "wrist_yaw")
_G1 = ("pelvis", "torso_link", *(f"{side}_{limb}_link" for limb in _LIMBS for side in _SIDES))
_GO2 = ("base", *(f"{leg}_{part}" for leg in ("FL", "FR", "RL", "RR") for part in ("thigh", "calf")))
_FAILED_M = 0.5  # mean distance of the bodies: the measure of ASAP


def g1_track(motions: tuple[str, ...] = ("squat",)) -> Task:
    """A humanoid with 29 joints follows a motion; `--motion` names it, squat if not."""
    return _humanoid("g1", motions)


def g1_23_track(motions: tuple[str, ...] = ("squat",)) -> Task:
    """A humanoid with its wrists held follows a motion."""
    return _humanoid("g1_23", motions)


def go2_track(motions: tuple[str, ...] = ("trot",)) -> Task:
    """A quadruped follows a motion, a trot if none is named."""
    task = _tracking("go2", motions, _GO2)
    return replace(
        task,
        servo=Servo(kp=25.0, kd=0.5),
        actions=Actions(scale=0.25, residual=True),
        randomize=tracking_ranges("base"),
    )


def _humanoid(robot: str, motions: tuple[str, ...]) -> Task:
    spec = load_robot(robot).spec
    # a full action asks for a quarter of the torque limit at rest (BeyondMimic)
    scales = tuple((0.25 * spec.torque_limit / spec.kp).round(4).tolist())
    task = _tracking(robot, motions, _G1)
    ends = _named("wrist|torso")
    more = {
        "upper": Reward(t.Kernel("body_gap_near", 0.03, _named("torso|shoulder|elbow|wrist")), 0.5),
        "key_points": Reward(t.Kernel("body_gap_near", 0.03, ends), 1.6),
        "feet": Reward(t.Kernel("body_gap_near", 0.01, _named("ankle")), 2.1),
    }
    return replace(
        task,
        goal=replace(task.goal, anchor="torso_link"),  # type: ignore[call-arg]
        actions=Actions(scale=scales, residual=True),
        rewards=dict(task.rewards) | more,
        randomize=tracking_ranges("torso_link"),
    )


def tracking_ranges(base: str) -> dict[str, Draw]:
    """Ranges for a humanoid that follows a motion.

    Encoder offsets and the least ground friction are those of BeyondMimic (arXiv 2508.08241) in mjlab's port, which
    draws no slopes and no restitution either; the rest is `locomotion_ranges`, gains, strength and mass narrowed to
    10 %. In all of `locomotion_ranges` a policy of that kind fails in nearly all episodes.
    """
    ranges = locomotion_ranges(base)
    del ranges["tilt"], ranges["restitution"]
    narrow = {name: replace(ranges[name], low=0.9, high=1.1) for name in ("motor_strength", "kp", "kd", "mass_scale")}
    return {
        **ranges,
        **narrow,
        "contact_friction": Draw(operation="set", low=0.3, high=1.6, factor=True),
        "encoder_bias": Draw(operation="set", low=-0.01, high=0.01),
    }


def _named(pattern: str) -> tuple[int, ...]:
    return tuple(k for k, name in enumerate(_G1) if re.search(pattern, name))


def _tracking(robot: str, motions: tuple[str, ...], bodies: tuple[str, ...]) -> Task:
    base = f"{robot}-track"
    plain = {"go2": ("trot",)}.get(robot, ("squat",))
    longest = max(open_motion(name, load_robot(robot)).seconds for name in motions)
    return Task(
        name=base if motions == plain else f"{base}:{','.join(motions)}",
        robot=robot,
        rates=Rates(control_hz=50.0, physics_hz=200.0, episode_s=longest),
        observations=Observations(
            actor=(
                Term("command"),
                Term("reference_turn"),
                Term("gyro", 0.25),
                Term("gravity"),
                Term("joint_pos"),
                Term("joint_vel", 0.05),
                Term("action", 0.5),
            ),
            critic=(
                CriticTerm("base_vel", 2.0),
                CriticTerm("base_height", 3.0),
                CriticTerm("reference_ahead", 5.0),
                CriticTerm("foot_contact"),
            ),
            history=3,
        ),
        actions=Actions(scale=0.25),
        goal=TrackingGoal(motions=motions, bodies=bodies, failed_m=_FAILED_M),
        signals=TRACKING_SIGNALS,
        rewards={
            "bodies": Reward(t.Kernel("body_gap_near", 0.05), 1.0),
            "place": Reward(t.Kernel("body_gap", 0.09, (0,)), 0.5),
            "turn": Reward(t.Kernel("body_turn", 0.16), 0.5),
            "velocity": Reward(t.Kernel("body_vel_gap", 1.0), 0.5),
            "spin": Reward(t.Kernel("body_spin_gap", 10.0), 0.5),
            "joints": Reward(t.JointKernel(0.05), 0.75),
            "joint_speeds": Reward(t.JointKernel(10.0, speed=True), 0.5),
            "failed": Reward(t.Failed(_FAILED_M), -200.0),  # once, so 4 in all
            "action_rate": Reward(r.action_rate, -0.02),
            "joint_limits": Reward(r.joint_limits, -10.0),
            "torque": Reward(r.torque, -1e-6),
            "slip": Reward(r.slip, -0.2),
        },
        terminations={"lost": t.Lost(_FAILED_M), "astray": t.astray},
        metrics={"body_error": t.body_error, "global_error": t.global_error, "speed_error": t.velocity_error},
        score="bodies",
        symmetric=True,
        start=Start(joint_pos=0.05, tilt=0.03, vel=0.05, spin=0.05),
        ramp_s=(15.0, 60.0),
        sensors=SensorCfg(joint_pos_rad=0.01, joint_vel_rad_s=0.5, gyro_rad_s=0.1, gravity=0.03),
        learner=PpoCfg(
            nenv=256,
            gamma=0.98,
            kl_target=0.05,
            value_clip=5.0,
            symmetry=True,
            noise_schedule=(0.15, 40, 200),
            net=NetCfg(std=0.4),
        ),
    )
