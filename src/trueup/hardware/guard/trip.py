"""Messages of the guard: trip, status, summary. Plain data, sent as MessagePack."""

from __future__ import annotations

from typing import Literal

import msgspec

from trueup.core.errors import TrueupError

Phase = Literal["idle", "active", "tripped"]


class Trip(msgspec.Struct, frozen=True, kw_only=True):
    """Why the guard put the robot into damping, for good.

    guard   which guard tripped: "stale", "clock", "nonfinite", "implausible", "jump", "frozen", "position", "velocity",
            "torque", "tracking", "tilt", "temperature", "voltage", "command", "silence", "commander", "driver", "stop"
    reason  in words: joint, value, limit
    time_s  clock of the guard's process (time.monotonic) at detection; in lock-step the robot's clock
    """

    guard: str
    reason: str
    time_s: float


class GuardTripped(TrueupError):  # noqa: N818 - it says what happened
    """Raised by `read` and `write` of a GuardDriver once the guard has tripped; `trip` says why."""

    def __init__(self, trip: Trip) -> None:
        self.trip = trip
        super().__init__(f"the motor guard stopped the robot: {trip.reason}", place=trip.guard)


class Margin(msgspec.Struct, frozen=True, kw_only=True):
    """Margin of a quantity: the worst joint, its value, the value that trips."""

    value: float
    limit: float
    joint: str = ""


class GuardStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of the guard, sent about 20 times a second and at once after a trip.

    not_ready  why a first command would trip now, "" if it would not (idle only)
    clips      how often commands were changed, by cause: "position", "step", "target_vel", "torque", "gain",
               "soft_zone"; and "bridged", "repeated" reports, "bad_frames" on the channel
    derate     share of the allowed torque after derating for heat and battery, 1 = all
    margins    by guard
    latency    milliseconds: "late_p50", "late_p99", "late_p999", "late_max" of the guard's schedule, "write_max" in the
               driver's write or damp; "missed": points of the schedule without a tick
    unrecorded rows of robot.mcap that were dropped because the disk was too slow or full
    """

    phase: Phase = "idle"
    trip: Trip | None = None
    not_ready: str = "no state yet"
    clips: dict[str, int] = {}
    derate: float = 1.0
    margins: dict[str, Margin] = {}
    latency: dict[str, float] = {}
    unrecorded: int = 0


class GuardSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of the guard's run, sent when it ends.

    tap  counts at a twin's motors (fields of `wire.TapCounts`); empty for other drivers
    """

    status: GuardStatus
    ticks: int = 0
    states: int = 0
    rows: int = 0
    tap: dict[str, int] = {}
