"""RobotSpec: joint order, limits, gains, rates, pose and names. The one truth about a robot.

A spec is a TOML file beside the robot's MJCF or URDF. Geometry, masses and passive joint dynamics (armature, damping,
dry friction) are in the model file; facts that a controller needs too are here and are written into the compiled
model, so that the two cannot disagree. All arrays are in spec joint order. SI units, radians.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.documents import Strict, read_toml

SCHEMA = 1
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_COMMENTS = {  # beside the fields of a spec that is written
    "control_hz": "the policy's rate",
    "physics_hz": "the engine's rate, a whole multiple",
    "imu": "site",
    "end_effector": "site",
    "feet": "geoms",
    "contact_geoms": "kept in light collision mode",
    "delay_s": "from a command to the torque it causes",
    "stand_height": "m, default pose, feet touching the ground",
    "hold_height": "m, held in the air",
}


def _require(where: str, *checks: tuple[object, str]) -> None:
    """Raise a ValueError, which the reader of the file names with its place, for the first check that fails."""
    for holds, message in checks:
        if not holds:
            raise ValueError(where + message)


class JointSpec(Strict, frozen=True, kw_only=True):
    """One actuated joint: name as in the model file, limits, servo gains, default position.

    knee_speed  rad/s up to which the motor gives its full torque; beyond, what it gives falls linearly to zero at
                `velocity`. None: full torque at any speed
    excited_at  position about which the joint is excited, rad; None: the default. A humanoid's arms hang beside its
                hips: they must be held away from them to be moved freely
    """

    name: str
    position: tuple[float, float]
    velocity: float
    torque: float
    kp: float
    kd: float
    default: float = 0.0
    knee_speed: float | None = None
    excited_at: float | None = None

    def __post_init__(self) -> None:
        low, high = self.position
        numbers = (low, high, self.velocity, self.torque, self.kp, self.kd, self.default)
        slow_knee = self.knee_speed is None or 0.0 <= self.knee_speed < self.velocity
        _require(
            f"joint {self.name!r}: ",
            (all(map(math.isfinite, numbers)), f"every number must be finite, found {numbers}"),
            (low < high, f"position = [low, high] needs low < high, found [{low}, {high}]"),
            (self.velocity > 0 and self.torque > 0, "velocity and torque limits must be positive"),
            (self.kp >= 0 and self.kd >= 0, "kp and kd must not be negative"),
            (slow_knee, f"knee_speed must lie between 0 and velocity {self.velocity}, found {self.knee_speed}"),
            (low <= self.default <= high, f"default {self.default} is outside position [{low}, {high}]"),
            (low <= self.middle <= high, f"excited_at {self.excited_at} is outside position [{low}, {high}]"),
        )

    @property
    def middle(self) -> float:
        """Position about which the joint is excited, rad."""
        return self.default if self.excited_at is None else self.excited_at

    @property
    def stall_torque(self) -> float:
        """Torque at rest on the motor's torque-speed line, N m: `torque` cuts it off up to the knee speed."""
        return self.torque / (1.0 - (self.knee_speed or 0.0) / self.velocity)


class _Column:
    """A number of every joint as one array (njoint,), in spec order."""

    def __init__(self, number: Callable[[JointSpec], float]) -> None:
        self._number = number

    def __get__(self, spec: RobotSpec, kind: type) -> FloatArray:
        return np.array([self._number(joint) for joint in spec.joints])


class BaseSpec(Strict, frozen=True, kw_only=True):
    """The root body: floating or bolted down, and where it is in the default pose."""

    body: str
    floating: bool = False
    stand_height: float = 0.0  # of the base frame above the ground, default pose, feet just touching (m)
    hold_height: float = 1.0  # of the base frame when it is held in the air (m)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.stand_height) and math.isfinite(self.hold_height)):
            raise ValueError("base: stand_height and hold_height must be finite")


class OptionSpec(Strict, frozen=True, kw_only=True):
    """A number of the robot that its user may exchange: `mass` of a body or its `distance` from the parent."""

    body: str
    sets: Literal["mass", "distance"]
    default: float
    low: float
    high: float
    unit: str

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.default <= self.high < math.inf:
            raise ValueError(f"option of body {self.body!r}: needs 0 < low <= default <= high")


