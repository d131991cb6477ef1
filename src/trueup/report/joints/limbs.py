"""Joints by limb, from their names: FL_hip_joint, left_knee_joint, L_ankle, joint3, shoulder_pan."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIDES = {"left": "left", "l": "left", "right": "right", "r": "right"}
_ARM = ("shoulder", "elbow", "wrist", "arm", "hand", "gripper", "finger", "thumb")
_LEG = ("hip", "thigh", "knee", "calf", "ankle", "leg", "foot", "toe", "shank", "haa", "hfe", "kfe")
_CORNERS = ("fl", "fr", "rl", "rr", "lf", "rf", "lh", "rh", "hl", "hr", "bl", "br", "lb", "rb", "ml", "mr")


def limb_of(joint: str) -> str:
    """Name of the limb that a joint belongs to; "" where its name does not tell."""
    words = [word for word in re.split(r"[^a-z0-9]+|(?<=[a-z])(?=[0-9])", joint.lower()) if word]
    for word in words:
        if word in _CORNERS:
            return f"{word.upper()} leg"
    side = next((_SIDES[word] for word in words if word in _SIDES), "")
    for limb, parts in (("arm", _ARM), ("leg", _LEG)):
        if side and any(word in parts for word in words):
            return f"{side} {limb}"
    return "waist" if any(word in ("waist", "torso", "head", "neck") for word in words) else ""


def limbs(joints: Sequence[str]) -> dict[str, list[int]]:
    """Joints (their numbers) of each limb, in the order of the robot; one group where names tell no limbs."""
    found: dict[str, list[int]] = {}
    for k, joint in enumerate(joints):
        found.setdefault(limb_of(joint), []).append(k)
    if set(found) == {""}:
        return {"all joints": found[""]}
    return {name or "other joints": members for name, members in found.items()}
