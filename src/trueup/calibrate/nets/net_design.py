"""Design of a net before training: joints that share weights, its simulator, a net of zeros."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.models.actuator_net import ActuatorNet, NetSpec, Setting
from trueup.robot.load import Robot
from trueup.world.fitted.calibration import Calibration
from trueup.world.fitted.fit_parameter import belongs_to_stand
from trueup.world.parameters.able_to_set import NEEDS_MOTOR, friction_model

_FLOOR = 1e-6  # of a normalisation: a signal that never moves


def groups_of(robot: Robot) -> tuple[tuple[int, ...], ...]:
    """Joints that share weights: those with equal motors (torque and velocity limits)."""
    groups: dict[tuple[float, float], list[int]] = {}
    for j, joint in enumerate(robot.spec.joints):
        groups.setdefault((joint.torque, joint.velocity), []).append(j)
    return tuple(tuple(group) for group in groups.values())


def settings_of(base: Calibration | None, *, without: Sequence[str] = ()) -> tuple[Setting, ...]:
    """The parameters of a calibration as an actuator net carries them, without those of the stand."""
    return tuple(setting for setting in _settings(base, of_stand=False) if setting.name not in without)


def stand_of(base: Calibration | None) -> tuple[Setting, ...]:
    """Parameters of the stand that held the robot: needed to replay its logs, no part of an actuator."""
    return _settings(base, of_stand=True)


def _settings(base: Calibration | None, *, of_stand: bool) -> tuple[Setting, ...]:
    if base is None:
        return ()
    return tuple(
        Setting(
            name=entry.parameter.name,
            of=entry.parameter.of,
            value=entry.value,
            mode=entry.parameter.mode,
            axis=entry.parameter.axis,
        )
        for entry in base.estimates
        if belongs_to_stand(entry.parameter, base.parameters) == of_stand
    )


def simulator_of(settings: Sequence[Setting]) -> dict[str, object]:
    """Fields of a NetSpec about the simulator that these settings need."""
    names = [setting.name for setting in settings]
    return {"settings": tuple(settings), "friction": friction_model(names), "motor": bool(NEEDS_MOTOR & set(names))}


def blank_net(
    spec: NetSpec, hidden: Sequence[int], context: int, *, scale: FloatArray, signals: FloatArray | None = None
) -> ActuatorNet:
    """A net of zeros; normalised for signals (rows, njoint, nsignal), which are also its fitted range."""
    sizes = (spec.ninput + context, *hidden, 1)
    layers = tuple(
        tuple((np.zeros((m, n), np.float32), np.zeros(m, np.float32)) for n, m in pairwise(sizes)) for _ in spec.groups
    )
    shape = (len(spec.groups), len(spec.signals))
    mean, std, low, high = np.zeros(shape), np.ones(shape), np.zeros(shape), np.zeros(shape)
    if signals is not None:
        by_group = [signals[:, list(group)].reshape(-1, shape[1]) for group in spec.groups]
        mean, std = np.array([m.mean(axis=0) for m in by_group]), np.array([m.std(axis=0) for m in by_group])
        low, high = np.array([m.min(axis=0) for m in by_group]), np.array([m.max(axis=0) for m in by_group])
    return ActuatorNet(
        spec=spec,
        layers=layers,
        mean=mean.astype(np.float32),
        std=np.maximum(std, _FLOOR).astype(np.float32),
        scale=np.asarray(scale, np.float32),
        context=np.zeros((spec.njoint, context), np.float32),
        low=low.astype(np.float32),
        high=high.astype(np.float32),
    )
