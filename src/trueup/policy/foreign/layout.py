"""Layout: the specification of a policy trained elsewhere, in one form for all sources.

A reader of each format fills it (`rl_sar`, `unitree`, `toml_layout`, `metadata`); missing fields are reported by
name.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from trueup.core.documents import read_toml
from trueup.core.errors import TrueupError
from trueup.policy.action import ActionSpec
from trueup.policy.observation import ObservationSpec


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Observations and actions of a policy; every list is in the policy's own joint order.

    format   of the file that it was read from
    name     of the policy, as its file calls it
    kp, kd   gains of the servo that it was trained with
    torque   limits that its file names, N m; for information, since a robot has its own. Empty: none named
    signs    direction of each joint against the robot's, already in poses, scales and limits; empty: all alike
    command_low, command_high  range of each column of the command in training; empty: not said
    notes    assumptions, as text

    Gyro and gravity are in the IMU frame, as the deployments of both formats take them; gravity is the unit vector
    that points down.
    """

    format: str
    name: str
    control_hz: float
    kp: tuple[float, ...]
    kd: tuple[float, ...]
    observation: ObservationSpec
    action: ActionSpec
    torque: tuple[float, ...] = ()
    signs: tuple[int, ...] = ()
    command_low: tuple[float, ...] = ()
    command_high: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1.0 <= self.control_hz <= 10_000.0:
            raise ValueError(f"a control rate must lie between 1 and 10000 Hz, found {self.control_hz:g}")
        if self.action.joint_names != self.joint_names:
            raise ValueError("observation and action must list the same joints")
        for name in ("kp", "kd", "torque"):
            values = getattr(self, name)
            if len(values) != len(self.joint_names) and (values or name != "torque"):
                raise ValueError(f"{name}: {len(values)} numbers for {len(self.joint_names)} joints")
        if not is_finite(msgspec.to_builtins(self)):
            raise ValueError("a layout needs finite numbers")

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.observation.joint_names


def read_layout(path: str | Path, *, joint_names: tuple[str, ...] = (), base: str | Path | None = None) -> Layout:
    """Read a policy's layout file; the format is told by its ending (.toml) or its keys.

    joint_names  names in the SDK's order, for formats that number joints only (deploy.yaml)
    base         rl_sar's base.yaml; None: beside the file or one folder up, where rl_sar keeps it
    """
    from trueup.policy.foreign import rl_sar, toml_layout, unitree
    from trueup.policy.foreign.yaml_file import read_yaml

    file = Path(path)
    given = read_toml(file, toml_layout.LayoutFile, "layout") if file.suffix == ".toml" else None
    found = read_yaml(file) if given is None else {}
    try:
        if given is not None:
            return toml_layout.build(given, toml_layout.FORMAT)
        if "joint_ids_map" in found or "step_dt" in found:
            return unitree.read(file.resolve().parent.name, found, joint_names)
        if len(found) == 1 and isinstance(next(iter(found.values())), dict):
            return rl_sar.read(found, rl_sar.read_base(file, next(iter(found)), base))
    except ValueError as error:  # of the readers, the specs and msgspec; each names the key
        raise TrueupError(str(error)[:500], file=file) from None
    raise TrueupError(
        "is no layout that trueup knows: rl_sar's config.yaml has one policy as its only key, "
        "unitree_rl_lab's deploy.yaml has joint_ids_map and step_dt, and our own ends in .toml",
        file=file,
    )


def joints_in_order(key: str, motors: tuple[int, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Joint names in the policy's order, whose slot i is motor `motors[i]`; `key` is the file's key of the motors."""
    if sorted(motors) != list(range(len(names))):
        raise ValueError(f"{key}: must hold each of 0..{len(names) - 1} once, for {len(names)} joint names")
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"joint names: {twice[0]!r} stands twice")
    return tuple(names[motor] for motor in motors)


def each(values: float | tuple[float, ...], count: int) -> tuple[float, ...]:
    """A number for each of `count`, where a file may name one for all."""
    return values if isinstance(values, tuple) else (values,) * count


def is_finite(value: object) -> bool:
    """Whether every number in nested lists and dicts is finite."""
    if isinstance(value, (dict, list, tuple)):
        return all(map(is_finite, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)
