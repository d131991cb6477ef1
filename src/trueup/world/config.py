"""Config of a batch of simulations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trueup.core.errors import TrueupError
from trueup.robot.model import ModelCfg
from trueup.world.actuators.engine import ActuatorCfg
from trueup.world.sensors import SensorCfg


@dataclass(frozen=True, kw_only=True)
class SimCfg:
    """Size, rates and physics of a batch.

    nsim          simulations
    threads       0: all cores that this process may use
    seed          of everything random
    first_row     row 0 of this batch is row `first_row` of the seed's rows
    control_hz    None: the spec's; likewise physics_hz
    max_delay_s   longest command delay that parameters may ask for
    friction      friction law of the gears by name; None and M1 are the engine's own (damping and dry friction)
    """

    nsim: int = 1
    threads: int = 0
    seed: int = 0
    first_row: int = 0
    control_hz: float | None = None
    physics_hz: float | None = None
    max_delay_s: float = 0.04
    friction: str | None = None
    model: ModelCfg = field(default_factory=ModelCfg)
    actuator: ActuatorCfg = field(default_factory=ActuatorCfg)
    sensors: SensorCfg = field(default_factory=SensorCfg)

    def __post_init__(self) -> None:
        if self.nsim < 1 or self.threads < 0 or self.first_row < 0:
            raise TrueupError("nsim must be at least 1, threads and first_row not negative")

    def alone(self) -> SimCfg:
        """The same physics, one simulation."""
        return replace(self, nsim=1, threads=1)
