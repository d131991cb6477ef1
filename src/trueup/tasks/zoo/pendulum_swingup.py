"""pendulum-swingup: a motor too weak to lift its load swings it up and holds it there. Learns in seconds."""

from __future__ import annotations

from trueup.policy.observation import Term
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.tasks.goals.goal import NoGoal
from trueup.tasks.task import Actions, Observations, Rates, Reward, Servo, Start, Task
from trueup.tasks.terms import rewards as r

TASKS = {"pendulum-swingup": "pendulum_swingup"}


def pendulum_swingup() -> Task:
    """Torque 0.5 N m at most; holding the load out level takes 0.74 N m."""
    return Task(
        name="pendulum-swingup",
        robot="pendulum",
        rates=Rates(control_hz=25.0, physics_hz=200.0, episode_s=6.0),
        servo=Servo(kp=0.5, kd=0.02, torque=0.5),
        observations=Observations(
            actor=(Term("joint_angle"), Term("joint_pos", 0.3), Term("joint_vel", 0.2), Term("action", 0.5))
        ),
        actions=Actions(scale=2.0, clip=2.0),
        goal=NoGoal(),
        rewards={
            "swing_up": Reward(r.swing_up, 1.0),
            "joint_speed": Reward(r.joint_speed, -0.002),
            "action_rate": Reward(r.action_rate, -0.001),
        },
        terminations={},
        score="swing_up",
        start=Start(joint_pos=3.1, joint_vel=1.0),
        learner=PpoCfg(steps=16, gamma=0.98, entropy=0.0, net=NetCfg(actor=(64, 64), critic=(64, 64))),
    )
