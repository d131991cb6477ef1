"""so101-push: an arm pushes a free cube to a target on the ground."""

from __future__ import annotations

import numpy as np

from trueup.policy.observation import Term
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.tasks.goals.object_target import ObjectTargetGoal
from trueup.tasks.sensing.frame import Bool, Float32, Frame, Sense
from trueup.tasks.sensing.signals import Rows, Signal, Values, object_signals, tool_pos
from trueup.tasks.task import Actions, CriticTerm, Observations, Rates, Reward, Start, Task
from trueup.tasks.terms import rewards as r
from trueup.world.randomization.randomize import Draw
from trueup.world.scene.scene import Object, Scene
from trueup.world.sensors import SensorCfg

TASKS = {"so101-push": "so101_push"}
_HALF_M = 0.02  # of the cube
_BEHIND_M = 0.035  # from the cube's centre to where the tool pushes
_ABOVE = {"shoulder_lift": -0.5, "elbow_flex": 0.4, "wrist_flex": 1.45}  # tool 10 cm above the ground
_SETTLE_S = 4.0  # to bring the cube to a new target
_ARM = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex")


def cube_from_tool(sense: Sense, ids: Rows) -> Values:
    """Cube minus tool, m; on the robot by its camera and its joint angles."""
    rows = slice(None) if ids is None else ids
    out: Values = sense.sim.object_pose("cube")[rows, :3].astype(np.float32) - tool_pos(sense, ids)
    return out


def object_distance(frame: Frame) -> Float32:
    """From cube to target on the ground, m."""
    return np.linalg.norm(frame.cube_pos[:, :2] - frame.asked, axis=1)


def success(frame: Frame) -> Float32:
    """One where the cube is within 3 cm of the target."""
    return (object_distance(frame) < np.float32(0.03)).astype(np.float32)


def pushes_on(frame: Frame) -> Float32:
    """Speed of the cube towards the target over 0.1 m/s, in [-1, 1]."""
    speed = np.einsum("ij,ij->i", frame.cube_vel[:, :2], _way(frame))
    return np.clip(speed * np.float32(10.0), -1.0, 1.0).astype(np.float32)


def _way(frame: Frame) -> Float32:
    """Direction from cube to target, shorter than one where they are close."""
    way = frame.asked - frame.cube_pos[:, :2]
    out: Float32 = way / np.maximum(np.linalg.norm(way, axis=1, keepdims=True), np.float32(0.02))
    return out


def tool_from_behind(frame: Frame) -> Float32:
    """From the tool to a place behind the cube, seen from the target, m."""
    behind = frame.cube_pos.copy()
    behind[:, :2] -= np.float32(_BEHIND_M) * _way(frame)
    return np.linalg.norm(frame.tool_pos - behind, axis=1)


def pushed_away(frame: Frame) -> Bool:
    """The cube is out of reach or off the ground."""
    away: Bool = np.linalg.norm(frame.cube_pos[:, :2], axis=1) > 0.45
    return away | (np.abs(frame.cube_pos[:, 2]) > 0.15)


def so101_push() -> Task:
    """A cube of 4 cm; the policy sees where it is, as a camera would tell it."""
    return Task(
        name="so101-push",
        robot="so101",
        scene=Scene(
            objects=(Object(name="cube", shape="box", size=(_HALF_M,) * 3, mass=0.05, pos=(0.25, 0.0, _HALF_M)),),
            floor=True,
        ),
        signals=object_signals("cube") | {"cube_from_tool": Signal(cube_from_tool, "m", "vector")},
        rates=Rates(control_hz=25.0, physics_hz=250.0, episode_s=10.0),
        observations=Observations(
            actor=(
                Term("joint_pos"),
                Term("joint_vel", 0.2),
                Term("cube_pos", 5.0),
                Term("cube_from_tool", 10.0),
                Term("command", 5.0),
                Term("action", 0.5),
            ),
            critic=(CriticTerm("cube_vel", 2.0), CriticTerm("tool_pos", 5.0)),
        ),
        # Actions are speeds, 1.5 rad/s at most
        actions=Actions(scale=0.06, controlled_joints=_ARM, clip=1.0, relative=True),
        goal=ObjectTargetGoal(object="cube"),
        rewards={
            "reach_cube": Reward(r.Near(tool_from_behind, 0.1), 1.0),
            "behind_cube": Reward(r.Near(tool_from_behind, 0.04), 0.5),
            "pushes_on": Reward(pushes_on, 3.0),
            "near_target": Reward(r.Near(object_distance, 0.1), 1.0),
            "at_target": Reward(r.Near(object_distance, 0.02), 2.0),
            "action_rate": Reward(r.action_rate, -0.02),
            "joint_speed": Reward(r.joint_speed, -0.01),
            "joint_limits": Reward(r.joint_limits, -1.0),
        },
        terminations={"pushed_away": pushed_away},
        metrics={"object_distance": r.Settled(object_distance, _SETTLE_S), "success": r.Settled(success, _SETTLE_S)},
        score="near_target",
        start=Start(pose=_ABOVE, joint_pos=0.1),
        randomize={
            "object_mass": Draw(operation="scale", low=0.5, high=2.0, of=("cube",), factor=True),
            "object_friction": Draw(operation="scale", low=0.6, high=1.4, of=("cube",), factor=True),
            "kp": Draw(operation="scale", low=0.8, high=1.2),
            "friction": Draw(operation="scale", low=0.5, high=2.0),
            "delay": Draw(operation="set", low=0.0, high=0.02, each=False, factor=True),
        },
        sensors=SensorCfg(joint_pos_rad=0.005, joint_vel_rad_s=0.1),
        learner=PpoCfg(nenv=256, gamma=0.98, kl_target=0.02, noise_schedule=(0.3, 80, 240), net=NetCfg(std=0.8)),
    )
