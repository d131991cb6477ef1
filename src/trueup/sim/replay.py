"""Replay of a Log: the recorded commands in the simulator, from measured states.

Open loop: one simulation from the first sample to the last. Windows (multiple shooting): the log is cut into windows,
each starts from the measured state, and all run side by side in one batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import is_uniform
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.sim.batch import BatchSim, SimCfg
from trueup.sim.net_history import prime_history
from trueup.sim.substep import SubstepModel
from trueup.sim.whole_robot import start_at

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ReplayCfg:
    """How a log is replayed.

    window_s  length of windows; None: open loop over the whole log
    stride_s  from one window's start to the next; None: the window length
    sim       physics; its nsim and control rate are set by the log
    """

    window_s: float | None = None
    stride_s: float | None = None
    sim: SimCfg = field(default_factory=lambda: SimCfg(model=ModelCfg(base="fixed")))


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Simulated beside measured, (nwindow, L, njoint); sample 0 of each window is the measured start.

    start  (nwindow,) row of the log each window begins at
    """

    start: NDArray[np.intp]
    time: FloatArray
    joint_names: tuple[str, ...]
    joint_pos: FloatArray
    joint_vel: FloatArray
    measured_pos: FloatArray
    diverged: NDArray[np.bool_]

    @property
    def rmse(self) -> FloatArray:
        """Root mean square position error of each joint over all windows, start excluded (rad)."""
        error = self.joint_pos[:, 1:] - self.measured_pos[:, 1:]
        return np.sqrt((error**2).mean(axis=(0, 1)))

    def to_log(self, window: int = 0) -> Log:
        """One simulated window as a Log."""
        signals = {"joint_pos": self.joint_pos[window], "joint_vel": self.joint_vel[window]}
        time = self.time + self.start[window] * (self.time[1] - self.time[0])
        return Log(time=time, joint_names=self.joint_names, signals=signals, meta={"source": "replay"})


def replay(
    robot: Robot,
    log: Log,
    cfg: ReplayCfg | None = None,
    *,
    prepare: Callable[[BatchSim], None] | None = None,
    substep_model: SubstepModel | None = None,
) -> Replay:
    """Run the log's commands in the simulator; `prepare` may set parameters of the batch first."""
    cfg = cfg or ReplayCfg()
    log = log.with_joint_order(robot.spec.joint_names)
    start, length = _windows(log, cfg)
    rows = start[:, None] + np.arange(length)
    sim = BatchSim(robot, _sim_cfg(robot, log, cfg, len(start)), substep_model)
    _set_gains(sim, log, rows)
    if prepare is not None:
        prepare(sim)
    _start(sim, log, start)
    rest = {key: log[name][rows[:, :-1]] for key, name in _REST.items() if _used(log, name)}
    out = sim.rollout(log["target_pos"][rows[:, :-1]], record=("qpos", "qvel"), **rest)
    measured = log["joint_pos"][rows]
    simulated = out["qpos"][:, :, sim.index.qpos] + sim.encoder_bias[:, None, :]
    velocity = _velocity(log)[start]
    return Replay(
        start=start,
        time=np.arange(length, dtype=np.float64) * sim.control_dt,
        joint_names=robot.spec.joint_names,
        joint_pos=np.concatenate([measured[:, :1], simulated], axis=1),
        joint_vel=np.concatenate([velocity[:, None], out["qvel"][:, :, sim.index.dof]], axis=1),
        measured_pos=measured,
        diverged=sim.diverged,
    )


_REST = {"target_vel": "target_vel", "torque": "target_torque"}


def _windows(log: Log, cfg: ReplayCfg) -> tuple[NDArray[np.intp], int]:
    """Start rows and length in samples."""
    for name in ("joint_pos", "target_pos"):
        if not np.isfinite(log[name]).all():
            raise TrueupError(
                f"{name!r} holds values that are not finite; run `trueup data check`", place=name
            )
    if len(log) < 2:
        raise TrueupError(f"a replay needs at least two samples, found {len(log)}")
    if not is_uniform(log):
        raise TrueupError("the log's clock is uneven: a replay needs a uniform one; `resample` it first")
    if cfg.window_s is None:
        return np.zeros(1, np.intp), len(log)
    length = round(cfg.window_s * log.rate_hz) + 1
    stride = length - 1 if cfg.stride_s is None else round(cfg.stride_s * log.rate_hz)
    if not 2 <= length <= len(log) or stride < 1:
        raise TrueupError(
            f"windows of {cfg.window_s} s every {cfg.stride_s or cfg.window_s} s do not fit a log of "
            f"{len(log) / log.rate_hz:.2f} s at {log.rate_hz:.0f} Hz"
        )
    return np.arange(0, len(log) - length + 1, stride), length


def _sim_cfg(robot: Robot, log: Log, cfg: ReplayCfg, nsim: int) -> SimCfg:
    """The log's rate drives control; physics runs at the spec's rate or the next multiple above."""
    rate = (len(log) - 1) / (log.time[-1] - log.time[0])
    physics = rate * max(1, math.ceil((cfg.sim.physics_hz or robot.spec.physics_hz) / rate - 1e-3))
    actuator = cfg.sim.actuator
    if any(_used(log, name) for name in _REST.values()):
        actuator = replace(actuator, inputs="servo")
    return replace(cfg.sim, nsim=nsim, control_hz=rate, physics_hz=physics, actuator=actuator)


def _used(log: Log, name: str) -> bool:
    return name in log and bool(np.any(log[name]))


def _set_gains(sim: BatchSim, log: Log, rows: NDArray[np.intp]) -> None:
    for name in ("kp", "kd"):
        signal = f"target_{name}"
        if signal not in log:
            continue
        values = log[signal][rows]
        if (values != values[:, :1]).any():
            raise TrueupError(
                f"{signal!r} changes within a window: cut the log where the gains change", place=signal
            )
        sim.params.set(name, values[:, 0])


def _velocity(log: Log) -> FloatArray:
    """Measured velocity; without one, the derivative of position."""
    return log["joint_vel"] if "joint_vel" in log else np.gradient(log["joint_pos"], log.time, axis=0)


def _start(sim: BatchSim, log: Log, start: NDArray[np.intp]) -> None:
    """Put every window into its measured state, with the commands that came before it on their way."""
    qpos = np.broadcast_to(sim.default_qpos, (sim.nsim, sim.model.nq)).copy()
    qvel = np.zeros((sim.nsim, sim.model.nv))
    qpos[:, sim.index.qpos] = log["joint_pos"][start] - sim.encoder_bias
    qvel[:, sim.index.dof] = _velocity(log)[start]
    if sim.free_base:
        at = sim.base_qpos
        qpos[:, at : at + 3] = log["base_pos"][start]
        qpos[:, at + 3 : at + 7] = log["base_quat"][start]
        qvel[:, sim.base_dof : sim.base_dof + 3] = log["base_vel"][start]
        qvel[:, sim.base_dof + 3 : sim.base_dof + 6] = log["imu_gyro"][start]
    start_at(sim, qpos, qvel)
    past = math.ceil(sim.cfg.max_delay_s / sim.control_dt) + 1
    before = np.maximum(start[:, None] + np.arange(-past, 0), 0)
    sim.prime_delay(log["target_pos"][before])
    prime_history(sim, log, _velocity(log), start)
