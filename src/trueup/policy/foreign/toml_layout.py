"""Our own layout format: TOML with every field by name, or the fields that another source of the same policy lacks.

`LayoutFile` has every key as optional; `build` lists by name all that is still missing. A joint whose direction is
opposite to the robot's has the sign -1: poses, scales and limits are converted to the robot's direction here, so that
later code needs no signs.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from trueup.policy.action import ActionSpec
from trueup.policy.foreign.layout import Layout, each
from trueup.policy.observation import ObservationSpec, Term

Numbers = tuple[float, ...]
Pair = tuple[float, float]
FORMAT = "trueup-layout"
_NEEDED = ("control_hz", "joint_names", "default_pose", "kp", "kd", "action", "observation")
_TURNED = ("joint_pos", "joint_vel")  # signals that change their sign with the joint


class LayoutEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Unknown keys are refused."""


class TermFile(LayoutEntry, kw_only=True):
    """One [[observation]]: gyro, gravity, command, joint_pos (relative to default_pose), joint_vel, action.

    clip is (low, high), before scaling, or after it with clip_scaled; history: frames of this term, with by_term
    """

    signal: str
    scale: float | Numbers = 1.0
    clip: Pair | None = None
    clip_scaled: bool = False
    history: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None


class ActionFile(LayoutEntry, kw_only=True):
    """[action]: target = offset + scale x clipped action, within low and high; offset left out: the default pose."""

    scale: float | Numbers
    offset: Numbers | None = None
    clip: float | tuple[Pair, ...] | None = None
    low: Numbers = ()
    high: Numbers = ()
    observe_clipped: bool = False


class CommandFile(LayoutEntry, kw_only=True):
    """[command]: range of each column of the velocity command in training: forward, sideways (m/s), turn (rad/s)."""

    low: tuple[float, float, float]
    high: tuple[float, float, float]


class LayoutFile(LayoutEntry, kw_only=True):
    """The keys of a layout TOML; lists are in the policy's joint order."""

    name: str = "policy"
    control_hz: float | None = None
    joint_names: tuple[str, ...] | None = None
    signs: tuple[int, ...] = ()
    default_pose: Numbers | None = None
    kp: float | Numbers | None = None
    kd: float | Numbers | None = None
    torque: float | Numbers | None = None
    history: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    ages: tuple[int, ...] = ()
    by_term: bool = False
    action: ActionFile | None = None
    observation: tuple[TermFile, ...] | None = None
    command: CommandFile | None = None


def merged(over: LayoutFile, under: LayoutFile) -> LayoutFile:
    """Fields of `over`, missing ones from `under`."""
    default = LayoutFile()
    values = {
        name: getattr(over if getattr(over, name) != getattr(default, name) else under, name)
        for name in LayoutFile.__struct_fields__
    }
    return LayoutFile(**values)


def build(layout: LayoutFile, source: str, notes: tuple[str, ...] = ()) -> Layout:
    """Make a layout; a ValueError lists every missing key and how to give it."""
    missing = [name for name in _NEEDED if getattr(layout, name) is None]
    if missing:
        flags = {"control_hz": "control_hz (--hz)"}
        listed = ", ".join(flags.get(name, name) for name in missing)
        raise ValueError(f"does not say {listed}: give it in a layout TOML (--layout FILE.toml)")
    assert layout.joint_names is not None
    assert layout.default_pose is not None
    assert layout.action is not None
    assert layout.control_hz is not None
    joints, action, pose = layout.joint_names, layout.action, layout.default_pose
    signs = layout.signs or (1,) * len(joints)
    if len(signs) != len(joints) or set(signs) - {-1, 1}:
        raise ValueError(f"signs: needs 1 or -1 for each of {len(joints)} joints")
    for key, values in (("default_pose", pose), ("action.scale", action.scale), ("action.offset", action.offset)):
        if isinstance(values, tuple) and len(values) != len(joints):
            raise ValueError(f"{key}: {len(values)} numbers for {len(joints)} joints")
    gains = {key: each(getattr(layout, key), len(joints)) for key in ("kp", "kd")}
    return Layout(
        format=source,
        name=layout.name,
        control_hz=layout.control_hz,
        torque=() if layout.torque is None else each(layout.torque, len(joints)),
        observation=_observation(layout, joints, _turn(pose, signs), signs),
        action=_action(action, joints, pose, signs),
        signs=signs,
        command_low=layout.command.low if layout.command else (),
        command_high=layout.command.high if layout.command else (),
        notes=notes,
        **gains,
    )


def _observation(layout: LayoutFile, joints: tuple[str, ...], pose: Numbers, signs: tuple[int, ...]) -> ObservationSpec:
    entries = layout.observation or ()
    has_own = any(entry.history for entry in entries)
    if has_own and layout.history > 1:
        raise ValueError("history: name it for the whole observation or for each term, not both")
    return ObservationSpec(
        joint_names=joints,
        default_pose=pose,
        terms=tuple(_term(entry, signs, has_own) for entry in entries),
        ncommand=3 if any(entry.signal == "command" for entry in entries) else 0,
        naction=len(joints),
        history=max((entry.history or 1 for entry in entries), default=1) if has_own else layout.history,
        ages=layout.ages,
        by_term=layout.by_term or has_own,
    )


def _term(entry: TermFile, signs: tuple[int, ...], has_own: bool) -> Term:
    scale = entry.scale
    clip: tuple[Pair, ...] = () if entry.clip is None else (entry.clip,)
    if -1 in signs and entry.signal == "joint_angle":
        raise ValueError(f"observation {entry.signal!r} with signs is not understood: use joint_pos")
    if -1 in signs and entry.signal in _TURNED:
        scale = _turn(each(scale, len(signs)), signs)
        if entry.clip is not None:
            low, high = entry.clip
            turned = (low, high), (-high, -low)
            # after scaling, the number is what the policy saw in training; before it, it is the robot's own
            clip = (entry.clip,) if entry.clip_scaled else tuple(turned[sign < 0] for sign in signs)
    history = (entry.history or 1) if has_own else None
    return Term(entry.signal, scale, clip, clip_scaled=entry.clip_scaled, history=history)


def _action(action: ActionFile, joints: tuple[str, ...], pose: Numbers, signs: tuple[int, ...]) -> ActionSpec:
    low, high = action.low, action.high
    if low and high and len(low) == len(high) == len(signs):
        pairs = [(a, b) if sign > 0 else (-b, -a) for a, b, sign in zip(low, high, signs, strict=True)]
        low, high = tuple(a for a, _ in pairs), tuple(b for _, b in pairs)
    elif low or high:
        raise ValueError("action.low and action.high: give both, one number for each joint")
    return ActionSpec(
        joint_names=joints,
        default_pose=_turn(pose if action.offset is None else action.offset, signs),
        low=low,
        high=high,
        controlled_joints=joints,
        scale=_turn(each(action.scale, len(joints)), signs),
        clip=action.clip,
        observe_clipped=action.observe_clipped,
    )


def _turn(values: Numbers, signs: tuple[int, ...]) -> Numbers:
    return tuple(sign * value for value, sign in zip(values, signs, strict=True))
