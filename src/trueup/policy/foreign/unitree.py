"""unitree_rl_lab's layouts: `deploy.yaml`, which lists joints by number.

What its deployment does with it: slot i of the policy is motor `joint_ids_map[i]` of the SDK; stiffness and damping are
in the SDK's order, every other list in the policy's. A term is clipped, then scaled (`scale_first`: the other way),
and stands with its own history, oldest first; `use_gym_history`: whole frames. The command is held within its ranges.
target = offset + scale * action, clipped as a target; the policy sees its own output.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from trueup.core.errors import TrueupError, did_you_mean
from trueup.policy.action import ActionSpec
from trueup.policy.foreign.layout import Layout, checked, convert
from trueup.policy.observation import ObservationSpec, Term

Numbers = tuple[float, ...]
Pair = tuple[float, float]
_SIGNALS: dict[str, str] = {
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
    history_length: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1


class ActionEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One action term; joint_ids None: all joints, in the policy's order."""

    scale: float | Numbers
    offset: float | Numbers
    clip: tuple[Pair, ...] | None = None
    joint_ids: tuple[int, ...] | None = None
    joint_names: Any = None


class Ranges(msgspec.Struct, kw_only=True):
    """What commands the policy was trained with, m/s, m/s, rad/s."""

    lin_vel_x: Pair
    lin_vel_y: Pair
    ang_vel_z: Pair


class DeployFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The keys of deploy.yaml."""

    joint_ids_map: tuple[int, ...]
    step_dt: Annotated[float, msgspec.Meta(gt=0.0)]
    stiffness: Numbers
    damping: Numbers
    default_joint_pos: Numbers
    commands: dict[str, dict[str, Any]] | None = None
    actions: dict[str, ActionEntry]
    observations: dict[str, bool | TermEntry]

    @property
    def terms(self) -> dict[str, TermEntry]:
        """The observations without the switches that stand among them."""
        return {name: entry for name, entry in self.observations.items() if isinstance(entry, TermEntry)}

    def switch(self, name: str) -> bool:
        """`scale_first` or `use_gym_history`, which stand among the observations; absent: false."""
        return self.observations.get(name) is True


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
    _check_names(file, said)
    if said.switch("use_gym_history") and len({entry.history_length for entry in said.terms.values()}) > 1:
        raise TrueupError("whole frames need one history_length for all terms", file=file, place="use_gym_history")
    terms = tuple(_term(file, said, name, entry) for name, entry in said.terms.items())
    return checked(file, lambda: _layout(file, said, joints, terms))


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
        count = len(getattr(said, name))
        if count != len(ids):
            raise TrueupError(f"{count} numbers for {len(ids)} joints", file=file, place=name)
    return tuple(sdk_names[motor] for motor in ids)


def _check_names(file: Path, said: DeployFile) -> None:
    for name, entry in said.observations.items():
        is_term = isinstance(entry, TermEntry)
        if name not in (_SIGNALS if is_term else _SWITCHES):
            raise TrueupError(
                f"observation {name!r} is not understood{did_you_mean(name, _SIGNALS)}", file=file, place="observations"
            )


def _term(file: Path, said: DeployFile, name: str, entry: TermEntry) -> Term:
    if "asset_cfg" in (entry.params or {}):
        raise TrueupError("observes some joints only: not understood", file=file, place=f"observations.{name}")
    return Term(
        _SIGNALS[name],
        1.0 if entry.scale is None else entry.scale,
        _clip(file, said, name, entry),
        clip_scaled=said.switch("scale_first"),
        history=None if said.switch("use_gym_history") else entry.history_length,
    )


def _clip(file: Path, said: DeployFile, name: str, entry: TermEntry) -> tuple[Pair, ...]:
    """Bounds of a term; a command is held within the ranges that the policy was trained with."""
    own = () if entry.clip is None else (entry.clip,)
    if name != "velocity_commands":
        return own
    ranges = ((said.commands or {}).get("base_velocity") or {}).get("ranges")
    if not isinstance(ranges, dict) or any(key not in ranges for key in _COMMANDS):
        raise TrueupError(f"must name {', '.join(_COMMANDS)}", file=file, place="commands.base_velocity.ranges")
    if own or said.switch("scale_first"):
        raise TrueupError(
            "a command with clip or scale_first is not understood", file=file, place=f"observations.{name}"
        )
    held = convert(ranges, Ranges, file)
    return held.lin_vel_x, held.lin_vel_y, held.ang_vel_z


def _layout(file: Path, said: DeployFile, joints: tuple[str, ...], terms: tuple[Term, ...]) -> Layout:
    action, njoint = said.actions["JointPositionAction"], len(joints)
    if action.joint_ids is not None and action.joint_ids != tuple(range(njoint)):
        raise ValueError(f"actions.JointPositionAction.joint_ids must be all {njoint} joints in order")
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
            history=max((entry.history_length for entry in said.terms.values()), default=1),
            by_term=not said.switch("use_gym_history"),
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
