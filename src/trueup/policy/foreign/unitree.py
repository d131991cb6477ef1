"""unitree_rl_lab's layouts: `deploy.yaml`, which lists joints by number.

What its deployment does with it: slot i of the policy is motor `joint_ids_map[i]` of the SDK; stiffness and damping are
in the SDK's order, every other list in the policy's. A term is clipped, then scaled (`scale_first`: the other way),
and stands with its own history, oldest first; `use_gym_history`: whole frames. The command is held within its ranges.
target = offset + scale * action, clipped as a target; the policy sees its own output.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from trueup.core.errors import did_you_mean
from trueup.policy.action import ActionSpec
from trueup.policy.foreign.layout import Layout, each, joints_in_order
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
    "motion_command": "reference",
    "motion_anchor_ori_b": "reference_rotation",
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


def read(name: str, found: dict[str, Any], sdk_names: tuple[str, ...]) -> Layout:
    """Make a layout of deploy.yaml and the names of the SDK's joints."""
    _refuse_groups(found)
    config = msgspec.convert(found, DeployFile, strict=False)
    ids, action = config.joint_ids_map, config.actions.get("JointPositionAction")
    if not sdk_names:
        raise ValueError(
            f"joint_ids_map: numbers its {len(ids)} joints and does not name them: give their names in the SDK's order "
            "(joint_names, --joints)"
        )
    joints, ranges = joints_in_order("joint_ids_map", ids, sdk_names), _ranges(config)
    for key in ("stiffness", "damping", "default_joint_pos"):
        if len(getattr(config, key)) != len(ids):
            raise ValueError(f"{key}: {len(getattr(config, key))} numbers for {len(ids)} joints")
    if action is None or len(config.actions) > 1:
        raise ValueError(
            f"actions: only JointPositionAction is understood, found {', '.join(config.actions) or 'none'}"
        )
    if action.joint_ids is not None and action.joint_ids != tuple(range(len(ids))):
        raise ValueError(f"actions.JointPositionAction.joint_ids must be all {len(ids)} joints in order")
    return Layout(
        format="unitree_rl_lab",
        name=name,
        control_hz=1.0 / config.step_dt,
        kp=tuple(config.stiffness[motor] for motor in ids),
        kd=tuple(config.damping[motor] for motor in ids),
        observation=ObservationSpec(
            joint_names=joints,
            default_pose=config.default_joint_pos,
            terms=_terms(config),
            ncommand=len(_COMMANDS) if config.commands else 0,
            naction=len(ids),
            widths={"reference": 2 * len(ids), "reference_rotation": 6},
            history=max((entry.history_length for entry in config.terms.values()), default=1),
            by_term=not config.switch("use_gym_history"),
        ),
        action=ActionSpec(
            joint_names=joints,
            default_pose=each(action.offset, len(ids)),
            low=tuple(low for low, _ in action.clip or ()),
            high=tuple(high for _, high in action.clip or ()),
            controlled_joints=joints,
            scale=each(action.scale, len(ids)),
            clip=None,
        ),
        command_low=tuple(low for low, _ in ranges),
        command_high=tuple(high for _, high in ranges),
    )


def _refuse_groups(found: dict[str, Any]) -> None:
    """Networks with several inputs have groups of observations in place of observations."""
    terms = found.get("observations")
    for name, entry in (terms if isinstance(terms, dict) else {}).items():
        if isinstance(entry, dict) and "params" not in entry and any(isinstance(part, dict) for part in entry.values()):
            raise ValueError(f"observations.{name}: is a group: networks with several observations are not understood")


def _ranges(config: DeployFile) -> tuple[Pair, ...]:
    """Ranges of the velocity command; none where the policy does not see one."""
    if "velocity_commands" not in config.terms:
        return ()
    ranges = ((config.commands or {}).get("base_velocity") or {}).get("ranges")
    if not isinstance(ranges, dict) or any(key not in ranges for key in _COMMANDS):
        raise ValueError(f"commands.base_velocity.ranges: must name {', '.join(_COMMANDS)}")
    return msgspec.convert([ranges[key] for key in _COMMANDS], tuple[Pair, ...], strict=False)


def _terms(config: DeployFile) -> tuple[Term, ...]:
    for name, entry in config.observations.items():
        if name not in (_SIGNALS if isinstance(entry, TermEntry) else _SWITCHES):
            raise ValueError(f"observation {name!r} is not understood{did_you_mean(name, _SIGNALS)}")
    if config.switch("use_gym_history") and len({entry.history_length for entry in config.terms.values()}) > 1:
        raise ValueError("use_gym_history: whole frames need one history_length for all terms")
    return tuple(_term(config, name, entry) for name, entry in config.terms.items())


def _term(config: DeployFile, name: str, entry: TermEntry) -> Term:
    if "asset_cfg" in (entry.params or {}):
        raise ValueError(f"observations.{name}: observes some joints only: not understood")
    return Term(
        _SIGNALS[name],
        1.0 if entry.scale is None else entry.scale,
        _clip(config, name, entry),
        clip_scaled=config.switch("scale_first"),
        history=None if config.switch("use_gym_history") else entry.history_length,
    )


def _clip(config: DeployFile, name: str, entry: TermEntry) -> tuple[Pair, ...]:
    """Bounds of a term; a command is held within the ranges that the policy was trained with."""
    own = () if entry.clip is None else (entry.clip,)
    if name != "velocity_commands":
        return own
    if own or config.switch("scale_first"):
        raise ValueError(f"observations.{name}: a command with clip or scale_first is not understood")
    return _ranges(config)
