"""rl_sar's layouts: `config.yaml` of a policy over `base.yaml` of its robot.

What its deployment does with them: slot i of the policy is motor `joint_mapping[i]`, and `joint_names` lists the
motors; every list of the config is in the policy's order. A term is scaled, then clipped to +-clip_obs. Actions are
clipped, and the policy sees the clipped ones. target = default_dof_pos + action_scale * action.
`observations_history` lists the ages of frames (0: newest), `time`: whole frames, `term`: term by term.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from trueup.core.errors import TrueupError, did_you_mean
from trueup.policy.action import ActionSpec
from trueup.policy.foreign.layout import Layout, each, joints_in_order
from trueup.policy.foreign.yaml_file import read_yaml
from trueup.policy.observation import ObservationSpec, Term

Numbers = tuple[float, ...]
BASE_FILE = "base.yaml"
# "ang_vel_world" names what a simulator reports; rl_sar turns it into the base frame, so the policy sees the same
_SIGNALS: dict[str, str] = {
    "ang_vel": "gyro",
    "ang_vel_body": "gyro",
    "ang_vel_world": "gyro",
    "gravity_vec": "gravity",
    "commands": "command",
    "dof_pos": "joint_pos",
    "dof_vel": "joint_vel",
    "actions": "action",
    "whole_body_tracking/motion_command": "reference",
    "whole_body_tracking/motion_anchor_ori_b": "reference_rotation",
}
_EARLIER = ("command_mapping", "state_mapping", "hip_scale_reduction", "action_scale_wheel", "rows", "cols")
_OF_JOINTS = ("rl_kp", "rl_kd", "torque_limits", "default_dof_pos", "action_scale", "clip_actions_lower")


class RlSarFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The keys of both files; those of the second half do not affect a running policy."""

    dt: Annotated[float, msgspec.Meta(gt=0.0)]
    decimation: Annotated[int, msgspec.Meta(ge=1, le=10_000)]
    num_of_dofs: int
    num_observations: int
    joint_names: tuple[str, ...]
    joint_mapping: tuple[int, ...]
    observations: tuple[str, ...]
    observations_history: tuple[Annotated[int, msgspec.Meta(ge=0, le=1000)], ...] | None = ()
    observations_history_priority: Literal["time", "term"] = "time"
    clip_obs: float
    clip_actions_lower: Numbers | None = None
    clip_actions_upper: Numbers | None = None
    rl_kp: Numbers
    rl_kd: Numbers
    action_scale: float | Numbers
    ang_vel_scale: float = 1.0
    dof_pos_scale: float = 1.0
    dof_vel_scale: float = 1.0
    commands_scale: Numbers = (1.0, 1.0, 1.0)
    default_dof_pos: Numbers
    torque_limits: Numbers = ()
    wheel_indices: tuple[int, ...] | None = ()

    model_name: str = ""
    framework: Any = None
    motion_file: str = ""
    fixed_kp: Any = None
    fixed_kd: Any = None
    lin_vel_scale: Any = None
    joint_controller_names: Any = None
    waist_joint_indices: Any = None


def read(found: dict[str, Any], base: dict[str, Any]) -> Layout:
    """Make a layout of config.yaml, whose only key is the policy's name, and base.yaml, which describes its robot."""
    ((name, config),) = found.items()
    earlier = [key for key in _EARLIER if key in config or key in base]
    if earlier:
        raise ValueError(
            f"{earlier[0]}: this is an earlier format of rl_sar, which says the order of joints in another way: write "
            "joint_mapping (slot i of the policy is joint_names[joint_mapping[i]]) and take out "
            f"{', '.join(earlier)}"
        )
    settings = msgspec.convert(_merged(config, base), RlSarFile, strict=False)
    if settings.wheel_indices:
        raise ValueError("wheel_indices: has wheels, which take speeds: not understood")
    layout = _layout(name, settings, joints_in_order("joint_mapping", settings.joint_mapping, settings.joint_names))
    if layout.observation.nframe != settings.num_observations:
        ncolumn = layout.observation.nframe
        raise ValueError(f"num_observations: says {settings.num_observations}, but its terms have {ncolumn} columns")
    return layout


def read_base(file: Path, name: str, base: str | Path | None) -> dict[str, Any]:
    """What base.yaml says of this robot: the first part of the policy's name."""
    places = [file.parent / BASE_FILE, file.parent.parent / BASE_FILE] if base is None else [Path(base)]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise ValueError(
            "needs rl_sar's base.yaml (joint names, rate), which is neither beside it nor one folder up; "
            "name it with --base"
        )
    found, robot = read_yaml(path), name.partition("/")[0]
    if robot not in found or not isinstance(found[robot], dict):
        raise TrueupError(f"has no robot {robot!r}{did_you_mean(robot, found)}", file=path)
    return dict(found[robot])


def _merged(config: dict[str, Any], base: dict[str, Any]) -> dict[str, Any]:
    """The config's keys over the base's, which must not stand for lists in another joint order."""
    inherited = [key for key in _OF_JOINTS if key in base and key not in config]
    if inherited and config.get("joint_mapping", base.get("joint_mapping")) != base.get("joint_mapping"):
        key = inherited[0]
        raise ValueError(f"{key}: stands in base.yaml only, whose joint_mapping is another: write it here too")
    return base | config


def _terms(config: RlSarFile) -> tuple[Term, ...]:
    scales: dict[str, float | Numbers] = {
        "gyro": config.ang_vel_scale,
        "command": config.commands_scale,
        "joint_pos": config.dof_pos_scale,
        "joint_vel": config.dof_vel_scale,
    }
    clip = ((-config.clip_obs, config.clip_obs),)
    unknown = [name for name in config.observations if name not in _SIGNALS]
    if unknown:
        raise ValueError(f"observation {unknown[0]!r} is not understood{did_you_mean(unknown[0], _SIGNALS)}")
    signals = [_SIGNALS[name] for name in config.observations]
    return tuple(Term(signal, scales.get(signal, 1.0), clip, clip_scaled=True) for signal in signals)


def _layout(name: str, config: RlSarFile, joints: tuple[str, ...]) -> Layout:
    ages, njoint = config.observations_history or (), len(joints)
    if config.num_of_dofs != njoint:
        raise ValueError(f"num_of_dofs is {config.num_of_dofs}, but there are {njoint} joint_names")
    low, high = config.clip_actions_lower or (), config.clip_actions_upper or ()
    if len(low) != len(high):
        raise ValueError(f"{len(low)} clip_actions_lower for {len(high)} clip_actions_upper")
    return Layout(
        format="rl_sar",
        name=name,
        control_hz=1.0 / (config.dt * config.decimation),
        kp=config.rl_kp,
        kd=config.rl_kd,
        torque=config.torque_limits,
        observation=ObservationSpec(
            joint_names=joints,
            default_pose=config.default_dof_pos,
            terms=_terms(config),
            ncommand=len(config.commands_scale),
            naction=njoint,
            history=max(ages, default=0) + 1,
            ages=ages,
            by_term=config.observations_history_priority == "term",
            widths={"reference": 2 * njoint, "reference_rotation": 6},
        ),
        action=ActionSpec(
            joint_names=joints,
            default_pose=config.default_dof_pos,
            controlled_joints=joints,
            scale=each(config.action_scale, njoint),
            clip=tuple(zip(low, high, strict=True)) or None,
            observe_clipped=True,
        ),
    )
