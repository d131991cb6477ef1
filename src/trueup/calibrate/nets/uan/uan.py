"""UAN, the unsupervised actuator net (arXiv 2502.10894): a residual torque learned from positions alone.

Recorded commands are replayed from recorded states; a net that sees the last 100 ms of position and velocity errors
adds a torque to the servo of a fitted simulator, so that the simulated motion follows the recorded one. `method` says
how it learns:

inverse   the missing torque is found from the error and taught by regression (`regress`); the default
gradient  the error is carried back through a linear model of the joints (`gradient`)
rl        PPO inside the batched physics, as published (`rl`)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.actuator.rungs import UanMethod
from trueup.calibrate.fit.fit import Progress
from trueup.calibrate.nets.net_design import Share, blank_net, groups_of, settings_of, simulator_of, stand_of
from trueup.calibrate.nets.net_learner import NetLearner, NetShape, State
from trueup.calibrate.nets.uan.gradient import GradientCfg, GradientTrainer, StartRows
from trueup.calibrate.nets.uan.regress import Race, RegressCfg, RegressTrainer, Replays, Way
from trueup.calibrate.nets.uan.rl import RlCfg, RlTrainer
from trueup.calibrate.nets.uan.rollout import Rollouts, SignalRange, make_tracks
from trueup.core.checkpoint import Checkpoint, StateFile
from trueup.core.errors import TrueupError
from trueup.core.hashes import sha256_of
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet, NetSpec, Signal
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration
from trueup.world.replay.tracks import Tracks

FloatArray = NDArray[np.float64]
STATE_FILE = "uan.safetensors"
_HELD = 0.15  # of every log, at its end: to choose the weights by
_TORQUE_UNITS = 3.0  # of the torque that would hold the base's error still: an output of one
_WHOLE_S = 20.0  # of a log replayed in one piece
_RANGE_MARGIN = 0.1  # of the width of the fitted range, on both sides


@dataclass(frozen=True, kw_only=True)
class UanCfg:
    """What the net is and how it learns.

    signals       what the net sees; empty: servo torque and velocity error, for `rl` the published errors of position
                  and velocity. Torque means the same under other gains, a position error does not
    steps, dt_s   history and rate; dt_s is fitted to the physics step
    friction      share of the base's Coulomb friction that stays in the engine (`inverse`, way `corrected`, only); the
                  net learns the rest, which a joint that sticks in the engine would hide from it
    share, context  joints that share weights, and inputs that each of them has to itself
    limit         largest residual torque, of the torque limit
    windows, window_s, warm_up_s  replayed side by side; errors of the warm-up do not count
    """

    method: UanMethod = "inverse"
    hidden: tuple[int, ...] = (128, 128)
    signals: tuple[Signal, ...] = ()
    steps: int = 20
    dt_s: float = 0.005
    share: Share = "identical"
    context: int = 8
    limit: float = 0.3
    friction: float = 0.5
    physics_hz: float = 1000.0
    windows: int = 32
    window_s: float = 1.0
    warm_up_s: float = 0.3
    seed: int = 0
    regress: RegressCfg = field(default_factory=RegressCfg)
    gradient: GradientCfg = field(default_factory=GradientCfg)
    rl: RlCfg = field(default_factory=RlCfg)

    def __post_init__(self) -> None:
        if self.windows < 1 or self.window_s <= 0 or self.warm_up_s < 0:
            raise TrueupError("windows and window_s must be positive, warm_up_s not negative")
        if not 0 < self.friction <= 1:
            raise TrueupError(f"friction is a share, above 0 and at most 1, found {self.friction}")
        if not 0 < self.limit <= 1:
            raise TrueupError(f"limit is a share of the torque limit, within 0 and 1, found {self.limit}")

    @property
    def sees(self) -> tuple[Signal, ...]:
        """The signals, where none were chosen those of the method."""
        return self.signals or ("pos_error" if self.method == "rl" else "servo_torque", "vel_error")


class NetTrainer(Protocol):
    """What learns: step by step, to be stopped and resumed at any of them."""

    @property
    def range(self) -> SignalRange: ...
    @property
    def done(self) -> bool: ...
    @property
    def progress(self) -> float: ...
    def iterate(self) -> object: ...
    def result(self) -> ActuatorNet: ...
    def state(self) -> State: ...
    def restore(self, state: State) -> None: ...


class UanProblem(NamedTuple):
    """Windows in a batch, a net of zeros with its normalisation, and the base's error per joint, rad."""

    rollouts: Rollouts
    blank: ActuatorNet
    windows: StartRows
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
    """Learn a residual torque on top of the simulator that `base` has fitted (None: as it is delivered).

    folder  keeps the state while it runs; `resume` continues from what a stopped or killed training left there
    """
    cfg = cfg or UanCfg()
    tracks = make_tracks(robot, logs)
    trainer = _trainer(robot, tracks, base, cfg)
    state = None
    if folder is not None:
        spec = uan_spec(robot, tracks, base, cfg)
        key = sha256_of((f"{cfg} {spec}", tracks.measured, tracks.target))
        state = StateFile(Path(folder) / STATE_FILE, key, what="training", every_s=5.0)
    found = state.load() if state is not None and resume else None
    if found is not None:
        trainer.restore(found.arrays)
    _run(trainer, state, progress or (lambda share: None))
    return trainer.range.put_on(trainer.result(), _RANGE_MARGIN)


