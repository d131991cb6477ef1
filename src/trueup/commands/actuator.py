"""`trueup calibrate actuator LOG... --robot ROBOT --out DIR`: which actuator model do I need?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro

from trueup.calibrate.actuator.config import LadderCfg
from trueup.core.outputs import OutFolder


@dataclass(frozen=True, kw_only=True)
class ActuatorVerb:
    """Fit actuator models from ideal PD to an unsupervised net, score all alike, recommend the simplest good one.

    In: logs of the robot (base held in the air, or an arm) with commands and encoder positions; torque if there is any.
    Out: DIR/ladder.json (scores on unseen motion, recommendation), DIR/rungs/NAME/ (params.json or the net's files) and
    DIR/index.html. Ctrl-C loses nothing: --resume goes on.
    """

    logs: tyro.conf.Positional[tuple[Path, ...]]
    """Logs to fit (MCAP, rosbag2, or tables with --mapping)."""
    robot: str
    """Built-in name, or your robot's folder or spec."""
    out: OutFolder
    """Folder for the result."""
    holdout: tuple[Path, ...] = ()
    """Logs to score on (default: a share of the logs is held out)."""
    mapping: str | None = None
    """For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML."""
    resume: bool = False
    """Keep rungs of the same problem that are in --out already."""
    page: bool = True
    """Write DIR/index.html."""
    cfg: LadderCfg = field(default_factory=LadderCfg)


def run(verb: ActuatorVerb) -> int:
    """Fit the rungs, print, write."""
    from rich.console import Console

    from trueup.core.errors import TrueupError
    from trueup.face import actuator
    from trueup.report.calibration.actuators import print_ladder, print_rung
    from trueup.report.progress import progress_bar

    if not verb.logs:
        raise TrueupError("no log was named: trueup calibrate actuator LOG... --robot ROBOT --out DIR")
    console = Console()
    try:
        with progress_bar("comparing", console) as progress:
            ladder = actuator(
                verb.robot,
                verb.logs,
                verb.cfg,
                holdout=verb.holdout,
                mapping=verb.mapping,
                folder=verb.out,
                resume=verb.resume,
                progress=progress,
                on_rung=lambda result: print_rung(result, console),
            )
    except KeyboardInterrupt:
        console.print(f"rungs that are done are in {verb.out}: with --resume it goes on", soft_wrap=True)
        raise
    print_ladder(ladder, console)
    console.print(f"ladder {verb.out / 'ladder.json'}", soft_wrap=True)
    if verb.page:
        console.print(f"page   {ladder.report(verb.out / 'index.html')}", soft_wrap=True)
    return 0
