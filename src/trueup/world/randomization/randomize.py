"""Randomised parameters: which name, how it changes, from which distribution, when it is drawn.

Besides the names of `world.parameters.params` there are some that people think in and that touch several of them:

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.rows import RowRandom
from trueup.world.batch import BatchSim
from trueup.world.fitted.posterior import Fitted
from trueup.world.parameters.params import PARAMETERS
from trueup.world.randomization.targets import STRENGTH, VIRTUAL, Targets

FloatArray = NDArray[np.float64]
Ids = NDArray[np.intp]
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


@dataclass(frozen=True)
class _Entry:
    """One range at work: its columns among all drawn numbers."""

    name: str
    draw: Draw
    columns: slice


@dataclass(frozen=True)
class _Layout:
    """Columns that are drawn together, the entry of each, and the places of those that are not uniform."""

    columns: Ids
    entry: Ids
    other: Sequence[tuple[str, Ids]]

    @classmethod
    def of(cls, entries: list[tuple[int, _Entry]]) -> _Layout:
        pairs = [(k, c) for k, e in entries for c in range(e.columns.start, e.columns.stop)]
        entry, columns = np.array(pairs, np.intp).reshape(-1, 2).T
        kinds = {k: e.draw.distribution for k, e in entries}
        other = {kind for kind in kinds.values() if kind != "uniform"}
        places = [(kind, np.flatnonzero([kinds[k] == kind for k in entry.tolist()])) for kind in sorted(other)]
        return cls(columns, entry, places)


class Randomizer:
    """Draws parameters for simulations and writes them.

    `bounds` (nentry, 2) are the ranges in force, in the order of `names`; they may be narrowed or widened, and rows may
    be pinned to a boundary of one entry (`pin`), as `world.randomization.adr` does.
    """

    def __init__(self, sim: BatchSim, ranges: Ranges, fitted: Fitted | None = None) -> None:
        self._sim = sim
        self.names = tuple(ranges)
        for name in ranges:
            if name not in PARAMETERS and name not in VIRTUAL:
                known = [*PARAMETERS, *VIRTUAL]
                raise TrueupError(f"nothing to randomise is called {name!r}{did_you_mean(name, known)}")
        self._ranges, self.fitted = ranges, fitted
        self._targets = Targets(sim, ranges, fitted)
        self._entries: list[_Entry] = []
        start = 0
        for name, draw in ranges.items():
            width = self._targets.width(name) if draw.each else 1
            self._entries.append(_Entry(name, draw, slice(start, start + width)))
            start += width
        self._targets.lay_out({entry.name: entry.columns for entry in self._entries})
        self._layouts: dict[tuple[int, ...], _Layout] = {}
        self.values: FloatArray = np.zeros((sim.nsim, start))
        self.bounds: FloatArray = np.array([(d.low, d.high) for d in ranges.values()], float).reshape(-1, 2)
        self._random = RowRandom(sim.cfg.seed, "randomize", sim.nsim, sim.cfg.first_row)
        self._posterior = RowRandom(sim.cfg.seed, "posterior", sim.nsim, sim.cfg.first_row)
        self.posterior: FloatArray = np.zeros((sim.nsim, 0 if fitted is None else fitted.count))
        self._left = np.zeros((sim.nsim, len(self._entries)), np.int64)  # steps until an interval ends
        self._by_moment: dict[Moment, list[int]] = {
            moment: [k for k, entry in enumerate(self._entries) if entry.draw.moment == moment]
            for moment in ("startup", "reset", "interval", "step")
        }
        self._centre = np.array([self._neutral(entry) for entry in self._entries])
        self._shown = self._factor_columns()

    # --- drawing ---
    def apply(self, ids: Ids | None = None) -> None:
        """Give simulations `ids` (None: all) fresh parameters of every kind."""
        self._draw_entries(list(range(len(self._entries))), ids)
        self._draw_posterior(ids)
        self.write(ids)

    def reset(self, ids: Ids, pins: tuple[Ids, Ids] | None = None) -> None:
        """Draw what is due when episodes begin; `pins` are (entry, side) of each row, entry -1: none."""
        due = self._by_moment["reset"] + self._by_moment["interval"] + self._by_moment["step"]
        if not due and self.fitted is None:
            return
        self._draw_entries(due, ids)
        if pins is not None:
            self._pin(ids, *pins)
        self._draw_posterior(ids)
        self.write(ids)

    # --- within episodes ---
    def advance(self) -> bool:
        """One control step has passed: redraw what changes within episodes; returns whether anything did."""
        changed = bool(self._by_moment["step"])
        if self._by_moment["step"]:
            self._draw_entries(self._by_moment["step"], None)
            self.write(None, [self._entries[k].name for k in self._by_moment["step"]])
        if not self._by_moment["interval"]:
            return changed
        self._left -= 1
        for k in self._by_moment["interval"]:
            ids = np.flatnonzero(self._left[:, k] <= 0)
            if len(ids):
                self._draw_entries([k], ids)
                self.write(ids, [self._entries[k].name])
                changed = True
        return changed

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
        shown = [entry for entry in self._entries if entry.draw.factor]
        names = [(entry.name, entry.columns.stop - entry.columns.start) for entry in shown]
        return [*names, ("posterior", self.posterior.shape[1])]

    def factors_of(self, ids: Ids) -> NDArray[np.float32]:
        """The hidden factors of rows `ids`."""
        columns, middle, half = self._shown
        drawn = (self.values[ids[:, None], columns] - middle) / half
        return np.concatenate([drawn, self.posterior[ids]], axis=1).astype(np.float32)

    @property
    def start_point(self) -> FloatArray:
        """The value of each entry that leaves the simulation as it is, (nentry,), inside its range."""
        return np.clip(self._centre, *np.array([(e.draw.low, e.draw.high) for e in self._entries]).T)

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
        rows = slice(None) if ids is None else ids
        layout = self._layout(which)
        unit = self._random.uniform(len(layout.columns) + len(which), ids)
        low, high = self.bounds[layout.entry].T
        numbers = unit[:, len(which) :]
        new = low + (high - low) * numbers
        for distribution, at in layout.other:
            new[:, at] = _spread(distribution, low[at], high[at], numbers[:, at])
        self.values[rows if ids is None else ids[:, None], layout.columns] = new
        for j, k in enumerate(which):
            if self._entries[k].draw.moment == "interval":
                short, long = self._entries[k].draw.interval_s
                self._left[rows, k] = np.round((short + (long - short) * unit[:, j]) / self._sim.control_dt)

    def _factor_columns(self) -> tuple[Ids, FloatArray, FloatArray]:
        """Columns of the hidden factors, and the middle and half width of the full range of each."""
        shown = [
            (column, 0.5 * (e.draw.low + e.draw.high), max(0.5 * (e.draw.high - e.draw.low), 1e-9))
            for e in self._entries
            if e.draw.factor
            for column in range(e.columns.start, e.columns.stop)
        ]
        columns, middle, half = np.array(shown).reshape(-1, 3).T
        return columns.astype(np.intp), middle, half

    def _layout(self, which: list[int]) -> _Layout:
        """Where the numbers of some entries go; made once for each choice of them."""
        key = tuple(which)
        if key not in self._layouts:
            self._layouts[key] = _Layout.of([(k, self._entries[k]) for k in which])
        return self._layouts[key]

    def _draw_posterior(self, ids: Ids | None) -> None:
        if self.fitted is not None and self.fitted.count:
            rows = slice(None) if ids is None else ids
            self.posterior[rows] = self._posterior.normal(self.fitted.count, ids)

    def _pin(self, ids: Ids, entries: Ids, sides: Ids) -> None:
        for k in np.unique(entries[entries >= 0]):
            at = np.flatnonzero(entries == k)
            self.values[ids[at], self._entries[k].columns] = self.bounds[k, sides[at]][:, None]

    def _neutral(self, entry: _Entry) -> float:
        if entry.draw.operation == "scale":
            return 1.0
        if entry.draw.operation == "add" or entry.name in VIRTUAL:
            return 1.0 if entry.name == STRENGTH else 0.0
        return float(np.mean(self._targets.nominal(entry.name)))


def _spread(distribution: str, low: FloatArray, high: FloatArray, unit: FloatArray) -> FloatArray:
    """Numbers of the distribution from numbers of [0, 1)."""
    if distribution == "log_uniform":
        return low * (high / low) ** unit
    if distribution == "normal":
        return 0.5 * (low + high) + 0.25 * (high - low) * _normal_quantile(unit)
    return low + (high - low) * unit


def _normal_quantile(unit: FloatArray) -> FloatArray:
    """Standard normal numbers by a logistic-free fit of the inverse distribution, kept within two deviations.

    Acklam's central rational approximation (relative error below 1e-8 inside 0.02425..0.97575) is all that is needed
    there: two deviations lie at 0.02275 and 0.97725.
    """
    p = np.clip(unit, 0.02425, 0.97575) - 0.5
    r = p * p
    top = ((((-39.69683028665376 * r + 220.9460984245205) * r - 275.9285104469687) * r + 138.3577518672690) * r
           - 30.66479806614716) * r + 2.506628277459239  # fmt: skip
    bottom = ((((-54.47609879822406 * r + 161.5858368580409) * r - 155.6989798598866) * r + 66.80131188771972) * r
              - 13.28068155288572) * r + 1.0  # fmt: skip
    return np.clip(p * top / bottom, -2.0, 2.0)


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
