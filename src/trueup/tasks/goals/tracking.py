"""Tracking: the whole body shall follow a motion, or one of several, from where an episode begins to its end.

In training, episodes begin at random rows of the motion in its own state there (reference state initialisation, Peng et
al. 2018, arXiv 1804.02717), more often shortly before rows where the policy failed, and end when bodies are further
from the reference than a distance that shrinks with success. Else they begin at the first row.

What is asked at a control step is the row that the state shall have reached after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.motion.bodies import BodyTree, complete
from trueup.motion.holding import holding_targets
from trueup.motion.motion import Motion
from trueup.motion.readers.open import open_motion
from trueup.motion.rotations import conjugate, multiply, rotate
from trueup.tasks.goals.goal import Float32, Goal, GoalCfg, GoalPlace

_BIN_S = 0.4  # of a motion that is drawn as a whole
_FORGET = 0.98  # failures that are remembered, from one end of episodes to the next
_UNIFORM = 0.5  # share of the starts that are drawn from the whole motion
_SHRINK, _GROW = 0.998, 1.0005  # of the distance, with every episode that is finished or fails


@dataclass(frozen=True, kw_only=True)
class TrackingGoal(GoalCfg):
    """Motions by name or file; `bodies` are compared, the first one is the root.

    limit_m  furthest that a body may be from the reference in training: at first, and at last
    failed_m mean distance of the bodies beyond which an episode has failed, outside training
    anchor   body whose orientation policies of others compare with the reference's; the root if empty
    """

    error: ClassVar[tuple[str, str] | None] = ("body_error", "m")
    motions: tuple[str, ...]
    bodies: tuple[str, ...]
    limit_m: tuple[float, float] = (0.5, 0.25)
    failed_m: float = 0.5
    anchor: str = ""

    def start(self, place: GoalPlace) -> Goal:
        return Tracking(self, place)


class Tracking(Goal):
    """Where each row is; values: the targets that hold the reference (`motion.holding`) minus the default pose, joint
    speeds, gravity in the reference's base, phase."""

    def __init__(self, cfg: TrackingGoal, place: GoalPlace) -> None:
        self.cfg, self._sim, self._random, self._training = cfg, place.sim, place.random, place.training
        sim, robot = place.sim, place.sim.robot
        if not sim.free_base:
            raise TrueupError(f"a motion is tracked by a robot with a free base, which {robot.spec.name!r} has not")
        self.tree = BodyTree(robot, np.float32)
        self.tracked = np.array([self.tree.index(name) for name in cfg.bodies])
        rate = 1.0 / sim.control_dt
        self.anchor = self.tree.index(cfg.anchor) if cfg.anchor else int(self.tracked[0])
        found = [open_motion(name, robot) for name in cfg.motions]
        self.reference = ReferenceRows(
            [_at_rate(motion, rate, place) for motion in found], self.tree, self.tracked, self.anchor
        )
        default = robot.spec.default_pose.astype(np.float32)
        ref = self.reference
        down = rotate(conjugate(ref.root_quat), np.tile(np.array([0, 0, -1], np.float32), (len(ref.root_quat), 1)))
        self._rows = np.concatenate([ref.held - default, ref.joint_vel, down, ref.phase[:, None]], axis=1)
        self.ncommand = self._rows.shape[1]
        self.mirror_parts = (("joints", len(default)), ("joints", len(default)), ("vector", 3), ("same", 1))
        at_rest = self.tree.place(np.zeros((1, 3)), np.array([[1.0, 0, 0, 0]]), robot.spec.default_pose[None])
        self.bodies = np.asarray(at_rest.pos[0, self.tracked], float)
        super().__init__(sim.nsim)
        self.at = np.zeros(sim.nsim, np.int64)  # row of the reference that is asked for
        self.limit: Float32 = np.array([cfg.limit_m[0] if place.training else np.inf], np.float32)
        self._bin = max(1, round(_BIN_S * rate))
        self._failures = np.zeros(-(-len(ref.phase) // self._bin))

    def reset(self, ids: Ids) -> None:
        draws = self._random.uniform(2, ids)
        ref = self.reference
        in_turn = (self._sim.cfg.first_row + ids) % len(ref.first)
        starts = self._drawn(draws) if self._training else ref.first[in_turn]
        self.at[ids] = np.minimum(starts, ref.last[ref.motion[starts]] - 2) + 1
        self.age[ids] = 0.0
        self.values[ids] = self._rows[self.at[ids]]

    def _drawn(self, draws: FloatArray) -> NDArray[np.int64]:
        """Start rows: a bin drawn by its recent failures (adaptive sampling), then a row within it, uniformly."""
        total, count = self._failures.sum(), len(self._failures)
        share = self._failures / total if total > 0 else np.full(count, 1.0 / count)
        edges = np.cumsum(_UNIFORM / count + (1.0 - _UNIFORM) * share)
        chosen = np.minimum(np.searchsorted(edges, draws[:, 0] * edges[-1], side="right"), count - 1)
        rows = chosen * self._bin + np.floor(draws[:, 1] * self._bin)
        return np.minimum(rows, len(self.reference.phase) - 1).astype(np.int64)

    def advance(self) -> None:
        self.at[:] = np.minimum(self.at + 1, self.reference.last[self.reference.motion[self.at]])
        self.age += np.float32(self._sim.control_dt)
        self.values[:] = self._rows[self.at]

    def finished(self) -> NDArray[np.bool_]:
        done: NDArray[np.bool_] = self.at >= self.reference.last[self.reference.motion[self.at]]
        return done

    def ended(self, ids: Ids, failed: NDArray[np.bool_]) -> None:
        if not self._training:
            return
        self._failures *= _FORGET
        for row in self.at[ids[failed]]:
            bin_ = int(row) // self._bin
            self._failures[max(0, bin_ - 1) : bin_ + 1] += 1.0  # shortly before it, and there
        scale = _SHRINK ** int((~failed).sum()) * _GROW ** int(failed.sum())
        high, low = self.cfg.limit_m
        self.limit[:] = np.clip(self.limit * scale, low, high)

    def elapsed(self, ids: Ids) -> float | FloatArray:
        ref, rows = self.reference, self.at[ids] - 1
        which = ref.motion[rows]
        share: FloatArray = (rows - ref.first[which]) / (ref.last - ref.first)[which]
        return share

    def hold(self, values: NDArray[np.floating]) -> None:
        raise TrueupError("a motion goes on by itself: it cannot be held")

    def adjust_start(self, ids: Ids, qpos: FloatArray, qvel: FloatArray) -> None:
        """Start in the reference state one row before the command's, keeping the start noise."""
        sim, ref, rows = self._sim, self.reference, self.at[ids] - 1
        pos, dof = sim.base_qpos, sim.base_dof
        spec = sim.robot.spec
        joints = ref.joint_pos[rows] + qpos[:, sim.index.qpos] - spec.default_pose
        qpos[:, sim.index.qpos] = np.clip(joints, spec.position_low, spec.position_high)
        qvel[:, sim.index.dof] += ref.joint_vel[rows]
        qpos[:, pos : pos + 3] = ref.root_pos[rows]
        quat = ref.root_quat[rows].astype(np.float64)
        qpos[:, pos + 3 : pos + 7] = multiply(quat, qpos[:, pos + 3 : pos + 7])
        qvel[:, dof : dof + 3] += ref.root_vel[rows]
        qvel[:, dof + 3 : dof + 6] += rotate(conjugate(quat), ref.root_spin[rows].astype(np.float64))

    def memory(self) -> dict[str, NDArray[np.generic]]:
        out: dict[str, NDArray[np.generic]] = {"values": self.values, "age": self.age, "at": self.at}
        return out | {"counter": self._random.counter, "failures": self._failures, "limit": self.limit}


class ReferenceRows:
    """All motions, one after the other, at the control rate, float32: root, joints, and the tracked bodies.

    first, last  row of each motion; `motion` (T,) which one a row belongs to; `phase` (T,) from 0 to 1
    held         (T, njoint) servo targets that hold it
    """

    def __init__(self, motions: list[Motion], tree: BodyTree, tracked: NDArray[np.intp], anchor: int) -> None:
        lengths = np.array([len(motion) for motion in motions])
        self.first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        self.last = self.first + lengths - 1
        self.motion = np.repeat(np.arange(len(motions)), lengths)
        self.phase = np.concatenate([np.linspace(0, 1, n) for n in lengths]).astype(np.float32)
        names = ("root_pos", "root_quat", "root_vel", "root_spin", "joint_pos", "joint_vel")
        parts = [np.concatenate([getattr(motion, name) for motion in motions]).astype(np.float32) for name in names]
        self.root_pos, self.root_quat, self.root_vel, self.root_spin, self.joint_pos, self.joint_vel = parts
        held = [holding_targets(complete(one, tree.robot, tree), tree.robot, tree) for one in motions]
        self.held = np.concatenate(held).astype(np.float32)
        bodies = tree.place(
            self.root_pos, self.root_quat, self.joint_pos, (self.root_vel, self.root_spin, self.joint_vel)
        )
        assert bodies.vel is not None
        assert bodies.spin is not None
        self.pos, self.quat = bodies.pos[:, tracked], bodies.quat[:, tracked]
        self.vel, self.spin = bodies.vel[:, tracked], bodies.spin[:, tracked]
        self.anchor_quat = bodies.quat[:, anchor]


def _at_rate(motion: Motion, rate_hz: float, place: GoalPlace) -> Motion:
    if abs(motion.rate_hz - rate_hz) < 1e-6:
        return motion
    return complete(motion.resampled(rate_hz), place.sim.robot)
