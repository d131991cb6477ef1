"""Finding and WiggleResult: what a wiggle test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trueup.core.verb_package import Shown

Kind = Literal["swap", "sign", "dead", "offset", "outside", "imu", "gravity", "aborted"]


@dataclass(frozen=True, kw_only=True)
class WiringFinding:
    """Something that is wrong: its kind, the joints it concerns, what was measured in words; `value` in rad or None."""

    kind: Kind
    joints: tuple[str, ...]
    text: str
    value: float | None = None


@dataclass(frozen=True, kw_only=True)
class JointResult:
    """What was measured of one joint; None where it was not.

    gain          motion of the joint over what was asked in its wiggle
    offset        encoder offset from the stops, rad; `low` and `high`: where it was held, None where it arrived freely
    gravity       measured gravity torque over the model's; `friction` N m
    """

    name: str
    gain: float | None = None
    offset: float | None = None
    low: float | None = None
    high: float | None = None
    gravity: float | None = None
    friction: float | None = None


@dataclass(frozen=True, kw_only=True)
class WiggleResult(Shown):
    """Outcome of a wiggle test.

    findings  what is wrong, worst first; empty: nothing was found
    unseen    mistakes that this robot's shape hides from the test, each with what to look at
    notes     what was left out and why
    """

    robot: str
    driver: str
    findings: tuple[WiringFinding, ...]
    joints: tuple[JointResult, ...]
    unseen: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    meta: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def is_aborted(self) -> bool:
        return any(one.kind == "aborted" for one in self.findings)

    @property
    def nwrong(self) -> int:
        """Findings about the robot, not about the test."""
        return sum(one.kind != "aborted" for one in self.findings)
