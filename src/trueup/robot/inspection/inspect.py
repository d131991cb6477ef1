"""Inspection of a robot: tables of its parts and findings, in numbers. Printing is in `report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.robot.foreign.untrusted import CheckedModel, quiet_engine, read_model
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, build_spec, compile_spec, default_qpos, joint_index, open_model
from trueup.robot.shapes import inertia_diagonal
from trueup.robot.spec import JointSpec

LEVELS = ("error", "warning", "note")  # worst first
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True, kw_only=True)
class Lint:
    """One thing worth knowing: how bad, a stable code, where, the evidence and its consequence, and the cure."""

    level: Level
    code: str
    where: str
    message: str
    fix: str


class JointRow(JointSpec, frozen=True, kw_only=True):
    """One joint of the spec; `inertia` is what it moves in the default pose (kg m^2), `servo_hz` = sqrt(kp/I)/2pi."""

    kind: Literal["hinge", "slide"]
    inertia: float
    servo_hz: float


@dataclass(frozen=True, kw_only=True)
class BodyRow:
    """One body: mass (kg), centre of mass in its frame (m), principal moments of inertia (kg m^2)."""

    name: str
    parent: str
    mass: float
    com: tuple[float, ...]
    inertia: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """A robot's tables and findings, worst first; a robot that cannot be built has no tables."""

    name: str
    model_file: str
    floating: bool
    findings: tuple[Lint, ...]
    total_mass: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    joints: tuple[JointRow, ...] = ()
    bodies: tuple[BodyRow, ...] = ()

    @property
    def verdict(self) -> Literal["ready", "usable with warnings", "not usable"]:
        levels = {finding.level for finding in self.findings}
        if "error" in levels:
            return "not usable"
        return "usable with warnings" if "warning" in levels else "ready"

    def as_dict(self) -> dict[str, Any]:
        """The whole inspection as JSON values."""
        return {"verdict": self.verdict, **msgspec.to_builtins(self)}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Input of the checks: the robot, its file, and the model built from both in the default pose."""

    robot: Robot
    checked: CheckedModel | None  # None for a built-in robot, whose file is ours
    file_model: mujoco.MjModel
    model: mujoco.MjModel  # every shape, no floor, the base as the spec says
    data: mujoco.MjData  # evaluated in the default pose
    inertia: FloatArray  # of the spec's joints


def inspect_robot(robot: Robot) -> Inspection:
    """Check a robot in its default pose and list problems of its simulation.

    A file that cannot be read raises; a spec that does not fit its model is a finding.
    """
    from trueup.robot.inspection.lints import check_robot  # the checks need this module's types

    about: dict[str, Any] = {
        "name": robot.spec.name,
        "model_file": robot.model_path.name,
        "floating": robot.spec.base.floating,
    }
    checked = None if robot.built_in else read_model(robot.model_path, robot.root)
    with quiet_engine():
        try:
            subject = _subject(robot, checked)
        except TrueupError as error:
            where, fix = error.place or "model", "correct the name in spec.toml, or the model file"
            finding = Lint(level="error", code="does-not-build", where=where, message=error.message, fix=fix)
            return Inspection(**about, findings=(finding,))
        findings = check_robot(subject)
    return Inspection(
        **about,
        findings=tuple(sorted(findings, key=lambda finding: LEVELS.index(finding.level))),
        total_mass=float(subject.model.body_mass.sum()),
        counts=_counts(subject),
        joints=_joint_rows(subject),
        bodies=tuple(_body_row(subject.model, body) for body in range(1, subject.model.nbody)),
    )


def listed(names: Sequence[str]) -> str:
    """Names in one line, four at most."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _subject(robot: Robot, checked: CheckedModel | None) -> Subject:
    file_model = compile_spec(checked.spec if checked is not None else open_model(robot), robot)
    model = compile_spec(build_spec(robot, ModelCfg(collisions="full", floor=False, visual=True)), robot)
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    mujoco.mj_forward(model, data)
    inertia = inertia_diagonal(model, data)[joint_index(model, robot).dof]
    return Subject(robot=robot, checked=checked, file_model=file_model, model=model, data=data, inertia=inertia)


def _counts(subject: Subject) -> dict[str, int]:
    file, model = subject.file_model, subject.model
    return {
        "bodies": model.nbody - 1,
        "joints": int(model.njnt),
        "joints in the spec": subject.robot.spec.njoint,
        "geoms": int(model.ngeom),
        "meshes": int(model.nmesh),
        "sites": int(model.nsite),
        "actuators in the file": int(file.nu),
        "keyframes in the file": int(file.nkey),
    }


def _joint_rows(subject: Subject) -> tuple[JointRow, ...]:
    kinds = subject.model.jnt_type[joint_index(subject.model, subject.robot).joint_id]
    return tuple(
        JointRow(
            **msgspec.structs.asdict(joint),
            kind="hinge" if kind == mujoco.mjtJoint.mjJNT_HINGE else "slide",
            inertia=float(inertia),
            servo_hz=float(np.sqrt(joint.kp / inertia) / (2 * np.pi)),
        )
        for joint, kind, inertia in zip(subject.robot.spec.joints, kinds, subject.inertia, strict=True)
    )


def _body_row(model: mujoco.MjModel, body: int) -> BodyRow:
    return BodyRow(
        name=model.body(body).name,
        parent=model.body(int(model.body_parentid[body])).name,
        mass=float(model.body_mass[body]),
        com=tuple(model.body_ipos[body].tolist()),
        inertia=tuple(model.body_inertia[body].tolist()),
    )
