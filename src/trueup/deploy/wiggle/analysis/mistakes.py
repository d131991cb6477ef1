"""Mistakes that commands and readings share: a joint wired as another, a mirrored joint, a shifted encoder.

Such a mistake is consistent: what is commanded is what is read, and only the robot's body can show it. A `Mistake` says
what the reported numbers would mean: which physical joint a reported one is, with which sign and offset.

    q_physical[of[j]] = sign[j] (q_reported[j] - offset[j]),    tau_reported[j] = sign[j] tau_physical[of[j]]
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trueup.core.arrays import FloatArray, Ids
from trueup.deploy.wiggle.analysis.limb_model import LimbModel
from trueup.deploy.wiggle.motion.trace import Touch
from trueup.robot.spec import RobotSpec

TOLERANCE_RAD = 0.1  # of a stop against the spec's limit


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """What reported joints really are."""

    kind: Literal["none", "swap", "sign", "offset"]
    joints: tuple[int, ...]
    of: Ids
    sign: FloatArray
    offset: FloatArray

    def torque(self, limbs: LimbModel, joint_pos: FloatArray, gravity: FloatArray) -> FloatArray:
        """Torques (T, njoint) that would be reported at reported positions (T, njoint) if this were so."""
        physical = np.empty_like(joint_pos)
        physical[:, self.of] = self.sign * (joint_pos - self.offset)
        held = limbs.gravity_torque(physical, gravity)
        reported: FloatArray = self.sign * held[:, self.of]
        return reported

    def limits(self, spec: RobotSpec) -> tuple[FloatArray, FloatArray]:
        """Reported positions of the stops, low and high (njoint,), if this were so."""
        ends = self.sign * np.stack([spec.position_low[self.of], spec.position_high[self.of]]) + self.offset
        return ends.min(axis=0), ends.max(axis=0)

    def agrees(self, spec: RobotSpec, stops: dict[int, dict[str, Touch]], tolerance: float = TOLERANCE_RAD) -> bool:
        """Whether the stops that were met, and those that were not, are where they would be."""
        low, high = self.limits(spec)
        for j, ends in stops.items():
            for side, touch in ends.items():
                if not touch.is_sure:
                    continue
                stop = low[j] if side == "low" else high[j]
                short = touch.position - stop if side == "low" else stop - touch.position
                # held: at the stop; arrived freely: the stop lies no nearer
                if short < -tolerance or (touch.is_contact and short > tolerance):
                    return False
        return True


def no_mistake(spec: RobotSpec) -> Mistake:
    """Every reported joint is what it says."""
    n = spec.njoint
    return Mistake(kind="none", joints=(), of=np.arange(n), sign=np.ones(n), offset=np.zeros(n))


def single_mistakes(spec: RobotSpec) -> list[Mistake]:
    """Every swap of two joints and every mirrored joint."""
    n, found = spec.njoint, []
    for i, k in itertools.combinations(range(n), 2):
        of = np.arange(n)
        of[[i, k]] = k, i
        found.append(Mistake(kind="swap", joints=(i, k), of=of, sign=np.ones(n), offset=np.zeros(n)))
    for j in range(n):
        sign = np.ones(n)
        sign[j] = -1.0
        found.append(Mistake(kind="sign", joints=(j,), of=np.arange(n), sign=sign, offset=np.zeros(n)))
    return found


def shifted(spec: RobotSpec, j: int, offset: float) -> Mistake:
    """Joint j reads `offset` too much."""
    none, offsets = no_mistake(spec), np.zeros(spec.njoint)
    offsets[j] = offset
    return Mistake(kind="offset", joints=(j,), of=none.of, sign=none.sign, offset=offsets)


def stop_offset(spec: RobotSpec, j: int, ends: dict[str, Touch]) -> float | None:
    """Encoder offset of joint j from its stops, rad; None unless the joint could be moved to both ends.

    A stop that holds the joint before its limit shows the offset on that side; the other side is then free. Where both
    hold it (stops nearer than the limits say), the difference counts, so that narrow stops are no offset.
    """
    if set(ends) != {"low", "high"}:
        return None
    low, high = ends["low"], ends["high"]
    if not (low.is_sure and high.is_sure):
        return None
    early_low = max(0.0, low.position - spec.joints[j].position[0]) if low.is_contact else 0.0
    early_high = max(0.0, spec.joints[j].position[1] - high.position) if high.is_contact else 0.0
    if early_low > 0.0 and early_high > 0.0:
        return (early_low - early_high) / 2.0 if min(early_low, early_high) > 0.05 else early_low - early_high
    return early_low - early_high
