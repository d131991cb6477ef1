"""`trueup calibrate LOG... --robot ROBOT --out DIR`: fit a simulator to logs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from trueup.core.outputs import OutFolder

if TYPE_CHECKING:
    from trueup.calibrate.calibrate import CalibrateCfg


@dataclass(frozen=True, kw_only=True)
class CalibrateVerb:
    """Fit a robot's simulator to logs, with intervals and a verdict per parameter.

    In: logs of the robot (base held in the air, or an arm) with commands and encoder positions. Out: DIR/params.json
    (estimates, standard errors, covariance, verdicts, scores on held-out data) and DIR/index.html. Ctrl-C keeps the
    best so far; what a killed fit left in DIR is taken up with --resume. Then: `trueup record --excitation active
    --for DIR` for what stayed weak, `trueup robot export DIR` for other simulators, `trueup calibrate actuator`
    for a choice of actuator models.
    """

    logs: tyro.conf.Positional[tuple[Path, ...]]
    """Logs to fit (MCAP, rosbag2, or tables with --mapping)."""
    robot: str
    """Built-in name, or your robot's folder or spec."""
    out: OutFolder
    """Folder for the result."""
    params: str = "pace"
    """Sets pace, full, friction:M1 to M6, contact, ... or names: armature,delay or pace,kp,kd."""
    tie: Literal["none", "side", "kind", "all"] = "none"
    """side: left and right joints share their values; kind: the same joint of every leg or arm does."""
    bodies: tuple[str, ...] = ()
    """Bodies whose mass, centre of mass and inertia are fitted, if --params asks for them."""
    base: Literal["fixed", "free"] = "fixed"
    """fixed: held in the air or bolted down; free: on the ground, with the base's state in the log."""
    holdout: tuple[Path, ...] = ()
    """Logs to score on (default: a part of the logs is kept back)."""
    mapping: str | None = None
    """For CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML."""
    method: Literal["auto", "local", "global", "random", "lbfgsb", "pace"] = "auto"
    """local: from the nominal values; auto: from the best draws too; global: CMA-ES first; the others are baselines."""
    loss: Literal["linear", "huber"] = "linear"
    """huber: outliers count less."""
    physics: float = 1000.0
    """Physics steps per second, at least."""
    window: float | None = None
    """Length of the windows that are simulated from measured states, s (default: by the length of the data)."""
    start: Path | None = None
    """Begin from an earlier params.json."""
    resume: bool = False
    """Go on from where a stopped or killed fit with the same --out was."""
    seed: int = 0
    """Of the draws."""
    page: bool = True
    """Write DIR/index.html."""


def run(verb: CalibrateVerb) -> int:
    """Read, fit, print, write."""
    from rich.console import Console

    from trueup.calibrate.fit.checkpoint import STATE_FILE
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
                config(verb),
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


def config(verb: CalibrateVerb) -> CalibrateCfg:
    """The flags as the config that `tu.calibrate` takes."""
    from trueup.calibrate.calibrate import CalibrateCfg
    from trueup.calibrate.data.windows import WindowCfg
    from trueup.calibrate.fit.fit import FitCfg

    return CalibrateCfg(
        params=verb.params,
        tie=verb.tie,
        bodies=verb.bodies,
        base=verb.base,
        physics_hz=verb.physics,
        window=WindowCfg(window_s=verb.window),
        fit=FitCfg(method=verb.method, loss=verb.loss, seed=verb.seed),
    )
