"""`trueup sim LOG... --robot ROBOT --params FIT`: a saved fit scored on logs, without a refit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trueup.core.errors import TrueupError


def is_log(name: str, mapping: str | None) -> bool:
    """Whether a positional names a log: a file of a known kind, a bag, or with a mapping whatever exists."""
    path = Path(name)
    if mapping is not None:
        return path.exists()
    if path.is_dir():
        return (path / "metadata.yaml").exists() or any(path.glob("*.db3"))
    return path.name.lower().endswith(_SUFFIXES)


_SUFFIXES = (".mcap", ".db3", ".csv", ".csv.gz", ".tsv", ".npz", ".parquet", ".h5", ".hdf5")


def run_logs(
    logs: Sequence[str],
    *,
    robot: str | None,
    params: Path | None,
    mapping: str | None,
    page: Path | None,
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
