"""Layout: everything that is written about a policy trained elsewhere, in one form for all sources.

A reader of each format fills it (`rl_sar`, `unitree`); what a format leaves open is asked for by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from trueup.core.errors import TrueupError
from trueup.policy.action import ActionSpec
from trueup.policy.observation import ObservationSpec

T = TypeVar("T")


class Layout(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a policy sees and says; every list is in the policy's own joint order.

    format   whose file it was read from
    name     of the policy, as its file calls it
    kp, kd   gains of the servo that it was trained with
    torque   limits that its file names, N m; for information, since a robot has its own. Empty: none named

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

    def __post_init__(self) -> None:
        if not (math.isfinite(self.control_hz) and 1.0 <= self.control_hz <= 10_000.0):
            raise ValueError(f"a control rate must lie between 1 and 10000 Hz, found {self.control_hz:g}")
        if self.action.joint_names != self.joint_names:
            raise ValueError("observation and action must list the same joints")
        for name in ("kp", "kd", "torque"):
            values = getattr(self, name)
            if len(values) != len(self.joint_names) and (values or name != "torque"):
                raise ValueError(f"{name}: {len(values)} numbers for {len(self.joint_names)} joints")
        if not all(map(math.isfinite, _numbers(msgspec.to_builtins(self)))):
            raise ValueError("a layout needs finite numbers")

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.observation.joint_names


def read_layout(path: str | Path, *, joint_names: tuple[str, ...] = (), base: str | Path | None = None) -> Layout:
    """Read a policy's layout file; the format is told by its keys.

    joint_names  names in the SDK's order, for formats that number joints only (deploy.yaml)
    base         rl_sar's base.yaml; None: beside the file or one folder up, where rl_sar keeps it
    """
    from trueup.policy.foreign import rl_sar, unitree
    from trueup.policy.foreign.yaml_file import read_yaml

    file = Path(path)
    found = read_yaml(file)
    if "joint_ids_map" in found or "step_dt" in found:
        return unitree.read(file, found, joint_names)
    if len(found) == 1 and isinstance(next(iter(found.values())), dict):
        return rl_sar.read(file, found, None if base is None else Path(base))
    raise TrueupError(
        "is no layout that trueup knows: rl_sar's config.yaml has one policy as its only key, "
        "unitree_rl_lab's deploy.yaml has joint_ids_map and step_dt",
        file=file,
    )


def convert(values: object, kind: type[T], file: Path) -> T:
    """Check plain values as `kind`; failures name the file and the key."""
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at ")
        raise TrueupError(message[:500], file=file, place=place.strip("`")[:200] or "top level") from None


def checked(file: Path, make: Callable[[], T]) -> T:
    """Build specs from what a file says; numbers that do not fit together name the file."""
    try:
        return make()
    except ValueError as error:
        raise TrueupError(str(error)[:500], file=file) from None


def _numbers(value: object) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in _numbers(item)]
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in _numbers(item)]
    return [float(value)] if isinstance(value, (int, float)) else []
