"""Settings of the actuator ladder. They are the flags of `trueup calibrate actuator`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro

from trueup.calibrate.actuator.rungs import UanMethod, choose
from trueup.core.errors import TrueupError


@dataclass(frozen=True, kw_only=True)
class LadderCfg:
    """Which models to compare, and how."""

    rungs: str = "quick"
    """quick, parametric, all, or names with commas: pd delay pace motor M2 to M6 fir net net_long uan; a rung brings
    those that it starts from."""
    thorough: bool = False
    """Compare all rungs, however long that takes (--rungs all); an estimate is printed first."""
    minutes: float = 5.0
    """Time limit of the quick form: rungs that would exceed it are skipped, and the verdict says so."""
    params: str | None = None
    """Set that fitted rungs share (default: pace; servo where the spec's gains cannot be the servo's)."""
    physics_hz: Annotated[float | None, tyro.conf.arg(name="physics")] = None
    """Physics steps per second (default: the robot's own, as in training: errors of that step are fitted too)."""
    holdout_share: float = 0.25
    """Share of the logs that is held out for scoring when no held-out logs are given."""
    long_s: tuple[float, ...] = (20.0, 300.0)
    """Lengths of long rollouts, s."""
    uan_method: UanMethod = "inverse"
    """How uan learns: by inversion of the simulator (fastest), or by PPO as published (rl)."""
    driver: str | None = None
    """A twin (twin:PRESET?seed=N) on which a tracking controller is compared with the models."""
    check: bool = True
    """Refuse logs that `trueup data check` calls unusable."""
    seed: int = 0
    """Of draws and trainings."""

    def __post_init__(self) -> None:
        choose(self.rungs)
        if self.thorough and self.rungs not in ("quick", "all"):
            raise TrueupError(f"--thorough compares all rungs, --rungs {self.rungs} only some: give one of the two")
        if self.minutes <= 0.0:
            raise TrueupError(f"minutes must be above 0, found {self.minutes:g}; --thorough has no limit")
        if not 0.0 < self.holdout_share <= 0.8:
            raise TrueupError(
                f"the ladder compares on held-out data: holdout_share must be in (0, 0.8], found {self.holdout_share}"
            )

    @property
    def chosen(self) -> str:
        """The requested rungs, as `choose` parses them."""
        return "all" if self.thorough else self.rungs

    @property
    def limit_s(self) -> float | None:
        """Time limit of the whole ladder, s; None: unlimited."""
        return 60.0 * self.minutes if self.chosen == "quick" else None
