"""`trueup calibrate actuator LOG... --robot ROBOT --out DIR`: which actuator model do I need?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from trueup.core.outputs import OutFolder

if TYPE_CHECKING:
    from trueup.calibrate.actuator.ladder import LadderCfg


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
    rungs: str = "all"
    """all, parametric, quick, or names: pd delay pace motor M2 to M6 fir net net_long uan, with commas."""
    holdout: tuple[Path, ...] = ()
    """Logs to score on (default: a part of the logs is kept back)."""
    params: str | None = None
    """Set that fitted rungs share (default: pace; servo where the spec's gains cannot be the servo's)."""
    uan_method: Literal["inverse", "gradient", "rl"] = "inverse"
    """How uan learns: by inversion of the simulator (fastest), by its gradient, or by PPO as published."""
    driver: str | None = None
    """A twin (twin:PRESET?seed=N) on which a tracking controller is compared with the models."""
    mapping: str | None = None
    """For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML."""
    physics: float | None = None
    """Physics steps per second (default: the robot's own, at which it is trained)."""
    resume: bool = False
    """Keep rungs of the same problem that are in --out already."""
    seed: int = 0
    """Of draws and trainings."""
    page: bool = True
    """Write DIR/index.html."""


def run(verb: ActuatorVerb) -> int:
    """Climb, print, write."""
    from rich.console import Console

    from trueup.core.errors import TrueupError
    from trueup.face import actuator
    from trueup.report.calibration.actuators import print_ladder, print_rung
    from trueup.report.progress import progress_bar

    if not verb.logs:
        raise TrueupError("no log was named: trueup calibrate actuator LOG... --robot ROBOT --out DIR")
    console = Console()
    try:
        with progress_bar("climbing", console) as progress:
            ladder = actuator(
                verb.robot,
                verb.logs,
                config(verb),
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


def config(verb: ActuatorVerb) -> LadderCfg:
    """The flags as the config that `tu.calibrate.actuator` takes."""
    from trueup.calibrate.actuator.ladder import LadderCfg

    return LadderCfg(
        rungs=verb.rungs,
        params=verb.params,
        physics_hz=verb.physics,
        uan_method=verb.uan_method,
        driver=verb.driver,
        seed=verb.seed,
    )
