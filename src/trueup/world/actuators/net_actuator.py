"""NetActuator: a learned servo inside the batch, between physics steps, at the batch's speed.

The net has a servo's inputs: the command after its delay, the encoder with its bias. Its torque is fed forward to
the engine, whose torque limit (and with `dcmotor` torque-speed envelope) acts after it. A net that is the whole servo
(kind "torque") silences the engine's own by zero gains. A residual net sees no more than the range that it was fitted
on: outside, what it adds stays what it was at the edge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.core.machine import usable_cores
from trueup.models.actuator_net import ActuatorNet, Float32, Setting
from trueup.models.net_forward import NetForward
from trueup.world.actuators.substep import GearFriction, SubstepModel, SubstepState
from trueup.world.fitted.fit_parameter import ParamWriter

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim, SimCfg

_MOST_STRETCH = 0.2  # of dt_s that the physics step may force on the net
_GUARD_SHARE = 0.01  # of inputs outside before it is worth a word


class NetHistory(NamedTuple):
    """The past of a replay as a learned servo saw it: measured and commanded at `rate_hz`, (T, njoint) each.

    target_vel  None: always zero
    start       (nsim,) row at which each simulation begins
    first       (nsim,) row before which nothing is known: everything was as in it
    """

    rate_hz: float
    position: FloatArray
    velocity: FloatArray
    target: FloatArray
    target_vel: FloatArray | None
    start: Ids
    first: Ids


class Guard(NamedTuple):
    """Share (nsignal, njoint) of the net's inputs that lay outside the range of its training data."""

    joint_names: tuple[str, ...]
    signals: tuple[str, ...]
    share: FloatArray

    @property
    def worst(self) -> float:
        return float(self.share.max())

    def __str__(self) -> str:
        signal, joint = np.unravel_index(int(self.share.argmax()), self.share.shape)
        return (
            f"{100 * self.worst:.1f} % of {self.signals[int(signal)]!r} of {self.joint_names[int(joint)]} lay outside "
            f"the range that the actuator net was fitted on ({100 * self.share.mean():.1f} % of all its inputs): "
            "record motions that reach there, or expect it to be wrong there"
        )

    @property
    def warning(self) -> str | None:
        """A warning for the user; empty if few inputs are out of range."""
        return str(self) if self.worst > _GUARD_SHARE else None


