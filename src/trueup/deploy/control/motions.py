"""Motions before and after the policy: from the measured pose to the default pose, and lowering the robot.

Ramp: the target goes from the measured pose to the default pose along 10 u^3 - 15 u^4 + 6 u^5 (no speed and no
acceleration at both ends) while the stiffness grows from a tenth to its full size over the first half, so that a wrong
pose is felt before it is forced; damping is there in full from the beginning. Fade: the target stays and the stiffness
falls to zero under full damping.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import Controller
from trueup.hardware.driver import Command

_FIRST_GAIN = 0.1
_PEAK = 1.875  # largest slope of the blend


class Ramp(NamedTuple):
    """From `start` to `end` (robot's order, rad) in `steps` control steps, then `rest` steps in the end pose.

    stiffness  multiple of the policy's gains during the ramp: a policy's own are often too soft to stand up with.
               During the
               rest they come back to those of the policy.
    """

    start: FloatArray
    end: FloatArray
    steps: int
    rest: int = 0
    stiffness: float = 1.0
    first: float = _FIRST_GAIN  # share of the stiffness at the beginning

    def command(self, controller: Controller, k: int, gain: float = 1.0) -> Command:
        """The command of step k; after the rest it is the end pose under the policy's gains."""
        share = min((k + 1) / self.steps, 1.0)
        blend = share**3 * (10.0 - 15.0 * share + 6.0 * share * share)
        target = self.end if share >= 1.0 else self.start + blend * (self.end - self.start)
        rested = min(max((k + 1 - self.steps) / max(self.rest, 1), 0.0), 1.0)
        stiffness = self.stiffness + rested * (1.0 - self.stiffness)
        growth = self.first + (1.0 - self.first) * min(2.0 * share, 1.0)
        found = controller.command(target, gain)
        return Command(**vars(found) | {"kp": growth * stiffness * found.kp, "kd": stiffness * found.kd})


def plan_ramp(
    start: FloatArray,
    end: FloatArray,
    *,
    control_hz: float,
    least_s: float = 2.0,
    rest_s: float = 0.0,
    most_speed: float = 0.8,
    stiffness: float = 1.0,
) -> Ramp:
    """A ramp that takes `least_s`, or longer, so that no joint's target is faster than `most_speed` rad/s."""
    if not (least_s > 0.0 and most_speed > 0.0):
        raise TrueupError("a ramp takes some time: its seconds and its speed must be above zero")
    far = float(np.abs(np.asarray(end) - start).max(initial=0.0))
    seconds = max(least_s, _PEAK * far / most_speed)
    steps, rest = max(1, math.ceil(seconds * control_hz)), round(rest_s * control_hz)
    return Ramp(np.array(start, np.float64), np.array(end, np.float64), steps, rest, stiffness)


def fade(controller: Controller, target: FloatArray, share: float, gain: float = 1.0) -> Command:
    """Hold `target` with a stiffness that has `share` (1 to 0) of its size left, under full damping."""
    found = controller.command(target, gain)
    left = min(max(share, 0.0), 1.0)
    return Command(**vars(found) | {"kp": left * found.kp, "kd": controller.kd})
