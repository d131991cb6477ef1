"""A batch started in recorded states that plays the recorded commands: the one place that does so.

Replays, scores, the residuals of a fit and the training of learned actuators all call `play` (or `begin`, and step
themselves), so that a model has the same motion everywhere. The order is

    set_gains(sim, recorded); set the model's parameters; out = play(sim, recorded); joint_seen(sim, out["qpos"])

Factors on gains (a fitted kp) multiply the gains that `set_gains` has set. Gains that change while a log runs are
followed: stretches of constant gains are played one after the other in the same simulation, with the same factors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.robot.model import MOUNT_JOINTS
from trueup.world.actuators.net_actuator import NetActuator, NetHistory
from trueup.world.batch import BatchSim

_MOST_SAG = 0.3  # rad or m of a stand under the robot's weight: more is no stand


@dataclass(frozen=True, kw_only=True)
class RecordedStretch:
    """One recorded stretch per simulation.

    pos, vel    (nsim, njoint) state at the start, position as the encoder reports it
    past        (nsim, P, njoint) commands before the start, oldest first
    target      (nsim, L, njoint); target_vel and torque likewise, None: zero
    kp, kd      gains in force, (nsim, njoint), or (nsim, L, njoint) where they may change; None: the spec's
    base_pos, base_vel  (nsim, 7 | 6) of a floating base; None: where the robot's model has it, at rest
    history     inputs of learned servos before the start; None: at rest
    """

    pos: FloatArray
    vel: FloatArray
    past: FloatArray
    target: FloatArray
    target_vel: FloatArray | None = None
    torque: FloatArray | None = None
    kp: FloatArray | None = None
    kd: FloatArray | None = None
    base_pos: FloatArray | None = None
    base_vel: FloatArray | None = None
    history: NetHistory | None = None

    def tiled(self, count: int) -> RecordedStretch:
        """All stretches `count` times, one copy after the other (without the history of learned servos)."""
        if count == 1:
            return self
        arrays = {field_.name: getattr(self, field_.name) for field_ in fields(self) if field_.name != "history"}
        more = {name: np.concatenate([values] * count) for name, values in arrays.items() if values is not None}
        return replace(self, history=None, **more)

    @property
    def gains(self) -> dict[str, FloatArray]:
        """kp and kd where they are given, (nsim, 1 or L, njoint)."""
        both = {"kp": self.kp, "kd": self.kd}
        return {name: gain if gain.ndim == 3 else gain[:, None] for name, gain in both.items() if gain is not None}

    @property
    def changes(self) -> list[int]:
        """Steps at which a gain of some stretch changes."""
        changed = [(gain[:, 1:] != gain[:, :-1]).any(axis=(0, 2)) for gain in self.gains.values()]
        return sorted({int(step) + 1 for array in changed for step in np.flatnonzero(array)})


def set_gains(sim: BatchSim, recorded: RecordedStretch) -> None:
    """Set the gains that parameters of the model refer to: those at the start, the spec's where the servo was off."""
    for name, gain in recorded.gains.items():
        sim.params.set(name, _reference(sim, name, gain))


def begin(sim: BatchSim, recorded: RecordedStretch) -> None:
    """Reset into the recorded states, with the preceding commands in the delay line."""
    qpos = np.broadcast_to(sim.default_qpos, (sim.nsim, sim.model.nq)).copy()
    qvel = np.zeros((sim.nsim, sim.model.nv))
    qpos[:, sim.index.qpos] = recorded.pos - sim.encoder_bias
    qvel[:, sim.index.dof] = recorded.vel
    if sim.free_base and recorded.base_pos is not None and recorded.base_vel is not None:
        qpos[:, sim.base_qpos : sim.base_qpos + 7] = recorded.base_pos
        qvel[:, sim.base_dof : sim.base_dof + 6] = recorded.base_vel
    start_at(sim, qpos, qvel)
    sim.prime_delay(recorded.past)
    for stage in sim.target_stages:
        stage.prime(recorded.past)
    if isinstance(sim.substep_model, NetActuator) and recorded.history is not None:
        sim.substep_model.prime_from(sim, recorded.history)


def start_at(sim: BatchSim, qpos: FloatArray, qvel: FloatArray) -> None:
    """Reset into states (nsim, nq) and (nsim, nv); a stand begins where its springs carry the robot's weight."""
    force = sim.batch.bind("qfrc_bias")  # before the reset that computes it
    sim.reset(qpos=qpos, qvel=qvel)
    if sim.cfg.model.base == "mount":
        ids = np.array([sim.model.joint(name).id for name in MOUNT_JOINTS])
        sag = -force[:, sim.model.jnt_dofadr[ids]] / sim.batch.expand("jnt_stiffness")[:, ids]
        qpos = qpos.copy()
        qpos[:, sim.model.jnt_qposadr[ids]] = np.clip(sag, -_MOST_SAG, _MOST_SAG)
        sim.reset(qpos=qpos, qvel=qvel)


def play(sim: BatchSim, recorded: RecordedStretch, record: Sequence[str] = ("qpos", "qvel")) -> dict[str, FloatArray]:
    """Start and play; returns each recorded field after every command, (nsim, L, ...)."""
    follow = FollowedGains(sim, recorded)
    begin(sim, recorded)
    edges = [0, *recorded.changes, recorded.target.shape[1]]
    parts = []
    for a, b in pairwise(edges):
        follow.at(a)
        more = {"target_vel": recorded.target_vel, "torque": recorded.torque}
        rest = {name: values[:, a:b] for name, values in more.items() if values is not None}
        parts.append(sim.rollout(recorded.target[:, a:b], record=record, **rest))
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts], axis=1) for name in record}


def joint_seen(sim: BatchSim, qpos: FloatArray) -> FloatArray:
    """Joint positions (nsim, L, njoint) as the encoders would report them, from qpos (nsim, L, nq)."""
    return qpos[:, :, sim.index.qpos] + sim.encoder_bias[:, None, :]


class FollowedGains:
    """Gains that change while a log is played, with the model's factors on them.

    Made when the model's parameters are set and before `begin`. Gains that stay as `set_gains` left them are not
    touched, to the last digit.
    """

    def __init__(self, sim: BatchSim, recorded: RecordedStretch) -> None:
        self._sim, self._gains, self._factor = sim, {}, {}
        for name, gain in recorded.gains.items():
            reference = _reference(sim, name, gain)
            if (gain != reference[:, None]).any():
                self._gains[name] = gain
                safe = np.where(reference > 0.0, reference, 1.0)
                self._factor[name] = np.where(reference > 0.0, sim.params.get(name) / safe, 1.0)

    def at(self, step: int) -> None:
        """Set the gains of one step of the stretches."""
        for name, gain in self._gains.items():
            self._sim.params.set(name, self._factor[name] * gain[:, min(step, gain.shape[1] - 1)])
        if self._gains and self._sim.substep_model is not None:
            self._sim.substep_model.restored(self._sim)


def _reference(sim: BatchSim, name: str, gain: FloatArray) -> FloatArray:
    return np.where(gain[:, 0] > 0.0, gain[:, 0], sim.robot.spec.kp if name == "kp" else sim.robot.spec.kd)