class NetActuator(SubstepModel):
    """A SubstepModel that runs an ActuatorNet; `prepare` sets the parameters that it was fitted with."""

    clips: bool | None = None  # signals at the fitted range; None: those of residual nets

    def __init__(self, net: ActuatorNet) -> None:
        self.net = net
        friction = net.spec.friction
        self.gear_friction = None if friction in (None, "M1") else GearFriction(friction)

    def start(self, sim: BatchSim) -> None:
        """Make the buffers; called once by the batch."""
        net, spec = self.net, self.net.spec
        if spec.joint_names != sim.robot.spec.joint_names:
            raise TrueupError(f"this actuator net is of {spec.robot!r} with other joints than {sim.robot.spec.name!r}")
        if spec.kind == "torque":  # it has learned the command delay
            sim.params.set("delay", 0.0)
        self.every = max(1, round(spec.dt_s / sim.physics_dt))
        if abs(self.every * sim.physics_dt / spec.dt_s - 1.0) > _MOST_STRETCH:
            raise TrueupError(
                f"this actuator net speaks every {1e3 * spec.dt_s:g} ms, but a physics step takes "
                f"{1e3 * sim.physics_dt:g} ms: choose a physics rate of {1 / spec.dt_s:g} Hz or a multiple of it"
            )
        if self.gear_friction is not None:
            self.gear_friction.start(sim)
        elif sim.substeps % self.every == 0:
            self.holds = self.every
        shape = (sim.nsim, spec.njoint)
        self.forward = NetForward(net, sim.nsim, sim.cfg.threads or usable_cores())
        self._signals: Float32 = np.empty((len(spec.signals), *shape), np.float32)
        group = np.empty(spec.njoint, np.intp)
        for k, joints in enumerate(spec.groups):
            group[list(joints)] = k
        self._low, self._high = net.low[group].T[:, None, :], net.high[group].T[:, None, :]
        self._clips = spec.kind == "residual" if self.clips is None else self.clips
        self._torque = np.zeros(shape)
        self._gains = np.stack([sim.params.get(name) for name in ("kp", "kd")])
        self._needs_gains = spec.kind == "torque" or "servo_torque" in spec.signals
        self._clock = np.zeros(1, np.int64)
        self._outside = np.zeros((len(spec.signals), spec.njoint), np.int64)
        self._seen = np.zeros(1, np.int64)

    def prepare(self, sim: BatchSim) -> None:
        """Set the simulator's parameters as they were when the net was fitted; factors multiply what is set now."""
        put_settings(sim, self.net.spec.settings)

    def reset(self, sim: BatchSim, ids: Ids | None) -> None:
        """Fill the history of simulations `ids` with their present state."""
        if self.gear_friction is not None:
            self.gear_friction.reset(sim, ids)
        rows: Ids | slice = slice(None) if ids is None else ids
        self._take_gains(sim, rows)
        position = sim.joint_pos + sim.encoder_bias
        self._read(position, sim.joint_vel, position, sim.ctrl[:, 1::3])
        self._clip()
        for age in range(self.net.spec.depth):
            self.forward.write(age, self._signals[:, rows], rows)
        self._torque[rows] = 0.0
        if ids is None:
            self._clock[0] = 0

    def prime(
        self,
        sim: BatchSim,
        target: FloatArray,
        position: FloatArray,
        velocity: FloatArray,
        target_vel: FloatArray | None = None,
    ) -> None:
        """Fill the history, newest last, with earlier servo signals, each (nsim, steps of dt_s, njoint)."""
        for age in range(min(self.net.spec.depth, target.shape[1])):
            at = -1 - age
            wanted = sim.ctrl[:, 1::3] if target_vel is None else target_vel[:, at]
            self._read(position[:, at], velocity[:, at], target[:, at], wanted)
            self._clip()
            self.forward.write(age, self._signals)

    def prime_from(self, sim: BatchSim, past: NetHistory) -> None:
        """Fill the history with what came before, at the net's own steps."""
        rate, first = past.rate_hz, past.first
        ages = self.every * sim.physics_dt * np.arange(self.net.spec.depth, 0, -1)
        rows = past.start[:, None] - ages * rate  # (nsim, depth), fractions of a row
        # a command that is on its way for the delay arrives in the middle of a physics step on average
        sent = rows[:, :, None] + (0.5 * sim.physics_dt - sim.delay[:, None, :]) * rate
        at = np.maximum(np.floor(sent + 1e-9).astype(np.intp), first[:, None, None]), np.arange(self.net.spec.njoint)
        rows = np.maximum(rows, first[:, None])
        position, velocity = _between(past.position, rows), _between(past.velocity, rows)
        target_vel = None if past.target_vel is None else past.target_vel[at]
        self.prime(sim, past.target[at], position, velocity, target_vel)

    def step(self, sim: BatchSim, state: SubstepState) -> FloatArray:
        """The net's torque, held between its evaluations."""
        if self.gear_friction is not None:
            self.gear_friction.step(sim, state)
        if self._clock[0] % self.every == 0:
            self._read(state.joint_pos, state.joint_vel, state.target_pos, sim.ctrl[:, 1::3])
            self._clip(count=True)
            self.forward.push(self._signals)
            self.forward.torque(self._torque)
        self._clock += self.holds
        return self._torque

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """What a checkpoint needs, live: write into these arrays to restore."""
        return {
            "ring": self.forward.ring,
            "newest": self.forward.newest,
            "torque": self._torque,
            "gains": self._gains,
            "clock": self._clock,
            "outside": self._outside,
            "seen": self._seen,
        }

    def restored(self, sim: BatchSim) -> None:
        """A checkpoint was written into `memory`: parameters may have been set anew."""
        self._take_gains(sim, slice(None))

    @property
    def guard(self) -> Guard:
        """Share of inputs outside the fitted range, since the batch was made."""
        share = self._outside / max(1, int(self._seen[0]))
        return Guard(self.net.spec.joint_names, self.net.spec.signals, share)

    # --- inside a step ---
    def _read(self, position: FloatArray, velocity: FloatArray, target: FloatArray, target_vel: FloatArray) -> None:
        for out, name in zip(self._signals, self.net.spec.signals, strict=True):
            if name == "pos_error":
                np.subtract(target, position, out=out, casting="same_kind")
            elif name == "vel":
                out[:] = velocity
            elif name == "vel_error":
                np.subtract(target_vel, velocity, out=out, casting="same_kind")
            elif name == "command":
                out[:] = target
            else:
                kp, kd = self._gains
                out[:] = kp * (target - position) + kd * (target_vel - velocity)

    def _take_gains(self, sim: BatchSim, rows: Ids | slice) -> None:
        """Remember the gains that were set; a net that is the whole servo then silences the engine's."""
        silent = self.net.spec.kind == "torque"
        if not self._needs_gains:
            return
        for known, name in zip(self._gains, ("kp", "kd"), strict=True):
            now = sim.params.get(name)
            known[rows] = np.where(silent & (now[rows] == 0.0), known[rows], now[rows])
            if silent:
                now[rows] = 0.0
                sim.params.set(name, now)

    def _clip(self, *, count: bool = False) -> None:
        """Clip the net's inputs to the range of its training data; `count` those outside."""
        if count:
            outside = (self._signals < self._low) | (self._signals > self._high)
            self._outside += np.count_nonzero(outside, axis=1)
            self._seen += self._signals.shape[1]
        if self._clips:
            np.clip(self._signals, self._low, self._high, out=self._signals)


def _between(values: FloatArray, rows: FloatArray) -> FloatArray:
    """Values (T, n) at fractional rows (nsim, k), linear in between."""
    low = np.minimum(np.floor(rows).astype(np.intp), max(0, len(values) - 2))
    share = (rows - low)[..., None]
    out: FloatArray = (1 - share) * values[low] + share * values[np.minimum(low + 1, len(values) - 1)]
    return out


def put_settings(sim: BatchSim, settings: Sequence[Setting]) -> None:
    """Set parameters of a batch; factors multiply what is set now."""
    writer = ParamWriter(sim, settings)
    values = np.array([setting.value for setting in settings])
    writer.write(np.broadcast_to(values, (sim.nsim, len(settings))), writer.base())


def with_net(cfg: SimCfg, net: ActuatorNet) -> SimCfg:
    """The simulation config of a net's fit: a motor's envelope, servo inputs."""
    kind = "dcmotor" if net.spec.motor else "pd" if net.spec.kind == "torque" else cfg.actuator.kind
    return replace(cfg, actuator=replace(cfg.actuator, kind=kind, inputs="servo"))
