"""Mismatch of windows under many candidate changes, all as rows of one batch.

Each channel's error is in units of a negligible difference: 0.004 rad of a joint, 0.15 rad/s of angular velocity, 0.015
of the direction of gravity; a sample counts at most `_MOST` squared units, so that one lost window does not decide. On
the ground a foot that lands a moment early or late changes a window by any amount: there the logarithm of one plus the
mean square counts, as for errors with heavy tails.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.gap.causes.hysteresis import DahlFriction
from trueup.gap.causes.legs import by_legs
from trueup.gap.windows import LogWindows
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import SimParams
from trueup.world.parameters.able_to_set import able_to_set
from trueup.world.replay.playback import RecordedStretch, joint_seen, play, set_gains
from trueup.world.replay.replay import at_rate

Values = Mapping[str, FloatArray]  # parameter -> (W, ...), absolute
JOINT_RAD, SPIN_RAD_S, GRAVITY = 0.004, 0.15, 0.015
_MOST = 2500.0
_ROWS = 1500  # simulations in one batch


@dataclass(frozen=True, kw_only=True)
class Model:
    """The simulator under test: a robot, its calibration, fixed or free base; `delay_s` is the longest delay tried."""

    robot: Robot
    params: SimParams | None
    walking: bool
    threads: int = 1
    delay_s: float = 0.1
    physics_hz: float = 400.0  # at least: a coarser step looks like a delay

    def sim(self, rows: int, rate_hz: float, windows: LogWindows, tiles: int) -> BatchSim:
        """A batch with the windows' gains and the calibration's parameters, before any change."""
        held = ModelCfg(base="free" if self.walking else "fixed")
        physics_hz = max(self.physics_hz, self.robot.spec.physics_hz)
        cfg = SimCfg(nsim=rows, threads=self.threads, max_delay_s=self.delay_s, physics_hz=physics_hz, model=held)
        if self.params is not None:
            cfg = able_to_set(cfg, [one.name for one in self.params.parameters])
        cfg = at_rate(self.robot, replace(cfg, actuator=replace(cfg.actuator, inputs="servo")), rate_hz)
        sim = BatchSim(self.robot, cfg)
        set_gains(sim, windows.recorded.tiled(tiles))
        if self.params is not None:
            self.params.apply(sim)
        return sim


def base_values(model: Model, windows: LogWindows, names: Sequence[str]) -> dict[str, FloatArray]:
    """Parameters (W, ...) without any change."""
    sim = model.sim(windows.count, windows.rate_hz, windows, 1)
    return {name: sim.params.get(name) for name in names}


def losses(
    model: Model, windows: LogWindows, candidates: Sequence[Values], hysteresis: Sequence[FloatArray] | None = None
) -> FloatArray:
    """Mismatch (C, W, channel) of every candidate in every window; channels are joints, spin, gravity.

    hysteresis  of each candidate, N m of each joint (njoint,): then the joints have Dahl friction
    """
    each = max(1, _ROWS // windows.count)
    parts = []
    for k in range(0, len(candidates), each):
        some = candidates[k : k + each]
        sim = model.sim(len(some) * windows.count, windows.rate_hz, windows, len(some))
        recorded = windows.recorded.tiled(len(some))
        for name in some[0]:
            sim.params.set(name, np.concatenate([one[name] for one in some]))
        if "encoder_bias" in some[0] and max(windows.base_noise) > 0.0:
            recorded = _stood_anew(model.robot, recorded, np.concatenate([one["encoder_bias"] for one in some]))
        if hysteresis is not None:
            torque = np.repeat(np.stack(hysteresis[k : k + each]), windows.count, axis=0)
            sim.substep_model = DahlFriction(torque)
        out = errors(sim, windows, recorded)
        parts.append(out.reshape(len(some), windows.count, -1))
    found = np.concatenate(parts)
    return found if windows.weight is None else found * windows.weight[:, None]


def weighed(model: Model, windows: LogWindows) -> LogWindows:
    """The windows with weights that make the mismatch of each recording 1; less than what would not matter stays less.

    A fast motion has a hundred times the mismatch of a slow one: unweighed, it alone would say what is wrong.
    """
    if windows.log.max() == 0:
        return windows
    each = losses(model, windows, [{}])[0].mean(axis=1)
    mean = np.array([each[windows.log == k].mean() for k in range(int(windows.log.max()) + 1)])
    return replace(windows, weight=1.0 / np.maximum(mean, 1.0)[windows.log])


def _stood_anew(robot: Robot, recorded: RecordedStretch, bias: FloatArray) -> RecordedStretch:
    """Starts whose base comes from leg odometry, computed again with another encoder bias."""
    if recorded.base_pos is None or recorded.base_vel is None:
        return recorded
    pos, vel = recorded.base_pos.copy(), recorded.base_vel.copy()
    quat, spin = pos[:, 3:], vel[:, 3:]
    speed, _, height = by_legs(robot, quat, spin, recorded.pos - bias, recorded.vel)
    as_was, _, height_was = by_legs(robot, quat, spin, recorded.pos, recorded.vel)
    pos[:, 2] += height - height_was
    vel[:, :3] += speed - as_was
    return replace(recorded, base_pos=pos, base_vel=vel)


def errors(sim: BatchSim, windows: LogWindows, recorded: RecordedStretch) -> FloatArray:
    """Mismatch (tiles W, channel) of one batch: mean square, on the ground its logarithm."""
    tiles = len(recorded.pos) // windows.count
    out = play(sim, recorded)
    channels = [_mean(joint_seen(sim, out["qpos"]) - np.tile(windows.measured, (tiles, 1, 1)), JOINT_RAD)]
    if sim.free_base and windows.gravity is not None:
        down, spin = base_seen(sim, out)
        channels.append(_mean(down - np.tile(windows.gravity, (tiles, 1, 1)), GRAVITY))
        if windows.gyro is not None:
            channels.append(_mean(spin - np.tile(windows.gyro, (tiles, 1, 1)), SPIN_RAD_S))
    found = np.concatenate(channels, axis=1)
    return np.log1p(found) if sim.free_base else found


def base_seen(sim: BatchSim, out: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray]:
    """Direction of gravity and spin (rows, L, 3) as the IMU would report them; zeros of a base that is held."""
    if not sim.free_base:
        none = np.zeros((*out["qpos"].shape[:2], 3))
        return none, none
    quat = out["qpos"][..., sim.base_qpos + 3 : sim.base_qpos + 7]
    down = gravity_in_body(quat.reshape(-1, 4)).reshape(*quat.shape[:2], 3)
    return down, out["qvel"][..., sim.base_dof + 3 : sim.base_dof + 6]


def _mean(error: FloatArray, unit: float) -> FloatArray:
    square = np.square(np.where(np.isfinite(error), error, math.inf) / unit)
    mean: FloatArray = np.minimum(square, _MOST).mean(axis=1)
    return mean
