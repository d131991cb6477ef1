"""RobotSpec: joint order, limits, gains, rates, pose and names. The one truth about a robot.

A spec is a TOML file beside the robot's MJCF or URDF. Geometry, masses and passive joint dynamics (armature, damping,
dry friction) live in the model file; what a controller must also know lives here and is written into the compiled
model, so that the two cannot disagree. All arrays are in spec joint order. SI units, radians.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.toml import read_toml

SCHEMA = 1
FloatArray = NDArray[np.float64]


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything in a spec: immutable, keyword-only, unknown keys refused."""


class JointSpec(_Entry, frozen=True, kw_only=True):
    """One actuated joint: name as in the model file, limits, servo gains, default position.

    knee_speed  rad/s up to which the motor gives its full torque; beyond, what it gives falls linearly to zero at
                `velocity`. None: full torque at any speed
    """

    name: str
    position: tuple[float, float]
    velocity: float
    torque: float
    kp: float
    kd: float
    default: float = 0.0
    knee_speed: float | None = None

    def __post_init__(self) -> None:
        low, high = self.position
        numbers = (low, high, self.velocity, self.torque, self.kp, self.kd, self.default)
        if not all(math.isfinite(x) for x in numbers):
            raise ValueError(f"joint {self.name!r}: every number must be finite, found {numbers}")
        if not low < high:
            raise ValueError(f"joint {self.name!r}: position = [low, high] needs low < high, found [{low}, {high}]")
        if self.velocity <= 0 or self.torque <= 0:
            raise ValueError(f"joint {self.name!r}: velocity and torque limits must be positive")
        if self.kp < 0 or self.kd < 0:
            raise ValueError(f"joint {self.name!r}: kp and kd must not be negative")
        if self.knee_speed is not None and not 0.0 <= self.knee_speed < self.velocity:
            raise ValueError(
                f"joint {self.name!r}: knee_speed must lie between 0 and velocity {self.velocity}, found "
                f"{self.knee_speed}"
            )
        if not low <= self.default <= high:
            raise ValueError(f"joint {self.name!r}: default {self.default} is outside position [{low}, {high}]")

    @property
    def stall_torque(self) -> float:
        """Torque at rest on the motor's torque-speed line, N m: `torque` cuts it off up to the knee speed."""
        return self.torque / (1.0 - (self.knee_speed or 0.0) / self.velocity)


class BaseSpec(_Entry, frozen=True, kw_only=True):
    """The root body: floating or bolted down, and where it is in the default pose."""

    body: str
    floating: bool = False
    stand_height: float = 0.0  # of the base frame above the ground, default pose, feet just touching (m)
    hold_height: float = 1.0  # of the base frame when it is held in the air (m)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.stand_height) and math.isfinite(self.hold_height)):
            raise ValueError("base: stand_height and hold_height must be finite")


class OptionSpec(_Entry, frozen=True, kw_only=True):
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


