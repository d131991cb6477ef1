"""Motor numbers of a Unitree robot's joints, and its family of messages."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.core.arrays import Ids
from trueup.core.errors import TrueupError
from trueup.hardware.drivers.unitree import idl_go, idl_hg
from trueup.hardware.drivers.unitree.layout import Struct
from trueup.policy.foreign.sdk_orders import SDK_ORDERS
from trueup.robot.spec import RobotSpec


@dataclass(frozen=True, kw_only=True)
class Family:
    """Robots that share messages.

    sport_mode  the motion service that runs when the robot is switched on
    legs_fold   the service has a command to lie down (StandDown)
    """

    name: str
    motors: int
    low_cmd: Struct
    low_state: Struct
    bms_state: Struct | None
    sport_mode: str
    legs_fold: bool


GO = Family(
    name="unitree_go",
    motors=idl_go.MOTORS,
    low_cmd=idl_go.LOW_CMD,
    low_state=idl_go.LOW_STATE,
    bms_state=None,
    sport_mode="normal",
    legs_fold=True,
)
HG = Family(
    name="unitree_hg",
    motors=idl_hg.MOTORS,
    low_cmd=idl_hg.LOW_CMD,
    low_state=idl_hg.LOW_STATE,
    bms_state=idl_hg.BMS_STATE,
    sport_mode="ai",
    legs_fold=False,
)
_FAMILIES = {"Unitree quadrupeds (A1, Go2, B2)": GO, "Unitree G1 with 29 joints": HG}


@dataclass(frozen=True, kw_only=True)
class MotorWiring:
    """A robot's joints on the motors of its family: joint j of the spec is motor `motor[j]`. Signs and zeros agree."""

    family: Family
    motor: Ids
    spec: RobotSpec


def wiring_of(spec: RobotSpec) -> MotorWiring:
    """Find the family that has all of these joints, by name; a robot with fewer (g1 with 23) leaves motors unused."""
    for sdk, family in _FAMILIES.items():
        order = SDK_ORDERS[sdk]
        if set(spec.joint_names) <= set(order):
            _check_imu(spec, family)
            motor = np.array([order.index(name) for name in spec.joint_names], np.intp)
            return MotorWiring(family=family, motor=motor, spec=spec)
    unknown = min((_unknown(spec, SDK_ORDERS[sdk]) for sdk in _FAMILIES), key=len)
    raise TrueupError(
        f"{spec.name} is no Unitree robot that this driver knows: no motor is called {', '.join(unknown[:4])}; "
        f"known are {'; '.join(_FAMILIES)}"
    )


def _unknown(spec: RobotSpec, order: tuple[str, ...]) -> list[str]:
    return [name for name in spec.joint_names if name not in order]


def _check_imu(spec: RobotSpec, family: Family) -> None:
    """A humanoid has two IMUs; LowState carries that of the pelvis."""
    if family is HG and spec.imu is not None and "torso" in spec.imu:
        raise TrueupError(
            f"the imu of {spec.name} is the site {spec.imu!r}; rt/lowstate carries the IMU of the pelvis: "
            "name that site in spec.toml",
            place="imu",
        )
