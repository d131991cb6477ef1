"""`trueup sim ROBOT`: drop a robot, hold its default pose, film it. `trueup sim LOG...`: a saved fit scored on logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from trueup.core.errors import TrueupError
from trueup.core.outputs import OutFile
from trueup.report.progress import progress_bar


@dataclass(frozen=True, kw_only=True)
class SimVerb:
    """Drop a robot in simulation, hold its default pose, and film it; or replay logs with a saved fit.

    In: a robot (and, with --params, a calibration of it). Out: a film (--film), a page of traces (--page), and how it
    ended on the screen.
    In: logs, --robot and --params. Out: the errors of the fit and of the nominal model on these logs, open loop and in
    windows of 0.5 s, per joint and per log, and a page (--page); nothing is fitted.
    """

    what: tyro.conf.Positional[tuple[str, ...]]
    """A robot to drop (built-in name, or a folder, spec, MJCF or URDF of your own), or logs to replay."""
    robot: str | None = None
    """Whose logs they are."""
    mapping: str | None = None
    """For logs in CSV, NPZ, Parquet, HDF5: a shipped mapping's name or your own TOML."""
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
    """Folder or params.json of a calibration: scored on the logs; or a robot with its estimate, with --nsim N draws."""
    base: Annotated[str | None, tyro.conf.arg(metavar="{free,fixed}")] = None
    """Let the base go (free) or hold it in the air (fixed); default: as the robot's spec says."""
    drop_height: float = 0.10
    """Metres above standing height to drop a floating robot from."""
    seed: int = 0
    """Of everything random."""
    threads: int = 0
    """Physics threads; 0 takes every core."""


def run(verb: SimVerb) -> int:
    """Simulate, print, film; or replay logs."""
    from rich.console import Console

    from trueup.core.errors import TrueupError
    from trueup.report.drop import film_drop, print_drop, write_drop_page
    from trueup.report.origins import print_origins
    from trueup.robot.load import load_robot
    from trueup.world.drop import DropCfg, drop
    from trueup.world.fitted.calibration import read_calibration

    if verb.what and all(_is_log(name, verb.mapping) for name in verb.what):
        return _run_logs(verb.what, robot=verb.robot, params=verb.params, mapping=verb.mapping, page=verb.page)
    if len(verb.what) != 1:
        raise TrueupError(
            f"name one robot to drop, or logs to replay (--robot says whose), found {' '.join(verb.what) or 'nothing'}"
        )
    if verb.base not in (None, "free", "fixed"):
        raise TrueupError(f"--base takes free or fixed, found {verb.base!r}")
    if verb.nsim < 1:
        raise TrueupError(f"--nsim must be at least 1, found {verb.nsim}")
    robot = load_robot(verb.what[0])
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


# --- logs ---
def _is_log(name: str, mapping: str | None) -> bool:
    """Whether a positional names a log: a file of a known kind, a bag, or with a mapping whatever exists."""
    path = Path(name)
    if mapping is not None:
        return path.exists()
    if path.is_dir():
        return (path / "metadata.yaml").exists() or any(path.glob("*.db3"))
    return path.name.lower().endswith(_SUFFIXES)


_SUFFIXES = (".mcap", ".db3", ".csv", ".csv.gz", ".tsv", ".npz", ".parquet", ".h5", ".hdf5")


def _run_logs(
    logs: Sequence[str], *, robot: str | None, params: Path | None, mapping: str | None, page: Path | None
) -> int:
    """Score, print, write the page."""
    from rich.console import Console

    from trueup.face import score

    if robot is None:
        raise TrueupError(f"{logs[0]} is a log: say whose with --robot (a built-in name, a folder or a spec)")
    scores = score(robot, logs, params=params, mapping=mapping)
    console = Console()
    console.print(scores.table(), markup=False, highlight=False, soft_wrap=True)
    if page is not None:
        console.print(f"page   {scores.report(page)}", soft_wrap=True)
    return 0
