"""Motions of a wiggle test as generators: each yields a command and is sent the state that follows it.

Every motion is bounded the same way. A target runs at most `torque_fraction` x torque limit / kp ahead of where the
joint is, so that the servo never asks for more; positions that are sent stay within the spec's limits, and what a
target beyond a limit would ask for is sent as feed-forward torque instead, up to the same bound.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.deploy.wiggle.cfg import WiggleCfg
from trueup.deploy.wiggle.motion.trace import Trace, WiggleAnswer
from trueup.hardware.driver import Command, RobotState
from trueup.robot.spec import RobotSpec

Motion = Generator[Command, RobotState, None]
_OF_LIMIT = 0.18  # of a joint's velocity limit: slow joints are swept slowly
_REST_SPEED = 0.05  # rad/s
_SETTLE_S = 0.2
_DEPARTED_RAD = 0.12
_HOLD_S = 0.8  # in which gains rise from zero


class Moves:
    """Targets and gains of all joints, and the newest state; motions change them and record into `trace`."""

    def __init__(self, spec: RobotSpec, cfg: WiggleCfg, first: RobotState) -> None:
        self.spec, self.cfg, self.state, self.dt = spec, cfg, first, 1.0 / cfg.rate_hz
        self.trace = Trace(start=first.joint_pos.copy(), rest=first.joint_pos.copy())
        self.target = first.joint_pos.copy()
        self.velocity = np.zeros(spec.njoint)
        self.low, self.high = spec.position_low, spec.position_high
        self.kp, self.kd = cfg.gain * spec.kp, cfg.gain * spec.kd
        self.cap = cfg.torque_fraction * spec.torque_limit
        self.lead = self.cap / np.maximum(self.kp, 1e-9)
        self.full_speed = np.minimum(cfg.speed, _OF_LIMIT * spec.velocity_limit)
        self.speed = self.full_speed.copy()  # sweeps lower it where they take much torque
        self.share = 0.0  # of kp, while gains rise
        self.push = np.zeros(spec.njoint)  # feed-forward torque of pulses

    def tick(self) -> Motion:
        """Send the targets once and take in the state that follows."""
        q = self.state.joint_pos
        ahead = np.clip(self.target, q - self.lead, q + self.lead)
        sent = np.clip(ahead, self.low, self.high)
        kp = self.share * self.kp
        torque = np.clip(kp * (ahead - sent) + self.push, -self.cap, self.cap)
        self.state = yield Command(
            target_pos=sent, target_vel=self.share * self.velocity, kp=kp, kd=self.kd, torque=torque
        )
        if self.state.imu_quat is not None and self.state.imu_acc is not None:
            self.trace.imu.append((self.state.imu_quat, self.state.imu_acc))

    def wait(self, seconds: float) -> Motion:
        """Hold for a while."""
        for _ in range(round(seconds / self.dt)):
            yield from self.tick()

    def limp(self) -> Motion:
        """Let the joints come to rest, damped; then take their places as targets."""
        self.share, still = 0.0, 0
        for _ in range(round(self.cfg.limp_s / self.dt)):
            before = self.state.joint_pos
            yield from self.tick()
            speed = np.abs(self.state.joint_pos - before).max() / self.dt
            still = still + 1 if speed < _REST_SPEED else 0
            if still * self.dt > 0.3:
                break
        self.target = np.clip(self.state.joint_pos, self.low, self.high)

    def hold(self) -> Motion:
        """Raise the gains on the place the joints are in; a joint that leaves it is noted and the gains fall."""
        start, told = self.state.joint_pos.copy(), self.target.copy()
        for k in range(round(_HOLD_S / self.dt)):
            self.share = ((k + 1) * self.dt / _HOLD_S) ** 2
            yield from self.tick()
            if (np.abs(self.state.joint_pos - start) > _DEPARTED_RAD).any():
                self.trace.departed = self.state.joint_pos - start
                self.share = 0.0
                return
        self.share, self.target = 1.0, told

    def move(self, goal: FloatArray) -> Motion:
        """Go to a pose at the speed of sweeps, all joints arriving together."""
        way = np.clip(goal, self.low, self.high) - self.target
        steps = max(1, round(float((np.abs(way) / self.speed).max()) / self.dt))
        self.velocity = way / (steps * self.dt)
        start = self.target.copy()
        for k in range(1, steps + 1):
            self.target = start + way * k / steps
            yield from self.tick()
        self.velocity = np.zeros(self.spec.njoint)
        yield from self.wait(_SETTLE_S)
        self.relax(range(self.spec.njoint))

    def relax(self, joints: Iterable[int]) -> None:
        """Aim at where joints are: what friction holds heats no motor; a heavy joint sags until it is carried."""
        for j in joints:
            self.target[j] = float(np.clip(self.state.joint_pos[j], self.low[j], self.high[j]))

    # --- small motions ---
    def wiggle(self, j: int) -> Motion:
        """Move one joint a little to both sides (to one where it rests near a limit) until some joint has moved."""
        held = float(self.target[j])
        moved, asked, sides = np.zeros(self.spec.njoint), 0.0, 0
        for side in (1, -1):
            base = self.state.joint_pos.copy()  # friction may have kept it where the other side ended
            room = float(self.high[j] - base[j] if side > 0 else base[j] - self.low[j])
            if room < 1.5 * self.cfg.wiggle_rad:
                continue
            yield from self._until_moved(j, side, base, held, room)
            moved += side * (self.state.joint_pos - base)
            asked += side * (float(self.target[j]) - float(base[j]))
            sides += 1
            yield from self._back(j, held)
        self.trace.answers[j] = WiggleAnswer(moved, asked, sides)

    def _until_moved(self, j: int, side: int, base: FloatArray, held: float, room: float) -> Motion:
        furthest = min(room, self.lead[j] + self.cfg.wiggle_rad)
        out, patience = 0.0, round(0.2 / self.dt)
        while patience and np.abs(self.state.joint_pos - base).max() < self.cfg.wiggle_rad:
            out = min(out + 0.5 * self.speed[j] * self.dt, furthest)
            patience -= out == furthest
            self.target[j] = held + side * out
            yield from self.tick()

    def _back(self, j: int, held: float) -> Motion:
        way = held - float(self.target[j])
        steps = max(1, round(abs(way) / (self.speed[j] * self.dt)))
        for k in range(1, steps + 1):
            self.target[j] = held - way * (1 - k / steps)
            yield from self.tick()
        yield from self.wait(0.1)
        self.relax([j])

    def pulse(self, j: int) -> Motion:
        """Push one limp joint by rising torque until some joint moves; no position is sent that could be wrong."""
        self.share, moved, asked = 0.0, np.zeros(self.spec.njoint), 0.0
        for side in (1, -1):
            base, patience, force = self.state.joint_pos.copy(), round(0.2 / self.dt), 0.0
            while patience and np.abs(self.state.joint_pos - base).max() < self.cfg.wiggle_rad / 2:
                force = min(force + 0.7 * self.cap[j] * self.dt, self.cap[j])
                patience -= force == self.cap[j]
                self.push[j] = side * force
                yield from self.tick()
            moved += side * (self.state.joint_pos - base)
            asked += self.cfg.wiggle_rad / 2
            self.push[j] = 0.0
            yield from self.limp()
        self.trace.pulses[j] = WiggleAnswer(moved, asked, 2)

    def torque(self, j: int) -> float:
        """What the motor gives: as measured, or as the servo's law says where the robot does not measure it."""
        measured = float(self.state.joint_torque[j])
        if np.isfinite(measured):
            return measured
        error = float(self.target[j]) - float(self.state.joint_pos[j])
        lag = float(self.velocity[j]) - float(self.state.joint_vel[j])
        return float(np.clip(self.kp[j] * error + self.kd[j] * lag, -self.cap[j], self.cap[j]))