def _run(trainer: NetTrainer, state: StateFile | None, progress: Progress) -> None:
    """To the end, or until Ctrl-C: then the state is kept for --resume."""
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


def _trainer(robot: Robot, tracks: Tracks, base: Calibration | None, cfg: UanCfg) -> NetTrainer:
    """The trainer of the method; several ways of the inverse method race each other."""
    if cfg.method != "inverse" or len(cfg.regress.ways) == 1:
        return make_trainer(make_uan_problem(robot, tracks, base, cfg), cfg)
    ways = [_one_way(cfg, way) for way in cfg.regress.ways]
    return Race([_regress_trainer(make_uan_problem(robot, tracks, base, one), one) for one in ways])


def _one_way(cfg: UanCfg, way: Way) -> UanCfg:
    friction = cfg.friction if way == "corrected" else 1.0
    return replace(cfg, friction=friction, regress=replace(cfg.regress, ways=(way,)))


def make_uan_problem(robot: Robot, tracks: Tracks, base: Calibration | None, cfg: UanCfg) -> UanProblem:
    """Build the batch and measure the error of the base."""
    spec, windows = uan_spec(robot, tracks, base, cfg), choose_windows(tracks, cfg)
    length = round((cfg.warm_up_s + cfg.window_s) * tracks.rate_hz)
    blank = blank_net(spec, cfg.hidden, cfg.context, scale=np.ones(spec.njoint))
    rollouts = Rollouts(robot, tracks, blank, cfg.windows, length, cfg.physics_hz, stand_of(base))
    blank, unit = measured_blank(rollouts, blank, windows, cfg)
    return UanProblem(rollouts, blank, windows, unit)


def make_trainer(problem: UanProblem, cfg: UanCfg) -> NetTrainer:
    """The trainer of the method that is asked for."""
    rollouts, blank, windows, unit = problem
    if cfg.method == "rl":
        return RlTrainer(rollouts, blank, windows.train, unit, cfg.rl, cfg.seed)
    if cfg.method == "gradient":
        return GradientTrainer(rollouts, _learner(blank, cfg), windows, unit, cfg.gradient, cfg.seed)
    return _regress_trainer(problem, cfg)


def _learner(blank: ActuatorNet, cfg: UanCfg) -> NetLearner:
    return NetLearner(blank, NetShape(hidden=cfg.hidden, context=cfg.context), cfg.seed)


