"""Feedforward: what a policy leaves of a motion, learned from repetition and added to its targets by a clock.

Iterative learning control (Bristow, Tharayil and Alleyne 2006, 10.1109/MCS.2006.1636313). Many copies run the motion
from its first row to its last. Of every joint and row the mean error is taken, smoothed without a shift of phase, and
with it the offset of the row some time before is corrected, then the motion runs again. One such round uses every row
and joint at once, where a gradient of rewards needs many more samples. Joints that carry the robot learn slowly: their
errors are what it balances with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt  # type: ignore[attr-defined]

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.bodies import BodyTree
from trueup.policy.action import JointOrder
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle, write_bundle
from trueup.policy.bundle.passport import Passport
from trueup.policy.cycle import CycleSpec
from trueup.policy.runner import Policy, PolicyRunner
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.foreign import bundle_task
from trueup.tasks.goals.tracking import Tracking, TrackingGoal
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.task import Task
from trueup.tasks.terms.tracking import near_error
from trueup.train.bundles.verbs import FeedforwardVerb
from trueup.train.bundles.warm import warm_net
from trueup.world.actuators.target_stages import TargetStage
from trueup.world.engines.simulation import Simulation

_FREE, _CARRYING = 0.3, 0.05  # share of a joint's error that a round corrects
_HEAVY = 0.2  # share of the robot's mass beyond a joint, from which on it carries
_LEAD_S = 0.04  # from an offset to the error that it corrects: servos and delays need some time
_SMOOTH_HZ = 3.0  # errors that change faster are left to the policy
_FALLEN = 0.4  # of the standing height: mean distance of bodies from the reference
_DIGITS = 4  # of an offset in the bundle, rad


@dataclass(frozen=True, kw_only=True)
class Round:
    """One run of the motion: rms error of the joints (rad), mean distance of the bodies from a reference that stands
    where the robot does (m), and copies that fell."""

    joints_rad: float
    near_m: float
    falls: int


@dataclass(frozen=True, kw_only=True)
class Feedforward:
    """A bundle with offsets, all rounds, and the one whose offsets it has; round 0 had none."""

    bundle: PolicyBundle
    rounds: tuple[Round, ...]
    kept: int
    steps: int


class RowOffsets(TargetStage):
    """Adds to the targets (nsim, njoint) what `offsets` (T, njoint) says for the row of the motion that is asked."""

    def __init__(self) -> None:
        self.offsets: FloatArray = np.zeros((0, 0))
        self.goal: Tracking | None = None

    def __call__(self, targets: FloatArray, sim: Simulation) -> FloatArray:
        if self.goal is None:  # while the environment is being made
            return targets
        out: FloatArray = targets + self.offsets[self.goal.at - 1]
        return out


def learn_feedforward(
    verb: FeedforwardVerb,
    show: Callable[[int, Round, float], None] = lambda k, made, left_s: None,
    *,
    stages: tuple[TargetStage, ...] = (),
) -> Feedforward:
    """Learn the offsets of a bundle's policy (see `FeedforwardVerb`).

    show    called after every round with its number and the time left, s
    stages  of the simulation, beside those of the task
    """
    bundle = load_bundle(verb.policy)
    task = bundle_task(bundle.passport, task=verb.task)
    _check(verb, bundle, task)
    extra = RowOffsets()
    rewards = {task.score: task.rewards[task.score]}  # nothing else is read
    env = TaskEnv(
        replace(
            task, terminations={}, rewards=rewards, metrics={}, target_stages=(extra, *task.target_stages, *stages)
        ),
        EnvCfg(
            nenv=verb.nenv,
            threads=verb.threads,
            seed=verb.seed,
            randomize=verb.randomize,
            pushes=verb.randomize,
            params=None if verb.params is None else Path(verb.params),
            actuator=None if verb.actuator is None else Path(verb.actuator),
            delta=None if verb.delta is None else Path(verb.delta),
            stagger=False,
        ),
    )
    assert isinstance(env.goal, Tracking)
    extra.goal, last = env.goal, int(env.goal.reference.last[0])
    extra.offsets = np.zeros((last, env.robot.spec.njoint))
    correct, policy = _Correction(env), _policy(bundle, verb.nenv)
    rounds: list[Round] = []
    kept, best = 0, extra.offsets.copy()
    began = time.monotonic()
    try:
        for k in range(verb.rounds + 1):
            error, made = _run(env, policy)
            rounds.append(made)
            if made.falls <= rounds[0].falls and made.near_m < rounds[kept].near_m:
                kept, best = k, extra.offsets.copy()
            extra.offsets = extra.offsets + correct(error)
            show(k, made, (time.monotonic() - began) / (k + 1) * (verb.rounds - k))
    except KeyboardInterrupt:
        if not rounds:
            raise
    passport = _with_offsets(bundle.passport, best, env, _note(verb, rounds, kept))
    if verb.task is not None:  # the offsets are of this motion
        passport = msgspec.structs.replace(passport, policy=msgspec.structs.replace(passport.policy, task=verb.task))
    written = write_bundle(verb.out, passport, bundle.onnx)
    return Feedforward(bundle=written, rounds=tuple(rounds), kept=kept, steps=len(rounds) * last * verb.nenv)


def _check(verb: FeedforwardVerb, bundle: PolicyBundle, task: Task) -> None:
    """Refuse policies that have no motion, or more than one, or act by a clock already."""
    if not isinstance(task.goal, TrackingGoal):
        reason = f"follows no motion (its task is {task.name!r}): a feedforward is learned from one that repeats"
        raise TrueupError(reason, file=bundle.path)
    if len(task.goal.motions) != 1:
        reason = (
            f"follows {len(task.goal.motions)} motions: name the one to learn, --task {task.robot}-track:MOTION.npz"
        )
        raise TrueupError(reason, file=bundle.path)
    if bundle.passport.policy.action.cycle is not None:
        raise TrueupError("has offsets by a clock already: begin from the policy without", file=bundle.path)
    for name, value in (("rounds", verb.rounds), ("nenv", verb.nenv)):
        if value < 1:
            raise TrueupError(f"--{name} must be at least 1, found {value}")


def _policy(bundle: PolicyBundle, nenv: int) -> Policy:
    """The bundle's policy; a dense network runs all rows at once."""
    try:
        return PolicyRunner(warm_net(bundle.path), nenv)
    except TrueupError:  # another network
        return bundle.runner(nenv)


