"""The live page of a motion: over a real socket, in a process of its own, and in a real browser."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from contextlib import closing

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.motion.readers.open import open_motion
from trueup.report.training.motion_page import MotionPage
from trueup.robot.load import load_robot

ROBOT = load_robot("g1")


def page_of(name: str, port: int) -> MotionPage:
    return MotionPage(open_motion(name, ROBOT), ROBOT, port=port)


def test_it_goes_on_by_the_clock_times_its_speed_and_begins_again() -> None:
    with closing(page_of("squat", 18500)) as page:
        page.step(0.4)
        assert page.at_s == pytest.approx(0.4)
        page.speed.value = 0.5
        page.step(0.4)
        assert page.at_s == pytest.approx(0.6)
        page.pause()
        page.step(0.4)
        assert page.at_s == pytest.approx(0.6)
        page.pause()
        page.speed.value = 1.0
        page.step(page.motion.seconds)
        assert page.at_s == pytest.approx(0.6)


def test_bodies_are_drawn_where_the_motion_has_them() -> None:
    with closing(page_of("walk", 18510)) as page:
        page.pause()
        page.move_to(2.0)
        page.step(0.0)
        shown = np.array([page.data.body(name).xpos for name in page.motion.body_names])
        wanted = page.motion.body_pos[round(2.0 * page.motion.rate_hz)]
        np.testing.assert_allclose(shown - shown[0], wanted - wanted[0], atol=1e-6)


def test_feet_that_stand_are_named() -> None:
    with closing(page_of("kick", 18520)) as page:
        both, lifted = page.motion.contacts.all(axis=1), ~page.motion.contacts[:, 1]
        page.at_s = float(np.flatnonzero(both)[0]) / page.motion.rate_hz
        assert all(foot in page._standing() for foot in page.motion.foot_names)
        page.at_s = float(np.flatnonzero(lifted)[10]) / page.motion.rate_hz
        assert page.motion.foot_names[1] not in page._standing()


def test_a_robot_that_is_bolted_down_has_no_motion() -> None:
    with pytest.raises(TrueupError, match="no free base"):
        MotionPage(open_motion("squat", ROBOT), load_robot("so101"), port=18530)


@pytest.mark.medium
def test_the_command_serves_the_page_and_ends_by_itself() -> None:
    command = [sys.executable, "-m", "trueup.cli", "motion", "play", "squat", "--port", "18540", "--seconds", "3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = re.search(r"http://[\d.:]+", process.stdout.readline())
    assert found is not None
    page = urllib.request.urlopen(found.group(), timeout=20).read()
    assert b"<html" in page.lower()
    _, complaint = process.communicate(timeout=100)
    assert process.returncode == 0, complaint


def test_the_slider_of_the_time_follows_the_clock_and_does_not_move_it() -> None:
    with closing(page_of("squat", 18560)) as page:
        page._told -= 1.0
        page.step(0.4)
        assert page.place.value == pytest.approx(0.4)
        page.place.value = 1.3
        assert page.at_s == pytest.approx(0.4)


@pytest.mark.medium
def test_a_visitor_pauses_it_and_lets_it_start_again() -> None:
    from live_page import browser_tab, running, wait

    with running(page_of("squat", 18550)) as page, browser_tab(page, "Pause") as tab:
        assert tab.locator("canvas").count() >= 1
        before = page.at_s
        wait(lambda: page.at_s != before)
        tab.get_by_text("Pause", exact=True).click()
        wait(lambda: not page.plays)
        tab.get_by_text("Start again", exact=True).click()
        wait(lambda: page.at_s == 0.0)
