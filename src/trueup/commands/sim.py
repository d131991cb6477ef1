"""`trueup sim ROBOT`: drop a robot, hold its default pose, film it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from trueup.core.outputs import OutFile
from trueup.report.progress import progress_bar


@dataclass(frozen=True, kw_only=True)
class SimVerb:
    """Drop a robot in simulation, hold its default pose, and film it.

    In: a robot (and, with --params, a calibration of it). Out: a film (--film), a page of traces (--page), and how it
    ended on the screen.
    """

    robot: tyro.conf.Positional[str]
    """Built-in name (`trueup robot list`), or a folder, spec, MJCF or URDF of your own."""
    seconds: float = 5.0
    """Simulated time."""
    film: OutFile | None = None
    """Write a film here (.mp4 or .gif)."""
    page: OutFile | None = None
    """Write a self-contained HTML page with zoomable traces here."""
    nsim: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 1
    """How many simulations to step side by side."""
    randomize: bool = False
    """Give every simulation its own masses, friction, gains, delays and encoder biases."""
    params: Path | None = None
    """Folder or params.json of a calibration: its estimate, or with --nsim N draws from its posterior."""
    base: Annotated[str | None, tyro.conf.arg(metavar="{free,fixed}")] = None
    """Let the base go (free) or hold it in the air (fixed); default: as the robot's spec says."""
    drop_height: float = 0.10
    """Metres above standing height to drop a floating robot from."""
    seed: int = 0
    """Of everything random."""
    threads: int = 0
    """Physics threads; 0 takes every core."""


def run(verb: SimVerb) -> int:
    """Simulate, print, film."""
    from rich.console import Console

    from trueup.core.errors import TrueupError
    from trueup.report.drop import film_drop, print_drop, write_drop_page
    from trueup.report.origins import print_origins
    from trueup.robot.load import load_robot
    from trueup.sim.calibration import read_calibration
    from trueup.sim.drop import DropCfg, drop

    if verb.base not in (None, "free", "fixed"):
        raise TrueupError(f"--base takes free or fixed, found {verb.base!r}")
    if verb.nsim < 1:
        raise TrueupError(f"--nsim must be at least 1, found {verb.nsim}")
    robot = load_robot(verb.robot)
    cfg = DropCfg(
        seconds=verb.seconds,
        height_m=verb.drop_height,
        nsim=verb.nsim,
        base=verb.base,  # type: ignore[arg-type]
        randomize=verb.randomize,
        params=None if verb.params is None else read_calibration(verb.params),
        seed=verb.seed,
        threads=verb.threads,
    )
    console = Console()
    with progress_bar("simulating", console) as progress:
        result = drop(robot, cfg, progress=progress)
    print_drop(robot, result, console)
    if verb.params is not None:
        print_origins(result.origins, console)
    if verb.film is not None:
        with progress_bar("filming", console) as progress:
            film_drop(robot, result, cfg, verb.film, progress)
        console.print(f"film   {verb.film}")
    if verb.page is not None:
        write_drop_page(robot, result, verb.page, film=verb.film)
        console.print(f"page   {verb.page}")
    return 1 if result.diverged else 0
