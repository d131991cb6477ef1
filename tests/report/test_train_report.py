"""What a training shows."""

import io
import json
from pathlib import Path

import pytest
from opened import opened
from rich.console import Console

from trueup.report.train import print_outcome, progress_table, training_display, write_run_page
from trueup.train.config import RunCfg
from trueup.train.folder import RunFolder
from trueup.train.play.assess import Assessment
from trueup.train.trainer import Progress, TrainingOutcome

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
        iteration=30, steps=368_640, elapsed_s=elapsed, steps_per_s=8123.4, fraction=0.25, left_s=225.0, metrics=METRICS
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


def test_without_a_terminal_a_line_every_ten_seconds_with_the_time_left():
    console = _console(force_terminal=False)
    with training_display(Path("runs/walk"), console) as show:
        for elapsed in (1.0, 5.0, 20.0, 40.0, 45.0):
            show(_progress(elapsed))
    assert console.file.getvalue().count("25 %  left 03:45  368,640 steps") == 3


def test_the_end_says_why_and_what_next():
    console = _console()
    outcome = TrainingOutcome(reason="interrupted", iteration=3, steps=1000, elapsed_s=3700.0, metrics=METRICS)
    print_outcome(Path("runs/walk"), outcome, None, console)
    text = console.file.getvalue()
    assert "without exploration" not in text
    assert "saved" in text
    assert "1:01:40" in text
    assert "trueup play runs/walk" in text


def test_the_end_tells_what_the_policy_is_worth_without_exploration():
    console = _console()
    outcome = TrainingOutcome(reason="steps", iteration=3, steps=1000, elapsed_s=60.0, metrics=METRICS)
    flags = {"flag/idling": 0.73, "flag/hopping": 0.02}
    assessed = Assessment(
        episodes=100, seconds=20.0, falls=17, error=0.511, score=0.43, metrics=flags, error_label="velocity error, m/s"
    )
    print_outcome(Path("runs/walk"), outcome, assessed, console)
    text = " ".join(console.file.getvalue().split())
    assert "100 episodes of 20 s: velocity error, m/s 0.511 score, at most 1 0.430 falls 17 of 100" in text
    assert "idling 73% of the time" in text
    assert "2% of the time" not in text


@pytest.mark.medium
def test_the_page_of_a_run_shows_learning_terrain_boundaries_and_flags(tmp_path):
    run = RunFolder(tmp_path / "walk")
    run.create(RunCfg(task="go2-velocity", nenv=64, threads=1))
    ends = {"adr/payload/low": 0.0, "adr/payload/high": 1.0, "terrain/stairs_up": 2.0}
    rows = [METRICS | ends | {"steps": 1e5 * k, "elapsed_s": 10.0 * k, "iteration": float(k)} for k in (1, 2, 3)]
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run.path / "assessments.jsonl").write_text('{"steps": 200000, "error": 0.14, "falls": 0}\n')
    with opened(write_run_page(run.path)) as page:
        assert page.complaints == []
        assert len(page.query_selector_all(".plot")) == 6
        text = page.inner_text("main")
    for words in ("go2-velocity", "0.140 m/s, 0 falls", "Terrain", "Ranges that grow by success", "Red flags"):
        assert words in text


def test_a_run_that_has_not_begun_has_a_page_too(tmp_path):
    run = RunFolder(tmp_path / "walk")
    run.create(RunCfg(task="go2-velocity", nenv=64, threads=1))
    assert "Training go2-velocity" in write_run_page(run.path).read_text()
