"""What a robot is made of and what is wrong with it, in numbers. Printing belongs to `report`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import mujoco
import numpy as np

from trueup.core.errors import TrueupError
from trueup.robot.foreign.files import Note
from trueup.robot.foreign.untrusted import CheckedModel, quiet_engine, read_model
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, build_spec, compile_spec, default_qpos, joint_index, open_model
from trueup.robot.shapes import inertia_diagonal

Level = Literal["error", "warning", "note"]
Verdict = Literal["ready", "usable with warnings", "not usable"]


@dataclass(frozen=True, kw_only=True)
class Lint:
    """One thing worth knowing: how bad, a stable code, where, the evidence and its consequence, and the cure."""

    level: Level
    code: str
    where: str
    message: str
    fix: str


@dataclass(frozen=True, kw_only=True)
class JointRow:
    """One joint of the spec; `inertia` is what it moves in the default pose (kg m^2), `servo_hz` = sqrt(kp/I)/2pi."""

    name: str
    kind: str
    position: tuple[float, float]
    velocity: float
    torque: float
    kp: float
    kd: float
    default: float
    inertia: float
    servo_hz: float


@dataclass(frozen=True, kw_only=True)
class BodyRow:
    """One body: mass (kg), centre of mass in its frame (m), principal moments of inertia (kg m^2)."""

    name: str
    parent: str
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """A robot's tables and findings, worst first."""

    name: str
    model_file: str
    floating: bool
    total_mass: float
    counts: dict[str, int]
    joints: tuple[JointRow, ...]
    bodies: tuple[BodyRow, ...]
    findings: tuple[Lint, ...]

    @property
    def verdict(self) -> Verdict:
        levels = {finding.level for finding in self.findings}
        if "error" in levels:
            return "not usable"
        return "usable with warnings" if "warning" in levels else "ready"

    def as_dict(self) -> dict[str, Any]:
        """The whole inspection as JSON values."""
        return {"verdict": self.verdict, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What the checks look at: the robot, its file as it is, and the model built from both in the default pose."""

    robot: Robot
    checked: CheckedModel | None  # None for a built-in robot, whose file is ours
    file_spec: mujoco.MjSpec
    file_model: mujoco.MjModel
    model: mujoco.MjModel  # every shape, no floor, the base as the spec says
    data: mujoco.MjData  # evaluated in the default pose
    inertia: np.ndarray[Any, np.dtype[np.float64]]  # of the spec's joints

    @property
    def notes(self) -> tuple[Note, ...]:
        return self.checked.notes if self.checked is not None else ()


def inspect_robot(robot: Robot) -> Inspection:
    """Look at a robot in its default pose and list what would spoil a simulation of it.

    A file that cannot be read raises; a spec that does not fit its model is a finding.
    """
    from trueup.robot.inspection.lints import check_robot  # the checks need this module's types

    checked = None if robot.built_in else read_model(robot.model_path, robot.root)
    with quiet_engine():
        try:
            subject = _subject(robot, checked)
        except TrueupError as error:
            return _unbuildable(robot, error)
        findings = check_robot(subject)
    order = {"error": 0, "warning": 1, "note": 2}
    return Inspection(
        name=robot.spec.name,
        model_file=robot.model_path.name,
        floating=robot.spec.base.floating,
        total_mass=float(subject.model.body_mass.sum()),
        counts=_counts(subject),
        joints=_joint_rows(subject),
        bodies=_body_rows(subject.model),
        findings=tuple(sorted(findings, key=lambda finding: order[finding.level])),
    )


def _subject(robot: Robot, checked: CheckedModel | None) -> Subject:
    file_spec = checked.spec if checked is not None else open_model(robot)
    file_model = compile_spec(file_spec, robot)
    built = build_spec(robot, ModelCfg(collisions="full", floor=False, visual=True))
    model = compile_spec(built, robot)
    data = mujoco.MjData(model)
    data.qpos[:] = default_qpos(model, robot)
    mujoco.mj_forward(model, data)
    inertia = inertia_diagonal(model, data)[joint_index(model, robot).dof]
    return Subject(
        robot=robot,
        checked=checked,
        file_spec=file_spec,
        file_model=file_model,
        model=model,
        data=data,
        inertia=inertia,
    )


def _unbuildable(robot: Robot, error: TrueupError) -> Inspection:
    fix = "correct the name in spec.toml, or the model file"
    finding = Lint(level="error", code="does-not-build", where=error.place or "model", message=error.message, fix=fix)
    return Inspection(
        name=robot.spec.name,
        model_file=robot.model_path.name,
        floating=robot.spec.base.floating,
        total_mass=0.0,
        counts={},
        joints=(),
        bodies=(),
        findings=(finding,),
    )


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
    ids = joint_index(subject.model, subject.robot).joint_id
    rows = []
    for joint, number, inertia in zip(subject.robot.spec.joints, ids, subject.inertia, strict=True):
        hinge = subject.model.jnt_type[number] == mujoco.mjtJoint.mjJNT_HINGE
        row = JointRow(
            name=joint.name,
            kind="hinge" if hinge else "slide",
            position=joint.position,
            velocity=joint.velocity,
            torque=joint.torque,
            kp=joint.kp,
            kd=joint.kd,
            default=joint.default,
            inertia=float(inertia),
            servo_hz=float(np.sqrt(joint.kp / inertia) / (2 * np.pi)),
        )
        rows.append(row)
    return tuple(rows)


def _body_rows(model: mujoco.MjModel) -> tuple[BodyRow, ...]:
    rows = []
    for body in range(1, model.nbody):
        com, inertia = (tuple(float(x) for x in field[body]) for field in (model.body_ipos, model.body_inertia))
        row = BodyRow(
            name=model.body(body).name,
            parent=model.body(int(model.body_parentid[body])).name,
            mass=float(model.body_mass[body]),
            com=(com[0], com[1], com[2]),
            inertia=(inertia[0], inertia[1], inertia[2]),
        )
        rows.append(row)
    return tuple(rows)
