"""Shared terminal output: tables, and progress with time left."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from trueup.world.fitted.origins import ValueOrigin

LINE_EVERY_S = 10.0
_TELLING = 0.02  # done, before which a time left would be a guess


def text_table(columns: Sequence[str], rows: Iterable[Sequence[RenderableType]] = (), **options: Any) -> Table:
    """A table; a column whose name begins with ">" is aligned to the right. Such columns and the first do not wrap."""
    table = Table(box=None, header_style="bold", title_justify="left", title_style="bold", **options)
    for k, name in enumerate(columns):
        right = name.startswith(">")
        table.add_column(name.removeprefix(">"), justify="right" if right else "left", no_wrap=right or k == 0)
    for row in rows:
        table.add_row(*row)
    return table


def print_origins(found: Sequence[ValueOrigin], console: Console) -> None:
    """Say where the parameters of the simulations come from, a line for each name."""
    from trueup.world.fitted.origins import origin_lines  # brings the simulator, which other verbs do without

    console.print("parameters of the simulations (what is not named is the robot's own):")
    for line in origin_lines(found):
        console.print(f"  {line}", soft_wrap=True, highlight=False)


@contextmanager
def progress_bar(
    what: str, console: Console | None = None, *, every_s: float = LINE_EVERY_S
) -> Iterator[Callable[[float], None]]:
    """Show a bar; the function given takes the fraction done, 0 to 1. Off a terminal: a line every ten seconds."""
    console = console or Console()
    if not console.is_terminal:
        with _lines(what, console, every_s) as show:
            yield show
        return
    times = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(TextColumn("{task.description}"), BarColumn(), *times, console=console, transient=True) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda fraction: progress.update(task, completed=fraction)


@contextmanager
def _lines(what: str, console: Console, every_s: float) -> Iterator[Callable[[float], None]]:
    """Print from a second thread, so that progress also appears during a long step."""
    state, over, began = {"done": 0.0}, threading.Event(), time.monotonic()
    with _phase() as phase:

        def run() -> None:
            while not over.wait(every_s):
                line = progress_line(what, phase[-1], state["done"], time.monotonic() - began)
                console.print(line, markup=False, highlight=False, soft_wrap=True)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield lambda fraction: state.update(done=fraction)
        finally:
            over.set()
            thread.join()


@contextmanager
def _phase() -> Iterator[list[str]]:
    """The newest log message of trueup's stages; messages still reach their usual handlers."""
    latest, logger, handler = [""], logging.getLogger("trueup"), logging.Handler(logging.INFO)
    level = logger.level
    handler.addFilter(lambda record: record.levelno == logging.INFO)
    handler.emit = lambda record: latest.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)
    try:
        yield latest
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def progress_line(what: str, phase: str, done: float, elapsed_s: float) -> str:
    """One line: what, how much of it is done, since when, how long still, and the phase."""
    left = f"left {clock(elapsed_s * (1.0 - done) / done)}" if done >= _TELLING else "left unknown"
    return f"{what} {100 * done:3.0f} %  {clock(elapsed_s)}  {left}{f'  ({phase})' if phase else ''}"


def clock(seconds: float) -> str:
    """1:02:03 or 02:03."""
    hours, rest = divmod(round(seconds), 3600)
    minutes = f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{hours}:{minutes}" if hours else minutes
