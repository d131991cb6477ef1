"""Progress where there is no terminal: lines with what, how much, since when and how long still."""

import io
import logging
import time

from rich.console import Console

from trueup.report.terminal import clock, progress_bar, progress_line


def test_a_line_says_fraction_time_time_left_and_phase():
    line = progress_line("calibrating", "descend, 3 steps so far", 0.25, 30.0)
    assert line == "calibrating  25 %  00:30  left 01:30  (descend, 3 steps so far)"
    assert "left unknown" in progress_line("calibrating", "", 0.0, 5.0)
    assert clock(3723) == "1:02:03"


def test_lines_come_while_a_long_step_gives_no_news():
    out = io.StringIO()
    with progress_bar("calibrating", Console(file=out, width=120), every_s=0.05) as progress:
        progress(0.5)
        logging.getLogger("trueup.calibrate.fit.fit").info("search")
        time.sleep(0.3)
    lines = out.getvalue().splitlines()
    assert len(lines) >= 3
    assert "50 %" in lines[-1]
    assert lines[-1].endswith("(search)")


def test_listening_leaves_the_loggers_as_they_were():
    logger = logging.getLogger("trueup")
    before = logger.level, list(logger.handlers)
    with progress_bar("calibrating", Console(file=io.StringIO())):
        pass
    assert (logger.level, list(logger.handlers)) == before


def test_nothing_is_printed_for_what_is_soon_over():
    out = io.StringIO()
    with progress_bar("simulating", Console(file=out)) as progress:
        progress(1.0)
    assert out.getvalue() == ""
