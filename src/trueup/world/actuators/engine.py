"""Actuators of the engine: which of MuJoCo's own express the servo, and where their numbers live.

- `pd`: MuJoCo `pid`, tau = kp (q* - q) + kd (dq* - dq) + tau_ff, clipped to the torque limit.
- `dcmotor`: the same servo behind a motor with a supply voltage: the torque also stays under the line from
  `stall_torque` at rest to zero at `no_load_speed`. With the torque limit this is a trapezoid: full torque up to the
  spec's knee speed, then less and less.

Delay and encoder bias act on the command before it reaches the engine (`models.delay`), so they may be any real number
and differ per joint and per simulation while the whole control step still runs in C.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import mujoco
import mujoco.batch
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot

FloatArray = NDArray[np.float64]

# Input signatures of `pid` and `dcmotor` (mjtCtrlSpec bits: pos 1, vel 2, ff 4).
_SPEC_POS, _SPEC_SERVO = 1, 7
# Columns of actuator_biasprm for `pid`, of actuator_gainprm for `dcmotor`, as the compiler lays them out.
_PID_KP, _PID_KD = 1, 2
_DC_R, _DC_K, _DC_KP, _DC_KD, _DC_VMAX = 0, 1, 4, 6, 7
_SUPPLY_V = 24.0  # only the ratios R/V and K/V enter the torque, so any supply voltage does


@dataclass(frozen=True, kw_only=True)
class ActuatorCfg:
    """Which engine actuator drives each joint.

    kind    "pd" or "dcmotor" (adds the torque-speed envelope); None: "dcmotor" for robots whose spec has an envelope
    inputs  "pos": position targets only; "servo": position, velocity and feed-forward torque
    """

    kind: Literal["pd", "dcmotor"] | None = None
    inputs: Literal["pos", "servo"] = "pos"

    def for_robot(self, robot: Robot) -> ActuatorCfg:
        """The same with the kind decided."""
        kind = self.kind or ("dcmotor" if robot.spec.has_envelope else "pd")
        return replace(self, kind=kind)

    @property
    def ninput(self) -> int:
        return 1 if self.inputs == "pos" else 3


def add_actuators(spec: mujoco.MjSpec, robot: Robot, cfg: ActuatorCfg) -> None:
    """Give every joint of the robot its servo, in spec order, with the spec's gains and limits."""
    signature, cfg = _SPEC_POS if cfg.inputs == "pos" else _SPEC_SERVO, cfg.for_robot(robot)
    for joint in robot.spec.joints:
        actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        if cfg.kind == "pd":
            actuator.set_to_pid(kp=joint.kp, kv=joint.kd, ctrlspec=signature)
            actuator.forcerange = np.array([-joint.torque, joint.torque])
        else:
            actuator.set_to_dcmotor(
                motorconst=[0.0, 0.0],
                resistance=0.0,
                nominal=[_SUPPLY_V, joint.stall_torque, joint.velocity],
                saturation=[joint.torque, 0.0, 0.0],
                controller=[joint.kp, 0.0, joint.kd, 0.0, 0.0, _SUPPLY_V],
                ctrlspec=signature,
            )
        actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
        actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE


class GainTable:
    """Per-simulation servo numbers, written straight into the expanded fields of a batch."""

    def __init__(self, batch: mujoco.batch.Batch, robot: Robot, cfg: ActuatorCfg) -> None:
        self._kind = cfg.kind
        self._bias = batch.expand("actuator_biasprm") if cfg.kind == "pd" else None
        self._gain = batch.expand("actuator_gainprm") if cfg.kind == "dcmotor" else None
        self._range = batch.expand("actuator_forcerange")
        if cfg.kind == "dcmotor":
            shape = (batch.nsim, robot.spec.njoint)
            self._stall = np.broadcast_to(robot.spec.stall_torque, shape).copy()
            self._speed = np.broadcast_to(robot.spec.velocity_limit, shape).copy()

    def get(self, name: str) -> FloatArray:
        """Return (nsim, njoint) values of kp, kd, torque_limit, stall_torque or no_load_speed."""
        if name == "torque_limit":
            return self._range[:, :, 1].copy()
        if name in ("stall_torque", "no_load_speed"):
            self._need_motor(name)
            return (self._stall if name == "stall_torque" else self._speed).copy()
        gains, sign = self.field(name)
        return sign * gains

    def field(self, name: str) -> tuple[FloatArray, float]:
        """The engine's live (nsim, njoint) numbers of kp or kd, and the sign with which it keeps them."""
        if self._bias is not None:
            return self._bias[:, :, _PID_KP if name == "kp" else _PID_KD], -1.0
        assert self._gain is not None
        return self._gain[:, :, _DC_KP if name == "kp" else _DC_KD], 1.0

    def set(self, name: str, values: FloatArray) -> None:
        """Write (nsim, njoint) values."""
        if name == "torque_limit":
            self._range[:, :, 0], self._range[:, :, 1] = -values, values
        elif name in ("stall_torque", "no_load_speed"):
            self._need_motor(name)
            (self._stall if name == "stall_torque" else self._speed)[:] = values
            self._write_motor()
        else:
            gains, sign = self.field(name)
            gains[:] = sign * values

    def _need_motor(self, name: str) -> None:
        if self._kind != "dcmotor":
            raise TrueupError(
                f'parameter {name!r} needs ActuatorCfg(kind="dcmotor"); this simulation uses {self._kind!r}'
            )

    def _write_motor(self) -> None:
        assert self._gain is not None
        constant = _SUPPLY_V / self._speed
        self._gain[:, :, _DC_K] = constant
        self._gain[:, :, _DC_R] = constant * _SUPPLY_V / self._stall
