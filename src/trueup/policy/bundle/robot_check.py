"""Passport against robot: facts of the robot compared with those of a policy's passport, name by name.

Hashes find changes after signing, golden sequences find disagreement with the network. A passport that was wrong
from the beginning is consistent with itself: only the robot can contradict it.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.policy.action import JointOrder
from trueup.policy.bundle.passport import Passport

_STIFFER, _MORE_DAMPED, _SOFTER = 10.0, 20.0, 50.0  # a policy's gains against the robot's; soft ones do no harm at once
_RATE_RATIO = 4.0
_MOST_SHOWN = 5


class RobotLimits(Protocol):
    """Limits of a RobotSpec; arrays are in the robot's joint order."""

    @property
    def name(self) -> str: ...
    @property
    def joint_names(self) -> tuple[str, ...]: ...
    @property
    def control_hz(self) -> float: ...
    @property
    def position_low(self) -> FloatArray: ...
    @property
    def position_high(self) -> FloatArray: ...
    @property
    def default_pose(self) -> FloatArray: ...
    @property
    def torque_limit(self) -> FloatArray: ...
    @property
    def kp(self) -> FloatArray: ...
    @property
    def kd(self) -> FloatArray: ...


def check_against_robot(passport: Passport, robot: RobotLimits, model_sha256: str | None = None) -> None:
    """Refuse a passport that contradicts the robot; both values are shown.

    model_sha256  of the robot's model (`Robot.model_sha256`), where it must be the one of training
    """
    found = contradictions(passport, robot, model_sha256)
    if found:
        more = f"; and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
        raise TrueupError(
            f"this policy's passport contradicts robot {robot.name!r}: {'; '.join(found[:_MOST_SHOWN])}{more}"
        )


def contradictions(passport: Passport, robot: RobotLimits, model_sha256: str | None = None) -> list[str]:
    """Contradictions as text with both values; empty if there are none."""
    out = []
    if passport.robot.name != robot.name:
        out.append(f"it is for {passport.robot.name!r}")
    if model_sha256 is not None and model_sha256 != passport.robot.model_sha256:
        stated = passport.robot.model_sha256[:12]
        out.append(f"it was trained on the model {stated}..., this robot's is {model_sha256[:12]}...")
    odd = sorted(set(passport.joint_names) ^ set(robot.joint_names))
    if odd:
        return [*out, f"joints that only one of them has: {', '.join(odd)}"]
    spec = passport.policy
    ratio = spec.control_hz / robot.control_hz
    if not 1 / _RATE_RATIO <= ratio <= _RATE_RATIO:
        out.append(f"it runs at {spec.control_hz:g} Hz, the robot at {robot.control_hz:g} Hz")
    return out + _of_joints(passport, robot) + (_of_ours(passport, robot) if passport.origin.format == "trueup" else [])


def _of_ours(passport: Passport, robot: RobotLimits) -> list[str]:
    """Checks for policies trained here, which use the robot's joint directions and default pose."""
    spec, out = passport.policy, []
    pose = JointOrder(passport.joint_names, robot.joint_names).to_policy(robot.default_pose)
    for what, stated in (("action", spec.action.default_pose), ("observation", spec.observation.default_pose)):
        for name, value, own in zip(passport.joint_names, stated, pose, strict=True):
            if abs(value - own) > 1e-6:
                out.append(f"default pose of {name} ({what}) is {value:g} rad, the robot's is {own:g} rad")
    turned = [name for name, sign in zip(passport.joint_names, passport.signs, strict=True) if sign < 0]
    return out + [f"{name} turns the other way than the robot's" for name in turned]


def _of_joints(passport: Passport, robot: RobotLimits) -> list[str]:
    spec = passport.policy
    order = JointOrder(passport.joint_names, robot.joint_names)
    low, high, torque, kp, kd = (
        order.to_policy(values)
        for values in (robot.position_low, robot.position_high, robot.torque_limit, robot.kp, robot.kd)
    )
    stated = {
        "default pose of": (np.array(spec.action.default_pose), low, high, "rad"),
        "observed default pose of": (np.array(spec.observation.default_pose), low, high, "rad"),
        "torque limit of": (np.array(passport.torque_limit), np.zeros(len(torque)), 1.001 * torque, "N m"),
        "kp of": (np.array(spec.kp), kp / _SOFTER, kp * _STIFFER, "N m/rad"),
        "kd of": (np.array(spec.kd), kd / _SOFTER, kd * _MORE_DAMPED, "N m s/rad"),
    }
    if spec.action.low:
        stated["lowest target of"] = (np.array(spec.action.low), low, high, "rad")
    if spec.action.high:
        stated["highest target of"] = (np.array(spec.action.high), low, high, "rad")
    moved = [passport.joint_names.index(name) for name in spec.action.controlled_joints]
    reach = np.zeros(len(low))
    reach[moved] = np.abs(spec.action.scale)
    stated["action scale of"] = (reach, np.zeros(len(low)), high - low, "rad")
    out = []
    for what, (values, least, most, unit) in stated.items():
        for k in np.flatnonzero((values < least - 1e-6) | (values > most + 1e-6)):
            name = passport.joint_names[k]
            out.append(f"{what} {name} is {values[k]:g} {unit}, the robot allows {least[k]:g} to {most[k]:g}")
    return out
