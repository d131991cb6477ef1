"""Scenario: one test of a policy as data. Files of them: `suite`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from trueup.core.documents import Strict
from trueup.core.errors import did_you_mean
from trueup.world.parameters.table import PARAMETERS
from trueup.world.randomization.targets import VIRTUAL
from trueup.world.terrain import KINDS

SENSOR_NOISE, TRUNK, TOOL = "sensor_noise", "trunk", "tool"
CHANGED = (*PARAMETERS, *VIRTUAL, SENSOR_NOISE)
Range = float | tuple[float, float]


class ParameterChange(Strict, frozen=True, kw_only=True):
    """A parameter set, scaled or added to, by a number or one drawn from [low, high] in each trial.

    of    joints or bodies by name; "trunk": the body that carries the legs; "tool": the one that carries the tool
    axis  of a vector, such as "x" of com_offset; empty: all
    each  one number per joint, body and axis instead of one per trial
    """

    set: Range | None = None
    scale: Range | None = None
    add: Range | None = None
    of: str | tuple[str, ...] | None = None
    axis: str = ""
    each: bool = False

    def __post_init__(self) -> None:
        given = [name for name in ("set", "scale", "add") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"needs one of set, scale and add, found {', '.join(given) or 'none'}")
        low, high = self.bounds
        if low > high:
            raise ValueError(f"{given[0]} = [low, high] needs low <= high, found [{low}, {high}]")

    @property
    def operation(self) -> Literal["set", "scale", "add"]:
        return "set" if self.set is not None else "scale" if self.scale is not None else "add"

    @property
    def bounds(self) -> tuple[float, float]:
        value = getattr(self, self.operation)
        return value if isinstance(value, tuple) else (value, value)


class TerrainSize(Strict, frozen=True, kw_only=True):
    """A kind of `world.terrain` at one size: height of steps and bumps (m), width of gaps (m), slope in degrees."""

    kind: str
    size: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no terrain {self.kind!r}{did_you_mean(self.kind, KINDS)}")


class Carpet(Strict, frozen=True, kw_only=True):
    """Sliding friction of feet along (world x) and across (y) the pile."""

    along: float
    across: float


class Shove(Strict, frozen=True, kw_only=True):
    """A force on the trunk, held for `seconds` and repeated after a pause drawn from `every_s`, the first included."""

    newton: float
    direction: Literal["sideways", "forward", "any"] = "sideways"
    seconds: float = 0.3
    every_s: tuple[float, float] = (2.0, 3.0)


class Heat(Strict, frozen=True, kw_only=True):
    """Motors that weaken as they warm up.

    Heat h of each motor follows dh/dt = ((torque / continuous)^2 - h) / time_s from `start`, which is copper loss
    against cooling in units of what the motor bears for ever; `continuous` is a share of the torque limit. Above h = 1
    the limit falls by `derate` per unit of h, to `floor` at least.
    """

    start: Range = 1.0
    continuous: float = 0.35
    time_s: float = 20.0
    derate: float = 0.5
    floor: float = 0.4


class StartNoise(Strict, frozen=True, kw_only=True):
    """Half-widths of the noise on the start state, see `tasks.task.Start`."""

    joint_pos: float = 0.0
    joint_vel: float = 0.0
    tilt: float = 0.0
    vel: float = 0.0
    spin: float = 0.0
    any_yaw: bool = False


class Success(Strict, frozen=True, kw_only=True):
    """Criteria of a trial's success beside not falling; None: not required.

    error       mean error of the goal at most: m/s of a velocity, m of a tool that had time to settle
    turn_error  mean error of the turning rate at most, rad/s
    distance    least distance along the commanded course, as a share of it
    """

    error: float | None = None
    turn_error: float | None = None
    distance: float | None = None


class Scenario(Strict, frozen=True, kw_only=True):
    """One test.

    command  by the goal's columns, those left out are zero; None: as the task draws them
    heading  closed-loop steering: the turn command brings the robot back to its start heading
    least    the scenario is passed if the lower end of the 95 % interval of its success rate is at least this
    required `trueup verify` asks it of every policy; else ground that is not flat only of those trained on such ground
    """

    name: str
    title: str = ""
    command: dict[str, float] | None = None
    seconds: float = 10.0
    heading: bool = False
    terrain: TerrainSize | None = None
    carpet: Carpet | None = None
    params: dict[str, ParameterChange] = msgspec.field(default_factory=dict)
    push: Shove | None = None
    heat: Heat | None = None
    start: StartNoise = StartNoise()
    success: Success = Success()
    least: float = 0.8
    required: bool = False

    def __post_init__(self) -> None:
        if not 0.5 <= self.seconds <= 120.0:
            raise ValueError(f"seconds must lie in 0.5 .. 120, found {self.seconds:g}")
        if not 0.0 < self.least < 1.0:
            raise ValueError(f"least is a rate between 0 and 1, found {self.least:g}")
        if not self.name.replace("_", "").replace("-", "").isalnum() or len(self.name) > 40:
            raise ValueError(f"name {self.name!r}: use at most 40 letters, digits, '_' and '-'")
        check_names(self.params)


class Probe(Strict, frozen=True, kw_only=True):
    """A parameter changed in steps away from its own value, to find where the policy fails."""

    title: str
    param: str
    set: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    add: tuple[float, ...] = ()
    of: str | tuple[str, ...] | None = None
    axis: str = ""
    unit: str = ""

    def __post_init__(self) -> None:
        check_names([self.param])
        if sum(bool(getattr(self, name)) for name in ("set", "scale", "add")) != 1:
            raise ValueError(f"{self.title!r} needs one of set, scale and add with its levels, mildest first")

    @property
    def operation(self) -> Literal["set", "scale", "add"]:
        return "set" if self.set else "scale" if self.scale else "add"

    @property
    def levels(self) -> tuple[float, ...]:
        levels: tuple[float, ...] = getattr(self, self.operation)
        return levels

    def change(self, level: float) -> ParameterChange:
        """The change that this level is."""
        return msgspec.convert({self.operation: level, "of": self.of, "axis": self.axis}, ParameterChange)


def check_names(names: Iterable[str]) -> None:
    """Refuse a name that is no parameter."""
    for name in names:
        if name not in CHANGED:
            raise ValueError(f"no parameter {name!r}{did_you_mean(name, CHANGED)}")
