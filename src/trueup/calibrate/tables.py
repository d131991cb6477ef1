"""Joint tables of a calibrated robot for URDF, Isaac Lab and mjlab, with the parameters that each cannot hold.

Values are read from a simulation that the calibration was applied to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.robot.spec import RobotSpec
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration
from trueup.world.parameters.able_to_set import able_to_set

FloatArray = NDArray[np.float64]
_NAMES = ("armature", "damping", "friction", "kp", "kd", "torque_limit", "delay", "encoder_bias", "stiffness")
_CONTACT = "contact is a property of materials: set it by hand, or per simulation (`Calibration.apply`)"
_STAND = "how the robot hung in its stand is not a property of the robot"
# why a format has no place for a parameter; others: no field
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
    sim = BatchSim(robot, able_to_set(SimCfg(model=ModelCfg(base="fixed")), [one.name for one in result.parameters]))
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
