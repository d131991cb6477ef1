"""Actuator nets from measured torque (Hwangbo et al., arXiv 1901.08652), and the linear filter beside them.

Inputs come from the log: command minus measured position, measured velocity, at the taps; the target is the measured
joint torque. The command is taken as it was sent, so the net learns the delay too, and the simulator's own delay is
left out of its settings. A linear filter is solved by least squares; nets are trained by Adam with early stopping on
the held-out last tenth of every log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from trueup.calibrate.data.logs import in_order
from trueup.calibrate.fit.fit import Progress
from trueup.calibrate.nets.net_design import blank_net, groups_of, settings_of, simulator_of
from trueup.calibrate.nets.net_learner import NetLearner, falling
from trueup.core.errors import TrueupError
from trueup.core.layers import Activation
from trueup.data.log import Log
from trueup.data.resample import resample
from trueup.models.actuator_net import ActuatorNet, NetSpec, Signal
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration
from trueup.world.replay.tracks import smooth

Form = Literal["fir", "net", "long"]
_HELD = 0.1  # of every log, at its end
_PATIENCE = 15  # passes without progress
_MARGIN = 0.1  # of the width of the fitted range
_RIDGE = 1e-6


@dataclass(frozen=True, kw_only=True)
class SupervisedCfg:
    """Inputs and training of the net.

    dt_s   period of evaluations, unit of the taps
    shared, context  joints with equal motors share weights; numbers that each of them has to itself
    """

    hidden: tuple[int, ...] = (32, 32)
    activation: Activation = "softsign"
    signals: tuple[Signal, ...] = ("pos_error", "vel")
    taps: tuple[int, ...] = (0, 2, 4)
    dt_s: float = 0.005
    shared: bool = True
    context: int = 4
    passes: int = 150
    batch: int = 256
    rate: float = 3e-3
    seed: int = 0


FORMS: dict[Form, SupervisedCfg] = {
    "fir": SupervisedCfg(hidden=(), shared=False, context=0),
    "net": SupervisedCfg(),
    "long": SupervisedCfg(
        hidden=(256, 128),
        activation="elu",
        signals=("pos_error", "vel", "command"),
        taps=tuple(range(50)),
        passes=40,
        batch=512,
        rate=1e-3,
    ),
}


class Samples(NamedTuple):
    """Inputs (rows, njoint, nsignal, ntap), measured torques (rows, njoint), and held-out rows."""

    inputs: NDArray[np.float32]
    torque: NDArray[np.float32]
    held: NDArray[np.bool_]


def train_supervised(
    robot: Robot,
    logs: Sequence[Log],
    base: Calibration | None = None,
    cfg: SupervisedCfg | None = None,
    progress: Progress | None = None,
) -> ActuatorNet:
    """Learn the motor's torque from logs that have it; `base` gives the rest of the simulator (inertia, friction)."""
    cfg = cfg or SupervisedCfg()
    if not logs or not all("joint_torque" in log for log in logs):
        raise TrueupError(
            "a supervised actuator net needs measured joint torque in every log; without a torque sensor train the "
            "unsupervised one (uan)",
            place="joint_torque",
        )
    ordered = [in_order(robot, log) for log in logs]
    spec = _spec(robot, ordered[0].rate_hz, base, cfg)
    samples = make_samples(ordered, spec)
    scale = np.maximum(samples.torque[~samples.held].std(axis=0), 1e-6)
    now = samples.inputs[~samples.held][..., 0].astype(np.float64)
    blank = blank_net(spec, cfg.hidden, cfg.context, scale=scale, signals=now)
    net = _learned(blank, samples, cfg, progress) if cfg.hidden else _solved(blank, samples)
    margin = _MARGIN * (net.high - net.low)
    return replace(net, low=net.low - margin, high=net.high + margin)


def make_samples(logs: Sequence[Log], spec: NetSpec) -> Samples:
    """Cut logs, in the spec's joint order, into inputs and torques at the net's rate."""
    parts = []
    for log in logs:
        log = log if abs(log.rate_hz * spec.dt_s - 1.0) < 1e-3 else resample(log, 1.0 / spec.dt_s)
        velocity = log["joint_vel"] if "joint_vel" in log else smooth(log)[1]
        error = log["target_pos"] - log["joint_pos"]
        zero = np.zeros_like(velocity)
        signals = {
            "pos_error": error,
            "vel": velocity,
            "vel_error": log.signals.get("target_vel", zero) - velocity,
            "command": log["target_pos"],
            "servo_torque": log.signals.get("target_kp", zero) * error - log.signals.get("target_kd", zero) * velocity,
        }
        stacked = np.stack([signals[name] for name in spec.signals], axis=-1).astype(np.float32)
        rows = np.arange(spec.depth - 1, len(log))
        inputs = np.moveaxis(stacked[rows[:, None] - np.array(spec.taps)], 1, -1)
        held = rows >= (1.0 - _HELD) * len(log)
        parts.append((inputs, log["joint_torque"][rows].astype(np.float32), held))
    return Samples(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _spec(robot: Robot, rate_hz: float, base: Calibration | None, cfg: SupervisedCfg) -> NetSpec:
    dt_s = max(1, round(cfg.dt_s * rate_hz)) / rate_hz if cfg.dt_s * rate_hz > 0.8 else cfg.dt_s
    return NetSpec(
        robot=robot.spec.name,
        joint_names=robot.spec.joint_names,
        kind="torque",
        signals=cfg.signals,
        taps=cfg.taps,
        dt_s=dt_s,
        groups=groups_of(robot) if cfg.shared else tuple((j,) for j in range(robot.spec.njoint)),
        activation=cfg.activation,
        **simulator_of(settings_of(base, without=("delay", "kp", "kd"))),  # type: ignore[arg-type]
    )


def _solved(blank: ActuatorNet, samples: Samples) -> ActuatorNet:
    """The linear filter of least squares, on all but the held-out rows."""
    layers = []
    inputs, torque = samples.inputs[~samples.held], samples.torque[~samples.held] / blank.scale
    for k, group in enumerate(blank.spec.groups):
        flat = blank.group_inputs(k, inputs).reshape(-1, blank.spec.ninput).astype(np.float64)
        flat, y = np.pad(flat, ((0, 0), (0, 1)), constant_values=1.0), torque[:, list(group)].reshape(-1)
        gram = flat.T @ flat
        found = np.linalg.solve(gram + _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram)), flat.T @ y)
        layers.append(((found[None, :-1].astype(np.float32), found[-1:].astype(np.float32)),))
    return replace(blank, layers=tuple(layers))


def _learned(blank: ActuatorNet, samples: Samples, cfg: SupervisedCfg, progress: Progress | None) -> ActuatorNet:
    """The net with the lowest held-out error, trained by Adam."""
    learner, rng = NetLearner(blank, cfg.seed, last_gain=1.0), np.random.default_rng(cfg.seed)
    data = learner.regressions(samples.inputs, samples.torque)
    train, held = np.flatnonzero(~samples.held), torch.from_numpy(np.flatnonzero(samples.held))
    best, least, waited = learner.copy(), np.inf, 0
    for done in range(cfg.passes):
        for rows in np.array_split(rng.permutation(train), max(1, len(train) // cfg.batch)):
            learner.regress(data, torch.from_numpy(rows), cfg.rate * falling(done / cfg.passes))
        miss = learner.miss(data, held)
        waited = 0 if miss < least else waited + 1
        if miss < least:
            best, least = learner.copy(), miss
        if progress is not None:
            progress((done + 1) / cfg.passes)
        if waited >= _PATIENCE:
            break
    return learner.actuator(best)