def _regress_trainer(problem: UanProblem, cfg: UanCfg) -> RegressTrainer:
    robot, tracks, blank = problem.rollouts.robot, problem.rollouts.tracks, problem.blank
    length = min(int((tracks.last - tracks.first).min()), round(_WHOLE_S * tracks.rate_hz)) - 1
    firsts = np.unique(tracks.first)
    starts = np.concatenate([np.arange(a, tracks.last[a] - length, length) for a in firsts])
    base = replace(blank, spec=with_friction(blank.spec, 1.0 / cfg.friction))
    whole, alone = (
        Rollouts(robot, tracks, net, len(starts), length, cfg.physics_hz, problem.rollouts.stand)
        for net in (blank, base)
    )
    replays = Replays(starts, _HELD, base, alone.run(base, starts).error)
    return RegressTrainer(whole, _learner(blank, cfg), replays, cfg.regress, cfg.seed)


def uan_spec(robot: Robot, tracks: Tracks, base: Calibration | None, cfg: UanCfg) -> NetSpec:
    """The spec of the net."""
    is_rl = cfg.method == "rl"  # a learner that acts from outside does so once a row, and is a step behind
    spec = NetSpec(
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        kind="residual",
        signals=cfg.sees,
        taps=tuple(range(is_rl, cfg.steps + is_rl)),
        dt_s=1.0 / tracks.rate_hz if is_rl else _step(tracks.rate_hz, cfg),
        groups=groups_of(robot, cfg.share),
        limit=tuple((cfg.limit * robot.spec.torque_limit).tolist()),
        **simulator_of(settings_of(base)),  # type: ignore[arg-type]
    )
    return with_friction(spec, cfg.friction) if cfg.method == "inverse" else spec


def with_friction(spec: NetSpec, share: float) -> NetSpec:
    """The spec with its simulator's Coulomb friction times `share`."""
    settings = (
        msgspec.structs.replace(one, value=share * one.value) if one.name == "friction" else one
        for one in spec.settings
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


def choose_windows(tracks: Tracks, cfg: UanCfg) -> StartRows:
    """Start rows for learning, and evenly spread ones in the last part of every log."""
    warm_up, length = (round(s * tracks.rate_hz) for s in (cfg.warm_up_s, cfg.warm_up_s + cfg.window_s))
    train, late = tracks.starts(length, (0.0, 1.0 - _HELD)), tracks.starts(length, (1.0 - _HELD, 1.0))
    if not len(train):
        raise TrueupError(
            f"no log is long enough for windows of {cfg.warm_up_s + cfg.window_s:g} s; record at least 10 s"
        )
    if not len(late):
        late = train
    spread = np.linspace(0, len(late) - 1, min(len(late), cfg.windows)).astype(np.intp)
    return StartRows(train=train, held=late[spread], warm_up=warm_up)


def measured_blank(
    rollouts: Rollouts, blank: ActuatorNet, windows: StartRows, cfg: UanCfg
) -> tuple[ActuatorNet, FloatArray]:
    """The net of zeros with normalisation and torque scale from the base's own rollouts; its error (njoint,), rad."""
    rows = np.linspace(0, len(windows.train) - 1, rollouts.nwindow).astype(np.intp)
    found = rollouts.run(blank, windows.train[rows])
    error = np.sqrt((found.error[:, windows.warm_up :] ** 2).mean(axis=(0, 1)))
    error = np.maximum(error, rollouts.noise)
    kp = rollouts.sim.params.get("kp").mean(axis=0)
    scale = np.minimum(_TORQUE_UNITS * kp * error, np.array(blank.spec.limit))
    signals = found.signals.transpose(0, 2, 3, 1).reshape(-1, blank.spec.njoint, len(blank.spec.signals))
    made = blank_net(blank.spec, cfg.hidden, cfg.context, scale=scale, signals=signals.astype(np.float64))
    return made, error
