"""Preflight: bundle, robot and driver compared by name and value before a joint moves. Nothing is sent.

Three parts, each usable alone: passport against robot (files only), driver against both, and the first
states of the robot. Every finding has a name that `--allow` takes, the expected and the found value. Findings about the
motors' safety (joints, limits, faulty sensors) cannot be allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.hardware.driver import Driver, RobotState
from trueup.policy.action import JointOrder
from trueup.policy.bundle.passport import Passport
from trueup.policy.bundle.robot_check import contradictions
from trueup.policy.observation import OWN_SIGNALS
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec

ALLOWABLE = ("gains", "model", "ranges", "temperature", "voltage", "driver-rate", "start-pose")
_IMU_SIGNALS = ("gyro", "gravity")
_MOST_SHOWN = 6
LIMIT_MARGIN_RAD = 0.1  # beyond a position limit: a zero or a sign is wrong
START_RAD = 2.5  # from the default pose: a folded leg is 1.2 away, a wrong zero more
HOT_C, COLD_C = 70.0, -30.0
STILL_GYRO = 1.0  # rad/s
_GRAVITY = 9.81


class Disagreement(NamedTuple):
    """One disagreement: its name, the expected and the found value."""

    name: str
    asked: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: {self.found}; asked: {self.asked}"


def refuse(findings: Sequence[Disagreement], allow: Sequence[str] = ()) -> tuple[Disagreement, ...]:
    """Raise a TrueupError with every finding that is not allowed; returns those that were."""
    for name in allow:
        if name not in ALLOWABLE:
            raise TrueupError(f"nothing called {name!r} can be allowed{did_you_mean(name, ALLOWABLE)}", place="--allow")
    blocking = [one for one in findings if one.name not in allow]
    if blocking:
        shown = "\n  ".join(str(one) for one in blocking[:_MOST_SHOWN])
        more = f"\n  and {len(blocking) - _MOST_SHOWN} more" if len(blocking) > _MOST_SHOWN else ""
        raise TrueupError(f"preflight refuses:\n  {shown}{more}{_hint({one.name for one in blocking})}")
    return tuple(one for one in findings if one.name in allow)


def _hint(names: set[str]) -> str:
    """What --allow could do about findings of these names."""
    can = sorted(names & set(ALLOWABLE))
    if not can:
        return ""
    what = "these pass" if len(can) == len(names) else f"{' and '.join(can)} pass, not the others"
    return f"\n(--allow {' '.join(can)} would let {what}; it is recorded)"


# --- files ---
def check_passport(passport: Passport, robot: Robot) -> list[Disagreement]:
    """The passport against the robot's spec and model; both values in every finding."""
    spec = robot.spec
    found = [Disagreement("passport", f"what robot {spec.name!r} is", text) for text in contradictions(passport, spec)]
    if passport.robot.model_sha256 != robot.model_sha256:
        told, own = passport.robot.model_sha256[:12], robot.model_sha256[:12]
        found.append(Disagreement("model", f"the model of training, {told}", f"this robot's model is {own}"))
    if set(passport.joint_names) != set(spec.joint_names):
        return found
    others = [term.signal for term in passport.policy.observation.terms if term.signal not in OWN_SIGNALS]
    for name in dict.fromkeys(others):
        found.append(
            Disagreement("signals", f"the policy observes {name!r}", "a robot behind a driver does not measure it")
        )
    if passport.ranges is None:
        why = passport.ranges_missing or "no reason given"
        found.append(
            Disagreement("ranges", "the range of every observation in training", f"the bundle has none ({why})")
        )
    return found + _torque(passport, spec)


def _torque(passport: Passport, spec: RobotSpec) -> list[Disagreement]:
    """A policy trained with less torque than the robot's limit is accepted, one trained with more is not."""
    own = JointOrder(passport.joint_names, spec.joint_names).to_policy(spec.torque_limit)
    return [
        Disagreement("limits", f"torque limit of {joint} {told:g} N m (policy)", f"the robot's is {limit:g} N m")
        for joint, told, limit in zip(passport.joint_names, passport.torque_limit, own, strict=True)
        if told > 1.001 * limit or told < 0.02 * limit
    ]


# --- driver ---
def check_driver(passport: Passport, robot: Robot, driver: Driver) -> list[Disagreement]:
    """A connected driver: its joints in the robot's order, its rate, and gains that cannot be commanded."""
    out, spec, hz = [], robot.spec, passport.policy.control_hz
    if driver.joint_names != spec.joint_names:
        odd = [
            f"{k}: {a} for {b}"
            for k, (a, b) in enumerate(zip(driver.joint_names, spec.joint_names, strict=False))
            if a != b
        ]
        text = f"the driver's joints differ ({'; '.join(odd[:4]) or 'in number'})"
        out.append(Disagreement("joints", f"the joints of {spec.name!r} in their order", text))
    rate = float(getattr(driver, "command_hz", 0.0) or 0.0)
    lockstep_rate = getattr(driver, "control_hz", rate) or rate
    if not driver.realtime and lockstep_rate and abs(lockstep_rate / hz - 1.0) > 1e-6:
        out.append(
            Disagreement(
                "driver-rate",
                f"one control step of {1e3 / hz:g} ms a command",
                f"a command of this lock-step driver takes {1e3 / lockstep_rate:g} ms",
            )
        )
    if driver.realtime and rate and rate < 0.999 * hz:
        out.append(Disagreement("driver-rate", f"states at {hz:g} Hz or more", f"the driver's rate is {rate:g} Hz"))
    fixed = getattr(driver, "fixed_gains", None if getattr(driver, "sends_gains", True) else (spec.kp, spec.kd))
    return out + ([] if fixed is None else _fixed_gains(passport, spec, *fixed))


