"""Settings of a diagnosis; they are the flags of `trueup gap`. No numerics are imported here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import tyro

from trueup.core.errors import TrueupError

LEAST_WINDOWS = 8


@dataclass(frozen=True, kw_only=True)
class GapCfg:
    """How logs are cut and causes are tested."""

    base: Literal["auto", "fixed", "free"] = "auto"
    """fixed: held in the air or bolted down; free: on the ground; auto: by what IMU and odometry say."""
    window_s: Annotated[float | None, tyro.conf.arg(name="window")] = None
    """Length of a window, s (default: 0.3, on the ground 0.2)."""
    max_windows: int = 48
    """Windows of all logs together: half of them estimate, half judge."""
    wiring: bool = True
    """Also try exchanged and turned joints, and a wrong clock."""
    pairs: bool = True
    """Also look for a second cause beside the first."""
    horizons: bool = True
    """Also compare one step, 0.1 s, 1 s and the whole log, signal by signal."""
    threads: int = 1
    """Threads of the simulations."""
    seed: int = 0
    """Of the bootstrap."""

    def __post_init__(self) -> None:
        if self.max_windows < LEAST_WINDOWS:
            raise TrueupError(f"max_windows must be at least {LEAST_WINDOWS}: half of them estimate, half judge")
        if self.window_s is not None and not 0.02 <= self.window_s <= 5.0:
            raise TrueupError(f"window_s must be between 0.02 and 5 s, found {self.window_s}")
