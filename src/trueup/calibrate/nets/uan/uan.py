"""UAN, the unsupervised actuator net (arXiv 2502.10894): a residual torque learned from positions alone.

Recorded commands are replayed from recorded states; a net that sees the last 100 ms of position and velocity errors
adds a torque to the servo of a fitted simulator, so that the simulated motion follows the recorded one. `method` says
how it learns:

inverse   the torque that is lacking is found from the error and taught by regression (`uan_regress`); the default
gradient  the error is carried back through a linear model of the joints (`uan_gradient`)
rl        PPO inside the batched physics, as published (`uan_rl`)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.nets.net_design import blank_net, groups_of, settings_of, simulator_of, stand_of
from trueup.calibrate.nets.net_learner import NetLearner, NetShape
from trueup.calibrate.nets.uan.config import UanCfg as UanCfg
from trueup.calibrate.nets.uan.gradient import GradientTrainer, StartRows
from trueup.calibrate.nets.uan.regress import Race, RegressTrainer, Replays, Way
from trueup.calibrate.nets.uan.rl import RlTrainer
from trueup.calibrate.nets.uan.rollout import NoisyTracks, Rollouts, Rows, make_tracks
from trueup.core.checkpoint import Checkpoint, StateFile
from trueup.core.errors import TrueupError
from trueup.core.hashes import sha256_of
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet, NetSpec, Setting
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration

FloatArray = NDArray[np.float64]
Progress = Callable[[float], None]
STATE_FILE = "uan.safetensors"
_KEPT = 0.15  # of every log, at its end: to choose the weights by
_TORQUE_UNITS = 3.0  # of the torque that would hold the base's error still: an output of one
_WHOLE_S = 20.0  # of a log replayed in one piece
_RANGE_MARGIN = 0.1  # of the width of the fitted range, on both sides


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

    folder  keeps the state while it runs; `resume` goes on from what a stopped or killed training left there
    """
    cfg = cfg or UanCfg()
    tracks = make_tracks(robot, logs)
    trainer = _trainer(robot, tracks, base, cfg)
    key = _key(tracks, cfg, uan_spec(robot, tracks, base, cfg))
    state = None
    if folder is not None:
        state = StateFile(Path(folder) / STATE_FILE, key, what="training", every_s=5.0)
    found = state.load() if state is not None and resume else None
    if found is not None:
        trainer.restore(found.arrays)
    _run(trainer, state, progress or (lambda share: None))
    return with_range(trainer.result(), trainer.low, trainer.high)


def _trainer(robot: Robot, tracks: NoisyTracks, base: Calibration | None, cfg: UanCfg) -> Trainer:
    """What learns; several ways of the inverse method race each other."""
    stand = stand_of(base)

    def made(one: UanCfg) -> Trainer:
        problem = make_problem(robot, tracks, uan_spec(robot, tracks, base, one), one, stand)
        return make_trainer(robot, problem, one)

    if cfg.method != "inverse" or len(cfg.regress.ways) == 1:
        return made(cfg)
    runners = [made(_one_way(cfg, way)) for way in cfg.regress.ways]
    return Race([one for one in runners if isinstance(one, RegressTrainer)])


def _one_way(cfg: UanCfg, way: Way) -> UanCfg:
    friction = cfg.friction if way == "corrected" else 1.0
    return replace(cfg, friction=friction, regress=replace(cfg.regress, ways=(way,)))


class Trainer(Protocol):
    """What learns: step by step, to be stopped and resumed at any of them."""

    @property
    def low(self) -> NDArray[np.float32]: ...
    @property
    def high(self) -> NDArray[np.float32]: ...
    @property
    def done(self) -> bool: ...
    @property
    def progress(self) -> float: ...
    def iterate(self) -> object: ...
    def result(self) -> ActuatorNet: ...
    def state(self) -> dict[str, NDArray[np.generic]]: ...
    def restore(self, state: dict[str, NDArray[np.generic]]) -> None: ...


class UanProblem(NamedTuple):
    """StartRows in a batch, a net of zeros with its normalisation, and what the base leaves per joint, rad."""

    rollouts: Rollouts
    blank: ActuatorNet
    windows: StartRows
    unit: FloatArray


def make_problem(
    robot: Robot, tracks: NoisyTracks, spec: NetSpec, cfg: UanCfg, stand: tuple[Setting, ...] = ()
) -> UanProblem:
    """Build the batch and measure what the base leaves; `stand` is what holds the robot, no part of the net."""
    windows = choose_windows(tracks, cfg)
    length = round((cfg.warm_up_s + cfg.window_s) * tracks.rate_hz)
    blank = blank_net(spec, cfg.hidden, cfg.context, scale=np.ones(spec.njoint))
    rollouts = Rollouts(robot, tracks, blank, cfg.windows, length, cfg.physics_hz, stand)
    blank, unit = measured_blank(rollouts, blank, windows, cfg)
    return UanProblem(rollouts, blank, windows, unit)


