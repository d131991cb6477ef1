"""go2-velocity: a quadruped follows forward, sideways and turning speeds."""

from __future__ import annotations

from dataclasses import replace

from trueup.policy.observation import Term
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.tasks.goals.velocity import VelocityGoal
from trueup.tasks.task import Actions, CriticTerm, Observations, Rates, Reward, Servo, Start, Task
from trueup.tasks.terms import rewards as r
from trueup.world.push import PushCfg
from trueup.world.randomization.randomize import locomotion_ranges
from trueup.world.sensors import SensorCfg
from trueup.world.terrain import TerrainCfg

TASKS = {
    "go2-velocity": "go2_velocity",
    "go2-velocity-rough": "go2_velocity_rough",
    "go2-velocity-rough-map": "go2_velocity_rough_map",
}

_GOAL = VelocityGoal(forward=(-1.0, 1.0), sideways=(-0.5, 0.5), turn=(-1.0, 1.0), rate=(4.0, 4.0, 8.0))
LOCOMOTION_SIGNALS = Observations(
    actor=(
        Term("gyro", 0.25),
        Term("gravity"),
        Term("command", 2.0),
        Term("joint_pos"),
        Term("joint_vel", 0.05),
        Term("action", 0.5),
    ),
    critic=(
        CriticTerm("base_vel", 2.0),
        CriticTerm("base_height", 3.0),
        CriticTerm("foot_contact"),
        CriticTerm("foot_height", 10.0),
    ),
    history=3,  # one frame does not tell how fast the robot goes when friction and load are unknown
)


def go2_velocity_rough() -> Task:
    """Over bumps, slopes, stairs, blocks, gaps and stones, from easy to hard; the critic sees the ground."""
    task = go2_velocity()
    watched = (*task.observations.critic, CriticTerm("heights", 5.0))
    return replace(
        task,
        name="go2-velocity-rough",
        observations=replace(task.observations, critic=watched),
        # long and mostly straight ways: who turns all the time never leaves its patch
        goal=replace(_GOAL, hold_s=(8.0, 12.0), standing=0.05, straight=0.6),
        terrain=TerrainCfg(),
    )


def go2_velocity_rough_map() -> Task:
    """The same with a map of the ground around the robot: gaps and stones cannot be crossed blindly."""
    task = go2_velocity_rough()
    seen = replace(task.observations, actor=(*task.observations.actor, Term("heights", 5.0)))
    return replace(task, name="go2-velocity-rough-map", observations=seen)


def go2_velocity() -> Task:
    """On flat ground, up to 1 m/s forward and back, 0.5 m/s sideways, 1 rad/s."""
    return Task(
        name="go2-velocity",
        robot="go2",
        rates=Rates(control_hz=50.0, physics_hz=200.0, episode_s=20.0),
        observations=LOCOMOTION_SIGNALS,
        servo=Servo(kp=25.0, kd=0.5),  # gains that real go2s are driven with
        actions=Actions(scale=0.25),
        goal=_GOAL,
        rewards={
            "track_velocity": Reward(r.track_velocity, 1.5),
            "track_velocity_closely": Reward(r.track_velocity_closely, 1.0),
            "track_turn": Reward(r.track_turn, 0.75),
            "track_turn_closely": Reward(r.track_turn_closely, 0.5),
            "tilt": Reward(r.tilt, -2.0),
            "height": Reward(r.Height(0.30), -20.0),
            "bounce": Reward(r.bounce, -1.0),
            "wobble": Reward(r.wobble, -0.05),
            "energy": Reward(r.energy, -0.0007),
            "action_rate": Reward(r.action_rate, -0.006),
            "joint_limits": Reward(r.joint_limits, -5.0),
            "trot": Reward(r.trot, 0.5),
            # how the feet move is asked for once the robot walks: from the start it would keep them on the ground
            "feet_air_time": Reward(r.AirTime(0.25, 0.5), 5.0, late=True),
            "swing_height": Reward(r.SwingHeight(0.08), -0.8, late=True),
            "clearance": Reward(r.Clearance(0.08), -20.0, late=True),
            "slip": Reward(r.slip, -0.05),
            "collision": Reward(r.collision, -1.0),
            "fall": Reward(r.fall, -200.0, late=True),  # once, so 4 in all
            "stand_still": Reward(r.stand_still, -0.2),
            "stand_quiet": Reward(r.stand_quiet, -0.05),
            "pose": Reward(r.pose, -0.1),
        },
        terminations={"fallen": r.fallen, "trunk_down": r.trunk_down},
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
        start=Start(joint_pos=0.1, tilt=0.09, vel=0.1, spin=0.1, any_yaw=True),
        randomize=locomotion_ranges("base"),
        pushes=PushCfg(newton=80.0),
        ramp_s=(25.0, 75.0),  # first learn to walk, then to cope
        sensors=SensorCfg(joint_pos_rad=0.01, joint_vel_rad_s=0.5, gyro_rad_s=0.1, gravity=0.03),
        # exploration must reach the ground: one standard deviation of the actions moves targets by 0.25 rad
        learner=PpoCfg(gamma=0.97, kl_target=0.02, symmetry=True, noise_schedule=(0.4, 100, 260), net=NetCfg(std=1.0)),
    )
