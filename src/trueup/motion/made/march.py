"""Cycle of a made march: servo targets over one period of two steps on the spot.

Steps are planned, solved by inverse kinematics and turned into holding targets (`motion.holding`); one period is taken
of the middle. Speed is left to the policy: targets of a steady walk move a robot that is at rest against its command.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from trueup.motion.bodies import BodyTree
from trueup.motion.holding import holding_targets
from trueup.motion.made.humanoid import RATE_HZ, STAND_S, plan_motion, stepping
from trueup.policy.cycle import CycleSpec
from trueup.robot.load import Robot

_STEPS, _FROM = 8, 4  # made; the first that is taken


@dataclass(frozen=True)
class MarchCycle:
    """Two steps in `period_s`, each foot `swing` of it in the air and `height_m` high; left foot first.

    The left foot swings from 0.5 - swing to 0.5 of the period, the right one half a period later. `full_at`: length of
    the command from which on the march is whole; None: it never ends.
    """

    period_s: float = 0.8
    swing: float = 0.4
    height_m: float = 0.08
    full_at: float | None = None

    def __call__(self, robot: Robot, joints: tuple[str, ...]) -> CycleSpec:
        """The cycle of some joints of a biped, with the gains of its spec."""
        return _make(
            _MarchKey(
                self, joints, robot.model_sha256, tuple(robot.spec.kp.tolist()), tuple(robot.spec.kd.tolist()), robot
            )
        )


@dataclass(frozen=True)
class _MarchKey:
    """What a cycle depends on; the robot itself cannot be compared."""

    march: MarchCycle
    joints: tuple[str, ...]
    model_sha256: str
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    robot: Robot = field(compare=False)


@lru_cache(maxsize=8)
def _make(asked: _MarchKey) -> CycleSpec:
    march, robot = asked.march, asked.robot
    step_s, swing_s = 0.5 * march.period_s, march.swing * march.period_s
    plan = stepping([(k % 2, 0.0, 0.0, 0.0) for k in range(_STEPS)], swing_s, step_s - swing_s, march.height_m)
    targets = holding_targets(plan_motion(plan, "march", robot), robot, BodyTree(robot))
    first, count = round((STAND_S + _FROM * step_s) * RATE_HZ), round(march.period_s * RATE_HZ)
    columns = [robot.spec.joint_names.index(name) for name in asked.joints]
    rows = (targets[first : first + count] - robot.spec.default_pose)[:, columns]
    return CycleSpec(rows=tuple(tuple(row) for row in np.round(rows, 4).tolist()), full_at=march.full_at)
