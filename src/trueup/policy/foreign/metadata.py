"""Layout from the metadata that mjlab, Isaac Lab and BeyondMimic write into their ONNX files.

Lists are text with commas. Joint gains, pose and action scale are in the order of `joint_names`; joint positions are
relative to the default pose, histories are stored term by term, oldest first. Rates are rarely given, scales and
histories of the terms only in newer files: missing fields stay unset.
"""

from __future__ import annotations

import math
import re

from trueup.core.errors import did_you_mean
from trueup.policy.foreign.toml_layout import ActionFile, LayoutFile, TermFile

_SIGNALS: dict[str, str] = {
    "base_ang_vel": "gyro",
    "projected_gravity": "gravity",
    "velocity_commands": "command",
    "command": "command",
    "joint_pos": "joint_pos",
    "joint_pos_rel": "joint_pos",
    "joint_vel": "joint_vel",
    "joint_vel_rel": "joint_vel",
    "actions": "action",
    "last_action": "action",
}
_NOT_MEASURED = {"base_lin_vel": "the speed of the base", "height_scan": "a map of heights"}
_VELOCITY = ("twist", "base_velocity", "velocity")
_ALWAYS = ("joint_names", "joint_stiffness", "joint_damping", "default_joint_pos", "action_scale", "observation_names")
NOTES = (
    "targets: default_joint_pos + action_scale x action, actions not clipped, as JointPositionAction does",
    "numbers in ONNX metadata are often rounded to three decimals",
    "gyro and gravity are taken in the IMU frame; in training they were in the base frame",
)


def has_layout(metadata: dict[str, str]) -> bool:
    """Whether a file's metadata name its joints."""
    return "joint_names" in metadata


def read(metadata: dict[str, str]) -> LayoutFile:
    """The part of a layout given by the metadata; a ValueError names the key that is not understood."""
    missing = [key for key in _ALWAYS if key not in metadata]
    if missing:
        raise ValueError(f"metadata: {', '.join(missing)} is missing")
    joints = _names(metadata["joint_names"])
    numbers = {key: _numbers(metadata, key) for key in ("joint_stiffness", "joint_damping", "default_joint_pos")}
    for key, values in numbers.items():
        if len(values) != len(joints):
            raise ValueError(f"metadata: {key} has {len(values)} numbers for {len(joints)} joints")
    scale, offset = _numbers(metadata, "action_scale"), None
    if "action_offset" in metadata:
        found = _numbers(metadata, "action_offset")
        offset = found * len(joints) if len(found) == 1 else found
    moved = _names(metadata.get("action_names", metadata["joint_names"]))
    if moved != joints:
        raise ValueError(
            "metadata: action_names are other joints than joint_names, or in another order: not understood"
        )
    torque = _numbers(metadata, "joint_torque_limits") if "joint_torque_limits" in metadata else None
    return LayoutFile(
        name=metadata.get("run_path", "policy").rpartition("/")[2] or "policy",
        control_hz=_rate(metadata),
        joint_names=joints,
        default_pose=numbers["default_joint_pos"],
        kp=numbers["joint_stiffness"],
        kd=numbers["joint_damping"],
        torque=torque,
        action=ActionFile(scale=scale[0] if len(scale) == 1 else scale, offset=offset),
        observation=_terms(metadata),
    )


def _terms(metadata: dict[str, str]) -> tuple[TermFile, ...] | None:
    """Observations; None where the file has no scales and histories."""
    names = _names(metadata["observation_names"])
    for name in names:
        if name in _NOT_MEASURED:
            raise ValueError(f"observes {name!r} ({_NOT_MEASURED[name]}), which a robot does not measure by itself")
        if name not in _SIGNALS:
            raise ValueError(f"metadata: observation {name!r} is not understood{did_you_mean(name, _SIGNALS)}")
        commands = _names(metadata.get("command_names", ""))
        if _SIGNALS[name] == "command" and not any(command in _VELOCITY for command in commands):
            raise ValueError(f"metadata: the command {', '.join(commands) or 'without a name'} is not a velocity")
    keys = ("observation_terms_scale", "observation_terms_history_length", "observation_terms_clip")
    if any(key not in metadata for key in keys[:2]):
        return None
    scales, lengths = (_split(metadata[key]) for key in keys[:2])
    clips = _split(metadata[keys[2]]) if keys[2] in metadata else ["[-inf, inf]"] * len(names)
    for key, values in zip(keys, (scales, lengths, clips), strict=True):
        if len(values) != len(names):
            raise ValueError(f"metadata: {key} has {len(values)} entries for {len(names)} observations")
    rows = zip(names, scales, lengths, clips, strict=True)
    return tuple(_term(_SIGNALS[name], scale, length, clip) for name, scale, length, clip in rows)


def _term(signal: str, scale: str, length: str, clip: str) -> TermFile:
    found, bounds = _list(scale), _list(clip)
    if len(bounds) != 2 or any(map(math.isnan, bounds)):
        raise ValueError(f"metadata: observation_terms_clip {clip!r} is not understood")
    is_open = bounds == (-math.inf, math.inf)
    if not is_open and not all(map(math.isfinite, bounds)):
        raise ValueError(f"metadata: observation_terms_clip {clip!r} is open on one side: not understood")
    return TermFile(
        signal=signal,
        scale=found[0] if len(found) == 1 else found,
        clip=None if is_open else (bounds[0], bounds[1]),
        history=max(int(float(length)), 1),
    )


def _rate(metadata: dict[str, str]) -> float | None:
    for key in ("control_hz", "control_dt", "step_dt"):
        if key in metadata:
            value = _numbers(metadata, key)[0]
            if value <= 0.0:
                raise ValueError(f"metadata: {key} is {value:g}")
            return value if key == "control_hz" else 1.0 / value
    return None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for part in text.split(",") if (name := part.strip(" []'\"")))


def _numbers(metadata: dict[str, str], key: str) -> tuple[float, ...]:
    try:
        found = _list(metadata[key])
    except ValueError:
        raise ValueError(f"metadata: {key} is not a list of numbers: {metadata[key][:80]!r}") from None
    if not found or not all(map(math.isfinite, found)):
        raise ValueError(f"metadata: {key} needs finite numbers")
    return found


def _list(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.strip(" []()").split(","))


def _split(text: str) -> list[str]:
    """Entries that are numbers or lists of numbers in brackets."""
    return re.findall(r"\[[^\]]*\]|[^,\[\]\s]+", text)
