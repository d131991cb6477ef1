"""Joint tables of a calibrated robot for URDF, Isaac Lab and mjlab, with the parameters that each cannot hold.

Values are read from a simulation that the calibration was applied to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration
from trueup.world.parameters.able_to_set import able_to_set

FloatArray = NDArray[np.float64]
_NAMES = ("armature", "damping", "friction", "kp", "kd", "torque_limit", "delay", "encoder_bias", "stiffness")
_STAND = "how the robot hung in its stand is not a property of the robot"
_ELSEWHERE = {
    "mass_scale": "masses are in the model: export mjcf and convert that",
    "com_offset": "centres of mass are in the model: export mjcf and convert that",
    "inertia_shape": "inertias are in the model: use params.json",
    "contact_friction": "contact is a property of materials there: set it by hand",
    "contact_timeconst": "contact softness has no equal there",
    "contact_dampratio": "contact damping has no equal there",
    "stall_torque": "the torque-speed line is not in this table",
    "no_load_speed": "the torque-speed line is not in this table",
    "torque_offset": "a constant torque has no field: feed it forward",
    "tilt": _STAND,
    "mount_stiffness": _STAND,
    "mount_damping": _STAND,
}


@dataclass(frozen=True, kw_only=True)
class JointTable:
    """Calibrated values (njoint,) by name, SI units; physics_hz: of the simulator that will read the table."""

    robot: Robot
    result: Calibration
    values: dict[str, FloatArray]
    physics_hz: float

    @property
    def names(self) -> tuple[str, ...]:
        return self.robot.spec.joint_names

    @property
    def delay_steps(self) -> int:
        """The delay in whole physics steps."""
        return int(np.round(self.values["delay"].mean() * self.physics_hz))

    def losses(self, *, delay: bool = True) -> list[str]:
        """What no joint table holds, and with `delay` the rounding of the delay."""
        out = self._delay_loss() if delay else []
        if self.values["stiffness"].any():
            out.append("stiffness: joint springs have no field")
        for entry in self.result.parameters:
            if entry.name.startswith("friction_"):
                out.append(f"{entry.label}: friction that depends on load or speed is reduced to its constant part")
            elif entry.name not in _NAMES:
                why = _ELSEWHERE.get(entry.name, "has no field there: use params.json")
                out.append(f"{entry.label}: {why}")
        bias = self.values["encoder_bias"]
        if bias.any():
            out.append(
                f"encoder_bias: no field (largest {1e3 * np.abs(bias).max():.1f} mrad): subtract it from what is "
                "measured and from what is commanded"
            )
        return out

    def _delay_loss(self) -> list[str]:
        found, whole = float(self.values["delay"].mean()), self.delay_steps / self.physics_hz
        if abs(found - whole) < 1e-6:
            return []
        return [
            f"delay: {1e3 * found:.2f} ms is {found * self.physics_hz:.2f} steps at {self.physics_hz:g} Hz; rounded to "
            f"{self.delay_steps} ({1e3 * (whole - found):+.2f} ms)"
        ]


def joint_table(robot: Robot, result: Calibration, physics_hz: float | None = None) -> JointTable:
    """Read the calibrated values of every joint from a simulation; delays are in steps of `physics_hz` (the spec's)."""
    if physics_hz is not None and physics_hz <= 0:
        raise TrueupError(f"physics_hz must be positive, found {physics_hz}")
    names = [entry.name for entry in result.parameters]
    sim = BatchSim(robot, able_to_set(SimCfg(model=ModelCfg(base="fixed")), names))
    result.apply(sim)
    values = {name: sim.params.get(name)[0] for name in _NAMES}
    return JointTable(robot=robot, result=result, values=values, physics_hz=physics_hz or robot.spec.physics_hz)


def urdf_table(table: JointTable) -> tuple[str, str, list[str]]:
    """`<dynamics>` and `<limit>` of every joint, to be merged into a URDF."""
    value, spec = table.values, table.robot.spec
    lines = [
        f'  <joint name="{name}">\n'
        f'    <dynamics damping="{value["damping"][k]:.6g}" friction="{value["friction"][k]:.6g}"/>\n'
        f'    <limit lower="{spec.position_low[k]:.6g}" upper="{spec.position_high[k]:.6g}" '
        f'effort="{value["torque_limit"][k]:.6g}" velocity="{spec.velocity_limit[k]:.6g}"/>\n'
        f"  </joint>"
        for k, name in enumerate(table.names)
    ]
    losses = [
        f"armature: URDF has no rotor inertia (largest {value['armature'].max():.3g} kg m^2)",
        "kp, kd: URDF has no servo gains",
        *([f"delay: URDF has none ({1e3 * value['delay'].mean():.2f} ms)"] if value["delay"].any() else []),
        *table.losses(delay=False),
    ]
    head = "<!-- Calibrated joint dynamics: merge into the joints of the same names. Losses: LOSSES.md. -->"
    return ("joints.urdf.xml", "\n".join([head, f'<robot name="{spec.name}">', *lines, "</robot>", ""]), losses)


def isaaclab_table(table: JointTable) -> tuple[str, str, list[str]]:
    """An actuator configuration for `ArticulationCfg.actuators`; field names of Isaac Lab 2.x, read by 3.x too."""
    fields = {
        "effort_limit": table.values["torque_limit"],
        "velocity_limit": table.robot.spec.velocity_limit,
        "stiffness": table.values["kp"],
        "damping": table.values["kd"],
        "armature": table.values["armature"],
        "friction": table.values["friction"],
        "dynamic_friction": table.values["friction"],
        "viscous_friction": table.values["damping"],
    }
    body = "\n".join(f"    {name}={_dict(table.names, values)}," for name, values in fields.items())
    text = (
        f"{_head(table)}from isaaclab.actuators import DelayedPDActuatorCfg\n\n"
        "ACTUATORS = DelayedPDActuatorCfg(\n"
        f"    joint_names_expr={list(table.names)!r},\n{body}\n"
        f"    min_delay={table.delay_steps},\n    max_delay={table.delay_steps},\n)\n"
    )
    unit = "friction: in N m (Isaac Sim 5 and later); older ones read a coefficient without unit"
    return "actuators_isaaclab.py", text, [unit, *table.losses()]


def mjlab_table(table: JointTable) -> tuple[str, str, list[str]]:
    """One actuator configuration a joint, for `EntityArticulationInfoCfg.actuators`."""
    value = table.values
    entries = [
        "    BuiltinPositionActuatorCfg(\n"
        f"        target_names_expr=({name!r},),\n"
        f"        stiffness={value['kp'][k]:.6g},\n        damping={value['kd'][k]:.6g},\n"
        f"        effort_limit={value['torque_limit'][k]:.6g},\n        armature={value['armature'][k]:.6g},\n"
        f"        frictionloss={value['friction'][k]:.6g},\n        viscous_damping={value['damping'][k]:.6g},\n"
        f"        delay_min_lag={table.delay_steps},\n        delay_max_lag={table.delay_steps},\n    ),"
        for k, name in enumerate(table.names)
    ]
    text = (
        f"{_head(table)}from mjlab.actuator import BuiltinPositionActuatorCfg\n\n"
        "ACTUATORS = (\n" + "\n".join(entries) + "\n)\n"
    )
    return "actuators_mjlab.py", text, table.losses()


def _head(table: JointTable) -> str:
    rate, name = table.physics_hz, table.robot.spec.name
    return f'"""Calibrated actuators of {name}, for a physics step of 1/{rate:g} s. Losses: LOSSES.md."""\n\n'


def _dict(names: Sequence[str], values: FloatArray) -> str:
    return "{" + ", ".join(f"{name!r}: {value:.6g}" for name, value in zip(names, values, strict=True)) + "}"


Writer = Callable[[JointTable], tuple[str, str, list[str]]]
TABLES: dict[str, Writer] = {"urdf": urdf_table, "isaaclab": isaaclab_table, "mjlab": mjlab_table}
