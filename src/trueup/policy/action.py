"""ActionMap: from a policy's output to joint targets, the same in training and on the robot."""

from __future__ import annotations

from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.policy.cycle import Cycle, CycleSpec

Float32 = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)


class ActionSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """target = default_pose + scale * clip(action, -clip, clip), kept inside [low, high]; all per joint.

    relative  the target before takes the place of the default pose: an action is a speed, and targets move smoothly
    residual  the command's first columns, one of each joint, are added: a reference pose minus the default one
    cycle     offsets of a made gait or of a motion (a feedforward) are added, by the clock and the command
    controlled_joints  joints that the policy moves, in the order of its outputs; the others stay in the default pose
    low, high  empty: targets are not limited
    clip  one number for all actions, (low, high) of each, or None
    observe_clipped  the policy's next observation holds the clipped action instead of its own output
    """

    joint_names: tuple[str, ...]
    default_pose: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    controlled_joints: tuple[str, ...] = msgspec.field(name="moved")  # key of the format
    scale: tuple[float, ...]  # of each controlled joint, rad
    clip: float | tuple[tuple[float, float], ...] | None = 10.0
    relative: bool = False
    residual: bool = False
    cycle: CycleSpec | None = None
    observe_clipped: bool = False

    def __post_init__(self) -> None:
        limits = {len(limit) for limit in (self.low, self.high) if limit}
        if limits | {len(self.default_pose)} != {len(self.joint_names)} or len(self.scale) != len(
            self.controlled_joints
        ):
            raise ValueError("an action spec needs one number for each joint")
        if self.relative and self.residual:
            raise ValueError("actions are relative to the last target or residuals on the command, not both")
        if self.cycle is not None and self.relative:
            raise ValueError("actions are added to a cycle or to the last target, not to both")
        if self.cycle is not None and len(self.cycle.rows[0]) != len(self.controlled_joints):
            raise ValueError("a cycle needs one column for each controlled joint")
        if isinstance(self.clip, tuple) and len(self.clip) != len(self.controlled_joints):
            raise ValueError("clip needs one (low, high) for each action")
        clips = self.clip if isinstance(self.clip, tuple) else () if self.clip is None else ((-self.clip, self.clip),)
        if any(low > high for low, high in (*clips, *zip(self.low, self.high, strict=False))):
            raise ValueError("clip, low and high: an upper bound lies below its lower one")
        for name in self.controlled_joints:
            if self.controlled_joints.count(name) > 1:
                raise ValueError(f"controlled_joints has the joint {name!r} twice")
            if name not in self.joint_names:
                raise ValueError(f"controlled joint {name!r} is not a joint{did_you_mean(name, self.joint_names)}")


class ActionMap:
    """Computes targets from actions."""

    def __init__(self, spec: ActionSpec) -> None:
        self.spec = spec
        self.naction = len(spec.controlled_joints)
        columns = [spec.joint_names.index(name) for name in spec.controlled_joints]
        self._columns = slice(None) if columns == list(range(len(spec.joint_names))) else np.array(columns)
        self._default, self._scale = np.array(spec.default_pose), np.array(spec.scale)
        self._low, self._high = (np.array(limit) if limit else None for limit in (spec.low, spec.high))
        pairs = ((-spec.clip, spec.clip),) if isinstance(spec.clip, int | float) else spec.clip
        self._clip = None if pairs is None else tuple(np.array(pairs).T)
        self._cycle = None if spec.cycle is None else Cycle(spec.cycle)

    def target(
        self,
        action: NDArray[np.floating],
        before: FloatArray | None = None,
        command: NDArray[np.floating] | None = None,
        phase: NDArray[np.floating] | None = None,
    ) -> FloatArray:
        """Joint targets (n, njoint) of actions (n, naction).

        before   (n, njoint) the last targets, at first the pose; command (n, ncommand) as the policy saw it
        phase    (n,) of the policy's clock, in periods
        """
        if self.spec.relative:
            if before is None:
                raise TrueupError("this policy moves its targets: give the targets before")
            out = np.array(before, np.float64)
        else:
            out = np.repeat(self._default[None], len(action), axis=0)
            if self.spec.residual:
                out += _reference(command, out.shape[1])
        if self._cycle is not None:
            if command is None or phase is None:
                raise TrueupError("this policy adds to a gait: give the command and the phase of its clock")
            out[:, self._columns] += self._cycle.offset(phase, command)
        out[:, self._columns] += self._scale * self._clipped(action)
        if self._low is None and self._high is None:
            return out
        return np.clip(out, self._low, self._high, out=out)

    def observed(self, action: Float32) -> Float32:
        """The action as the policy's next observation holds it."""
        return self._clipped(action).astype(np.float32) if self.spec.observe_clipped else action

    def _clipped(self, action: NDArray[np.floating]) -> NDArray[np.floating]:
        return action if self._clip is None else np.clip(action, *self._clip)


def _reference(command: NDArray[np.floating] | None, njoint: int) -> NDArray[np.floating]:
    if command is None or command.shape[1] < njoint:
        raise TrueupError(
            "this policy adds to a reference motion: give the command, whose first columns are its joints"
        )
    return command[:, :njoint]


class JointOrder:
    """Columns of a robot's own joint order against the policy's: `to_policy` and back, exactly; views if they agree."""

    def __init__(self, policy: tuple[str, ...], robot: tuple[str, ...]) -> None:
        if sorted(policy) != sorted(robot):
            odd = sorted(set(policy) ^ set(robot)) or ["one twice"]
            raise TrueupError(f"policy and robot have different joints: {', '.join(odd)}")
        self._from_robot, self._from_policy = (
            slice(None) if policy == robot else np.array([names.index(name) for name in wanted], np.intp)
            for names, wanted in ((robot, policy), (policy, robot))
        )

    def to_policy(self, values: NDArray[Number]) -> NDArray[Number]:
        """Columns in the robot's order to the policy's."""
        return values[..., self._from_robot]

    def to_robot(self, values: NDArray[Number]) -> NDArray[Number]:
        """Columns in the policy's order to the robot's."""
        return values[..., self._from_policy]