def _fixed_gains(passport: Passport, spec: RobotSpec, kp: FloatArray, kd: FloatArray) -> list[Disagreement]:
    """Servos whose gains cannot be commanded must have those that the policy was trained with."""
    order = JointOrder(passport.joint_names, spec.joint_names)
    pairs = (
        ("kp", passport.policy.kp, order.to_policy(np.asarray(kp))),
        ("kd", passport.policy.kd, order.to_policy(np.asarray(kd))),
    )
    return [
        Disagreement(
            "gains", f"{name} of {joint} {told:g} (policy)", f"the servo's is {own:g}, and cannot be commanded"
        )
        for name, values, owns in pairs
        for joint, told, own in zip(passport.joint_names, values, owns, strict=True)
        if abs(told - own) > 0.01 * max(abs(told), abs(own))
    ]


# --- first states ---
def check_states(
    passport: Passport, robot: Robot, states: Sequence[RobotState], *, moved: bool = False
) -> list[Disagreement]:
    """Check two or more states of a robot at rest (`moved`: another program moves it)."""
    state, spec = states[-1], robot.spec
    wanted = {term.signal for term in passport.policy.observation.terms}
    if wanted & set(_IMU_SIGNALS) and (state.imu_quat is None or state.imu_gyro is None):
        return [Disagreement("imu", "gyro and orientation, which the policy observes", "the robot reports no IMU")]
    out = _numbers(spec, state)
    if out:
        return out
    out += _joints(passport, spec, state)
    if state.imu_quat is not None and wanted & set(_IMU_SIGNALS):
        out += _imu(state, still=not moved)
    out += _health(spec, state)
    if len(states) > 1 and not moved and not states[0].sequence <= state.sequence:
        out.append(Disagreement("clock", "states in order", f"state {state.sequence} came after {states[0].sequence}"))
    return out


def _numbers(spec: RobotSpec, state: RobotState) -> list[Disagreement]:
    out = []
    for name in ("joint_pos", "joint_vel"):
        values = np.asarray(getattr(state, name))
        bad = [joint for joint, value in zip(spec.joint_names, values, strict=True) if not np.isfinite(value)]
        if bad:
            out.append(Disagreement("state", f"finite {name}", f"{', '.join(bad)} report none"))
    for name in ("imu_quat", "imu_gyro"):
        imu = getattr(state, name)
        if imu is not None and not np.isfinite(imu).all():
            out.append(Disagreement("imu", f"finite {name}", f"the robot reports {np.asarray(imu).tolist()}"))
    return out


def _joints(passport: Passport, spec: RobotSpec, state: RobotState) -> list[Disagreement]:
    out, pos = [], state.joint_pos
    pose = JointOrder(passport.joint_names, spec.joint_names).to_robot(np.array(passport.policy.action.default_pose))
    for j, joint in enumerate(spec.joints):
        low, high = joint.position
        if not low - LIMIT_MARGIN_RAD <= pos[j] <= high + LIMIT_MARGIN_RAD:
            out.append(
                Disagreement("state", f"{joint.name} within {low:g} to {high:g} rad", f"it is at {pos[j]:.3f} rad")
            )
        elif abs(pos[j] - pose[j]) > START_RAD:
            out.append(
                Disagreement(
                    "start-pose", f"{joint.name} near {pose[j]:g} rad, the default pose", f"it is at {pos[j]:.3f} rad"
                )
            )
        if abs(state.joint_vel[j]) > joint.velocity:
            out.append(
                Disagreement(
                    "state", f"{joint.name} below {joint.velocity:g} rad/s", f"it turns at {state.joint_vel[j]:.2f}"
                )
            )
    return out


def _imu(state: RobotState, *, still: bool) -> list[Disagreement]:
    assert state.imu_quat is not None
    assert state.imu_gyro is not None
    out, length = [], float(np.linalg.norm(state.imu_quat))
    if abs(length - 1.0) > 0.05:
        return [Disagreement("imu", "a quaternion of length 1", f"its length is {length:.3f}")]
    if still and float(np.abs(state.imu_gyro).max()) > STILL_GYRO:
        out.append(
            Disagreement("imu", "a robot at rest", f"its gyro reports {np.round(state.imu_gyro, 2).tolist()} rad/s")
        )
    acc = state.imu_acc
    if still and acc is not None and np.isfinite(acc).all() and 0.7 * _GRAVITY < np.linalg.norm(acc) < 1.3 * _GRAVITY:
        down = gravity_in_body(np.asarray(state.imu_quat, np.float64)[None])[0]
        angle = float(np.arccos(np.clip(-(down @ acc) / np.linalg.norm(acc), -1.0, 1.0)))
        if angle > 0.35:
            text = f"they are {np.degrees(angle):.0f} deg apart: is the IMU mounted as the spec says?"
            out.append(Disagreement("imu", "accelerometer and orientation that agree on down", text))
    return out


def _health(spec: RobotSpec, state: RobotState) -> list[Disagreement]:
    out = []
    for joint, value in zip(spec.joint_names, np.asarray(state.joint_temperature), strict=True):
        if np.isfinite(value) and not COLD_C <= value <= HOT_C:
            out.append(Disagreement("temperature", f"motors below {HOT_C:g} deg C", f"{joint} is at {value:.0f}"))
    if np.isfinite(state.voltage) and not 0.0 < state.voltage < 1000.0:
        out.append(Disagreement("voltage", "a battery voltage above 0 V", f"the robot reports {state.voltage:g} V"))
    return out
