"""Export of the calibrated robot: a robot folder of its own, or tables for URDF, Isaac Lab and mjlab.

In the folder passive joint dynamics and masses go into the model, gains and limits into the spec. Parameters that a
format cannot hold (a fraction of a step of delay, an encoder's bias, friction that grows with load) are declared as
losses in the result and in LOSSES.md; params.json, which has every parameter, is copied too. Values
of tables are read from a simulation with the calibration applied.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.robot.foreign.safe_xml import XmlNode, parse_xml, write_xml
from trueup.robot.load import SPEC_FILE, Robot, load_robot
from trueup.robot.model import ModelCfg, compile_model
from trueup.robot.spec import RobotSpec, spec_to_toml
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration, Estimate, write_calibration
from trueup.world.parameters.able_to_set import able_to_set

Format = Literal["mjcf", "urdf", "isaaclab", "mjlab"]
LOSSES_FILE = "LOSSES.md"
_JOINT_ATTRIBUTE = {"armature": "armature", "damping": "damping", "friction": "frictionloss", "stiffness": "stiffness"}
_SPEC_FIELD = {"kp": "kp", "kd": "kd", "torque_limit": "torque", "no_load_speed": "velocity"}
_NAMES = ("armature", "damping", "friction", "kp", "kd", "torque_limit", "delay", "encoder_bias", "stiffness")
_CONTACT = "contact is a property of materials: set it by hand, or per simulation (`Calibration.apply`)"
_STAND = "how the robot hung in its stand is not a property of the robot"
# why a format cannot hold a parameter; others: no field
REASONS = {
    "delay": "a model has no command delay: set it in the simulator (`params.json`, `Calibration.apply`)",
    "encoder_bias": "a model has no encoder bias: set it in the simulator (`params.json`, `Calibration.apply`)",
    "mass_scale": "masses are in the model: export mjcf and convert that",
    "com_offset": "centres of mass are in the model: export mjcf and convert that",
    "inertia_shape": "inertias are in the model: use params.json",
    "contact_friction": _CONTACT,
    "contact_timeconst": _CONTACT,
    "contact_dampratio": _CONTACT,
    "stall_torque": "there is one torque limit, for rest and motion",
    "no_load_speed": "the torque-speed line is not in this table",
    "torque_offset": "there is no constant torque: feed it forward",
    "tilt": _STAND,
    "mount_stiffness": _STAND,
    "mount_damping": _STAND,
}


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
    compile_model(load_robot(folder))  # the written file must open again
    return _finished(folder, result, losses)


def _empty(out: str | Path) -> Path:
    folder = Path(out)
    if folder.exists() and any(folder.iterdir()):
        raise TrueupError("exists and is not empty; choose another folder", file=folder)
    return folder


def _finished(folder: Path, result: Calibration, losses: list[str]) -> Export:
    """Write params.json and LOSSES.md, common to all formats."""
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


def _put(tree: XmlNode, estimate: Estimate) -> str:
    """Write one estimate into the model; returns why it could not be written, or nothing."""
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


def _write_body(body: XmlNode, estimate: Estimate) -> bool:
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


# --- tables ---
def reason(name: str) -> str:
    """Why a parameter is lost in an export."""
    if name.startswith("friction_"):
        return "friction that depends on load or speed is reduced to its constant part and damping"
    return REASONS.get(name, "has no field there: use params.json")


class JointTable(NamedTuple):
    """Calibrated values (njoint,) by name, SI units; the delay in physics steps of the simulator that will read them.

    head  of a Python file
    """

    spec: RobotSpec
    values: dict[str, FloatArray]
    delay_steps: int
    head: str

    def rows(self, template: str) -> str:
        """The template for every joint, filled with its name and values."""
        spec, bounds = self.spec, {"low": self.spec.position_low, "high": self.spec.position_high}
        columns = {**self.values, **bounds, "velocity": spec.velocity_limit}
        each = ({key: f"{column[k]:.6g}" for key, column in columns.items()} for k in range(spec.njoint))
        named = zip(spec.joint_names, each, strict=True)
        return "\n".join(template.format(name=name, steps=self.delay_steps, **texts) for name, texts in named)


def write_table(to: str, robot: Robot, result: Calibration, physics_hz: float | None) -> tuple[str, str, list[str]]:
    """File name, text, and what is lost; delays are in steps of `physics_hz` (the spec's)."""
    if to not in TABLES:
        raise TrueupError(f"no export called {to!r}; there are mjcf, {', '.join(TABLES)}")
    if physics_hz is not None and physics_hz <= 0:
        raise TrueupError(f"physics_hz must be positive, found {physics_hz}")
    rate = physics_hz or robot.spec.physics_hz
    sim = BatchSim(
        robot, able_to_set(SimCfg(model=ModelCfg(base="fixed")), [parameter.name for parameter in result.parameters])
    )
    result.apply(sim)
    values = {name: sim.params.get(name)[0] for name in _NAMES}
    delay, bias = float(values["delay"].mean()), values["encoder_bias"]
    steps = int(np.round(delay * rate))
    head = (
        f'"""Calibrated actuators of {robot.spec.name}, for a physics step of 1/{rate:g} s. Losses: LOSSES.md."""\n\n'
    )
    file, text, losses = TABLES[to](JointTable(robot.spec, values, steps, head))
    if to == "urdf" and delay:
        losses.append(f"delay: URDF has none ({1e3 * delay:.2f} ms)")
    elif abs(off := steps / rate - delay) >= 1e-6:
        losses.append(
            f"delay: {1e3 * delay:.2f} ms is {delay * rate:.2f} steps at {rate:g} Hz; rounded to {steps} "
            f"({1e3 * off:+.2f} ms)"
        )
    if values["stiffness"].any():
        losses.append("stiffness: joint springs have no field")
    losses += [f"{entry.label}: {reason(entry.name)}" for entry in result.parameters if entry.name not in _NAMES]
    if bias.any():
        losses.append(
            f"encoder_bias: no field (largest {1e3 * np.abs(bias).max():.1f} mrad): subtract it from what is "
            "measured and from what is commanded"
        )
    return file, text, losses


def _urdf(table: JointTable) -> tuple[str, str, list[str]]:
    """`<dynamics>` and `<limit>` of every joint, to be merged into a URDF."""
    rows = table.rows(
        '  <joint name="{name}">\n    <dynamics damping="{damping}" friction="{friction}"/>\n'
        '    <limit lower="{low}" upper="{high}" effort="{torque_limit}" velocity="{velocity}"/>\n  </joint>'
    )
    head = "<!-- Calibrated joint dynamics: merge into the joints of the same names. Losses: LOSSES.md. -->"
    largest = table.values["armature"].max()
    losses = [f"armature: URDF has no rotor inertia (largest {largest:.3g} kg m^2)", "kp, kd: URDF has no servo gains"]
    return "joints.urdf.xml", f'{head}\n<robot name="{table.spec.name}">\n{rows}\n</robot>\n', losses


def _isaaclab(table: JointTable) -> tuple[str, str, list[str]]:
    """An actuator configuration for `ArticulationCfg.actuators`; field names of Isaac Lab 2.x, read by 3.x too."""
    value = table.values
    fields = {
        "effort_limit": value["torque_limit"],
        "velocity_limit": table.spec.velocity_limit,
        "stiffness": value["kp"],
        "damping": value["kd"],
        "armature": value["armature"],
        "friction": value["friction"],
        "dynamic_friction": value["friction"],
        "viscous_friction": value["damping"],
    }
    lines = [f"    joint_names_expr={list(table.spec.joint_names)!r},"]
    for name, column in fields.items():
        pairs = (f"{joint!r}: {number:.6g}" for joint, number in zip(table.spec.joint_names, column, strict=True))
        lines.append(f"    {name}={{{', '.join(pairs)}}},")
    lines += [f"    {end}_delay={table.delay_steps}," for end in ("min", "max")]
    body = "\n".join(["ACTUATORS = DelayedPDActuatorCfg(", *lines, ")", ""])
    unit = "friction: in N m (Isaac Sim 5 and later); older ones read a coefficient without unit"
    text = f"{table.head}from isaaclab.actuators import DelayedPDActuatorCfg\n\n{body}"
    return "actuators_isaaclab.py", text, [unit]


def _mjlab(table: JointTable) -> tuple[str, str, list[str]]:
    """One actuator configuration a joint, for `EntityArticulationInfoCfg.actuators`."""
    rows = table.rows(
        "    BuiltinPositionActuatorCfg(\n        target_names_expr=({name!r},),\n"
        "        stiffness={kp},\n        damping={kd},\n"
        "        effort_limit={torque_limit},\n        armature={armature},\n"
        "        frictionloss={friction},\n        viscous_damping={damping},\n"
        "        delay_min_lag={steps},\n        delay_max_lag={steps},\n    ),"
    )
    text = f"{table.head}from mjlab.actuator import BuiltinPositionActuatorCfg\n\nACTUATORS = (\n{rows}\n)\n"
    return "actuators_mjlab.py", text, []


TABLES: dict[str, Callable[[JointTable], tuple[str, str, list[str]]]] = {
    "urdf": _urdf,
    "isaaclab": _isaaclab,
    "mjlab": _mjlab,
}
