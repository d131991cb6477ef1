"""Progress with time left, for anything that takes more than a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def progress_bar(what: str, console: Console | None = None) -> Iterator[Callable[[float], None]]:
    """Show a bar; the function given takes the fraction done, 0 to 1. Nothing is drawn where nobody looks."""
    console = console or Console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda fraction: progress.update(task, completed=fraction)
