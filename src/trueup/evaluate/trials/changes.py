"""Parameters of trials: every row has its own numbers, from a calibration's posterior, a suite and a scenario.

Fitted parameters are drawn from a calibration's posterior and excluded from the suite's variation. A scenario's own
changes come last and act on what each row has by then. All of it goes through `params.get` and `params.set`, so that
the numbers of a batch can be carried into another engine by name.
"""

from __future__ import annotations

from collections.abc import Mapping

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.rows import RowRandom
from trueup.evaluate.scenarios.scenario import SENSOR_NOISE, TOOL, TRUNK, ParameterChange
from trueup.robot.model import trunk_body
from trueup.world.batch import BatchSim
from trueup.world.fitted.calibration import SimParams
from trueup.world.fitted.posterior import Fitted
from trueup.world.parameters.params import PARAMETERS
from trueup.world.parameters.payload import with_payload
from trueup.world.randomization.randomize import Randomizer
from trueup.world.randomization.targets import PAYLOAD, RESTITUTION, damp_ratio, parts_of

_PAYLOAD_UP = (0.0, 0.0, 0.1)  # m above the trunk's origin


class Changer:
    """Changes parameters of the rows of one batch. `touched`: names of those that differ from the robot's own."""

    def __init__(self, sim: BatchSim) -> None:
        self._sim = sim
        self.touched: list[str] = []
        self._fitted: frozenset[str] = frozenset()

    def from_posterior(self, fit: SimParams) -> None:
        """Draw everything that was fitted, each row once."""
        fitted = Fitted(fit, self._sim)
        Randomizer(self._sim, {}, fitted).apply()
        self._fitted = frozenset(fitted.names)
        self.touched += fitted.names

    def vary(self, changes: Mapping[str, ParameterChange]) -> None:
        """Apply changes to parameters that were not fitted."""
        self.apply({name: change for name, change in changes.items() if not self._fitted & set(parts_of(name))})

    def apply(self, changes: Mapping[str, ParameterChange]) -> None:
        """Apply changes with numbers drawn for each row."""
        for name, change in changes.items():
            self.move(name, change, self._draw(name, change))

    def repeat(self, worlds: int) -> None:
        """Give row k the parameters of row k modulo `worlds`."""
        rows = np.arange(self._sim.nsim) % worlds
        for name in dict.fromkeys(self.touched):
            self._sim.params.set(name, self._sim.params.get(name)[rows])

    def move(self, name: str, change: ParameterChange, numbers: FloatArray) -> None:
        """Change a parameter by numbers (nrow, 1) or one per joint or body (nrow, n); NaN leaves a row as it is."""
        sim = self._sim
        if name == SENSOR_NOISE:
            before = 1.0 if sim.sensors.noise_scale is None else sim.sensors.noise_scale
            sim.sensors.noise_scale = np.where(np.isnan(numbers), before, numbers)
        elif name == PAYLOAD:
            self._load(np.nan_to_num(numbers[:, 0]), change.of)
        elif name == RESTITUTION:
            before = sim.params.get("contact_dampratio")
            new = damp_ratio(np.nan_to_num(numbers[:, 0]))
            sim.params.set("contact_dampratio", np.where(np.isnan(numbers[:, 0]), before, new))
            self.touched.append("contact_dampratio")
        else:
            for part in parts_of(name):
                self._operate(part, change, numbers)

    def _operate(self, name: str, change: ParameterChange, numbers: FloatArray) -> None:
        sim, of = self._sim, self._of(name, change.of)
        values = sim.params.get(name)
        columns = sim.params.columns(name, of)
        at = (slice(None), columns) if PARAMETERS[name].scope != "robot" else (slice(None),)
        chosen = values[at]
        into = chosen if not change.axis else chosen[..., [_axis(name, change.axis)]]
        numbers = numbers.reshape(len(into), *(into.shape[1:] if numbers.shape[1] > 1 else (1,) * (into.ndim - 1)))
        new = {"set": lambda: 0.0 * into + numbers, "scale": lambda: into * numbers, "add": lambda: into + numbers}
        result = np.where(np.isnan(numbers), into, new[change.operation]())
        if change.axis:
            chosen[..., [_axis(name, change.axis)]] = result
            result = chosen
        sim.params.set(name, result, of=of)
        self.touched.append(name)

    def _draw(self, name: str, change: ParameterChange) -> FloatArray:
        """(nrow, 1) or, with `each`, (nrow, n)."""
        sim, (low, high), part = self._sim, change.bounds, parts_of(name)[0]
        width = 1
        if change.each and name not in (SENSOR_NOISE, PAYLOAD, RESTITUTION):
            values, of = sim.params.get(part), self._of(part, change.of)
            width = (values if of is None else values[:, sim.params.columns(part, of)])[0].size
            width = width // len(PARAMETERS[part].axes) if change.axis else width
        random = RowRandom(sim.cfg.seed, f"scenario {name}", sim.nsim, sim.cfg.first_row)
        return low + (high - low) * random.uniform(width)

    def _load(self, kilograms: FloatArray, of: str | tuple[str, ...] | None) -> None:
        """Put a load on the trunk, or where the tool is."""
        sim = self._sim
        robot, is_tool = sim.robot, of == TOOL or (of is None and not sim.free_base)
        if is_tool and robot.spec.end_effector is None:
            raise TrueupError(f"a load on the tool needs an end_effector, which robot {robot.spec.name!r} has not")
        if is_tool:
            body, place = _tool_place(sim)
        else:
            body = trunk_body(sim.model, robot) if of is None or of == TRUNK else str(of)
            place = np.array(_PAYLOAD_UP)
        own = sim.model.body(body)
        mass, com, inertia = (sim.params.get(key) for key in ("mass_scale", "com_offset", "inertia"))
        k = sim.params.columns("mass_scale", body)
        total, centre, moved = with_payload(
            mass[:, k][:, 0] * own.mass[0], own.ipos + com[:, k][:, 0], inertia[:, k][:, 0], kilograms, place
        )
        sim.params.set("mass_scale", (total / own.mass[0])[:, None], of=body)
        sim.params.set("com_offset", (centre - own.ipos)[:, None], of=body)
        sim.params.set("inertia", moved[:, None], of=body)
        self.touched += ["mass_scale", "com_offset", "inertia"]

    def _of(self, name: str, of: str | tuple[str, ...] | None) -> tuple[str, ...] | None:
        if of is None or PARAMETERS[name].scope == "robot":
            return None
        named = {TRUNK: lambda: trunk_body(self._sim.model, self._sim.robot)}
        return tuple(named[name]() if name in named else name for name in ((of,) if isinstance(of, str) else of))


def _tool_place(sim: BatchSim) -> tuple[str, FloatArray]:
    """The body with a mass that carries the tool, and the tool's place in its frame (3,)."""
    model, data = sim.model, mujoco.MjData(sim.model)
    data.qpos[:] = sim.default_qpos
    mujoco.mj_kinematics(model, data)
    site = model.site(str(sim.robot.spec.end_effector)).id
    body = int(model.site_bodyid[site])
    while model.body(body).name not in sim.params.body_names:
        body = int(model.body_parentid[body])
    place: FloatArray = data.xmat[body].reshape(3, 3).T @ (data.site_xpos[site] - data.xpos[body])
    return str(model.body(body).name), place


def _axis(name: str, axis: str) -> int:
    axes = PARAMETERS[name].axes
    if axis not in axes:
        raise TrueupError(f"parameter {name!r} has no axis {axis!r}{did_you_mean(axis, axes)}")
    return axes.index(axis)


def masses(sim: BatchSim) -> FloatArray:
    """Of the whole robot in each row, (nrow,) kg."""
    own = np.array([sim.model.body(name).mass[0] for name in sim.params.body_names])
    total: FloatArray = np.einsum("ij->i", sim.params.get("mass_scale") * own)  # in one order for any number of rows
    return total
