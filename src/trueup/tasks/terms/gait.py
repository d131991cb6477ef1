"""Gait terms: each foot follows a clock, on the ground in its stance and in the air in its swing.

A foot's phase is that of the policy's clock plus the foot's offset, in periods. Its stance begins at phase 0 and ends
at `stance`; the rest is its swing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.tasks.sensing.frame import Float32, Frame
from trueup.tasks.terms.rewards import commanded


@dataclass(frozen=True)
class Gait:
    """When each foot swings.

    offsets  of the feet, in periods
    stance   share of a period that a foot is on the ground
    always   also where the command is to stand; else every foot is in stance there
    """

    offsets: tuple[float, ...] = (0.0, 0.5)
    stance: float = 0.55
    always: bool = False

    def swing(self, frame: Frame) -> Float32:
        """How far each foot is in its swing, (nenv, nfoot) from 0 to 1; 0 in stance."""
        phase = np.mod(frame.phase[:, None] + np.array(self.offsets), 1.0)
        share = np.clip((phase - self.stance) / (1.0 - self.stance), 0.0, 1.0).astype(np.float32)
        return share if self.always else share * commanded(frame)[:, None]


@dataclass(frozen=True)
class InStep:
    """Share of the feet that touch the ground when they should, and only then, in [0, 1]."""

    gait: Gait

    def __call__(self, frame: Frame) -> Float32:
        return np.mean(frame.foot_contact == (self.gait.swing(frame) == 0.0), axis=1, dtype=np.float32)


@dataclass(frozen=True)
class SwingPath:
    """exp(-(h - h*)^2 / width^2), mean of the feet; h* = height sin^2(pi s) where a share s of the swing has passed."""

    gait: Gait
    height_m: float
    width_m: float

    def __call__(self, frame: Frame) -> Float32:
        wanted = np.float32(self.height_m) * np.square(np.sin(np.float32(np.pi) * self.gait.swing(frame)))
        away = (frame.foot_height - wanted) / np.float32(self.width_m)
        return np.exp(-np.square(away)).mean(axis=1, dtype=np.float32)
