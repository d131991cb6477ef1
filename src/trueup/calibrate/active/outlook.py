"""Estimates before a search for a motion: its duration, and the information of usual excitations.

A search takes minutes, and where every joint can move freely a chirp tells nearly as much. So the usual excitations of
the same length, within the same limits, are rehearsed and forecast first, and the search is timed by one generation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trueup.core.arrays import FloatArray
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.excitation.limits import LimitCfg
from trueup.robot.excitation.plan import Plan
from trueup.robot.excitation.waves import Kind
from trueup.robot.load import Robot
from trueup.world.rehearse import RehearseCfg, rehearse

USUAL: tuple[Kind, ...] = ("multisine", "chirp", "steps", "random_holds")
SMALL_GAIN = 1.2  # factor of standard errors: a usual motion half as long again achieves as much


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Estimates before the search: root mean square standard errors over prior widths of the weak parameters.

    before     now
    usual      after usual excitations of `seconds`, within the same limits
    enough     usual excitations after which every weak parameter should be identified
    """

    seconds: float
    before: float
    usual: dict[str, float]
    enough: tuple[str, ...]

    @property
    def best(self) -> str:
        """The most informative usual excitation."""
        return min(self.usual, key=lambda kind: self.usual[kind])


@dataclass(frozen=True, kw_only=True)
class UsualCfg:
    """Length, rate and limits of usual excitations."""

    seconds: float
    rate_hz: float
    seed: int
    limits: LimitCfg
    rehearse: RehearseCfg


def after_usual(robot: Robot, cfg: UsualCfg, after: Callable[[Plan], FloatArray]) -> dict[str, FloatArray]:
    """Standard errors that `after` predicts for usual excitations, rehearsed as any plan."""
    found: dict[str, FloatArray] = {}
    for kind in USUAL:
        usual = ExcitationCfg(kind=kind, seconds=cfg.seconds, rate_hz=cfg.rate_hz, seed=cfg.seed, limits=cfg.limits)
        found[kind] = after(rehearse(robot, excite(robot.spec, usual), cfg.rehearse).plan)
    return found
