"""Replays a bundle's policy on the states of a log: the targets that it would have sent at every control step.

Control steps are the rows at which targets change. A step is computed from recorded states and recorded actions alone
(the previous action is read back from the targets), so that an error does not grow from step to step. The operator's
command is in no log: for every step the command that explains its targets best is solved for, within the range of
training. With 12 joints and 3 columns of command nine equations a step remain to test whether the policy fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.data.check.view import SLOWEST_CONTROL_S
from trueup.data.log import Log
from trueup.policy.action import ActionMap
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.policy.graph.net import GraphNet
from trueup.policy.graph.onnx_file import OnnxGraph
from trueup.policy.normalizer import Float32
from trueup.policy.observation import ObservationBuilder, ObservationSpec
from trueup.policy.reading import Reading, gravity_in_body

Rows = NDArray[np.intp]
_NEAR = (0.5, 1.6)  # of the usual interval: successive steps
_BEYOND = 0.2  # of the range of commands in training
_PROBE, _ROUNDS = 0.02, 6  # of the range: finite differences; Gauss-Newton
_ROUNDING = 1e-3  # of an action: many steps side by side, and far below a sensor's noise
_NEEDS = {"joint_pos": "joint_pos", "joint_angle": "joint_pos", "joint_vel": "joint_vel", "gyro": "imu_gyro"}


class Feeding(NamedTuple):
    """A variant of the network's input: `words` describe its difference from the passport's, empty for none."""

    words: str
    seen: ObservationSpec
    graph: OnnxGraph


class ControlSteps(NamedTuple):
    """Rows of a log at which a policy's targets change, and the time between them."""

    rows: Rows
    period_s: float


def control_steps(log: Log) -> ControlSteps | None:
    """The longest stretch in which targets change at even intervals; None without one."""
    changes = 1 + np.flatnonzero((np.diff(log["target_pos"], axis=0) != 0.0).any(axis=1))
    gaps = np.diff(changes)
    quick = np.unique(gaps[gaps * np.median(np.diff(log.time)) <= SLOWEST_CONTROL_S])
    if not len(quick):
        return None
    low, high = _NEAR
    usual = max(quick, key=lambda gap: int(gaps[(gaps > low * gap) & (gaps < high * gap)].sum()))
    ends = np.flatnonzero(~((gaps > low * usual) & (gaps < high * usual)))
    begins, stops = np.append(0, ends + 1), np.append(ends, len(gaps))
    longest = int(np.argmax(stops - begins))
    rows = changes[begins[longest] : stops[longest] + 1]
    if len(rows) < 2:
        return None
    return ControlSteps(rows, float(log.time[rows[-1]] - log.time[rows[0]]) / (len(rows) - 1))


def not_replayable(bundle: PolicyBundle, log: Log) -> str:
    """Why a policy cannot be computed again from this log; empty if it can."""
    spec = bundle.passport.policy
    seen = [term.signal for term in spec.observation.terms]
    lacking = [need for signal, need in _NEEDS.items() if signal in seen and need not in log]
    if "gravity" in seen and not {"imu_quat", "base_quat"} & set(log.signals):
        lacking.append("imu_quat")
    if lacking:
        return f"the log has no {lacking[0]}"
    if spec.observation.others:
        return f"no log has {spec.observation.others[0]!r}, which it observes"
    if "clock" in seen or spec.action.cycle is not None:
        return "it follows a clock, and no log says when that began"
    if bundle.net(1).has_memory:
        return "it has a memory of its own"
    if spec.action.residual or 2 * spec.observation.ncommand > len(spec.action.controlled_joints):
        return "its commands are too many to be told from its targets"
    return ""


