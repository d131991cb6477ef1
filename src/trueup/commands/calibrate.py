"""`trueup calibrate LOG... --robot ROBOT --out DIR`: fit a simulator to logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

if TYPE_CHECKING:
    from trueup.calibrate.calibrate import CalibrateCfg


@dataclass(frozen=True, kw_only=True)
class CalibrateVerb:
    """Fit a robot's simulator to logs, with intervals and a verdict per parameter.

    In: logs of the robot (base held in the air, or an arm) with commands and encoder positions. Out: DIR/params.json
    (estimates, standard errors, covariance, verdicts, scores on held-out data) and DIR/index.html. Ctrl-C keeps the
    best so far.
    """

    logs: tyro.conf.Positional[tuple[Path, ...]]
    """Logs to fit (MCAP, rosbag2, or tables with --mapping)."""
    robot: str
    """Built-in name, or your robot's folder or spec."""
    out: Path
    """Folder for the result."""
    params: str = "pace"
    """pace, full, contact, or names: armature,delay or pace,kp,kd."""
    tie: Literal["none", "side", "all"] = "none"
    """side: left and right joints share their values."""
    bodies: tuple[str, ...] = ()
    """Bodies whose mass and centre of mass are fitted, if --params asks for them."""
    holdout: tuple[Path, ...] = ()
    """Logs to score on (default: the last quarter of every log is kept back)."""
    mapping: str | None = None
    """For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML."""
    method: Literal["auto", "local", "global"] = "auto"
    """local: from the nominal values; auto: from the best draws too; global: CMA-ES first."""
    loss: Literal["linear", "huber"] = "linear"
    """huber: outliers count less."""
    physics: float = 1000.0
    """Physics steps per second, at least."""
    window: float | None = None
    """Length of the windows that are simulated from measured states, s (default: by the length of the data)."""
    start: Path | None = None
    """Begin from an earlier params.json."""
    seed: int = 0
    """Of the draws."""
    page: bool = True
    """Write DIR/index.html."""


def run(verb: CalibrateVerb) -> int:
    """Read, fit, print, write."""
    from rich.console import Console

    from trueup.calibrate.calibrate import calibrate
    from trueup.calibrate.result import read_calibration
    from trueup.data.files import read_log
    from trueup.report.calibrate import print_fit, write_fit_page
    from trueup.report.progress import progress_bar
    from trueup.robot.load import load_robot

    console = Console()
    robot, start = load_robot(verb.robot), None if verb.start is None else read_calibration(verb.start)
    logs = [read_log(path, verb.mapping) for path in verb.logs]
    holdout = [read_log(path, verb.mapping) for path in verb.holdout]
    with progress_bar("calibrating", console) as progress:
        fit = calibrate(robot, logs, _cfg(verb), holdout=holdout, start=start, progress=progress)
    print_fit(fit, console)
    console.print(f"params {fit.write(verb.out)}", soft_wrap=True)
    if verb.page:
        console.print(f"page   {write_fit_page(fit, verb.out / 'index.html')}", soft_wrap=True)
    return 130 if fit.calibration.effort.interrupted else 0


def _cfg(verb: CalibrateVerb) -> CalibrateCfg:
    from trueup.calibrate.calibrate import CalibrateCfg
    from trueup.calibrate.fit import FitCfg
    from trueup.calibrate.windows import WindowCfg

    return CalibrateCfg(
        params=verb.params,
        tie=verb.tie,
        bodies=verb.bodies,
        physics_hz=verb.physics,
        window=WindowCfg(window_s=verb.window),
        fit=FitCfg(method=verb.method, loss=verb.loss, seed=verb.seed),
    )
