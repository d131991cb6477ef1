"""Settings of a calibration: what to fit, how logs are cut, how to search. They are the flags of `trueup calibrate`.

This module imports no numerics, so that the command line can show them at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

import tyro

from trueup.core.errors import TrueupError

Tie = Literal["none", "side", "kind", "all"]
Loss = Literal["linear", "huber"]
Method = Literal["auto", "local", "global", "random", "lbfgsb", "pace"]
BASELINES = ("random", "lbfgsb", "pace")


@dataclass(frozen=True, kw_only=True)
class WindowCfg:
    """How logs are cut into windows, each simulated from a measured state."""

    window_s: Annotated[float | None, tyro.conf.arg(name="window")] = None
    """Length of the part of a window that is compared, s; inf: whole logs, open loop. Default: an eighth of the data,
    between 0.5 and 2 s; with a free base 0.1 s and no warm-up."""
    warm_up_s: float = 0.3
    """Simulated before that part and not compared, s, so that errors of the measured start state decay."""
    max_windows: int = 40
    """Largest number of windows; more are subsampled evenly."""
    max_delay_s: float = 0.04
    """Longest command delay, s: a window starts with this much of the command history."""

    def __post_init__(self) -> None:
        if self.max_windows < 1:
            raise TrueupError("max_windows must be at least 1")
        if (self.window_s is not None and self.window_s <= 0) or self.warm_up_s < 0:
            raise TrueupError("window_s must be positive, warm_up_s not negative")


@dataclass(frozen=True, kw_only=True)
class FitCfg:
    """How to search."""

    method: Method = "auto"
    """local: from the nominal values; auto: from the best of draws around them too; global: CMA-ES first. Published:
    random (best of many draws), lbfgsb (10 x position MSE + velocity MSE), pace (CMA-ES on whole rollouts)."""
    starts: int = 2
    """Largest number of local fits; stops earlier once one explains the data down to its noise."""
    iterations: int = 40
    """Largest number of iterations per start."""
    tolerance: float = 1e-4
    """Relative decrease of the cost at which a descent ends."""
    evaluations: int | None = None
    """Evaluations of a global search or baseline (default: that method's usual number)."""
    budget_s: float | None = None
    """Stop after this time with the best point so far, s."""
    loss: Loss = "linear"
    """huber: samples beyond three standard deviations of noise count linearly."""
    seed: int = 0
    """Of the draws."""

    def __post_init__(self) -> None:
        if min(self.starts, self.iterations) < 1 or (self.evaluations or 1) < 1:
            raise TrueupError("starts, iterations and evaluations must be at least 1")


@dataclass(frozen=True, kw_only=True)
class CalibrateCfg:
    """What to fit."""

    params: str = "pace"
    """Sets pace, full, friction:M1 to M6, contact, ... or names: armature,delay or pace,kp,kd. A friction law of your
    own: friction:FILE.py:FUNCTION."""
    tie: Tie = "none"
    """side: left and right joints share their values; kind: the same joint of every leg or arm does."""
    bodies: tuple[str, ...] = ()
    """Bodies whose mass, centre of mass and inertia are fitted, if --params asks for them."""
    base: Literal["fixed", "free"] = "fixed"
    """fixed: held in the air or bolted down; free: on the ground, with the base's state in the log."""
    holdout_share: float = 0.25
    """Share of the logs that is held out for scoring when no held-out logs are given."""
    physics_hz: Annotated[float, tyro.conf.arg(name="physics")] = 1000.0
    """Physics steps per second, at least. The integration error of a coarser step biases armature and delay (at 200 Hz:
    20 % and 0.8 ms on a go2); set your training rate to fit that step's errors on purpose."""
    check: bool = True
    """Refuse logs that `trueup data check` calls unusable."""
    reach: Annotated[tuple[tuple[str, float, float], ...], tyro.conf.Suppress] = ()
    """Bounds that a diagnosis asks for, wider than usual: parameter, lowest, highest."""
    window: WindowCfg = field(default_factory=WindowCfg)
    fit: FitCfg = field(default_factory=FitCfg)

    def __post_init__(self) -> None:
        if not 0.0 <= self.holdout_share <= 0.8:
            raise TrueupError(f"holdout_share must be between 0 and 0.8, found {self.holdout_share}")

    @property
    def is_baseline(self) -> bool:
        """Whether the method is one of the published baselines."""
        return self.fit.method in BASELINES
