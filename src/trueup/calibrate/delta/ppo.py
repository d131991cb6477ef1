"""The published way to a delta action (ASAP, arXiv 2502.01143): PPO in simulations that replay the logs.

An episode begins in a recorded state and lasts 1 s; in it the recorded commands are played with the action on top. The
reward is that of motion tracking with the recorded motion as its reference: kernels exp(-mean |gap|^2 / w) of bodies,
ends of limbs and feet (1 each), turn, velocity and spin of bodies, position and speed of joints (0.5 each), less what
leaves the limits of joints (position 10, speed 5, torque 0.1) and 0.1 (1 - exp(-|a|)) for the action a. The widths w
are the mean squares without a correction: the published ones, made for a policy that is centimetres off, are flat where
a replay is millimetres off. No gradient goes through the simulator.

The policy sees what a delta action sees, so its mean is one: normalisation and scale of actions are folded into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.fit.fit import Progress
from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.models.delta_net import DeltaNet
from trueup.motion.bodies import BodyTree
from trueup.motion.rotations import angle_between, rotate
from trueup.policy.normalizer import EPS, LIMIT
from trueup.rl.env import Floats, Obs, Step
from trueup.rl.ppo import Ppo
from trueup.rl.settings import NetCfg, PpoCfg
from trueup.tasks.terms.tracking import kernel
from trueup.world.batch import BatchSim
from trueup.world.replay.playback import FollowedGains, begin

EPISODE_S = 1.0
_WINDOWS, _LOOKS = 64, 6  # simulations side by side; policies that are looked at on the way
_SCALE_RAD = 0.1  # of an action of one
_NORM = 0.1
_WEIGHTS = (1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5)
_LEAST_WIDTH = 1e-8
_LIMITS = (10.0, 5.0, 0.1)  # of joint positions, speeds and torques
_FAR = 10.0  # gap of what blew up
PPO = PpoCfg(
    gamma=0.95,
    entropy=0.0,
    kl_target=0.015,
    average=5,
    side_by_side=False,
    net=NetCfg(std=0.3, actor=(128, 64), critic=(128, 64)),
)


class ReplayedState(NamedTuple):
    """Bodies (n, nbody, ...) and joints (n, njoint) of simulated or recorded rows, float32."""

    pos: Floats
    quat: Floats
    vel: Floats
    spin: Floats
    joint_pos: Floats
    joint_vel: Floats


class DeltaEnv:
    """Windows of the logs side by side; all begin together, at random rows. One step is one control step."""

    mirror = None
    nprivileged = 0

    def __init__(self, problem: DeltaProblem, nwindow: int = _WINDOWS) -> None:
        self.shooting, self.net = problem.shooting, problem.blank()
        self.tracks, spec = self.shooting.tracks, self.shooting.robot.spec
        self.horizon, self.control_dt = round(EPISODE_S * self.tracks.rate_hz), 1.0 / self.tracks.rate_hz
        self.starts = problem.starts(self.horizon, windows=len(self.tracks.target))
        if not len(self.starts):
            raise TrueupError(f"no log has a stretch of {EPISODE_S:g} s to learn from: record longer ones")
        self.nenv, self.naction = nwindow, len(self.net.spec.corrected)
        self._columns = list(self.net.spec.corrected)
        self._random = RowRandom(problem.cfg.seed, "delta start", nwindow)
        tree = self._tree = BodyTree(self.shooting.robot, np.float32)
        leaves = sorted(set(range(len(tree.names))) - {int(k) for k in tree.parent})
        self._feet = [body for body, _, _ in tree.feet]
        self._ends = [k for k in leaves if k not in self._feet]
        self._low, self._high = spec.position_low, spec.position_high
        self._most_vel, self._most_torque = spec.velocity_limit, spec.torque_limit
        self._recorded = self._bodies(self.tracks.base_pos, self.tracks.base_vel, self.tracks.pos, self.tracks.vel)
        self.reset()
        self._widths = self._measured()
        obs = self.reset()
        self.nactor, self.ncritic = obs.actor.shape[1], obs.critic.shape[1]

    def reset(self) -> Obs:
        """Begin all windows at random rows."""
        picks = (self._random.uniform(1)[:, 0] * len(self.starts)).astype(np.intp)
        self._rows, self._age = self.starts[picks], 0
        recorded = self.tracks.recorded(self._rows, self.horizon, past=self.shooting.past)
        self.sim: BatchSim = self.shooting.ready(recorded)
        self._follow, self._changes = FollowedGains(self.sim, recorded), set(recorded.changes)
        begin(self.sim, recorded)
        self._follow.at(0)
        return self._see(self._simulated())

    def step(self, action: Floats) -> Step:
        """Play one recorded command with the action on top."""
        rows, tracks = self._rows + self._age, self.tracks
        target, limit = tracks.target[rows].copy(), self.net.spec.limit_rad
        target[:, self._columns] += limit * np.tanh(_SCALE_RAD * action / limit)
        if self._age in self._changes:
            self._follow.at(self._age)
        self.sim.step(
            target,
            None if tracks.target_vel is None else tracks.target_vel[rows],
            None if tracks.torque is None else tracks.torque[rows],
        )
        self._age += 1
        now = self._simulated()
        reward, metrics = self._reward(now, action)
        over = self._age >= self.horizon
        ended, none = np.arange(self.nenv if over else 0), np.zeros(self.nenv, bool)
        obs = self._see(now)
        last = Obs(*(part[ended] for part in obs))
        return Step(self.reset() if over else obs, reward, none, none | over, ended, last, metrics)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """A resumed training begins new windows; what decides them is all there is to keep."""
        return {"random": self._random.counter.copy()}

    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None:
        self._random.counter[...] = state["random"]
        self.reset()

    # --- inside ---
    def _simulated(self) -> ReplayedState:
        motion, bias = self.sim.motion.of(), self.sim.encoder_bias
        return self._bodies(motion.base_pose, motion.base_vel, motion.joint_pos + bias, motion.joint_vel)

    def _bodies(
        self, pose: FloatArray | None, velocity: FloatArray | None, pos: FloatArray, vel: FloatArray
    ) -> ReplayedState:
        n = len(pos)
        rest = np.tile((0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0), (n, 1))
        root, joints, speeds = _finite(rest if pose is None else pose), _finite(pos), _finite(vel)
        moving = _finite(np.zeros((n, 6)) if velocity is None else velocity)
        spin = rotate(root[:, 3:], moving[:, 3:])
        placed = self._tree.place(root[:, :3], root[:, 3:], joints, (moving[:, :3], spin, speeds))
        return ReplayedState(placed.pos, placed.quat, placed.vel, placed.spin, joints, speeds)  # type: ignore[arg-type]

    def _reward(self, now: ReplayedState, action: Floats) -> tuple[Floats, dict[str, float]]:
        gaps = self._gaps(now)
        parts = zip(_WEIGHTS, gaps, self._widths, strict=True)
        reward = sum(weight * kernel(gap, width) for weight, gap, width in parts if gap.shape[1])
        torque = np.abs(np.nan_to_num(self.sim.joint_torque))
        beyond = (
            np.maximum(now.joint_pos - self._high, 0.0) + np.maximum(self._low - now.joint_pos, 0.0),
            np.clip(np.abs(now.joint_vel) - self._most_vel, 0.0, 1.0),
            np.maximum(torque - 0.95 * self._most_torque, 0.0),
        )
        reward = reward - sum(w * np.clip(part, 0.0, _FAR).sum(axis=1) for w, part in zip(_LIMITS, beyond, strict=True))
        reward = reward - _NORM * (1.0 - np.exp(-np.linalg.norm(action, axis=1)))
        error = float(np.linalg.norm(np.clip(gaps[0], -1.0, 1.0), axis=2).mean())
        return np.asarray(self.control_dt * reward, np.float32), {"global_error": error}

    def _gaps(self, now: ReplayedState) -> tuple[Floats, ...]:
        """Simulated minus recorded, in the order of `_WEIGHTS`."""
        then = ReplayedState(*(part[self._rows + self._age] for part in self._recorded))
        gap = now.pos - then.pos
        places = gap, gap[:, self._ends], gap[:, self._feet], angle_between(now.quat, then.quat)
        return (*places, *(a - b for a, b in zip(now[2:], then[2:], strict=True)))

    def _measured(self) -> list[float]:
        """Mean squared gaps of an episode without a correction."""
        self._widths, squares = [1.0] * len(_WEIGHTS), []
        for _ in range(self.horizon - 1):
            self.step(np.zeros((self.nenv, self.naction), np.float32))
            squares.append([_mean_square(gap) for gap in self._gaps(self._simulated())])
        return np.maximum(np.mean(squares, axis=0), _LEAST_WIDTH).tolist()

    def _see(self, now: ReplayedState) -> Obs:
        """What the delta action sees, within its range; the critic also sees how far the replay is from the log."""
        rows, tracks, net = self._rows + self._age, self.tracks, self.net
        base, motion = None, self.sim.motion.of()
        joints = motion.joint_pos + self.sim.encoder_bias
        if motion.base_vel is not None:
            base = np.concatenate([motion.gravity, motion.base_vel[:, 3:]], axis=1)
        before = np.maximum(rows[:, None] - np.arange(1, net.spec.past + 1), tracks.first[rows][:, None])
        x = net.inputs(tracks.target[rows], joints, motion.joint_vel, base, tracks.target[before])
        actor = np.clip(np.nan_to_num(x), net.low, net.high).astype(np.float32)
        then = ReplayedState(*(part[rows] for part in self._recorded))
        apart = [a[:, 0] - b[:, 0] for a, b in zip(now[:4], then[:4], strict=True)]
        apart += [now.joint_pos - then.joint_pos, now.joint_vel - then.joint_vel]
        age = np.full((self.nenv, 1), self._age / self.horizon)
        extra = np.clip(np.concatenate([*apart, age], axis=1), -_FAR, _FAR)
        critic = np.concatenate([actor, extra], axis=1).astype(np.float32)
        return Obs(actor, critic, np.zeros((self.nenv, 0), np.float32))


def _finite(values: FloatArray) -> Floats:
    return np.clip(np.nan_to_num(values, nan=_FAR), -1e3, 1e3).astype(np.float32)


def _mean_square(gap: Floats) -> float:
    """As `kernel` takes it: of lengths where a gap is a vector."""
    return float(np.square(gap).mean()) * (3 if gap.ndim == 3 else 1) if gap.size else 1.0


def ppo_rounds(problem: DeltaProblem, report: Progress) -> Iterator[DeltaNet]:
    """Delta actions on the way through `cfg.ppo_steps` of training."""
    env = DeltaEnv(problem)
    ppo = Ppo(env, replace(PPO, steps=env.horizon), problem.cfg.seed)
    iterations = max(1, round(problem.cfg.ppo_steps / (env.nenv * env.horizon)))
    looks = {round(share * iterations) for share in np.linspace(0.0, 1.0, _LOOKS + 1)[1:]}
    try:
        for k in range(1, iterations + 1):
            ppo.iterate()
            report(k / iterations)
            if k in looks:
                yield as_delta(ppo, env.net)
    finally:
        ppo.close()


def as_delta(ppo: Ppo, blank: DeltaNet) -> DeltaNet:
    """The policy's mean as a delta action."""
    policy = ppo.policy()
    mean, std = policy.normalizer.mean, np.sqrt(policy.normalizer.var) + EPS
    weight, bias = policy.actor[-1]
    last = (np.float32(_SCALE_RAD) * weight, np.float32(_SCALE_RAD) * bias)
    return replace(
        blank,
        layers=(*policy.actor[:-1], last),
        mean=mean.astype(np.float32),
        std=std.astype(np.float32),
        low=np.maximum(blank.low, mean - LIMIT * std).astype(np.float32),
        high=np.minimum(blank.high, mean + LIMIT * std).astype(np.float32),
    )
