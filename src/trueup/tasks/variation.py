"""Domain randomisation of an environment: randomised parameters, their curriculum, pushes, start states."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError
from trueup.core.rows import RowRandom
from trueup.tasks.task import Start
from trueup.tasks.terrain import Climb, Float32
from trueup.world.batch import BatchSim
from trueup.world.engines.simulation import Simulation
from trueup.world.fitted.origins import origins
from trueup.world.fitted.posterior import Fitted
from trueup.world.push import PushCfg, Pushes
from trueup.world.randomization.adr import Adr, AdrCfg
from trueup.world.randomization.randomize import Randomizer, Ranges


class Variation:
    """Draws randomised parameters and pushes, at resets and within episodes."""

    def __init__(
        self,
        sim: BatchSim,
        ranges: Ranges,
        pushes: PushCfg | None,
        fitted: Fitted | None = None,
        adr: AdrCfg | None = None,
        ramp_s: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """`ramp_s`: simulated times between which ranges and pushes grow; ranges under ADR grow by success instead."""
        self.origins = origins(sim, ranges, fitted)
        self.randomizer = Randomizer(sim, ranges, fitted) if ranges or fitted is not None else None
        self.adr: Adr | None = None
        if adr is not None:
            if self.randomizer is None or not ranges:
                raise TrueupError("ADR needs ranges to grow: this environment randomises nothing")
            self.adr = Adr(self.randomizer, adr, RowRandom(sim.cfg.seed, "adr", sim.nsim, sim.cfg.first_row))
        self._pushes = Pushes(sim, pushes) if pushes is not None and sim.free_base else None
        self._ramp = tuple(round(t / sim.control_dt) for t in ramp_s)
        if self.randomizer is not None:
            self._start, self._limits = self.randomizer.start_point[:, None], self.randomizer.bounds.copy()
        self.widen(0)
        self.factors: Float32 = np.zeros((sim.nsim, 0), np.float32)  # hidden factors of every row
        if self.randomizer is not None:
            self.randomizer.apply()
            self.factors = self.randomizer.factors

    def begin(self, ids: Ids) -> None:
        """Draw the parameters of new episodes in rows `ids`; call before their simulations are reset."""
        if self.randomizer is None:
            return
        pins = None if self.adr is None else self.adr.choose(ids)
        self.randomizer.reset(ids, pins)
        self.factors[ids] = self.randomizer.factors_of(ids)

    def widen(self, steps: int) -> None:
        """Set the widths of ranges and pushes that the curriculum has reached after `steps` control steps."""
        begin, end = self._ramp
        share = min(1.0, max(0, steps - begin) / (end - begin)) if end > begin else 1.0
        self.share = share
        if self._pushes is not None:
            self._pushes.share = share
        if self.randomizer is not None and self.adr is None and end > begin:
            self.randomizer.bounds[:] = self._start + share * (self._limits - self._start)

    def begun(self, ids: Ids) -> None:
        """The simulations of rows `ids` have been reset."""
        if self._pushes is not None:
            self._pushes.reset(ids)

    def ended(self, ids: Ids, performance: NDArray[np.floating]) -> None:
        """Report the scores, in [0, 1], of the episodes that ended in rows `ids`."""
        if self.adr is not None:
            self.adr.report(ids, np.asarray(performance, np.float64))

    def advance(self) -> None:
        """Draw interval and per-step randomisation before a control step."""
        if self.randomizer is not None and self.randomizer.advance():
            self.factors = self.randomizer.factors
        if self._pushes is not None:
            self._pushes.advance()

    def metrics(self) -> dict[str, float]:
        """Metrics of the curriculum."""
        return {} if self.adr is None else self.adr.metrics()

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint."""
        out: dict[str, NDArray[np.generic]] = {}
        for name, part in (("draw", self.randomizer), ("adr", self.adr), ("push", self._pushes)):
            if part is not None:
                out |= {f"{name}/{key}": values for key, values in part.memory().items()}
        return out

    def restored(self) -> None:
        """The live arrays have been filled from a checkpoint: bring them into the simulation."""
        if self.randomizer is not None:
            self.randomizer.restored()
            self.factors = self.randomizer.factors


class Starts:
    """Draws start states; `random` is all that a checkpoint needs of it."""

    def __init__(self, start: Start, sim: Simulation, random: RowRandom) -> None:
        self._start, self._sim, self.random = start, sim, random
        names = sim.robot.spec.joint_names
        for name in start.pose:
            if name not in names:
                raise TrueupError(f"the start pose names joint {name!r}, which robot {sim.robot.spec.name!r} lacks")
        default = sim.robot.spec.default_pose
        self._pose = np.array([start.pose.get(name, at) for name, at in zip(names, default, strict=True)])

    def draw(self, ids: Ids, climb: Climb | None = None) -> tuple[FloatArray, FloatArray]:
        """Return qpos (rows, nq), qvel (rows, nv) about the default pose at rest, in the middle of each row's patch."""
        qpos, qvel = self._about_default(ids)
        if climb is not None and self._sim.free_base:
            at = self._sim.base_qpos
            qpos[:, at : at + 2] = climb.middle(ids)
            qpos[:, at + 2] += climb.terrain.height_at(*qpos[:, at : at + 2].T.astype(np.float32))
        return qpos, qvel

    def _about_default(self, ids: Ids) -> tuple[FloatArray, FloatArray]:
        start, sim = self._start, self._sim
        njoint = sim.robot.spec.njoint
        unit = 2.0 * self.random.uniform(2 * njoint + 9, ids) - 1.0
        qpos = np.repeat(sim.default_qpos[None], len(ids), axis=0)
        qvel = np.zeros((len(ids), sim.model.nv))
        low, high = sim.robot.spec.position_low, sim.robot.spec.position_high
        pose = self._pose + start.joint_pos * unit[:, :njoint]
        qpos[:, sim.index.qpos] = np.clip(pose, low, high)
        qvel[:, sim.index.dof] = start.joint_vel * unit[:, njoint : 2 * njoint]
        if sim.free_base:
            rest = unit[:, 2 * njoint :]
            yaw = np.pi * rest[:, 2] if start.any_yaw else 0.0 * rest[:, 2]
            at, dof = sim.base_qpos, sim.base_dof
            qpos[:, at + 3 : at + 7] = heading_and_tilt(yaw, start.tilt * rest[:, 0], start.tilt * rest[:, 1])
            qvel[:, dof : dof + 3] = start.vel * rest[:, 3:6]
            qvel[:, dof + 3 : dof + 6] = start.spin * rest[:, 6:9]
        return qpos, qvel


def heading_and_tilt(yaw: FloatArray, roll: FloatArray, pitch: FloatArray) -> FloatArray:
    """Quaternions (n, 4) w x y z of yaw about z, then pitch about y, then roll about x."""
    cy, sy = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
    cp, sp = np.cos(0.5 * pitch), np.sin(0.5 * pitch)
    cr, sr = np.cos(0.5 * roll), np.sin(0.5 * roll)
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=1,
    )
