"""`trueup calibrate LOG... --robot ROBOT --out DIR`: fit a simulator to logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro

from trueup.calibrate.config import CalibrateCfg
from trueup.core.outputs import OutFolder


@dataclass(frozen=True, kw_only=True)
class CalibrateVerb:
    """Fit a robot's simulator to logs, with intervals and a verdict per parameter.

    In: logs of the robot (base held in the air, or an arm) with commands and encoder positions. Out: DIR/params.json
    (estimates, standard errors, covariance, verdicts, scores on held-out data) and DIR/index.html. Ctrl-C keeps the
    best so far; --resume continues a killed fit. Then: `trueup record --excitation active
    --for DIR` for weak parameters, `trueup robot export DIR` for other simulators, `trueup calibrate actuator`
    for a choice of actuator models.
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
    start: Path | None = None
    """Begin from an earlier params.json."""
    resume: bool = False
    """Continue a stopped or killed fit with the same --out."""
    page: bool = True
    """Write DIR/index.html."""
    cfg: CalibrateCfg = field(default_factory=CalibrateCfg)


def run(verb: CalibrateVerb) -> int:
    """Read, fit, print, write."""
    from rich.console import Console

    from trueup.calibrate.fit.search import STATE_FILE
    from trueup.core.errors import TrueupError
    from trueup.face import calibrate
    from trueup.report.calibration.calibrate import print_fit
    from trueup.report.progress import progress_bar

    if not verb.logs:
        raise TrueupError("no log was named: trueup calibrate LOG... --robot ROBOT --out DIR")
    console = Console()
    try:
        with progress_bar("calibrating", console) as progress:
            fit = calibrate(
                verb.robot,
                verb.logs,
                verb.cfg,
                holdout=verb.holdout,
                mapping=verb.mapping,
                start=verb.start,
                progress=progress,
                folder=verb.out,
                resume=verb.resume,
            )
    except KeyboardInterrupt:
        if (verb.out / STATE_FILE).exists():
            console.print(f"the fit so far is in {verb.out}: with --resume it goes on", soft_wrap=True)
        raise
    print_fit(fit, console)
    console.print(f"params {fit.write(verb.out)}", soft_wrap=True)
    if verb.page:
        console.print(f"page   {fit.report(verb.out / 'index.html')}", soft_wrap=True)
    return 130 if fit.calibration.effort.interrupted else 0