class RobotSpec(Strict, frozen=True, kw_only=True, rename={"joints": "joint"}):
    """Facts on which training, simulation and robot must agree."""

    schema: int
    name: str
    model: str
    control_hz: float
    physics_hz: float
    base: BaseSpec
    joints: tuple[JointSpec, ...]
    description: str = ""
    imu: str | None = None  # site of the inertial sensor
    feet: tuple[str, ...] = ()  # geoms that carry a legged robot
    end_effector: str | None = None  # site of an arm's tool
    contact_geoms: tuple[str, ...] = ()  # kept in light collision mode; none named: all are kept
    delay_s: float = 0.0  # from a command to the torque it causes
    options: dict[str, OptionSpec] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        names = self.joint_names
        twice = next((name for name in names if names.count(name) > 1), "")
        ratio = min(self.physics_hz / self.control_hz, 1e6) if self.control_hz else 0.0  # may be infinite
        rates = f"physics_hz {self.physics_hz:g} must be a whole multiple of control_hz {self.control_hz:g}"
        _require(
            "",
            (self.schema == SCHEMA, f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})"),
            (re.fullmatch(_NAME, self.name), f"name {self.name!r}: use letters, digits, '_', '-', '.' (64 at most)"),
            (names, "a robot needs at least one [[joint]]"),
            (not twice, f"joint {twice!r} is listed twice"),
            (1 <= self.control_hz <= 1e5 and 1 <= self.physics_hz <= 1e5, "rates lie between 1 and 100000 Hz"),
            (0.0 <= self.delay_s <= 0.1, f"delay_s must lie between 0 and 0.1 s, found {self.delay_s}"),
            (ratio >= 1 and abs(ratio - round(ratio)) <= 1e-9, rates),
        )

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def njoint(self) -> int:
        return len(self.joints)

    position_low = _Column(lambda joint: joint.position[0])
    position_high = _Column(lambda joint: joint.position[1])
    velocity_limit = _Column(lambda joint: joint.velocity)
    torque_limit = _Column(lambda joint: joint.torque)
    kp = _Column(lambda joint: joint.kp)
    kd = _Column(lambda joint: joint.kd)
    stall_torque = _Column(lambda joint: joint.stall_torque)
    default_pose = _Column(lambda joint: joint.default)
    excitation_pose = _Column(lambda joint: joint.middle)

    @property
    def has_envelope(self) -> bool:
        """Whether the torque of some motor depends on its speed."""
        return any(joint.knee_speed is not None for joint in self.joints)

    @property
    def substeps(self) -> int:
        """Physics steps in one control step."""
        return round(self.physics_hz / self.control_hz)


def read_spec(path: str | Path) -> RobotSpec:
    """Read and check a spec file; every failure names the file and the key."""
    return read_toml(path, RobotSpec, "spec", "no spec file here; `trueup robot init MODEL --out FOLDER` writes one")


def spec_to_toml(spec: RobotSpec) -> str:
    """Write a spec as TOML that a person can edit; `read_spec` gives the same spec back."""
    lines = [*_entries(spec), "", "[base]", *_entries(spec.base)]
    for key, option in spec.options.items():
        lines += ["", f"[options.{_toml(key)}]", *_entries(option)]
    lines += ["", "# one entry a joint, in the order every array uses; rad, rad/s, N m, N m/rad, N m s/rad"]
    for joint in spec.joints:
        lines += ["", "[[joint]]", *_entries(joint)]
    return "\n".join(lines) + "\n"


def _entries(entry: Strict) -> list[str]:
    """The fields of an entry as `key = value`, without those that are empty or tables of their own."""
    lines = []
    for name in entry.__struct_fields__:
        value = getattr(entry, name)
        if value not in (None, "", (), {}) and name not in ("base", "joints", "options"):
            comment = f"  # {_COMMENTS[name]}" if name in _COMMENTS else ""
            lines.append(f"{name} = {_toml(value)}{comment}")
    return lines


def _toml(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str | bool | int):
        return msgspec.json.encode(value).decode()
    return repr(float(value))  # type: ignore[arg-type]
