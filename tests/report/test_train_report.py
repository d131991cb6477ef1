"""What a training shows."""

import io
from pathlib import Path

from rich.console import Console

from trueup.report.train import print_outcome, progress_table, training_display
from trueup.train.trainer import Outcome, Progress

METRICS = {
    "reward": 0.031,
    "velocity_error": 0.212,
    "terminated": 0.0001,
    "adr/log_width": -1.5,
    "terrain/level": 3.2,
    "flag/hopping": 0.4,
    "flag/idling": 0.01,
}


def _progress(elapsed=75.0):
    return Progress(
        iteration=30,
        steps=368_640,
        elapsed_s=elapsed,
        steps_per_s=8123.4,
        fraction=0.25,
        left_s=225.0,
        metrics=METRICS,
    )


def _console(**options):
    return Console(file=io.StringIO(), width=120, **options)


def test_the_table_tells_pace_time_left_error_falls_widths_and_level():
    console = _console()
    console.print(progress_table(Path("runs/walk"), _progress()))
    text = console.file.getvalue()
    for part in ("368,640", "8,123", "01:15", "03:45", "0.212", "-1.500", "3.20", "hopping", "40%"):
        assert part in text
    assert "idling" not in text


def test_without_a_terminal_a_line_every_half_minute():
    console = _console(force_terminal=False)
    with training_display(Path("runs/walk"), console) as show:
        for elapsed in (1.0, 5.0, 20.0, 40.0, 45.0):
            show(_progress(elapsed))
    assert console.file.getvalue().count("368,640 steps") == 2


def test_the_end_says_why_and_what_next():
    console = _console()
    outcome = Outcome(reason="interrupted", iteration=3, steps=1000, elapsed_s=3700.0, metrics=METRICS)
    print_outcome(Path("runs/walk"), outcome, console)
    text = console.file.getvalue()
    assert "saved" in text
    assert "1:01:40" in text
    assert "trueup play runs/walk" in text
