"""Controller: from a robot state and a command to joint targets, by the bundle's own code.

    observation  o_k = builder(state_k, command_k, observed(a_{k-1}))     as in training; a is the policy's own output
    raw action   a_k = net(o_k)
    smoothing    s_k = c a_k + (1 - c) s_{k-1},  s_{-1} = 0               c = 1: none
    target       t_k = t_{k-1} + clip(map(s_k) - t_{k-1}, -b, b)          b = `target_step`; map is the ActionMap

The next observation holds the policy's raw action (or the clipped one, as its ActionSpec says), never the smoothed one:
that is what it saw in training. With c = 1 and no bound, targets are bit for bit those of the evaluation loop.

NumPy alone; no clock, no I/O: the same states give the same targets, which is what `replay` checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, RobotState
from trueup.policy.action import ActionMap, JointOrder
from trueup.policy.bundle.bundle import Engine, PolicyBundle
from trueup.policy.bundle.passport import Passport, column_names
from trueup.policy.observation import ObservationBuilder
from trueup.policy.reading import Float32, Reading, gravity_in_body

DEFAULT_TARGET_STEP_RAD = 0.1  # bundles without statistics of their targets in training
Others = Mapping[str, FloatArray]


@dataclass(frozen=True, kw_only=True)
class ControlCfg:
    """Smoothing and bounds between the policy's output and the joint targets.

    smoothing    share of the new action in the moving average, 0 < smoothing <= 1; 1: no smoothing
    target_step  largest change of a target in one control step, rad; None: as the bundle says (`bundle_target_step`);
                 inf: unbounded
    engine       what runs the network
    """

    smoothing: float = 1.0
    target_step: float | None = None
    engine: Engine = "numpy"

    def __post_init__(self) -> None:
        if not 0.0 < self.smoothing <= 1.0:
            raise TrueupError(f"smoothing is the share of the new action, above 0 and up to 1, found {self.smoothing}")
        if self.target_step is not None and not self.target_step > 0.0:
            raise TrueupError(f"target_step must be above 0 rad, found {self.target_step}")


class PolicyError(TrueupError):
    """The policy cannot act: its observation or its output is not finite, or a sensor it needs is missing."""


class ControlStep(NamedTuple):
    """Everything that one control step computed; joints of `target` and `wanted` in the robot's order.

    wanted    targets before the bound on their change
    command   as the policy observed it: a bundle may limit how fast it follows the operator's command
    """

    observation: Float32
    raw: Float32
    smoothed: FloatArray
    wanted: FloatArray
    target: FloatArray
    command: Float32


@dataclass(kw_only=True)
class _Past:
    """State carried from one control step to the next; None at the start of an episode."""

    seen_action: Float32 | None = None
    smoothed: NDArray[np.floating] = field(default_factory=lambda: np.zeros(0))
    target: FloatArray | None = None


class Controller:
    """Computes the commands of one robot; `restart` begins an episode, `step` is one control step."""

    def __init__(self, bundle: PolicyBundle, joint_names: tuple[str, ...], cfg: ControlCfg | None = None) -> None:
        self.passport, self.cfg = bundle.passport, cfg or ControlCfg()
        spec = self.passport.policy
        self.joint_names, self.control_hz = joint_names, spec.control_hz
        self.order = JointOrder(spec.action.joint_names, joint_names)
        self.kp, self.kd, self.default_pose = (
            np.ascontiguousarray(self.order.to_robot(np.array(values, np.float64)))
            for values in (spec.kp, spec.kd, spec.action.default_pose)
        )
        step = self.cfg.target_step
        bound = bundle_target_step(self.passport) if step is None else np.full(len(joint_names), step)
        self.target_step: FloatArray = bound if step is not None else self.order.to_robot(bound)
        self._net = bundle.net(1, self.cfg.engine)
        self._builder, self._map = ObservationBuilder(spec.observation, 1), ActionMap(spec.action)
        self._columns = column_names(spec.observation)
        self._past = _Past()

    def restart(self, target: FloatArray | None = None) -> None:
        """Begin an episode; `target` (robot's order) is the last one sent: the first change is bounded from it."""
        self._net.restart(np.arange(1))
        self._past = _Past(target=None if target is None else np.array(target, np.float64))

    def step(self, state: RobotState, asked: Float32, others: Others | None = None) -> ControlStep:
        """Targets for a state and the operator's command (ncommand,); a PolicyError names what is not finite."""
        reading, goal = self._reading(state, others or {}), np.asarray(asked, np.float32)[None]
        past, naction = self._past, self._map.naction
        first = past.seen_action is None
        if first or past.seen_action is None:
            start = past.target if past.target is not None else np.array(state.joint_pos, np.float64)
            relative_to = np.asarray(reading.joint_pos, np.float64)  # as in training: where the robot is
            past.smoothed = np.zeros((1, naction))
            actor = self._builder.restart(reading, goal, np.zeros((1, naction), np.float32))
        else:
            assert past.target is not None
            start, relative_to = past.target, self.order.to_policy(past.target)[None]
            actor = self._builder.step(reading, goal, past.seen_action)
        self._check(actor)
        raw = np.ascontiguousarray(self._act(actor), np.float32)
        smoothed: NDArray[np.floating] = raw if self.cfg.smoothing == 1.0 else self._smooth(raw, past.smoothed)
        mapped = self._map.target(smoothed, relative_to, self._builder.command, self._builder.phase)
        wanted = self.order.to_robot(np.asarray(mapped, np.float64))[0]
        target = _bounded(wanted, start, self.target_step)
        self._past = _Past(seen_action=self._map.observed(raw).copy(), smoothed=smoothed, target=target)
        command = self._builder.command[0].copy()
        return ControlStep(actor[0].copy(), raw[0], np.asarray(smoothed[0], np.float64), wanted, target, command)

    def command(self, target: FloatArray, gain: float = 1.0) -> Command:
        """The servo command of targets, under the policy's gains times `gain`."""
        zero = np.zeros(len(target))
        return Command(target_pos=target, target_vel=zero, kp=gain * self.kp, kd=gain * self.kd, torque=zero)

    def _smooth(self, raw: Float32, before: NDArray[np.floating]) -> NDArray[np.floating]:
        share = self.cfg.smoothing
        return share * raw.astype(np.float64) + (1.0 - share) * before

    def _act(self, actor: Float32) -> Float32:
        try:
            return self._net(actor)
        except TrueupError as error:
            raise PolicyError(f"the policy {error.message}") from None

    def _check(self, actor: Float32) -> None:
        """Refuse a NaN before the network hides it."""
        if np.isfinite(actor).all():
            return
        column = self._columns[int(np.argmin(np.isfinite(actor[0])))]
        raise PolicyError(f"what the policy observes is not finite: {column} is {actor[0][~np.isfinite(actor[0])][0]}")

    def _reading(self, state: RobotState, others: Others) -> Reading:
        quat = state.imu_quat
        return Reading(
            joint_pos=self.order.to_policy(np.asarray(state.joint_pos, np.float64)[None]),
            joint_vel=self.order.to_policy(np.asarray(state.joint_vel, np.float64)[None]),
            gyro=None if state.imu_gyro is None else np.asarray(state.imu_gyro, np.float64)[None],
            gravity=None if quat is None else gravity_in_body(np.asarray(quat, np.float64)[None]),
            others={name: np.asarray(values, np.float64)[None] for name, values in others.items()},
        )


def bundle_target_step(passport: Passport) -> FloatArray:
    """Largest change of each target in one step that training allows, rad, joints in the policy's order.

    A target cannot change by more than the span that its action had in training (0.1 % to 99.9 %) times its scale, and
    the span of the cycle that it is added to; the bound never disturbs what was trained, and stops an output that was
    never seen. A bundle whose observation does not hold its action, or that was never run, has no such span: 0.1 rad.
    """
    out = np.full(len(passport.joint_names), DEFAULT_TARGET_STEP_RAD)
    if passport.ranges is not None and action_columns(passport) is not None:
        low, high = (_target_offsets(passport, ends) for ends in (passport.ranges.low, passport.ranges.high))
        out = np.maximum(out, np.abs(high - low) + np.ptp(_cycle_ends(passport), axis=0))
    return out


def bundle_target_reach(passport: Passport) -> tuple[FloatArray, FloatArray] | None:
    """Lowest and highest target of each joint in training, rad, in the policy's order; None where it is not known.

    Soft servos are often led by targets beyond what their joints can reach.
    """
    action = passport.policy.action
    if passport.ranges is None or action_columns(passport) is None or action.relative or action.residual:
        return None
    pose = np.array(action.default_pose)
    ends = [pose + _target_offsets(passport, end) for end in (passport.ranges.minimum, passport.ranges.maximum)]
    low, high = _cycle_ends(passport)
    return np.minimum(*ends) + low, np.maximum(*ends) + high


def _cycle_ends(passport: Passport) -> FloatArray:
    """Lowest and highest offset (2, njoint) that a cycle adds to each target, rad, rest among them."""
    action, out = passport.policy.action, np.zeros((2, len(passport.joint_names)))
    if action.cycle is not None:
        moved = [passport.joint_names.index(name) for name in action.controlled_joints]
        rows = np.array(action.cycle.rows)
        out[:, moved] = np.minimum(rows.min(axis=0), 0.0), np.maximum(rows.max(axis=0), 0.0)
    return out


def _target_offsets(passport: Passport, observation: tuple[float, ...]) -> FloatArray:
    """Offset that the newest action in an observation adds to each target, rad; joints without an action: 0."""
    action, columns = passport.policy.action, action_columns(passport)
    assert columns is not None
    term = next(term for term in passport.policy.observation.terms if term.signal == "action")
    out, shown = np.zeros(len(passport.joint_names)), np.abs(np.array(term.scale, np.float64))
    moved = [passport.joint_names.index(name) for name in action.controlled_joints]
    out[moved] = np.array(action.scale) * np.array(observation)[columns] / np.where(shown > 0.0, shown, 1.0)
    return out


def action_columns(passport: Passport) -> NDArray[np.intp] | None:
    """Places of the newest action in the observation; None if the policy does not see it."""
    seen = passport.policy.observation
    for part, term in zip(seen.slices, seen.terms, strict=True):
        if term.signal == "action":
            newest = (seen.history - 1) * seen.nframe + np.arange(part.start, part.stop)
            places = [int(np.flatnonzero(seen.columns == place)[0]) for place in newest if place in seen.columns]
            return np.array(places, np.intp) if len(places) == len(newest) else None
    return None


def _bounded(wanted: FloatArray, start: FloatArray, step: FloatArray) -> FloatArray:
    """`wanted`, no farther than `step` from `start`; exactly `wanted` where it is near enough."""
    return np.where(np.abs(wanted - start) <= step, wanted, start + np.clip(wanted - start, -step, step))
