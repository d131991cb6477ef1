"""Traces of joints: the worst ones first with their limits drawn, the rest folded by limb.

"Worst" is nearest to a limit of position, velocity or torque, as a share of what the robot's spec allows; without a
spec, farthest from what was commanded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.report.joints.limbs import limb_of, limbs
from trueup.report.page import Badge, Cell, Page
from trueup.report.traces import joint_traces
from trueup.robot.spec import RobotSpec

WORST = 3  # joints whose traces are open
_FOLDS_ABOVE = 6  # joints: fewer need no folding
_NEAR, _AT = 0.85, 0.98  # of a limit: a warning, and as good as there


@dataclass(frozen=True, kw_only=True)
class TraceKind:
    """One kind of traces: "Positions", in rad, {"measured": (T, njoint), "target": (T, njoint)}.

    low, high  (njoint,) limits; None: none are known
    """

    title: str
    unit: str
    traces: Mapping[str, FloatArray]
    low: FloatArray | None = None
    high: FloatArray | None = None
    use: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "use", self._use())

    @property
    def limits(self) -> tuple[FloatArray, FloatArray] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    def _use(self) -> FloatArray:
        """(njoint,) largest share of the limits that any trace uses: 0 in their middle, 1 at one; NaN without."""
        values = np.concatenate(list(self.traces.values()))
        if self.low is None or self.high is None:
            return np.full(values.shape[1], np.nan)
        middle, half = (self.high + self.low) / 2, np.maximum((self.high - self.low) / 2, 1e-12)
        with np.errstate(invalid="ignore"):
            return np.nanmax(np.abs(values - middle) / half, axis=0, initial=0.0)


def quantity(title: str, unit: str, traces: Mapping[str, FloatArray], spec: RobotSpec | None) -> TraceKind:
    """Traces with the limits that a spec has for their unit."""
    if spec is None:
        return TraceKind(title=title, unit=unit, traces=traces)
    if unit == "rad":
        low, high = spec.position_low, spec.position_high
    else:
        high = spec.velocity_limit if unit == "rad/s" else spec.torque_limit
        low = -high
    return TraceKind(title=title, unit=unit, traces=traces, low=low, high=high)


def joint_sections(page: Page, time: FloatArray, joints: Sequence[str], quantities: Sequence[TraceKind]) -> None:
    """A table of the joints, worst first, and a section of traces for each quantity."""
    order = worst_first(quantities, len(joints))
    _table(page, joints, quantities, order)
    for kind in quantities:
        page.section(kind.title)
        if len(joints) <= _FOLDS_ABOVE:
            _plot(page, time, joints, kind, order)
            continue
        _plot(page, time, joints, kind, order[:WORST], f"The {WORST} joints that came nearest to a limit.")
        for limb, members in limbs(joints).items():
            _plot(page, time, joints, kind, members, folded=f"{limb}: {', '.join(joints[k] for k in members)}")


def worst_first(quantities: Sequence[TraceKind], count: int) -> list[int]:
    """Joints by their largest use of a limit; where no limits are known by their largest tracking error."""
    use = np.array([kind.use for kind in quantities]).reshape(-1, count)
    score = np.nan_to_num(use).max(axis=0, initial=0.0)
    if not score.any():
        errors = [_tracking(kind) for kind in quantities]
        score = next((error for error in errors if error is not None), score)
    return [int(k) for k in np.argsort(-score, kind="stable")]


def _tracking(kind: TraceKind) -> FloatArray | None:
    """(njoint,) root mean square of measured minus target; None where there are not both."""
    if not {"measured", "target"} <= set(kind.traces):
        return None
    return np.asarray(np.sqrt(np.nanmean((kind.traces["measured"] - kind.traces["target"]) ** 2, axis=0)), np.float64)


def _table(page: Page, joints: Sequence[str], quantities: Sequence[TraceKind], order: Sequence[int]) -> None:
    known = [kind for kind in quantities if kind.limits is not None]
    errors = next((found for found in map(_tracking, quantities) if found is not None), None)
    if not known and errors is None:
        return
    page.section("Joints, worst first")
    columns = ["joint", "limb", *(f"{kind.title.lower()}: of the limit" for kind in known)]
    columns += [] if errors is None else ["tracking error, rad"]
    rows: list[list[Cell]] = []
    for k in order:
        cells: list[Cell] = [joints[k], limb_of(joints[k]), *(_share(float(kind.use[k])) for kind in known)]
        rows.append(cells + ([] if errors is None else [float(errors[k])]))
    few = _FOLDS_ABOVE
    page.table(columns, rows[:few], "Of the limit: 0 is the middle of the range (or standing still), 100 % a limit.")
    if rows[few:]:
        page.table(columns, rows[few:], folded=f"the other {len(rows) - few} joints")


def _share(use: float) -> Cell:
    text = f"{use:.0%}"
    return Badge("bad", text) if use >= _AT else Badge("warn", text) if use >= _NEAR else text


def _plot(
    page: Page,
    time: FloatArray,
    joints: Sequence[str],
    kind: TraceKind,
    members: Sequence[int],
    caption: str = "",
    folded: str = "",
) -> None:
    picked = list(members)
    traces = {name: values[:, picked] for name, values in kind.traces.items()}
    limits = None if kind.limits is None else (kind.limits[0][picked], kind.limits[1][picked])
    figure = joint_traces(time, traces, [joints[k] for k in picked], kind.unit, limits=limits)
    page.plot(figure, caption, folded=folded)
