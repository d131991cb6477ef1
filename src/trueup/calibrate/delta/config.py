"""Settings of `calibrate delta`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Base = Literal["auto", "fixed", "free"]
DeltaMethod = Literal["shooting", "ppo"]


@dataclass(frozen=True, kw_only=True)
class DeltaCfg:
    """What a delta action is and how it is learned."""

    method: DeltaMethod = "shooting"
    """shooting: fitted through the linearised simulator; ppo: reinforcement learning, as published."""
    base: Base = "auto"
    """free: the robot stands or walks (needs the log's IMU, or its base pose); fixed: held in the air, or an arm; auto:
    free where a legged robot's log has an IMU and its feet carry it."""
    rate_hz: float | None = None
    """Control rate of the policy that will train under it (default: the robot's)."""
    joints: tuple[str, ...] = ()
    """Joints that are corrected (default: all); few joints need less data."""
    linear: Literal["own", "all"] = "own"
    """What the linear part of a joint's correction sees: the joint itself and the base, or all joints."""
    hidden: tuple[int, ...] = (64, 64)
    """Of the net beside the linear part; () for a linear delta action."""
    past: int = 3
    """Earlier targets that it sees: a delay is corrected by them."""
    limit_rad: float = 1.0
    """Largest correction."""
    penalty: float = 0.003
    """On the square of corrections, in the units of the error without one: keeps what the data do not show at zero."""
    horizons: tuple[int, ...] = (1, 3, 3, 5)
    """Control steps after which the simulated state is compared with the recorded one, rounds in turn."""
    rounds: int = 4
    """Of linearising the simulator along the logs and fitting; each begins with the correction of the one before."""
    windows: int = 600
    """Recorded states that a round starts from."""
    holdout_share: float = 0.25
    """Share of every log, at its end, that is not fitted to: rounds are chosen by it, and scored on it without
    --holdout."""
    ppo_steps: int = 300_000
    """Control steps of simulation that `ppo` learns from."""
    seed: int = 0