def make_trainer(robot: Robot, problem: UanProblem, cfg: UanCfg) -> Trainer:
    """What learns by the method that is asked for."""
    if cfg.method == "rl":
        starts = problem.windows.train
        return RlTrainer(problem.rollouts, problem.blank, starts, problem.unit, cfg.rl, cfg.seed)
    tracks, blank = problem.rollouts.tracks, problem.blank
    learner = NetLearner(blank, NetShape(hidden=cfg.hidden, context=cfg.context), cfg.seed)
    if cfg.method == "gradient":
        return GradientTrainer(
            problem.rollouts, learner, problem.windows, problem.unit, cfg.gradient, cfg.seed
        )
    length = min(int((tracks.last - tracks.first).min()), round(_WHOLE_S * tracks.rate_hz)) - 1
    firsts = np.unique(tracks.first)
    starts = np.concatenate([np.arange(a, tracks.last[a] - length, length) for a in firsts])
    base = replace(blank, spec=with_friction(blank.spec, 1.0 / cfg.friction))
    whole, alone = (
        Rollouts(robot, tracks, net, len(starts), length, cfg.physics_hz, problem.rollouts.stand)
        for net in (blank, base)
    )
    left = alone.run(base, starts).error
    return RegressTrainer(whole, learner, Replays(starts, _KEPT, base, left), cfg.regress, cfg.seed)


def _run(trainer: Trainer, state: StateFile | None, progress: Progress) -> None:
    """To the end, or until somebody presses Ctrl-C: then what was learned is kept for --resume."""
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


def uan_spec(robot: Robot, tracks: NoisyTracks, base: Calibration | None, cfg: UanCfg) -> NetSpec:
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


def choose_windows(tracks: NoisyTracks, cfg: UanCfg) -> StartRows:
    """Start rows for learning, and evenly spread ones in the last part of every log."""
    warm_up, length = (round(s * tracks.rate_hz) for s in (cfg.warm_up_s, cfg.warm_up_s + cfg.window_s))
    train, late = tracks.starts(length, (0.0, 1.0 - _KEPT)), tracks.starts(length, (1.0 - _KEPT, 1.0))
    if not len(train):
        raise TrueupError(
            f"no log is long enough for windows of {cfg.warm_up_s + cfg.window_s:g} s; record at least 10 s"
        )
    if not len(late):
        late = train
    spread = np.linspace(0, len(late) - 1, min(len(late), cfg.windows)).astype(np.intp)
    return StartRows(train=train, kept=late[spread], warm_up=warm_up)


def measured_blank(
    rollouts: Rollouts, blank: ActuatorNet, windows: StartRows, cfg: UanCfg
) -> tuple[ActuatorNet, FloatArray]:
    """The net of zeros with normalisation and torque scale from the base's own rollouts; its error (njoint,), rad."""
    rows: Rows = np.linspace(0, len(windows.train) - 1, rollouts.nwindow).astype(np.intp)
    found = rollouts.run(blank, windows.train[rows])
    error = np.sqrt((found.error[:, windows.warm_up :] ** 2).mean(axis=(0, 1)))
    error = np.maximum(error, rollouts.tracks.noise)
    kp = rollouts.sim.gains.get("kp").mean(axis=0)
    scale = np.minimum(_TORQUE_UNITS * kp * error, np.array(blank.spec.limit))
    signals = found.signals.transpose(0, 2, 3, 1).reshape(-1, blank.spec.njoint, len(blank.spec.signals))
    made = blank_net(blank.spec, cfg.hidden, cfg.context, scale=scale, signals=signals.astype(np.float64))
    return made, error


def with_range(net: ActuatorNet, low: NDArray[np.float32], high: NDArray[np.float32]) -> ActuatorNet:
    """The net with its fitted range, from that of each joint (njoint, nsignal)."""
    groups = [list(group) for group in net.spec.groups]
    least = np.stack([low[group].min(axis=0) for group in groups])
    most = np.stack([high[group].max(axis=0) for group in groups])
    margin = _RANGE_MARGIN * (most - least)
    return replace(net, low=least - margin, high=most + margin)


def _key(tracks: NoisyTracks, cfg: UanCfg, spec: NetSpec) -> str:
    return sha256_of((f"{cfg} {spec}", tracks.measured, tracks.target))
