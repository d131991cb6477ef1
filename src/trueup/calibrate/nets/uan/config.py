"""What an unsupervised actuator net is and how it learns, as settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from trueup.calibrate.actuator.rungs import UanMethod
from trueup.calibrate.nets.net_design import Share
from trueup.calibrate.nets.uan.gradient import GradientCfg
from trueup.calibrate.nets.uan.regress import RegressCfg
from trueup.calibrate.nets.uan.rl import RlCfg
from trueup.core.errors import TrueupError
from trueup.models.actuator_net import Signal


@dataclass(frozen=True, kw_only=True)
class UanCfg:
    """What the net is and how it learns.

    signals       what the net sees; empty: servo torque and velocity error, for `rl` the published errors of position
                  and velocity. Torque means the same under other gains, a position error does not
    steps, dt_s   history and rate; dt_s is fitted to the physics step
    friction      share of the base's Coulomb friction that stays in the engine (`inverse`, way `corrected`, only); the
                  net learns the rest, which a joint that sticks in the engine would hide from it
    share, context  joints that share weights, and numbers that each of them has to itself
    limit         largest residual torque, of the torque limit
    windows, window_s, warm_up_s  replayed side by side; the first part of each is not judged
    """

    method: UanMethod = "inverse"
    hidden: tuple[int, ...] = (128, 128)
    signals: tuple[Signal, ...] = ()
    steps: int = 20
    dt_s: float = 0.005
    share: Share = "identical"
    context: int = 8
    limit: float = 0.3
    friction: float = 0.5
    physics_hz: float = 1000.0
    windows: int = 32
    window_s: float = 1.0
    warm_up_s: float = 0.3
    seed: int = 0
    regress: RegressCfg = field(default_factory=RegressCfg)
    gradient: GradientCfg = field(default_factory=GradientCfg)
    rl: RlCfg = field(default_factory=RlCfg)

    def __post_init__(self) -> None:
        if self.windows < 1 or self.window_s <= 0 or self.warm_up_s < 0:
            raise TrueupError("windows and window_s must be positive, warm_up_s not negative")
        if not 0 < self.friction <= 1:
            raise TrueupError(f"friction is a share, above 0 and at most 1, found {self.friction}")
        if not 0 < self.limit <= 1:
            raise TrueupError(f"limit is a share of the torque limit, within 0 and 1, found {self.limit}")

    @property
    def sees(self) -> tuple[Signal, ...]:
        """The signals, where none were chosen those of the method."""
        return self.signals or ("pos_error" if self.method == "rl" else "servo_torque", "vel_error")
