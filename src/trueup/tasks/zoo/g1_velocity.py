"""g1-velocity: a humanoid follows forward, sideways and turning speeds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from trueup.motion.made.march import MarchCycle
from trueup.policy.observation import Term
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.robot.load import load_robot
from trueup.tasks.goals.velocity import VelocityGoal
from trueup.tasks.sensing.frame import Bool, Float32, Frame
from trueup.tasks.task import Actions, Rates, Reward, Servo, Start, Task
from trueup.tasks.terms import rewards as r
from trueup.tasks.terms.gait import Gait, InStep, SwingPath
from trueup.tasks.zoo.g1_track import tracking_ranges
from trueup.tasks.zoo.go2_velocity import LOCOMOTION_SIGNALS
from trueup.world.push import PushCfg
from trueup.world.sensors import SensorCfg

TASKS = {"g1-velocity": "g1_velocity"}
_LOW_M = 0.45  # of a pelvis that stands at 0.78: below, the robot sits or kneels
_CLOCK_S = 0.8  # of two steps
_GAIT = Gait(offsets=(0.5, 0.0), stance=0.6, always=True)
_CYCLE = MarchCycle(period_s=_CLOCK_S, swing=0.4, height_m=0.08)
# gains that Unitree's own walking policies run with (unitree_rl_lab): legs, waist, arms
_KP = (100.0, 100.0, 100.0, 150.0, 40.0, 40.0) * 2 + (200.0,) * 3 + (40.0,) * 14
_KD = (2.0, 2.0, 2.0, 4.0, 2.0, 2.0) * 2 + (5.0,) * 3 + (10.0,) * 14


def pelvis_low(frame: Frame) -> Bool:
    """The pelvis is too near to the ground for standing or walking."""
    return frame.base_height < np.float32(_LOW_M)


def fall(frame: Frame) -> Float32:
    """One where the episode ends by a fall."""
    return (r.fallen(frame) | r.trunk_down(frame) | pelvis_low(frame)).astype(np.float32)


def upright(frame: Frame) -> Float32:
    """One as long as the robot has not fallen."""
    return np.float32(1.0) - fall(frame)


@dataclass(frozen=True)
class Away:
    """Distance of chosen joints from the default pose, rad, summed."""

    joints: tuple[int, ...]

    def __call__(self, frame: Frame) -> Float32:
        at = list(self.joints)
        return np.einsum("ij->i", np.abs(frame.joint_pos[:, at] - frame.default_pose[at]))


def g1_velocity() -> Task:
    """On flat ground, up to 1 m/s forward, 0.5 m/s back, 0.3 m/s sideways, 0.5 rad/s; told to stand, on the spot.

    It never stops marching: with a gait that ended at a command of zero it fell after stops, and there alone.
    """
    names = load_robot("g1").spec.joint_names
    away = _chooser(names)
    return Task(
        name="g1-velocity",
        robot="g1",
        rates=Rates(control_hz=50.0, physics_hz=200.0, episode_s=20.0),
        observations=replace(LOCOMOTION_SIGNALS, actor=(*LOCOMOTION_SIGNALS.actor, Term("clock")), clock_s=_CLOCK_S),
        servo=Servo(kp=_KP, kd=_KD),
        # legs and waist; arms are held
        actions=Actions(scale=tuple(map(_scale, names[:15])), controlled_joints=names[:15], cycle=_CYCLE),
        goal=VelocityGoal(forward=(-0.5, 1.0), sideways=(-0.3, 0.3), turn=(-0.5, 0.5), rate=(2.0, 2.0, 4.0)),
        rewards={
            "track_velocity": Reward(r.track_velocity, 1.5),
            "track_velocity_closely": Reward(r.track_velocity_closely, 2.0),
            "track_turn": Reward(r.track_turn, 0.75),
            "track_turn_closely": Reward(r.track_turn_closely, 0.5),
            "upright": Reward(upright, 0.25),
            "tilt": Reward(r.tilt, -5.0),
            "height": Reward(r.Height(0.76), -10.0),
            "bounce": Reward(r.bounce, -1.0),
            "wobble": Reward(r.wobble, -0.05),
            "energy": Reward(r.energy, -0.0003),
            "action_rate": Reward(r.action_rate, -0.01),
            "joint_limits": Reward(r.joint_limits, -5.0),
            "hips": Reward(away("hip_roll|hip_yaw"), -0.3),
            "waist": Reward(away("waist"), -0.5),
            "gait": Reward(InStep(_GAIT), 0.75),
            "swing_path": Reward(SwingPath(_GAIT, height_m=0.08, width_m=0.04), 0.5),
            "slip": Reward(r.slip, -0.2),
            "fall": Reward(fall, -100.0),  # once, so 2 in all
        },
        terminations={"fallen": r.fallen, "trunk_down": r.trunk_down, "pelvis_low": pelvis_low},
        metrics={
            "velocity_error": r.velocity_error,
            "turn_error": r.turn_error,
            "flag/shuffling": r.shuffling,
            "flag/hopping": r.hopping,
            "flag/saturation": r.saturation,
            "flag/idling": r.idling,
        },
        score="track_velocity",
        symmetric=True,
        start=Start(joint_pos=0.05, tilt=0.05, vel=0.1, spin=0.1, any_yaw=True),
        randomize=tracking_ranges("torso_link"),
        pushes=PushCfg(newton=80.0),
        ramp_s=(60.0, 240.0),  # first learn to walk, then to cope
        sensors=SensorCfg(joint_pos_rad=0.01, joint_vel_rad_s=0.5, gyro_rad_s=0.1, gravity=0.03),
        learner=PpoCfg(
            nenv=256,
            gamma=0.98,
            kl_target=0.04,
            value_clip=5.0,
            symmetry=True,
            noise_schedule=(0.3, 100, 450),
            net=NetCfg(std=0.7),
        ),
    )


def _scale(joint: str) -> float:
    """Of an action, rad: pitch joints of the legs carry the steps, the others keep the balance."""
    return 0.3 if re.search("hip_pitch|knee|ankle_pitch", joint) else 0.1 if "waist" in joint else 0.2


def _chooser(names: tuple[str, ...]) -> Callable[[str], Away]:
    return lambda pattern: Away(tuple(k for k, name in enumerate(names) if re.search(pattern, name)))
