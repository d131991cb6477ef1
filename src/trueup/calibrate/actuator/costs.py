"""Cost model of the rungs: an estimate before a ladder begins, corrected as rungs finish; the time limit of the quick
form.

A fit is many simulations of the robot in windows, so its time is a multiple of that of a probe: a short batch of such
windows, stepped on this machine now. The ratios are rough (a fit ends when it has converged); once rungs of a kind are
done, the others of that kind are scaled by how long those took.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from trueup.calibrate.actuator.rungs import RUNGS, Kind, Rung
from trueup.robot.load import Robot
from trueup.world.batch import BatchSim, SimCfg

_PROBES = {  # multiples of the probe, with scoring: read roughly off the times in docs/results/actuators.json
    "pd": 3.0,
    "delay": 15.0,
    "pace": 90.0,
    "motor": 90.0,
    "M2": 110.0,
    "M3": 90.0,
    "M4": 190.0,
    "M5": 400.0,
    "M6": 330.0,
    "fir": 6.0,
    "net": 20.0,
    "net_long": 130.0,
    "uan": 480.0,
}
_STEP_CHECK = 130.0  # a parametric rung once more, with half the physics step
_WINDOWS, _WINDOW_S = 40, 1.0
_ALWAYS = ("pd", "delay", "pace")
_BY_WORTH = ("pd", "delay", "pace", "motor", "fir", "net", "uan", "M2")
_STEP_NAME = "whether half the physics step does as well as the net"


@dataclass(kw_only=True)
class Costs:
    """Estimates of the time of rungs, s; `probe_s` is the time of the probe."""

    probe_s: float
    scales: dict[Kind, float] = field(default_factory=dict)

    def of(self, rung: Rung) -> float:
        """Estimated time of one rung, s."""
        return self.scales.get(rung.kind, 1.0) * self.probe_s * _PROBES[rung.name]

    def all_of(self, rungs: Sequence[Rung]) -> float:
        """Estimated time of several, with the check of the physics step that a learned one needs."""
        return sum(map(self.of, rungs)) + (self.step_check if any(r.is_learned for r in rungs) else 0.0)

    @property
    def step_check(self) -> float:
        return self.scales.get("params", 1.0) * self.probe_s * _STEP_CHECK

    def took(self, rung: Rung, seconds: float) -> None:
        """Correct the estimates of a rung's kind by the costliest rung so far."""
        if rung.kind != "ideal" and rung.name != "delay":
            self.scales[rung.kind] = seconds / (self.probe_s * _PROBES[rung.name])


def measured_costs(robot: Robot, sim: SimCfg) -> Costs:
    """Simulate one second of a batch as large as a fit's; takes well under a second."""
    batch = BatchSim(robot, replace(sim, nsim=_WINDOWS, threads=1))
    batch.reset()
    batch.step(robot.spec.default_pose)
    steps, began = max(1, round(_WINDOW_S / batch.control_dt)), time.perf_counter()
    for _ in range(steps):
        batch.step(robot.spec.default_pose)
    return Costs(probe_s=time.perf_counter() - began)


@dataclass(kw_only=True)
class Timetable:
    """Schedule of the rungs and the time left; with `limit_s` those that fit run, the most informative first.

    left_out  rungs beyond the time limit, with their estimates, s
    """

    rungs: tuple[Rung, ...]
    costs: Costs
    limit_s: float | None = None
    began: float = field(default_factory=time.monotonic)
    left_out: dict[str, float] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.began

    @property
    def estimate_s(self) -> float:
        """Estimated time of the ladder before it begins: at most the limit."""
        return min(self.costs.all_of(self.rungs), self.limit_s or float("inf"))

    @property
    def left_s(self) -> float:
        """Estimated time left."""
        rest = sum(map(self.costs.of, self._to_come()))
        if any(rung.is_learned for rung in self.rungs if rung.name not in self.left_out):
            rest += self.costs.step_check
        return rest if self.limit_s is None else min(rest, max(0.0, self.limit_s - self.elapsed_s))

    def fits(self, rung: Rung) -> bool:
        """Whether a rung fits into the time left beside more informative ones; if not, it is left out."""
        need = self.costs.all_of([candidate for candidate in self._to_come() if _worth(candidate) <= _worth(rung)])
        if rung.name in _ALWAYS or self.limit_s is None or self.elapsed_s + need <= self.limit_s:
            return True
        self.left_out[rung.name] = self.costs.of(rung)
        return False

    @property
    def has_time_for_step_check(self) -> bool:
        fits = self.limit_s is None or self.elapsed_s + self.costs.step_check <= self.limit_s
        if not fits:
            self.left_out[_STEP_NAME] = self.costs.step_check
        return fits

    def progress(self, share: float) -> float:
        """Share of the whole that is done, with `share` of the present rung."""
        present = next(iter(self._to_come()), None)
        left = self.left_s - (0.0 if present is None else share * self.costs.of(present))
        return min(1.0, self.elapsed_s / max(self.elapsed_s + max(0.0, left), 1e-9))

    def finish(self, rung: Rung) -> None:
        self.done.add(rung.name)

    def words(self, minutes: float) -> str:
        """One sentence on the rungs that were not compared; "" if there are none."""
        if self.limit_s is None:
            return ""
        parts = []
        if self.left_out:
            names = ", ".join(f"{name} (about {_minutes(s)})" for name, s in self.left_out.items())
            parts.append(f"{names} would not have fitted into {minutes:g} minutes")
        requested = {rung.name for rung in self.rungs}
        if never := [rung.name for rung in RUNGS if rung.name not in requested]:
            parts.append(f"{', '.join(never)} belong to the thorough form")
        return f"not compared: {'; '.join(parts)}; --thorough compares all" if parts else ""

    def _to_come(self) -> list[Rung]:
        return [rung for rung in self.rungs if rung.name not in self.done and rung.name not in self.left_out]


def _worth(rung: Rung) -> int:
    """Rank by information for the time."""
    return _BY_WORTH.index(rung.name) if rung.name in _BY_WORTH else len(_BY_WORTH)


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.1f} min"
