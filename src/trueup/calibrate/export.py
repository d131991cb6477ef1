"""Export of the calibrated robot: a robot folder of its own, or tables for URDF, Isaac Lab and mjlab.

In the folder passive joint dynamics and masses go into the model, gains and limits into the spec. Parameters that a
format cannot hold (a fraction of a step of delay, an encoder's bias, friction that grows with load) are declared as
losses in the result and in LOSSES.md; params.json, which holds everything, is copied too.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from trueup.calibrate.tables import reason, write_table
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.robot.foreign.safe_xml import Node, parse_xml, write_xml
from trueup.robot.load import SPEC_FILE, Robot, load_robot
from trueup.robot.model import compile_model
from trueup.robot.spec import RobotSpec, spec_to_toml
from trueup.world.fitted.calibration import Calibration, Estimate, write_calibration

Format = Literal["mjcf", "urdf", "isaaclab", "mjlab"]
LOSSES_FILE = "LOSSES.md"
_JOINT_ATTRIBUTE = {"armature": "armature", "damping": "damping", "friction": "frictionloss", "stiffness": "stiffness"}
_SPEC_FIELD = {"kp": "kp", "kd": "kd", "torque_limit": "torque", "no_load_speed": "velocity"}


@dataclass(frozen=True, kw_only=True)
class Export:
    """The folder written, and the parameters that it cannot hold, with reasons."""

    folder: Path
    losses: tuple[str, ...]


def export_calibration(
    robot: Robot, result: Calibration, to: Format, out: str | Path, physics_hz: float | None = None
) -> Export:
    """Write the calibrated robot in one of the formats into the folder `out`; tables are for steps of `physics_hz`."""
    if to == "mjcf":
        return export_robot(robot, result, out)
    folder = _empty(out)
    name, text, losses = write_table(to, robot, result, physics_hz)
    write_atomic(folder / name, text)
    return _finished(folder, result, losses)


def export_robot(robot: Robot, result: Calibration, out: str | Path) -> Export:
    """Write the calibrated robot; `load_robot(out)` gives it back, and the model file opens anywhere MJCF does."""
    if robot.model_path.suffix == ".urdf" or not (robot.model_path.parent / SPEC_FILE).is_file():
        raise TrueupError(
            "only a robot folder can be exported; make one with `trueup robot init`", file=robot.model_path
        )
    folder = _empty(out)
    shutil.copytree(robot.model_path.parent, folder, dirs_exist_ok=True)
    tree = parse_xml(robot.model_path.read_bytes(), robot.model_path)
    losses = [f"{estimate.parameter.label}: {why}" for estimate in result.estimates if (why := _put(tree, estimate))]
    losses += [f"option {name}={value:g}: give it again when loading" for name, value in robot.options.items()]
    write_atomic(folder / robot.model_path.name, write_xml(tree)[0] + "\n")
    write_atomic(folder / SPEC_FILE, spec_to_toml(calibrated_spec(robot.spec, result)))
    compile_model(load_robot(folder))  # what was written must open again
    return _finished(folder, result, losses)


def _empty(out: str | Path) -> Path:
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise TrueupError("exists and is not empty; choose another folder", file=folder)
    return folder


def _finished(folder: Path, result: Calibration, losses: list[str]) -> Export:
    """Write params.json and LOSSES.md, which every format has."""
    lines = [f"- {loss}" for loss in losses] or ["Nothing was lost."]
    write_atomic(folder / LOSSES_FILE, "\n".join(["# What this export could not hold", "", *lines, ""]))
    write_calibration(result, folder)
    return Export(folder=folder, losses=tuple(losses))


def calibrated_spec(spec: RobotSpec, result: Calibration) -> RobotSpec:
    """The spec with estimated gains and limits."""
    joints = {joint.name: joint for joint in spec.joints}
    for estimate in result.estimates:
        if field := _SPEC_FIELD.get(estimate.parameter.name):
            for name in estimate.parameter.of:
                old = getattr(joints[name], field)
                joints[name] = msgspec.structs.replace(joints[name], **{field: old * estimate.value})
    return msgspec.structs.replace(spec, joints=tuple(joints.values()))


def _put(tree: Node, estimate: Estimate) -> str:
    """Write one estimate into the model; returns why it could not be, or nothing."""
    entry, attribute = estimate.parameter, _JOINT_ATTRIBUTE.get(estimate.parameter.name)
    if entry.name in _SPEC_FIELD:
        return ""
    if attribute is None and entry.name not in ("mass_scale", "com_offset"):
        return reason(entry.name)
    tag, missing = "body" if attribute is None else "joint", []
    nodes = {node.attrs.get("name"): node for node in tree.walk() if node.tag == tag}
    for name in entry.of:
        if name in nodes and attribute is not None:
            nodes[name].attrs[attribute] = repr(estimate.value)
        elif name not in nodes or not _write_body(nodes[name], estimate):
            missing.append(name)
    return f"not in this model file itself for {', '.join(missing)}" if missing else ""


def _write_body(body: Node, estimate: Estimate) -> bool:
    """Scale mass and inertia, or move the centre of mass; needs the body's own <inertial>."""
    inertial = next((node for node in body.children if node.tag == "inertial"), None)
    if inertial is None:
        return False
    numbers = {
        key: [float(word) for word in inertial.attrs[key].split()]
        for key in ("mass", "diaginertia", "fullinertia", "pos")
        if key in inertial.attrs
    }
    if estimate.parameter.name == "com_offset":
        numbers["pos"][estimate.parameter.axis or 0] += estimate.value
    else:
        numbers = {key: [estimate.value * v for v in values] for key, values in numbers.items() if key != "pos"}
    inertial.attrs |= {key: " ".join(map(repr, values)) for key, values in numbers.items()}
    return True
