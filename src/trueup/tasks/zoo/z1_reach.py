"""z1-reach: an arm brings its tool to a pose, position first."""

from __future__ import annotations

from trueup.policy.observation import Term
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.tasks.goals.tool_pose import ToolPoseGoal
from trueup.tasks.task import Actions, Observations, Rates, Reward, Servo, Start, Task
from trueup.tasks.terms import rewards as r
from trueup.world.randomization.randomize import Draw
from trueup.world.sensors import SensorCfg

TASKS = {"z1-reach": "z1_reach"}
_ARM = ("joint1", "joint2", "joint3", "joint4", "joint5", "joint6")


def z1_reach() -> Task:
    """Poses come from joint positions, so each can be reached; the policy sees the tool's error in the base frame."""
    return Task(
        name="z1-reach",
        robot="z1",
        rates=Rates(control_hz=25.0, physics_hz=250.0, episode_s=8.0),
        observations=Observations(
            actor=(
                Term("tool_error", 3.0),
                Term("joint_pos"),
                Term("joint_vel", 0.3),
                Term("command", 2.0),
                Term("action", 0.5),
            )
        ),
        # The arm's own gains (1000 and 100) drive torques from limit to limit: light links chatter at tens of rad/s.
        servo=Servo(kp=200.0, kd=10.0),
        # Actions are speeds, 3 rad/s at most: noise on absolute targets would make stiff joints thrash.
        actions=Actions(scale=0.12, controlled_joints=_ARM, clip=1.0, relative=True),
        goal=ToolPoseGoal(hold_s=(3.0, 5.0)),
        rewards={
            "tool_near": Reward(r.Near(r.tool_distance, 0.2), 1.0),
            "tool_close": Reward(r.Near(r.tool_distance, 0.03), 2.0),
            "tool_aligned": Reward(r.Near(r.tool_angle, 0.7), 0.5),
            "tool_distance": Reward(r.tool_distance, -1.0),
            "action_rate": Reward(r.action_rate, -0.01),
            "joint_speed": Reward(r.joint_speed, -0.005),
            "joint_limits": Reward(r.joint_limits, -1.0),
        },
        terminations={},
        metrics={"settled_distance": r.settled_distance, "tool_angle": r.tool_angle},
        score="tool_near",
        start=Start(joint_pos=0.5),
        randomize={
            "kp": Draw(operation="scale", low=0.7, high=1.3, factor=True, each=False),
            "kd": Draw(operation="scale", low=0.7, high=1.3, factor=True, each=False),
            "torque_limit": Draw(operation="scale", low=0.85, high=1.0),
            "friction": Draw(operation="scale", low=0.3, high=2.0),
            "mass_scale": Draw(operation="set", low=0.85, high=1.15),
            "delay": Draw(operation="set", low=0.0, high=0.02, each=False, factor=True),
        },
        sensors=SensorCfg(joint_pos_rad=0.002, joint_vel_rad_s=0.1),
        learner=PpoCfg(gamma=0.97, kl_target=0.02, net=NetCfg(std=0.6)),
    )
