"""The calibrated robot as a folder of its own: model.xml and spec.toml with the estimates written in.

Passive joint dynamics and masses go into the model, gains and limits into the spec. What neither can hold (delay,
encoder bias, contact) is declared as a loss and stays in params.json, which travels along.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from trueup.calibrate.result import Calibration, Estimate, write_calibration
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.robot.foreign.safe_xml import Node, parse_xml, write_xml
from trueup.robot.load import SPEC_FILE, Robot, load_robot
from trueup.robot.model import compile_model
from trueup.robot.spec import JointSpec, RobotSpec, spec_to_toml

_JOINT_ATTRIBUTE = {
    "armature": "armature",
    "damping": "damping",
    "friction": "frictionloss",
    "stiffness": "stiffness",
}
_SPEC_FIELD = {"kp": "kp", "kd": "kd", "torque_limit": "torque", "no_load_speed": "velocity"}
_REASON = {
    "delay": "a model has no command delay: set it in the simulator (`params.json`, `Calibration.apply`)",
    "encoder_bias": "a model has no encoder bias: set it in the simulator (`params.json`, `Calibration.apply`)",
    "stall_torque": "the spec has one torque limit, for rest and motion",
    "contact_friction": "contact is set per simulation (`Calibration.apply`)",
    "contact_timeconst": "contact is set per simulation (`Calibration.apply`)",
    "contact_dampratio": "contact is set per simulation (`Calibration.apply`)",
}


@dataclass(frozen=True, kw_only=True)
class Export:
    """The folder written, and what could not be put into it, in words."""

    folder: Path
    losses: tuple[str, ...]


def export_robot(robot: Robot, result: Calibration, out: str | Path) -> Export:
    """Write the calibrated robot; `load_robot(out)` gives it back, and the model file opens anywhere MJCF does."""
    folder = Path(out)
    if robot.model_path.suffix == ".urdf" or not (robot.model_path.parent / SPEC_FILE).is_file():
        raise TrueupError(
            "only a robot folder can be exported; make one with `trueup robot init`", file=robot.model_path
        )
    if folder.exists() and any(folder.iterdir()):
        raise TrueupError("exists and is not empty; choose another folder", file=folder)
    shutil.copytree(robot.model_path.parent, folder, dirs_exist_ok=True)
    tree = parse_xml(robot.model_path.read_bytes(), robot.model_path)
    losses = [
        f"{estimate.parameter.label}: {why}" for estimate in result.estimates if (why := _put(tree, estimate))
    ]
    write_atomic(folder / robot.model_path.name, write_xml(tree)[0] + "\n")
    write_atomic(folder / SPEC_FILE, spec_to_toml(calibrated_spec(robot.spec, result)))
    write_calibration(result, folder)
    compile_model(load_robot(folder))  # what was written must open again
    return Export(folder=folder, losses=tuple(losses))


def calibrated_spec(spec: RobotSpec, result: Calibration) -> RobotSpec:
    """The spec with estimated gains and limits."""
    joints = {joint.name: joint for joint in spec.joints}
    for estimate in result.estimates:
        field = _SPEC_FIELD.get(estimate.parameter.name)
        for name in estimate.parameter.of if field else ():
            joint: JointSpec = joints[name]
            joints[name] = msgspec.structs.replace(
                joint, **{str(field): getattr(joint, str(field)) * estimate.value}
            )
    return msgspec.structs.replace(spec, joints=tuple(joints.values()))


def _put(tree: Node, estimate: Estimate) -> str:
    """Write one estimate into the model; returns why it could not be, or nothing."""
    entry = estimate.parameter
    if entry.name in _SPEC_FIELD:
        return ""
    write: Callable[[Node], bool]
    if entry.name in _JOINT_ATTRIBUTE:
        nodes = {node.attrs.get("name"): node for node in tree.walk() if node.tag == "joint"}
        attribute = _JOINT_ATTRIBUTE[entry.name]

        def write(node: Node) -> bool:
            node.attrs[attribute] = repr(estimate.value)
            return True

    elif entry.name in ("mass_scale", "com_offset"):
        nodes = {node.attrs.get("name"): node for node in tree.walk() if node.tag == "body"}

        def write(node: Node) -> bool:
            return _write_body(node, estimate)

    else:
        return _REASON.get(entry.name, "the model has no place for it")
    missing = [name for name in entry.of if name not in nodes or not write(nodes[name])]
    return f"not in this model file itself for {', '.join(missing)}" if missing else ""


def _write_body(body: Node, estimate: Estimate) -> bool:
    """Scale mass and inertia, or move the centre of mass; needs the body's own <inertial>."""
    inertial = next((node for node in body.children if node.tag == "inertial"), None)
    if inertial is None:
        return False
    if estimate.parameter.name == "mass_scale":
        for key in ("mass", "diaginertia", "fullinertia"):
            if key in inertial.attrs:
                inertial.attrs[key] = _numbers([estimate.value * v for v in _read(inertial, key)])
        return True
    place = _read(inertial, "pos")
    place[estimate.parameter.axis or 0] += estimate.value
    inertial.attrs["pos"] = _numbers(place)
    return True


def _read(node: Node, key: str) -> list[float]:
    return [float(word) for word in node.attrs[key].split()]


def _numbers(values: list[float]) -> str:
    return " ".join(repr(value) for value in values)
