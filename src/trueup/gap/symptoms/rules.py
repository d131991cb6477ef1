"""Rules: a quantity, its bound, its usual cause and the change of training that removes it.

From experience with policies on legged robots: the observation on the robot, the difference from training, and the
change of training. `whole_runs` has the rules on falls, starts and differences between runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trueup.gap.symptoms import changes as c
from trueup.gap.symptoms.bounds import Bound, BoundsReference
from trueup.gap.symptoms.changes import TaskChange
from trueup.tasks.task import Task

LATE_SHARE = 0.01  # of control steps, as `trueup deploy` allows on a rung
TRAINING_DISTANCE = 2.0  # median RMS z-score of observations, as `trueup deploy` allows
LOW_FEET_M, ROUGH = 0.03, 900.0  # as the red flags of `trueup evaluate`
SLIDING = 0.35  # m/s, likewise


@dataclass(frozen=True, kw_only=True)
class SymptomRule:
    """A rule: one quantity, one symptom.

    bound     from the reference; None: not available
    mend      changes of the task, given the measured value
    seen      evidence as text, takes value and bound
    """

    name: str
    quantity: str
    unit: str
    bound: Callable[[BoundsReference], Bound | None]
    seen: str
    cause: str
    change: str
    mend: Callable[[Task, float], list[TaskChange]]
    below: bool = False


def _simulated(
    quantity: str, otherwise: float | None = None, *, floor: float | None = None, least: bool = False
) -> Callable[[BoundsReference], Bound | None]:
    """Bound of simulated runs; without any, a fixed one that `trueup evaluate` also uses, or none."""

    def bound(reference: BoundsReference) -> Bound | None:
        found = reference.simulated(quantity, least=least, floor=floor)
        if found is None and otherwise is not None:
            return Bound(otherwise, "the bound of the red flags of `trueup evaluate`; no simulated runs")
        return found

    return bound


def _fixed(value: float, origin: str) -> Callable[[BoundsReference], Bound | None]:
    return lambda reference: Bound(value, origin)


def _delay(reference: BoundsReference) -> Bound | None:
    if reference.task is not None and "delay" in reference.task.randomize:
        return Bound(reference.task.randomize["delay"].high, "the longest delay of the task's randomisation")
    return Bound(0.02, "20 ms, the longest delay that legged policies are usually trained with")


def _sag(reference: BoundsReference) -> Bound | None:
    strength = None if reference.task is None else reference.task.randomize.get("motor_strength")
    low = 0.85 if strength is None else strength.low
    return Bound(1.0 - low, "the loss of strength that the task's randomisation has (`motor_strength`)")


def _smoother(task: Task, value: float) -> list[TaskChange]:
    noise = {name: 1.5 * getattr(task.sensors, name) for name in ("joint_pos_rad", "joint_vel_rad_s", "gyro_rad_s")}
    return [*c.weighed(task, "action_rate", by=3.0, at_least=-0.01), *c.widened(task, "delay", high=0.03),
            *c.fields(task, "sensors", **noise)]  # fmt: skip


def _grip(task: Task, value: float) -> list[TaskChange]:
    draw = task.randomize.get("contact_friction")
    low = 0.15 if draw is None else max(0.1, 0.5 * draw.low)
    return [*c.widened(task, "contact_friction", low=low), *c.weighed(task, "slip", by=3.0, at_least=-0.1)]


def cooler(task: Task, value: float) -> list[TaskChange]:
    return [*c.weighed(task, "energy", by=3.0, at_least=-0.001), *c.weighed(task, "torque", by=3.0, at_least=-2e-4),
            *c.widened(task, "motor_strength", low=0.7)]  # fmt: skip


def _stronger(task: Task, value: float) -> list[TaskChange]:
    return [*c.widened(task, "motor_strength", low=0.65), *c.stretched(task, "payload", "friction", "damping", by=1.5)]


def _straighter(task: Task, value: float) -> list[TaskChange]:
    return c.stretched(task, "com_offset", "encoder_bias", "tilt", by=1.5)


def _everything(task: Task, value: float) -> list[TaskChange]:
    noise = {name: 1.5 * getattr(task.sensors, name) for name in ("joint_pos_rad", "joint_vel_rad_s", "gravity")}
    return [*c.stretched(task, *task.randomize, by=1.25), *c.fields(task, "sensors", **noise)]


def _rise(task: Task, value: float) -> list[TaskChange]:
    return c.weighed(task, "clearance", "swing_height", "feet_air_time", by=2.0)


def _later(task: Task, value: float) -> list[TaskChange]:
    longest = max(value + 1.0 / task.rates.control_hz, 0.03)
    return [*c.widened(task, "delay", high=longest), *c.weighed(task, "action_rate", by=2.0, at_least=-0.01)]


def _slow_loop(task: Task, value: float) -> list[TaskChange]:
    high = task.randomize["delay"].high if "delay" in task.randomize else 0.0
    return c.widened(task, "delay", high=high + 1.0 / task.rates.control_hz)


RULES: tuple[SymptomRule, ...] = (
    SymptomRule(name="jerky", quantity="jerk", unit="rad/s^2", bound=_simulated("jerk", ROUGH),
         seen="joint targets accelerate by {value:.0f} rad/s^2 rms, simulated robots by {bound:.0f} at most",
         cause="the policy answers sensor noise or its own delayed motion, which training did not have",
         change="penalise changes of actions more, train with more delay and sensor noise", mend=_smoother),
    SymptomRule(name="shakes", quantity="shake", unit="rad/s", bound=_simulated("shake"),
         seen="the trunk shakes by {value:.2f} rad/s rms above 5 Hz, simulated robots by {bound:.2f} at most",
         cause="delay, noise or a load that training did not have excites the gait",
         change="penalise changes of actions more, train with more delay and sensor noise", mend=_smoother),
    SymptomRule(name="answers late", quantity="delay", unit="s", bound=_delay,
         seen="torques follow commands after {value:.3f} s or more, training had {bound:.3f} s at most",
         cause="bus, drive and computation together are slower than the simulator's servo",
         change="train with delays up to the measured one", mend=_later),
    SymptomRule(name="slips when turning", quantity="slip_turning", unit="m/s",
         bound=_simulated("slip_turning", SLIDING),
         seen="standing feet move against each other at {value:.2f} m/s in turns, "
              "simulated robots' at {bound:.2f} at most",
         cause="less friction under the feet than in training",
         change="train with lower friction, penalise slip more", mend=_grip),
    SymptomRule(name="slips", quantity="slip_straight", unit="m/s", bound=_simulated("slip_straight", SLIDING),
         seen="standing feet move against each other at {value:.2f} m/s, simulated robots' at {bound:.2f} at most",
         cause="less friction under the feet than in training",
         change="train with lower friction, penalise slip more", mend=_grip),
    SymptomRule(name="works its motors hard", quantity="thermal", unit="1",
         bound=_simulated("thermal", 1.0, floor=0.5),
         seen="mean square torque of the hardest-working joint is {value:.2f} of what a motor bears for ever "
              "(35 % of its limit), simulated robots need {bound:.2f} at most",
         cause="a load, friction or a crouched pose that training did not have",
         change="penalise energy and torque more, train with weaker motors", mend=cooler),
    SymptomRule(name="torque at its limit", quantity="at_limit", unit="1",
         bound=_simulated("at_limit", 0.05, floor=0.02),
         seen="{value:.1%} of all torques are at the robot's limit, simulated robots' {bound:.1%} at most",
         cause="the motion needs more than the motors have, and beyond the limit a policy has no say",
         change="train with weaker motors and more load", mend=_stronger),
    SymptomRule(name="does not follow", quantity="velocity_error", unit="m/s", bound=_simulated("velocity_error"),
         seen="velocity is {value:.2f} m/s from what is asked (leg odometry), simulated robots' {bound:.2f} at most",
         cause="motors, load or ground that training did not have",
         change="train with weaker motors, more friction and load", mend=_stronger),
    SymptomRule(name="drifts sideways", quantity="sideways_drift", unit="m/s", bound=_simulated("sideways_drift"),
         seen="walks {value:.2f} m/s to one side of what is asked, simulated robots {bound:.2f} at most",
         cause="centre of mass, encoder zeros or the IMU's mounting are off to one side",
         change="train with wider offsets of the centre of mass and the encoders", mend=_straighter),
    SymptomRule(name="drifts in heading", quantity="turn_drift", unit="rad/s", bound=_simulated("turn_drift"),
         seen="turns {value:.2f} rad/s beside what is asked, simulated robots {bound:.2f} at most",
         cause="centre of mass, encoder zeros or the IMU's mounting are off to one side",
         change="train with wider offsets of the centre of mass and the encoders", mend=_straighter),
    SymptomRule(name="drags its feet", quantity="clearance", unit="m", below=True,
         bound=_simulated("clearance", LOW_FEET_M, floor=LOW_FEET_M, least=True),
         seen="feet rise by {value:.3f} m above the lowest one, simulated robots' by {bound:.3f} at least",
         cause="joints that follow less than in training, or a price on lifting feet",
         change="ask for more clearance and air time", mend=_rise),
    SymptomRule(name="near the joint stops", quantity="joint_margin", unit="1", below=True,
         bound=_simulated("joint_margin", 0.02, floor=0.02, least=True),
         seen="joints come within {value:.1%} of their range of a stop, simulated robots within {bound:.1%}",
         cause="encoder zeros that are off, or a motion that uses the whole range",
         change="penalise joint limits more, train with wider encoder offsets",
         mend=lambda task, value: [*c.weighed(task, "joint_limits", by=3.0, at_least=-5.0),
                                   *c.stretched(task, "encoder_bias", by=1.5)]),
    SymptomRule(name="supply sags", quantity="sag", unit="1", bound=_sag,
         seen="the voltage falls by {value:.1%} under load, training had motors weaker by {bound:.1%} at most",
         cause="an old or empty battery: motors lose speed and torque with the voltage",
         change="train with weaker motors",
         mend=lambda task, value: c.widened(task, "motor_strength", low=max(0.5, 1.0 - 1.25 * value))),
    SymptomRule(name="computes late", quantity="late", unit="1",
         bound=_fixed(LATE_SHARE, "what `trueup deploy` allows on a rung"),
         seen="{value:.1%} of the control steps began half a period late or more, allowed are {bound:.1%}",
         cause="the computer is busy, or its scheduler is not set for real time",
         change="free the computer first (`trueup doctor`); train with one control period more of delay",
         mend=_slow_loop),
    SymptomRule(name="sees what training did not show", quantity="distance", unit="1",
         bound=_fixed(TRAINING_DISTANCE, "what `trueup deploy` allows on a rung"),
         seen="observations lie {value:.1f} standard deviations from training's, allowed are {bound:.1f}",
         cause="a robot, ground or command that training did not have; or scales and joint order that do not fit",
         change="compare layouts first (`trueup wiggle`); then train with all ranges a quarter wider",
         mend=_everything),
)  # fmt: skip
