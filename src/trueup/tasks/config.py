"""What an environment is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trueup.world.randomization.adr import AdrCfg


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
