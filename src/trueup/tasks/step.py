"""What goes into an environment and what comes out of a step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.world.randomization.adr import AdrCfg

Float32 = NDArray[np.float32]
Ids = NDArray[np.intp]


class Obs(NamedTuple):
    """float32 (n, ...): what the actor sees, what the critic sees, and the hidden factors (part of the critic's)."""

    actor: Float32
    critic: Float32
    privileged: Float32


class Step(NamedTuple):
    """What a control step brought; rows that ended have begun a new episode already.

    obs      of all rows; of those that ended, the first of the new episode
    ended    rows that ended in this step, ascending
    last     the final observations of those rows, and only of those
    metrics  batch means of this step; those of the task itself (errors, red flags) of every eighth
    """

    obs: Obs
    reward: Float32
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    ended: Ids
    last: Obs
    metrics: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class EnvCfg:
    """Size and seed of an environment.

    threads   0: all cores
    randomize, pushes   whether the task's are used
    params    folder of a calibration: everything fitted is drawn from its posterior
    posterior False: every row has the calibration's estimate
    actuator  folder of a learned actuator: it drives the joints, with the parameters that it was fitted with
    adr       let the task's ranges grow from the calibrated point by success
    training  ranges, pushes and late costs grow by `ramp_s`; commands come suddenly, whatever their `rate`
    level     of the terrain for every row; None: the curriculum decides
    stagger   let the first episodes end at different times, so that resets spread out
    """

    nenv: int = 512
    threads: int = 0
    seed: int = 0
    first_row: int = 0
    randomize: bool = True
    pushes: bool = True
    params: Path | None = None
    posterior: bool = True
    actuator: Path | None = None
    adr: AdrCfg | None = None
    training: bool = False
    level: int | None = None
    stagger: bool = True
