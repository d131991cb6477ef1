"""Progress with time left, for anything that takes more than a moment: a bar on a terminal, else lines."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_EVERY_S = 10.0


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
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda fraction: progress.update(task, completed=fraction)


@contextmanager
def _lines(what: str, console: Console, every_s: float) -> Iterator[Callable[[float], None]]:
    """Print from a second thread, so that a long step without news still shows that it is alive."""
    state, over, began = {"done": 0.0}, threading.Event(), time.monotonic()
    phase = _Phase()

    def run() -> None:
        while not over.wait(every_s):
            line = progress_line(what, phase.last, state["done"], time.monotonic() - began)
            console.print(line, markup=False, highlight=False, soft_wrap=True)

    thread = threading.Thread(target=run, daemon=True)
    with phase.listening():
        thread.start()
        try:
            yield lambda fraction: state.update(done=fraction)
        finally:
            over.set()
            thread.join()


def progress_line(what: str, phase: str, done: float, elapsed_s: float) -> str:
    """One line: what, how much of it is done, since when, how long still, and the phase."""
    left = f"left {clock(elapsed_s * (1.0 - done) / done)}" if done >= _TELLING else "left unknown"
    return f"{what} {100 * done:3.0f} %  {clock(elapsed_s)}  {left}{f'  ({phase})' if phase else ''}"


def clock(seconds: float) -> str:
    """1:02:03 or 02:03."""
    hours, rest = divmod(round(seconds), 3600)
    minutes = f"{rest // 60:02d}:{rest % 60:02d}"
    return f"{hours}:{minutes}" if hours else minutes


_TELLING = 0.02  # done, before which a time left would be a guess


class _Phase(logging.Handler):
    """Remembers the last thing that a stage said it is doing."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno == logging.INFO:
            self.last = record.getMessage()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Hear what trueup's stages say; their messages go where they went before."""
        logger = logging.getLogger("trueup")
        level = logger.level
        logger.addHandler(self)
        if logger.getEffectiveLevel() > logging.INFO:
            logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)
