"""What a wiggle test measured: how every joint answered, where its stops are, and torques along sweeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray, Ids


class Touch(NamedTuple):
    """End of a sweep: the reported position, and whether something held the joint there (else it arrived freely).

    is_sure  false where friction and weight may hold it, not a stop: it could not be moved at all, or took nearly the
             allowed torque before
    """

    position: float
    is_contact: bool
    is_sure: bool = True


class WiggleAnswer(NamedTuple):
    """A wiggle of one joint.

    moved   change of every reported joint position from the negative to the positive extreme (njoint,)
    asked   change of the target, always positive; `sides`: 1 or 2 of the extremes were used
    """

    moved: FloatArray
    asked: float
    sides: int


class SweepRows(NamedTuple):
    """Rows of slow motion: reported positions (T, njoint), the joint that was swept, its target velocity and torque."""

    joint_pos: FloatArray
    joint: Ids
    velocity: FloatArray
    torque: FloatArray


@dataclass(kw_only=True)
class Trace:
    """Collected while the robot moves; analysed afterwards.

    start        reported pose at the first reading, `rest` after the joints came to rest damped
    departed     joints that left their place while told to hold it: change of position (njoint,), or None
    pulses       answers to torque pulses, in place of `answers`, after joints departed
    stops        by joint: touches at the low and at the high end
    seconds      of robot time
    """

    start: FloatArray
    rest: FloatArray
    departed: FloatArray | None = None
    answers: dict[int, WiggleAnswer] = field(default_factory=dict)
    pulses: dict[int, WiggleAnswer] = field(default_factory=dict)
    stops: dict[int, dict[str, Touch]] = field(default_factory=dict)
    imu: list[tuple[FloatArray, FloatArray]] = field(default_factory=list)
    seconds: float = 0.0
    _rows: list[tuple[FloatArray, int, float, float]] = field(default_factory=list)

    def add_row(self, joint_pos: FloatArray, joint: int, velocity: float, torque: float) -> None:
        """Keep one instant of a sweep."""
        self._rows.append((joint_pos, joint, velocity, torque))

    def rows(self) -> SweepRows:
        """All instants of sweeps."""
        if not self._rows:
            none = np.zeros(0)
            return SweepRows(np.zeros((0, len(self.start))), np.zeros(0, np.intp), none, none)
        pos, joint, velocity, torque = zip(*self._rows, strict=True)
        return SweepRows(np.array(pos), np.array(joint, np.intp), np.array(velocity), np.array(torque))
