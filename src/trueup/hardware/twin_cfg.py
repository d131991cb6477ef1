"""Options of a twin and of serving it, shared by drivers, the twin's process and the command line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from trueup.core.errors import TrueupError


@dataclass(frozen=True, kw_only=True)
class FaultCfg:
    """Probability of each packet fault, in each direction."""

    drop: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    """Held back until after the next packet."""
    corrupt: float = 0.0
    """One to four bits flipped."""

    def __post_init__(self) -> None:
        for name in ("drop", "duplicate", "reorder", "corrupt"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise TrueupError(f"the share of packets to {name} lies between 0 and 1", place=name)

    @property
    def any(self) -> bool:
        return bool(self.drop or self.duplicate or self.reorder or self.corrupt)


@dataclass(frozen=True, kw_only=True)
class TwinCfg:
    """Preset, seed and base of a twin."""

    preset: str = "mild"
    """A shipped preset (`trueup twin list`) or a path to your own TOML."""
    seed: int = 0
    """Which twin of the preset."""
    params: str | None = None
    """Folder of a calibration: what was fitted is drawn from its posterior, by the seed."""
    base: Literal["fixed", "free"] = "fixed"
    """Held in the air, or on the ground (or its own root joint)."""
    command_hz: float = 200.0
    """Rate of state reports, and of commands in lock-step."""
    command_timeout_s: float = 0.1
    """Robot time without a command after which the servo only damps."""

    def __post_init__(self) -> None:
        if not 1.0 <= self.command_hz <= 4000.0:
            raise TrueupError(f"a twin's command rate lies between 1 and 4000 Hz, found {self.command_hz}")
        if not 0.0 < self.command_timeout_s <= 3600.0:
            raise TrueupError(f"a command timeout must be above 0 s, found {self.command_timeout_s}")


@dataclass(frozen=True, kw_only=True)
class ServeCfg(TwinCfg):
    """A twin behind a socket."""

    host: str = "127.0.0.1"
    """Address to listen on; others than 127.0.0.1 let other computers command the twin."""
    port: int = 0
    """UDP port; 0 takes a free one."""
    lockstep: bool = False
    """Time passes only with commands, as fast as they come."""
    once: bool = False
    """End when the driver says goodbye."""
    speak: Literal["trueup", "unitree", "feetech", "dynamixel", "ros2"] = "trueup"
    """Protocol: our own over UDP, or that of a vendor, which the vendor's driver is tested against."""
    place: str = ""
    """Where another protocol than our own is spoken: a network interface (DDS), or a path for the serial line."""
    realtime_priority: bool = True
    """Run before ordinary programs (SCHED_FIFO) where that is allowed: a busy computer does not stop a robot."""
    tap: str | None = None
    """File that records commands and torques at the motors."""
    faults: FaultCfg = field(default_factory=FaultCfg)
