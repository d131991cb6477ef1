"""unitree_rl_lab's layouts: `deploy.yaml`, which lists joints by number.

What its deployment does with it: slot i of the policy is motor `joint_ids_map[i]` of the SDK; stiffness and damping are
in the SDK's order, every other list in the policy's. A term is clipped, then scaled (`scale_first`: the other way),
and stands with its own history, oldest first; `use_gym_history`: whole frames. The command is held within its ranges.
target = offset + scale * action, clipped as a target; the policy sees its own output.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from trueup.core.errors import TrueupError, did_you_mean
from trueup.policy.action import ActionSpec
from trueup.policy.foreign.layout import Layout, checked, convert
from trueup.policy.observation import ObservationSpec, Signal, Term

Numbers = tuple[float, ...]
Pair = tuple[float, float]
_SIGNALS: dict[str, Signal] = {
    "base_ang_vel": "gyro",
    "projected_gravity": "gravity",
    "velocity_commands": "command",
    "joint_pos_rel": "joint_pos",
    "joint_vel_rel": "joint_vel",
    "last_action": "action",
}
_SWITCHES = ("scale_first", "use_gym_history")
_COMMANDS = ("lin_vel_x", "lin_vel_y", "ang_vel_z")


class TermEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One observation; `params` name joints or a command."""

    params: dict[str, Any] | None = None
    clip: Pair | None = None
    scale: float | Numbers | None = None
    history_length: int = 1


class ActionEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One action term; joint_ids None: all joints, in the policy's order."""

    scale: float | Numbers
    offset: float | Numbers
    clip: tuple[Pair, ...] | None = None
    joint_ids: tuple[int, ...] | None = None
    joint_names: Any = None


class DeployFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The keys of deploy.yaml."""

    joint_ids_map: tuple[int, ...]
    step_dt: float
    stiffness: Numbers
    damping: Numbers
    default_joint_pos: Numbers
    commands: dict[str, dict[str, Any]] | None = None
    actions: dict[str, ActionEntry]
    observations: dict[str, Any]


def read(file: Path, found: dict[str, Any], sdk_names: tuple[str, ...]) -> Layout:
    """Make a layout of deploy.yaml and the names of the SDK's joints."""
    said = convert(found, DeployFile, file)
    joints = _joints(file, said, sdk_names)
    if list(said.actions) != ["JointPositionAction"]:
        raise TrueupError(
            f"only JointPositionAction is understood, found {', '.join(said.actions) or 'none'}",
            file=file,
            place="actions",
        )
    terms = _terms(file, said)
    layout: Layout = checked(file, lambda: _layout(file, said, joints, terms))
    return layout


def _joints(file: Path, said: DeployFile, sdk_names: tuple[str, ...]) -> tuple[str, ...]:
    """Joint names in the policy's order."""
    ids = said.joint_ids_map
    if not sdk_names:
        raise TrueupError(
            f"numbers its {len(ids)} joints and does not name them: "
            "give their names in the SDK's order (joint_names, --joints)",
            file=file,
            place="joint_ids_map",
        )
    if sorted(ids) != list(range(len(sdk_names))):
        raise TrueupError(
            f"must hold each of 0..{len(sdk_names) - 1} once, for the {len(sdk_names)} names given",
            file=file,
            place="joint_ids_map",
        )
    for name in ("stiffness", "damping", "default_joint_pos"):
        if len(getattr(said, name)) != len(ids):
            raise TrueupError(
                f"{len(getattr(said, name))} numbers for {len(ids)} joints", file=file, place=name
            )
    return tuple(sdk_names[motor] for motor in ids)


def _terms(file: Path, said: DeployFile) -> tuple[Term, ...]:
    whole_frames, scale_first = (bool(said.observations.get(key)) for key in reversed(_SWITCHES))
    terms = []
    for name, values in said.observations.items():
        if name in _SWITCHES:
            continue
        if name not in _SIGNALS:
            raise TrueupError(
                f"observation {name!r} is not understood{did_you_mean(name, _SIGNALS)}",
                file=file,
                place="observations",
            )
        entry = convert(values, TermEntry, file)
        if "asset_cfg" in (entry.params or {}):
            raise TrueupError(
                "observes some joints only: not understood", file=file, place=f"observations.{name}"
            )
        terms.append(
            Term(
                _SIGNALS[name],
                1.0 if entry.scale is None else entry.scale,
                _clip(file, said, name, entry, scale_first),
                clip_scaled=scale_first,
                history=None if whole_frames else max(entry.history_length, 1),
            )
        )
    lengths = {
        max(convert(said.observations[name], TermEntry, file).history_length, 1) for name in _named(said)
    }
    if whole_frames and len(lengths) > 1:
        raise TrueupError(
            "whole frames need one history_length for all terms", file=file, place="use_gym_history"
        )
    return tuple(terms)


def _named(said: DeployFile) -> list[str]:
    return [name for name in said.observations if name not in _SWITCHES]


def _clip(file: Path, said: DeployFile, name: str, entry: TermEntry, scale_first: bool) -> tuple[Pair, ...]:
    """Bounds of a term; a command is held within the ranges that the policy was trained with."""
    own = () if entry.clip is None else (entry.clip,)
    if name != "velocity_commands":
        return own
    ranges = ((said.commands or {}).get("base_velocity") or {}).get("ranges")
    if not isinstance(ranges, dict) or any(key not in ranges for key in _COMMANDS):
        raise TrueupError(
            f"must name {', '.join(_COMMANDS)}", file=file, place="commands.base_velocity.ranges"
        )
    if own or scale_first:
        raise TrueupError(
            "a command with clip or scale_first is not understood", file=file, place=f"observations.{name}"
        )
    return tuple(convert(ranges[key], Pair, file) for key in _COMMANDS)


def _layout(file: Path, said: DeployFile, joints: tuple[str, ...], terms: tuple[Term, ...]) -> Layout:
    action, njoint = said.actions["JointPositionAction"], len(joints)
    if action.joint_ids is not None and action.joint_ids != tuple(range(njoint)):
        raise ValueError(f"actions.JointPositionAction.joint_ids must be all {njoint} joints in order")
    histories = [
        max(convert(said.observations[name], TermEntry, file).history_length, 1) for name in _named(said)
    ]
    targets = action.clip or ()
    return Layout(
        format="unitree_rl_lab",
        name=file.resolve().parent.name,
        control_hz=1.0 / said.step_dt,
        kp=tuple(said.stiffness[motor] for motor in said.joint_ids_map),
        kd=tuple(said.damping[motor] for motor in said.joint_ids_map),
        observation=ObservationSpec(
            joint_names=joints,
            default_pose=said.default_joint_pos,
            terms=terms,
            ncommand=len(_COMMANDS),
            naction=njoint,
            history=max(histories, default=1),
            by_term=not said.observations.get("use_gym_history"),
        ),
        action=ActionSpec(
            joint_names=joints,
            default_pose=_each(action.offset, njoint),
            low=tuple(low for low, _ in targets),
            high=tuple(high for _, high in targets),
            moved=joints,
            scale=_each(action.scale, njoint),
            clip=None,
        ),
    )


def _each(values: float | Numbers, njoint: int) -> Numbers:
    return values if isinstance(values, tuple) else (values,) * njoint
