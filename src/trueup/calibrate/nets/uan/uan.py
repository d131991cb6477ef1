"""UAN, the unsupervised actuator net (arXiv 2502.10894): a residual torque learned from positions alone.

Recorded commands are replayed from recorded states; a net that sees the last 100 ms of position and velocity errors
adds a torque to the servo of a fitted simulator, so that the simulated motion follows the recorded one. `method` says
how it learns:

inverse  the missing torque is found from the error and taught by regression (`regress`); the default
rl       PPO inside the batched physics, as published (`rl`)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from trueup.calibrate.actuator.rungs import UanMethod
from trueup.calibrate.fit.fit import Progress
from trueup.calibrate.nets.net_design import blank_net, groups_of, settings_of, simulator_of, stand_of
from trueup.calibrate.nets.net_learner import NetLearner
from trueup.calibrate.nets.uan.regress import HELD, Race, RegressCfg, RegressTrainer, late_error
from trueup.calibrate.nets.uan.rl import PUBLISHED, RlTrainer
from trueup.calibrate.nets.uan.rollout import Rollouts, Rows, make_tracks
from trueup.core.arrays import FloatArray, sha256_of
from trueup.core.checkpoint import Checkpoint, StateFile
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet, NetSpec, Signal
from trueup.rl.settings import PpoCfg
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration
from trueup.world.replay.tracks import Tracks

STATE_FILE = "uan.safetensors"
_TORQUE_UNITS = 3.0  # share of the torque kp x error of the base, which is an output of one
_LIMIT = 0.3  # largest residual torque, of the torque limit


@dataclass(frozen=True, kw_only=True)
class UanCfg:
    """Form and training of the net.

    steps, dt_s   history and rate; dt_s is fitted to the physics step
    friction      share of the base's Coulomb friction that stays in the engine (`inverse`, way `corrected`, only); the
                  net learns the rest, which a joint that sticks in the engine would hide from it
    context       inputs that each joint has to itself; joints with equal motors share weights
    windows, window_s, warm_up_s  replayed side by side; errors of the warm-up do not count
    piece_s       of a log replayed in one piece (`inverse`); short for a robot on its feet, which falls in a replay
    rl, iterations  of PPO
    """

    method: UanMethod = "inverse"
    hidden: tuple[int, ...] = (128, 128)
    steps: int = 20
    dt_s: float = 0.005
    context: int = 8
    friction: float = 0.5
    physics_hz: float = 1000.0
    windows: int = 32
    window_s: float = 1.0
    warm_up_s: float = 0.3
    piece_s: float = 20.0
    seed: int = 0
    regress: RegressCfg = field(default_factory=RegressCfg)
    rl: PpoCfg = PUBLISHED
    iterations: int = 200

    def __post_init__(self) -> None:
        if self.windows < 1 or self.window_s <= 0 or self.warm_up_s < 0:
            raise TrueupError("windows and window_s must be positive, warm_up_s not negative")
        if not 0 < self.friction <= 1:
            raise TrueupError(f"friction is a share, above 0 and at most 1, found {self.friction}")

    @property
    def sees(self) -> tuple[Signal, ...]:
        """Servo torque and velocity error, for `rl` the published errors of position and velocity.

        Torque means the same under other gains, a position error does not.
        """
        return ("pos_error" if self.method == "rl" else "servo_torque", "vel_error")


class UanProblem(NamedTuple):
    """Windows in a batch, a net of zeros with its normalisation, start rows, and the base's error per joint, rad."""

    rollouts: Rollouts
    blank: ActuatorNet
    starts: Rows
    unit: FloatArray


def train_uan(
    robot: Robot,
    logs: Sequence[Log],
    base: Calibration | None = None,
    cfg: UanCfg | None = None,
    progress: Progress | None = None,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
) -> ActuatorNet:
    """Learn a residual torque on top of the simulator fitted by `base` (None: the nominal one).

    folder  keeps the state while it runs; `resume` continues a stopped or killed training from there
    """
    cfg = cfg or UanCfg()
    tracks = make_tracks(robot, logs)
    trainer = make_uan_trainer(robot, tracks, base, cfg)
    state = None
    if folder is not None:
        spec = uan_spec(robot, tracks, base, cfg)
        key = sha256_of((f"{cfg} {spec}", tracks.measured, tracks.target))
        state = StateFile(Path(folder) / STATE_FILE, key, what="training", every_s=5.0)
    found = state.load() if state is not None and resume else None
    if found is not None:
        trainer.restore(found.arrays)
    _run(trainer, state, progress or (lambda share: None))
    return trainer.result()


def _run(trainer: RegressTrainer | Race | RlTrainer, state: StateFile | None, progress: Progress) -> None:
    """Train to the end, or until Ctrl-C: then the state is kept for --resume."""
    try:
        while not trainer.done:
            trainer.iterate()
            if state is not None:
                state.save(Checkpoint(arrays=trainer.state(), facts={}))
            progress(trainer.progress)
    except KeyboardInterrupt:
        if state is not None:
            state.save(Checkpoint(arrays=trainer.state(), facts={}), now=True)
        raise
    if state is not None:
        state.clear()


