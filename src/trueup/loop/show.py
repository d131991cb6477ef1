"""`trueup loop` and `trueup board`: progress on the screen and the page of the workspace."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.core.verb_package import called_with
from trueup.loop.context import Context
from trueup.loop.run import Looped, TimeAhead, estimate, opened, run_loop, standing, where
from trueup.loop.stage import Stage, Tell, Told
from trueup.loop.story import in_words, tell_story
from trueup.loop.verbs import BoardVerb, LoopVerb
from trueup.report.workspace.board import serve_folder
from trueup.report.workspace.page import write_workspace_page

_LOG = logging.getLogger(__name__)


def run_verb(asked: LoopVerb) -> int:
    """Run the loop with progress on the screen."""
    console = Console()
    started, expected = time.monotonic(), TimeAhead(0.0, 0.0)

    def told(stage: Stage, what: Told, seconds: float, line: str) -> None:
        nonlocal expected
        name = f"round {stage.round}  {stage.name:<10}"
        if what == "skipped":
            console.print(f"{name} unchanged", style="dim", highlight=False)
        elif stage.absent:
            if what == "begins":
                console.print(f"{name} left out: {stage.absent}", highlight=False, soft_wrap=True, markup=False)
        elif what == "begins":
            expected = estimate(asked, stage)
            words = f"about {_clock(expected.stage_s)}; with all that follows {_clock(expected.whole_s)}"
            console.print(f"{name} begins ({words})", highlight=False, soft_wrap=True, markup=False)
        elif what == "runs":
            left = expected.stage_s - seconds
            time_left = f"left about {_clock(left)}" if left > 0.0 else "longer than usual"
            console.print(
                f"{name} {_clock(seconds)}, {time_left}   {line[:90]}",
                style="dim", highlight=False, soft_wrap=True, markup=False,
            )  # fmt: skip
        else:
            console.print(f"{name} done in {_clock(seconds)}", highlight=False)

    console.print(f"workspace  {where(asked)}", highlight=False, soft_wrap=True)
    try:
        looped = _run(asked, told)
    except KeyboardInterrupt:
        console.print("stopped: the same command goes on from here", highlight=False)
        raise
    _print_figures(looped, console)
    console.print(f"workspace  {looped.workspace.path}   ({_clock(time.monotonic() - started)})", highlight=False)
    if asked.page:
        page = looped.workspace.path / "index.html"
        console.print(
            f"page       {page}   (open it in a browser; it needs no network)", highlight=False, soft_wrap=True
        )
    return 0


def _run(asked: LoopVerb, tell: Tell = lambda stage, what, seconds, line: None) -> Looped:
    def changed(loop: Context) -> None:
        if not asked.page:
            return
        try:
            write_page(loop, films=asked.films)
        except TrueupError as error:  # what was done stays done
            _LOG.warning("the page is not written: %s", error)

    return run_loop(asked, tell, changed)


def write_page(loop: Context, *, films: bool) -> Path:
    """Write the page of a workspace in its present state."""
    story = tell_story(loop, standing(loop), films=films)
    return write_workspace_page(story, loop.workspace.path / "index.html")


def run_board(asked: BoardVerb) -> int:
    """Serve a workspace and write its page again after every change."""
    loop = opened(asked.workspace)
    before: dict[str, str] = {}
    with stop_on_signal() as stop, serve_folder(asked.workspace, asked.host, asked.port) as address:
        Console().print(f"board  {address}   (Ctrl-C ends it)", highlight=False)
        while not stop.is_set():
            now = loop.workspace.hashes()
            if now != before or not (asked.workspace / "index.html").exists():
                write_page(loop, films=True)
                before = now
            stop.wait(1.0)
    return 0


def _print_figures(looped: Looped, console: Console) -> None:
    for round_, one in looped.figures.items():
        error = "" if one.error is None else f", velocity error {one.error:.3f} m/s"
        interval = "" if one.interval is None else " ({:.3f} to {:.3f})".format(*one.interval)
        console.print(f"round {round_}    {one.falls} of {one.runs} runs fell{error}{interval}", highlight=False)
    if looped.comparison is not None:
        console.print(escape(in_words(looped.comparison)), highlight=False)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


loop = called_with(LoopVerb, _run)
board = called_with(BoardVerb, run_board)
