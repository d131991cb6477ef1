"""Configs of a recording: where it is made and kept, and of `trueup record`, which adds the motion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from trueup.core.errors import TrueupError
from trueup.core.files import OutFile
from trueup.robot.excitation.waves import Kind

if TYPE_CHECKING:
    from trueup.robot.excitation.excitation import ExcitationCfg
    from trueup.robot.spec import RobotSpec


@dataclass(frozen=True, kw_only=True)
class RecordSessionCfg:
    """What carries a motion out, and where the log goes; without `out` it is kept in memory only."""

    driver: str | None = None
    """twin:PRESET[?seed=7] starts a twin; twin@HOST:PORT talks to a running one; FILE.py:FUNCTION is your own. Default:
    the twin that the calibration --for was recorded from; without --for twin:mild."""
    lockstep: bool = True  # Run a twin as fast as it can instead of in real time.
    out: OutFile | None = None  # Log to write (.mcap); required unless --dry-run.
    overwrite: bool = False  # Replace an existing log.

    def __post_init__(self) -> None:
        if self.out is not None and self.out.suffix != ".mcap":
            raise TrueupError("a recording is an .mcap file; `trueup data convert` makes others of it", file=self.out)


@dataclass(frozen=True, kw_only=True)
class RecordVerb(RecordSessionCfg):
    """Excite a robot or its twin and record it.

    In: a robot, a driver and an excitation. Out: an MCAP log that `trueup data check` and every later stage read. The
    plan is rehearsed in the model first (limits, self-collision) and made smaller until it passes; the robot is damped
    on any violation and on Ctrl-C, and nothing recorded is lost.
    """

    robot: tyro.conf.Positional[str]  # Built-in name, or your robot's folder or spec.
    lockstep: bool = False  # Run a twin as fast as it can instead of in real time.
    excitation: Kind | Literal["active"] = "multisine"
    """Shape of the motion; active: sought for what the calibration --for could not tell."""
    for_: Annotated[Path | None, tyro.conf.arg(name="for")] = None
    """A calibration (its folder or params.json) whose weak parameters an active motion shall show."""
    seconds: float = 20.0  # Length of the motion (active: at most); the ways there and back come on top.
    rate: float | None = None
    """Commands and log rows per second (default: 200, more for servos so stiff that targets would have to crawl)."""
    joints: tuple[str, ...] = ()  # Joints that move (default: all).
    one_by_one: bool = False  # Move one joint after another instead of all at once.
    amplitude: float = 0.4  # Largest distance from the default pose (rad).
    seed: int = 0  # Of the excitation.
    dry_run: bool = False  # Plan and rehearse only; nothing moves.
    page: OutFile | None = None  # Write a page with the plan (--dry-run) or with the log and its check.

    def motion(self, spec: RobotSpec) -> ExcitationCfg:
        """What is played on a robot; an active motion is sought later, within these limits and at this rate."""
        from trueup.robot.excitation.excitation import ExcitationCfg
        from trueup.robot.excitation.limits import LimitCfg, sensible_rate_hz

        limits = LimitCfg(amplitude_rad=self.amplitude)
        return ExcitationCfg(
            kind="multisine" if self.excitation == "active" else self.excitation,
            seconds=self.seconds,
            rate_hz=sensible_rate_hz(spec, limits) if self.rate is None else self.rate,
            seed=self.seed,
            order="one_by_one" if self.one_by_one else "together",
            joints=self.joints,
            limits=limits,
        )