def make_uan_trainer(
    robot: Robot, tracks: Tracks, base: Calibration | None, cfg: UanCfg
) -> RegressTrainer | Race | RlTrainer:
    """The trainer of the method; several ways of the inverse method race each other."""
    if cfg.method == "rl" or len(cfg.regress.ways) == 1:
        return make_trainer(make_uan_problem(robot, tracks, base, cfg), cfg)
    runners = []
    for way in cfg.regress.ways:
        friction = cfg.friction if way == "corrected" else 1.0
        single = replace(cfg, friction=friction, regress=replace(cfg.regress, ways=(way,)))
        runner = make_trainer(make_uan_problem(robot, tracks, base, single), single)
        assert isinstance(runner, RegressTrainer)
        runners.append(runner)
    return Race(runners)


def make_uan_problem(robot: Robot, tracks: Tracks, base: Calibration | None, cfg: UanCfg) -> UanProblem:
    """Build the batch, and measure normalisation, torque scale and error in the base's own rollouts."""
    spec = uan_spec(robot, tracks, base, cfg)
    warm_up, length = (round(s * tracks.rate_hz) for s in (cfg.warm_up_s, cfg.warm_up_s + cfg.window_s))
    starts = tracks.starts(length, (0.0, 1.0 - HELD))
    if not len(starts):
        raise TrueupError(
            f"no log is long enough for windows of {cfg.warm_up_s + cfg.window_s:g} s; record at least 10 s"
        )
    blank = blank_net(spec, cfg.hidden, cfg.context, scale=np.ones(spec.njoint))
    rollouts = Rollouts(robot, tracks, blank, cfg.windows, length, cfg.physics_hz, stand_of(base))
    spread = np.linspace(0, len(starts) - 1, cfg.windows).astype(np.intp)
    found = rollouts.run(blank, starts[spread])
    error = np.maximum(np.sqrt((found.error[:, warm_up:] ** 2).mean(axis=(0, 1))), rollouts.noise)
    kp = rollouts.sim.params.get("kp").mean(axis=0)
    scale = np.minimum(_TORQUE_UNITS * kp * error, np.array(spec.limit))
    signals = found.signals.transpose(0, 2, 3, 1).reshape(-1, spec.njoint, len(spec.signals)).astype(np.float64)
    blank = blank_net(spec, cfg.hidden, cfg.context, scale=scale, signals=signals)
    return UanProblem(rollouts, blank, starts, error)


def make_trainer(problem: UanProblem, cfg: UanCfg) -> RlTrainer | RegressTrainer:
    """The trainer of the given method, with the first of its kinds of inputs."""
    if cfg.method == "rl":
        return RlTrainer(*problem, cfg.rl, cfg.iterations, cfg.seed)
    robot, tracks, blank = problem.rollouts.robot, problem.rollouts.tracks, problem.blank
    length = min(int((tracks.last - tracks.first).min()), round(cfg.piece_s * tracks.rate_hz)) - 1
    firsts = np.unique(tracks.first)
    starts = np.concatenate([np.arange(a, tracks.last[a] - length, length) for a in firsts])
    base = replace(blank, spec=with_friction(blank.spec, 1.0 / cfg.friction))
    whole, alone = (
        Rollouts(robot, tracks, net, len(starts), length, cfg.physics_hz, problem.rollouts.stand)
        for net in (blank, base)
    )
    alone_error = late_error(alone.run(base, starts).error)
    return RegressTrainer(whole, starts, NetLearner(blank, cfg.seed), (base, alone_error), cfg.regress, cfg.seed)


def uan_spec(robot: Robot, tracks: Tracks, base: Calibration | None, cfg: UanCfg) -> NetSpec:
    """The spec of the net."""
    is_rl = cfg.method == "rl"  # an external learner acts once a row, with a step's delay
    spec = NetSpec(
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        kind="residual",
        signals=cfg.sees,
        taps=tuple(range(is_rl, cfg.steps + is_rl)),
        dt_s=1.0 / tracks.rate_hz if is_rl else _step(tracks.rate_hz, cfg),
        groups=groups_of(robot),
        limit=tuple((_LIMIT * robot.spec.torque_limit).tolist()),
        **simulator_of(settings_of(base)),  # type: ignore[arg-type]
    )
    return with_friction(spec, cfg.friction) if cfg.method == "inverse" else spec


def with_friction(spec: NetSpec, share: float) -> NetSpec:
    """The spec with its simulator's Coulomb friction times `share`."""
    settings = (
        msgspec.structs.replace(setting, value=share * setting.value) if setting.name == "friction" else setting
        for setting in spec.settings
    )
    return msgspec.structs.replace(spec, settings=tuple(settings))


def _step(rate_hz: float, cfg: UanCfg) -> float:
    """The multiple of the log's step, or of the physics steps in it that divide it, that is nearest to dt_s."""
    row_s = 1.0 / rate_hz
    if row_s <= cfg.dt_s:
        return row_s * round(cfg.dt_s / row_s)
    substeps = max(1, math.ceil(cfg.physics_hz * row_s - 1e-3))
    parts = [k for k in range(1, substeps + 1) if substeps % k == 0]
    return min((row_s * k / substeps for k in parts), key=lambda dt: abs(math.log(dt / cfg.dt_s)))