@dataclass(frozen=True, kw_only=True)
class PolicyReplay:
    """One log's control steps; `at` below are numbers of steps, from `first` on."""

    bundle: PolicyBundle
    log: Log
    steps: ControlSteps

    @property
    def first(self) -> int:
        """The first step with a complete history."""
        return self.bundle.passport.policy.observation.history + 1

    @property
    def row_s(self) -> float:
        """Time between two rows of the log."""
        return float(np.median(np.diff(self.log.time)))

    def errors(self, feeding: Feeding, lag: int, at: Rows) -> FloatArray:
        """Mean square difference (n,) of the policy's targets from the recorded ones, rad^2.

        lag  rows by which the states that the policy acted on are older than its targets
        """
        action, goal = self.bundle.passport.policy.action, self.bundle.passport.goal
        net, mapped = GraphNet(feeding.graph, self.bundle.path, rounding=_ROUNDING), ActionMap(action)
        columns = [action.joint_names.index(name) for name in action.controlled_joints]
        recorded = self._targets()
        before, wanted = recorded[at - 1], recorded[at][:, columns]
        builder, frames = ObservationBuilder(feeding.seen), self._frames(feeding.seen, lag, at)

        def residual(command: FloatArray) -> FloatArray:
            given = np.asarray(command, np.float32)
            stacked = np.hstack([builder.frame(reading, given, past) for reading, past in frames])
            targets = mapped.target(net(np.take(stacked, feeding.seen.columns, axis=1)), before)
            return targets[:, columns] - wanted

        if not any(term.signal == "command" for term in feeding.seen.terms):
            return np.square(residual(np.zeros((len(at), feeding.seen.ncommand)))).mean(axis=1)
        return _least(residual, np.array(goal.low), np.array(goal.high), len(at))

    def spread(self, at: Rows) -> float:
        """Root mean square change of targets in one control step, rad."""
        moved = self._targets()[at] - self._targets()[at - 1]
        return float(np.sqrt(np.mean(np.square(moved))))

    def _targets(self) -> FloatArray:
        """Targets of all steps in the policy's order."""
        names = self.bundle.passport.policy.action.joint_names
        return self.log.with_joint_order(names)["target_pos"][self.steps.rows]

    def _frames(self, seen: ObservationSpec, lag: int, at: Rows) -> Sequence[tuple[Reading, Float32]]:
        """Readings and last actions of every frame in the observations, oldest first."""
        log = self.log.with_joint_order(seen.joint_names)
        quat = log["imu_quat" if "imu_quat" in log else "base_quat"] if self._has_attitude else None
        speed = log["joint_vel"] if "joint_vel" in log else np.zeros_like(log["joint_pos"])
        actions, out = self._actions(), []
        for age in range(seen.history - 1, -1, -1):
            rows = np.maximum(self.steps.rows[at - age] - lag, 0)
            reading = Reading(
                joint_pos=log["joint_pos"][rows],
                joint_vel=speed[rows],
                gyro=log["imu_gyro"][rows] if "imu_gyro" in log else None,
                gravity=None if quat is None else gravity_in_body(quat[rows]),
            )
            out.append((reading, actions[at - age - 1]))
        return out

    @property
    def _has_attitude(self) -> bool:
        return "imu_quat" in self.log or "base_quat" in self.log

    def _actions(self) -> Float32:
        """The policy's outputs (K, naction), read back from the targets of all steps."""
        action, targets = self.bundle.passport.policy.action, self._targets()
        columns = [action.joint_names.index(name) for name in action.controlled_joints]
        pose = np.array(action.default_pose)[None]
        rest = np.vstack([pose, targets[:-1]]) if action.relative else pose
        return ((targets - rest)[:, columns] / np.array(action.scale)).astype(np.float32)


def with_constants(graph: OnnxGraph, **changed: FloatArray) -> OnnxGraph:
    """The network with other numbers in it."""
    return replace(graph, constants=graph.constants | {k: np.asarray(v, np.float32) for k, v in changed.items()})


def _least(residual: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray, rows: int) -> FloatArray:
    """Least mean square (n,) of residuals over commands (n, ncommand) in their range, row by row."""
    reach = high - low
    low, high = low - _BEYOND * reach, high + _BEYOND * reach
    command = np.tile(np.clip(0.0, low, high), (rows, 1))
    now = residual(command)
    cost = np.square(now).mean(axis=1)
    for _ in range(_ROUNDS):
        each = [residual(command + _PROBE * one) - now for one in np.diag(reach)]
        slope = np.stack(each, axis=2) / _PROBE  # (n, joints, ncommand), of one range
        square = np.einsum("nji,njk->nik", slope, slope)
        damped = square + 1e-4 * np.trace(square, axis1=1, axis2=2)[:, None, None] * np.eye(len(low)) + 1e-12
        move = np.linalg.solve(damped, -np.einsum("nji,nj->ni", slope, now)[..., None])[..., 0]
        tried = np.clip(command + move * reach, low, high)
        found = residual(tried)
        better = np.square(found).mean(axis=1) < cost
        command = np.where(better[:, None], tried, command)
        now = np.where(better[:, None], found, now)
        cost = np.square(now).mean(axis=1)
    return cost
