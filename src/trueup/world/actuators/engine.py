"""Actuators of the engine: MuJoCo's models of the servo, and addresses of their numbers.

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
import numpy as np

from trueup.robot.load import Robot

# Input signatures of `pid` and `dcmotor` (mjtCtrlSpec bits: pos 1, vel 2, ff 4).
_SPEC_POS, _SPEC_SERVO = 1, 7
# Columns of actuator_biasprm for `pid`, of actuator_gainprm for `dcmotor`, as the compiler lays them out.
PID_KP, PID_KD = 1, 2
DC_R, DC_K, DC_KP, DC_KD, DC_VMAX = 0, 1, 4, 6, 7
SUPPLY_V = 24.0  # only the ratios R/V and K/V enter the torque, so any supply voltage does


@dataclass(frozen=True, kw_only=True)
class ActuatorCfg:
    """Which engine actuator drives each joint.

    kind    "pd" or "dcmotor" (adds the torque-speed envelope); None: "dcmotor" for robots whose spec has an envelope
    inputs  "pos": position targets only; "servo": position, velocity and feed-forward torque
    """

    kind: Literal["pd", "dcmotor"] | None = None
    inputs: Literal["pos", "servo"] = "pos"

    def for_robot(self, robot: Robot) -> ActuatorCfg:
        """The config with its kind resolved for a robot."""
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
                nominal=[SUPPLY_V, joint.stall_torque, joint.velocity],
                saturation=[joint.torque, 0.0, 0.0],
                controller=[joint.kp, 0.0, joint.kd, 0.0, 0.0, SUPPLY_V],
                ctrlspec=signature,
            )
        actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
        actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE
