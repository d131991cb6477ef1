"""Randomised parameters: which name, how it changes, from which distribution, when it is drawn.

Besides the names of `world.parameters.params` there are derived ones, each of which changes several of them:

- `motor_strength`  scales kp, kd and torque limit together, per joint
- `payload`         kg on top of the base: its mass, centre of mass and inertia follow (`world.parameters.payload`)
- `restitution`     e in [0, 1): damping ratio z with e = exp(-pi z / sqrt(1 - z^2)); the time constant stays, or
                    friction, which has the same, would let feet creep

Every draw belongs to a row (`core.rows`), so simulation k has the same parameters in a batch of any size. What a
calibration fitted comes from its posterior instead (`world.fitted.posterior`; the rule of overlap is in `targets`), and
ranges may grow by success (`adr`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.rows import RowRandom
from trueup.world.batch import BatchSim
from trueup.world.fitted.posterior import Fitted
from trueup.world.parameters.params import PARAMETERS
from trueup.world.randomization.targets import STRENGTH, VIRTUAL, RandomizedParameters

_TAIL = float(ndtr(-2.0))  # share of a normal distribution below two standard deviations
Moment = Literal["startup", "reset", "interval", "step"]


@dataclass(frozen=True, kw_only=True)
class Draw:
    """A range and how it is used.

    operation     `scale` multiplies the nominal value, `add` adds to it, `set` replaces it
    distribution  normal: low and high lie two standard deviations from the mean, and nothing lies beyond them
    moment        drawn once at the start-up, at each reset, after times drawn from `interval_s`, or at each step
    each          one number per joint or body (and axis) instead of one per simulation
    of            joints or bodies concerned; None: all
    factor        shown to critics and teachers among the hidden factors
    """

    operation: Literal["scale", "add", "set"]
    low: float
    high: float
    distribution: Literal["uniform", "log_uniform", "normal"] = "uniform"
    moment: Moment = "reset"
    interval_s: tuple[float, float] = (5.0, 10.0)
    each: bool = True
    of: tuple[str, ...] | None = None
    factor: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise TrueupError(f"a range needs finite low <= high, found [{self.low}, {self.high}]")
        if self.distribution == "log_uniform" and self.low <= 0:
            raise TrueupError(f"a log-uniform range needs low > 0, found {self.low}")


Ranges = Mapping[str, Draw]
_Layout = tuple[Ids, Ids, list[tuple[str, Ids]]]


class Randomizer:
    """Draws parameters for simulations and writes them.

    `bounds` (nentry, 2) are the ranges in force, in the order of `names`; they may be narrowed or widened, and rows may
    be pinned to a boundary of one entry (`pins`), as `world.randomization.adr` does. `values` (nsim, ncolumn) are the
    drawn numbers, `posterior` (nsim, count) the standard normal ones behind draws from a calibration.
    """

    def __init__(self, sim: BatchSim, ranges: Ranges, fitted: Fitted | None = None) -> None:
        for name in ranges:
            if name not in PARAMETERS and name not in VIRTUAL:
                known = [*PARAMETERS, *VIRTUAL]
                raise TrueupError(f"nothing to randomise is called {name!r}{did_you_mean(name, known)}")
        self._sim, self.names, self.fitted = sim, tuple(ranges), fitted
        self._draws = tuple(ranges.values())
        self._targets = RandomizedParameters(sim, ranges, fitted)
        widths = [self._targets.width(name) if draw.each else 1 for name, draw in ranges.items()]
        ends = np.cumsum([0, *widths]).tolist()
        self._columns = [slice(start, end) for start, end in pairwise(ends)]
        self._entry = np.repeat(np.arange(len(widths)), widths)  # of each column
        self._targets.lay_out(dict(zip(ranges, self._columns, strict=True)))
        self._layouts: dict[tuple[int, ...], _Layout] = {}
        self.values: FloatArray = np.zeros((sim.nsim, ends[-1]))
        self._full: FloatArray = np.array([(draw.low, draw.high) for draw in self._draws], float).reshape(-1, 2)
        self.bounds = self._full.copy()
        self._random = RowRandom(sim.cfg.seed, "randomize", sim.nsim, sim.cfg.first_row)
        self._posterior = RowRandom(sim.cfg.seed, "posterior", sim.nsim, sim.cfg.first_row)
        self.posterior: FloatArray = np.zeros((sim.nsim, 0 if fitted is None else fitted.count))
        self._left = np.zeros((sim.nsim, len(widths)), np.int64)  # steps until an interval ends
        self._shown = np.flatnonzero([self._draws[k].factor for k in self._entry])  # columns of hidden factors

    def _at(self, *moments: Moment) -> list[int]:
        return [k for moment in moments for k, draw in enumerate(self._draws) if draw.moment == moment]

    # --- drawing ---
    def apply(self, ids: Ids | None = None) -> None:
        """Give simulations `ids` (None: all) fresh parameters of every kind."""
        self._draw_entries(list(range(len(self.names))), ids)
        self._draw_posterior(ids)
        self.write(ids)

    def reset(self, ids: Ids, pins: tuple[Ids, Ids] | None = None) -> None:
        """Draw what is due when episodes begin; `pins` are (entry, side) of each row, entry -1: none."""
        due = self._at("reset", "interval", "step")
        if not due and self.fitted is None:
            return
        self._draw_entries(due, ids)
        if pins is not None:
            entries, sides = pins
            for k in np.unique(entries[entries >= 0]):
                at = np.flatnonzero(entries == k)
                self.values[ids[at], self._columns[k]] = self.bounds[k, sides[at]][:, None]
        self._draw_posterior(ids)
        self.write(ids)

    def advance(self) -> bool:
        """One control step has passed: redraw what changes within episodes; returns whether anything did."""
        due: list[tuple[list[int], Ids | None]] = []
        if step := self._at("step"):
            due.append((step, None))
        if intervals := self._at("interval"):
            self._left -= 1
            over = [(k, np.flatnonzero(self._left[:, k] <= 0)) for k in intervals]
            due += [([k], ids) for k, ids in over if len(ids)]
        for which, ids in due:
            self._draw_entries(which, ids)
            self.write(ids, [self.names[k] for k in which])
        return bool(due)

    def restored(self) -> None:
        """The arrays of `memory` were filled from a checkpoint: bring them into the simulation."""
        self.write()

    def write(self, ids: Ids | None = None, names: list[str] | None = None) -> None:
        """Bring the drawn numbers of rows `ids` into the simulation (of some names only, if given)."""
        rows = np.arange(self._sim.nsim) if ids is None else ids
        self._targets.write(self.values[rows], self.posterior[rows], rows, names)

    # --- what others may know ---
    @property
    def factors(self) -> NDArray[np.float32]:
        """The hidden factors of every row: drawn numbers in [-1, 1] of their full range, posterior draws in sigmas."""
        return self.factors_of(np.arange(self._sim.nsim))

    @property
    def factor_names(self) -> list[tuple[str, int]]:
        """Name and number of columns of each hidden factor."""
        shown = [
            (name, at) for name, draw, at in zip(self.names, self._draws, self._columns, strict=True) if draw.factor
        ]
        return [*((name, at.stop - at.start) for name, at in shown), ("posterior", self.posterior.shape[1])]

    def factors_of(self, ids: Ids) -> NDArray[np.float32]:
        """The hidden factors of rows `ids`."""
        low, high = self._full[self._entry[self._shown]].T
        half = np.maximum(0.5 * (high - low), 1e-9)
        drawn = (self.values[ids[:, None], self._shown] - 0.5 * (low + high)) / half
        return np.concatenate([drawn, self.posterior[ids]], axis=1).astype(np.float32)

    @property
    def start_point(self) -> FloatArray:
        """The value of each entry that leaves the simulation as it is, (nentry,), inside its range."""
        centre = np.array([self._neutral(name, draw) for name, draw in zip(self.names, self._draws, strict=True)])
        return np.clip(centre, *self._full.T)

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint; call `restored` after they were filled from one."""
        return {
            "values": self.values,
            "bounds": self.bounds,
            "counter": self._random.counter,
            "posterior": self.posterior,
            "posterior_counter": self._posterior.counter,
            "left": self._left,
        }

    # --- inside ---
    def _draw_entries(self, which: list[int], ids: Ids | None) -> None:
        """Draw numbers of some entries, and the time until each is drawn again."""
        rows: Ids | slice = slice(None) if ids is None else ids
        columns, entry, other = self._layout(tuple(which))
        unit = self._random.uniform(len(columns) + len(which), ids)
        low, high = self.bounds[entry].T
        numbers = unit[:, len(which) :]
        new = low + (high - low) * numbers
        for distribution, at in other:
            new[:, at] = _spread(distribution, low[at], high[at], numbers[:, at])
        self.values[rows if ids is None else ids[:, None], columns] = new
        for j, k in enumerate(which):
            if self._draws[k].moment == "interval":
                short, long = self._draws[k].interval_s
                self._left[rows, k] = np.round((short + (long - short) * unit[:, j]) / self._sim.control_dt)

    def _layout(self, which: tuple[int, ...]) -> _Layout:
        """Columns of some entries, the entry of each, and the places of those that are not uniform; made once."""
        if which not in self._layouts:
            columns = np.concatenate([np.flatnonzero(self._entry == k) for k in which] or [np.zeros(0, np.intp)])
            kinds = np.array([self._draws[k].distribution for k in self._entry[columns]])
            other = [(kind, np.flatnonzero(kinds == kind)) for kind in ("log_uniform", "normal")]
            self._layouts[which] = columns, self._entry[columns], [(kind, at) for kind, at in other if len(at)]
        return self._layouts[which]

    def _draw_posterior(self, ids: Ids | None) -> None:
        if self.fitted is not None and self.fitted.count:
            self.posterior[slice(None) if ids is None else ids] = self._posterior.normal(self.fitted.count, ids)

    def _neutral(self, name: str, draw: Draw) -> float:
        if draw.operation == "scale":
            return 1.0
        if draw.operation == "add" or name in VIRTUAL:
            return 1.0 if name == STRENGTH else 0.0
        return float(np.mean(self._targets.nominal(name)))


def _spread(distribution: str, low: FloatArray, high: FloatArray, unit: FloatArray) -> FloatArray:
    """Numbers of the distribution from numbers of [0, 1)."""
    if distribution == "log_uniform":
        return low * (high / low) ** unit
    return 0.5 * (low + high) + 0.25 * (high - low) * ndtri(_TAIL + (1.0 - 2.0 * _TAIL) * unit)


def joint_ranges() -> dict[str, Draw]:
    """Servo and joint ranges that any robot can take, around the model's own values."""
    return {
        "motor_strength": Draw(operation="scale", low=0.85, high=1.15, factor=True),
        "kp": Draw(operation="scale", low=0.8, high=1.2),
        "kd": Draw(operation="scale", low=0.8, high=1.2),
        "damping": Draw(operation="scale", low=0.5, high=1.5),
        "friction": Draw(operation="scale", low=0.5, high=2.0),
        "armature": Draw(operation="scale", low=0.7, high=1.5),
        "delay": Draw(operation="set", low=0.0, high=0.02, each=False, factor=True),
        "encoder_bias": Draw(operation="set", low=-0.05, high=0.05),
    }


def locomotion_ranges(base: str) -> dict[str, Draw]:
    """The ranges users expect for a legged robot: joints, base, payload, ground and gravity."""
    return {
        "mass_scale": Draw(operation="set", low=0.85, high=1.15, of=(base,), factor=True),
        "com_offset": Draw(operation="set", low=-0.03, high=0.03, of=(base,), factor=True),
        "payload": Draw(operation="set", low=0.0, high=2.0, factor=True),
        "contact_friction": Draw(operation="set", low=0.3, high=2.0, distribution="log_uniform", factor=True),
        "restitution": Draw(operation="set", low=0.0, high=0.5, factor=True),
        "tilt": Draw(operation="set", low=-0.05, high=0.05, factor=True),
        **joint_ranges(),
    }