class RobotSpec(_Entry, frozen=True, kw_only=True, rename={"joints": "joint"}):
    """Everything that training, simulation and the robot must agree on."""

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
    options: dict[str, OptionSpec] = {}

    def __post_init__(self) -> None:
        if self.schema != SCHEMA:
            raise ValueError(f"schema {self.schema} is not known to this version (it reads schema {SCHEMA})")
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", self.name):
            raise ValueError(f"name {self.name!r}: use letters, digits, '_', '-', '.' (64 at most)")
        names = [joint.name for joint in self.joints]
        if not names:
            raise ValueError("a robot needs at least one [[joint]]")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"joint {twice[0]!r} is listed twice")
        if not (1 <= self.control_hz <= 100_000 and 1 <= self.physics_hz <= 100_000):
            raise ValueError("control_hz and physics_hz must lie between 1 and 100000")
        if not 0.0 <= self.delay_s <= 0.1:
            raise ValueError(f"delay_s must lie between 0 and 0.1 s, found {self.delay_s}")
        ratio = self.physics_hz / self.control_hz
        if ratio < 1 or abs(ratio - round(ratio)) > 1e-9:
            raise ValueError(
                f"physics_hz {self.physics_hz:g} must be a whole multiple of control_hz {self.control_hz:g}"
            )

    # arrays in spec order
    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @property
    def njoint(self) -> int:
        return len(self.joints)

    @property
    def position_low(self) -> FloatArray:
        return np.array([joint.position[0] for joint in self.joints])

    @property
    def position_high(self) -> FloatArray:
        return np.array([joint.position[1] for joint in self.joints])

    @property
    def velocity_limit(self) -> FloatArray:
        return np.array([joint.velocity for joint in self.joints])

    @property
    def torque_limit(self) -> FloatArray:
        return np.array([joint.torque for joint in self.joints])

    @property
    def kp(self) -> FloatArray:
        return np.array([joint.kp for joint in self.joints])

    @property
    def kd(self) -> FloatArray:
        return np.array([joint.kd for joint in self.joints])

    @property
    def stall_torque(self) -> FloatArray:
        return np.array([joint.stall_torque for joint in self.joints])

    @property
    def has_envelope(self) -> bool:
        """Whether the torque of some motor depends on its speed."""
        return any(joint.knee_speed is not None for joint in self.joints)

    @property
    def default_pose(self) -> FloatArray:
        return np.array([joint.default for joint in self.joints])

    @property
    def substeps(self) -> int:
        """Physics steps in one control step."""
        return round(self.physics_hz / self.control_hz)


def read_spec(path: str | Path) -> RobotSpec:
    """Read and check a spec file; every failure names the file and the key."""
    return read_toml(path, RobotSpec, "spec", "no spec file here; `trueup robot init MODEL --out FOLDER` writes one")


def spec_to_toml(spec: RobotSpec) -> str:
    """Write a spec as TOML that a person can edit; `read_spec` gives the same spec back."""
    lines = [f"schema = {spec.schema}", f"name = {_toml(spec.name)}"]
    if spec.description:
        lines.append(f"description = {_toml(spec.description)}")
    lines += [
        f"model = {_toml(spec.model)}",
        "",
        "# the policy runs at control_hz, the engine at physics_hz (a whole multiple)",
        f"control_hz = {_toml(spec.control_hz)}",
        f"physics_hz = {_toml(spec.physics_hz)}",
        "",
    ]
    if spec.imu is not None:
        lines.append(f"imu = {_toml(spec.imu)}  # site")
    if spec.end_effector is not None:
        lines.append(f"end_effector = {_toml(spec.end_effector)}  # site")
    if spec.feet:
        lines.append(f"feet = {_toml(list(spec.feet))}  # geoms")
    if spec.contact_geoms:
        lines.append(f"contact_geoms = {_toml(list(spec.contact_geoms))}  # kept in light collision mode")
    if spec.delay_s:
        lines.append(f"delay_s = {_toml(spec.delay_s)}  # from a command to the torque it causes")
    base = spec.base
    lines += ["", "[base]", f"body = {_toml(base.body)}", f"floating = {_toml(base.floating)}"]
    lines += [f"stand_height = {_toml(base.stand_height)}  # m, default pose, feet touching the ground"]
    lines += [f"hold_height = {_toml(base.hold_height)}  # m, held in the air"]
    for key, option in spec.options.items():
        lines += ["", f"[options.{_toml(key)}]"]
        lines += [f"{name} = {_toml(getattr(option, name))}" for name in option.__struct_fields__]
    lines += ["", "# one entry a joint, in the order every array uses; rad, rad/s, N m, N m/rad, N m s/rad"]
    for joint in spec.joints:
        lines += ["", "[[joint]]"]
        for name in joint.__struct_fields__:
            value = getattr(joint, name)
            if value is None:
                continue
            lines.append(f"{name} = {_toml(list(value) if isinstance(value, tuple) else value)}")
    return "\n".join(lines) + "\n"


def _toml(value: str | bool | float | list[object]) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode()
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"  # type: ignore[arg-type]
    return repr(float(value))
