"""What a ladder is asked for, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass

from trueup.calibrate.actuator.folder import LadderFile
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import UanMethod, choose
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.world.batch import SimCfg


@dataclass(frozen=True, kw_only=True)
class LadderCfg:
    """How the ladder is climbed.

    rungs       "all", "parametric", "quick", or names: "pd,pace,uan"; what a rung stands on comes with it
    params      set that fitted rungs share: pace, servo, ...; None: pace, or servo where the spec's gains cannot be
                the servo's
    physics_hz  None: the robot's own, at which the models will be used: what a coarse step gets wrong is fitted too
    holdout     share that is kept for scoring when no held-out logs are given
    long_s      lengths of long rollouts; none: ()
    uan_method  how UAN learns: by inversion of the simulator, by its gradient, or by PPO as published (slow)
    driver      twin on which a tracking controller is compared with the models; None: not compared
    """

    rungs: str = "all"
    params: str | None = None
    physics_hz: float | None = None
    holdout: float = 0.25
    long_s: tuple[float, ...] = (20.0, 300.0)
    uan_method: UanMethod = "inverse"
    driver: str | None = None
    check: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        choose(self.rungs)
        if not 0.0 < self.holdout <= 0.8:
            raise TrueupError(
                f"the ladder compares on held-out data: holdout must be in (0, 0.8], found {self.holdout}"
            )


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """The result: what ladder.json holds, the models, and what they were judged on."""

    robot: Robot
    file: LadderFile
    actuators: dict[str, Actuator]
    held: tuple[Log, ...]
    sim: SimCfg

    @property
    def chosen(self) -> Actuator:
        """The recommended model."""
        return self.actuators[self.file.recommendation.rung]