class _Correction:
    """From errors to corrections of offsets, (T, njoint)."""

    def __init__(self, env: TaskEnv) -> None:
        rate = 1.0 / env.control_dt
        self._lead = max(1, round(_LEAD_S * rate))
        self._filter = butter(2, min(_SMOOTH_HZ, 0.4 * rate), fs=rate, output="sos")
        self._gain = np.where(carrying(env), _CARRYING, _FREE)

    def __call__(self, error: FloatArray) -> FloatArray:
        smooth = sosfiltfilt(self._filter, error, axis=0, padlen=min(len(error) - 1, 15))
        ahead = np.concatenate([smooth[self._lead :], np.repeat(smooth[-1:], self._lead, axis=0)])
        out: FloatArray = self._gain * ahead
        return out


def carrying(env: TaskEnv) -> NDArray[np.bool_]:
    """Joints between the base and a foot, and those that a good part of the mass hangs on, (njoint,)."""
    tree = BodyTree(env.robot)
    mass, to_foot = tree.mass.copy(), np.zeros(len(tree.names), bool)
    to_foot[[foot[0] for foot in tree.feet]] = True
    for k in range(len(tree.names) - 1, 0, -1):  # children have higher numbers
        mass[tree.parent[k]] += mass[k]
        to_foot[tree.parent[k]] |= to_foot[k]
    heavy = to_foot | (mass > _HEAVY * mass[0])
    out = np.zeros(env.robot.spec.njoint, bool)
    moved = tree.joint >= 0
    out[tree.joint[moved]] = heavy[moved]
    return out


def _run(env: TaskEnv, policy: Policy) -> tuple[FloatArray, Round]:
    """One run of the whole motion: mean errors (T, njoint), asked minus reached, of copies that stand."""
    goal, errors, near = env.goal, [], []
    assert isinstance(goal, Tracking)
    count, stands = int(goal.reference.last[0]), np.ones(env.nenv, bool)
    fallen_m = _FALLEN * env.robot.spec.base.stand_height
    still = np.zeros(env.robot.spec.njoint)

    def look(frame: Frame) -> None:  # before the goal goes on
        distance = near_error(frame)
        np.logical_and(stands, distance < fallen_m, out=stands)
        errors.append(-frame.joint_gap[stands].mean(axis=0, dtype=float) if stands.any() else still)
        if stands.any():
            near.append(float(distance[stands].mean()))

    obs = env.reset()
    policy.restart(np.arange(env.nenv))
    env.watch = look
    try:
        for _ in range(count):
            obs = env.step(np.ascontiguousarray(policy(obs), np.float32)).obs
    finally:
        env.watch = None
    error = np.array(errors)
    rms = float(np.sqrt(np.mean(np.square(error[: max(len(near), 1)]))))
    mean_m = float(np.mean(near)) if near else np.inf
    return error, Round(joints_rad=rms, near_m=mean_m, falls=int((~stands).sum()))


def _with_offsets(passport: Passport, offsets: FloatArray, env: TaskEnv, note: str) -> Passport:
    """The passport with offsets (T, njoint) in the robot's order as a cycle of the clock that lasts the motion."""
    spec = passport.policy
    order = JointOrder(spec.action.joint_names, env.robot.spec.joint_names)
    columns = [spec.action.joint_names.index(name) for name in spec.action.controlled_joints]
    rows = order.to_policy(offsets)[:, columns].round(_DIGITS)
    action = msgspec.structs.replace(spec.action, cycle=CycleSpec(rows=tuple(map(tuple, rows.tolist()))))
    observation = msgspec.structs.replace(spec.observation, clock_step=1.0 / len(rows))
    origin = msgspec.structs.replace(passport.origin, notes=(*passport.origin.notes, note))
    policy = msgspec.structs.replace(spec, action=action, observation=observation)
    return msgspec.structs.replace(passport, policy=policy, origin=origin)


def _note(verb: FeedforwardVerb, rounds: list[Round], kept: int) -> str:
    where = [f"{what} {Path(path).name}" for what, path in _world(verb) if path is not None]
    world = f"under {' and '.join(where)}" if where else "in the simulator as it is"
    return (
        f"feedforward of its motion learned {world}, {kept} rounds: "
        f"{1e3 * rounds[0].near_m:.1f} -> {1e3 * rounds[kept].near_m:.1f} mm there"
    )


def _world(verb: FeedforwardVerb) -> tuple[tuple[str, str | Path | None], ...]:
    return (("delta action", verb.delta), ("calibration", verb.params), ("actuator", verb.actuator))
