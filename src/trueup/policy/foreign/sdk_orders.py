"""Motor orders of vendors' SDKs, for layouts that number joints instead of naming them."""

from __future__ import annotations


def _legs(*legs: str) -> tuple[str, ...]:
    return tuple(f"{leg}_{part}_joint" for leg in legs for part in ("hip", "thigh", "calf"))


def _sides(*parts: str) -> tuple[str, ...]:
    return tuple(f"{side}_{part}_joint" for side in ("left", "right") for part in parts)


_LEG = ("hip_pitch", "hip_roll", "hip_yaw", "knee", "ankle_pitch", "ankle_roll")
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw")
_WAIST = ("waist_yaw_joint", "waist_roll_joint", "waist_pitch_joint")
SDK_ORDERS: dict[str, tuple[str, ...]] = {
    "Unitree quadrupeds (A1, Go2, B2)": _legs("FR", "FL", "RR", "RL"),
    "Unitree G1 with 29 joints": (*_sides(*_LEG), *_WAIST, *_sides(*_ARM)),
}


def sdk_order(joint_names: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """The SDK that has exactly these joints, and its order of them; None: none that is known."""
    for name, order in SDK_ORDERS.items():
        if sorted(order) == sorted(joint_names):
            return name, order
    return None
