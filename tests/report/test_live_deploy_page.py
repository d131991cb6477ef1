"""The live page of a run as people see it: a real browser, real telemetry, two visitors of whom one may stop."""

import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager

import numpy as np
import pytest
from live_page import FLAGS, pixels, wait

from trueup.core.errors import TrueupError
from trueup.core.machine import find_browser
from trueup.deploy.page_link import PageVerb
from trueup.deploy.telemetry import Telemetry
from trueup.deploy.telemetry_wire import News
from trueup.hardware.driver import Command, RobotState
from trueup.report.operate.live_page import DeployPage, connect_page, run_page
from trueup.report.operate.live_panel import readout
from trueup.robot.load import load_robot

ROBOT = load_robot("go2")
POSE = ROBOT.spec.default_pose


class FakeRun:
    """A run that publishes what a test sets, as a control loop does."""

    def __init__(self) -> None:
        self.telemetry = Telemetry.open(ROBOT)
        self.pose, self.quat = POSE.copy(), np.array([1.0, 0, 0, 0])
        self.margins, self.trip = {"tilt": 0.9, "joint position": 0.1}, ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def _loop(self) -> None:
        k, zero = 0, np.zeros(12)
        while not self._done.wait(0.02):
            k += 1
            state = RobotState(
                sequence=k,
                time_s=0.02 * k,
                joint_pos=self.pose,
                joint_vel=zero,
                joint_torque=zero + 1.25,
                joint_temperature=zero + 41.0,
                voltage=27.5,
                imu_quat=self.quat,
            )
            command = Command(target_pos=POSE, target_vel=zero, kp=zero, kd=zero, torque=zero)
            if self.telemetry.stop_requested:
                self.trip = "stop: the operator of a live page"
            self.telemetry.publish(
                0.02 * k, state, command, {"forward": 0.3}, self.margins, ("policy",), trip=self.trip
            )

    def close(self) -> None:
        self._done.set()
        self._thread.join(5)
        self.telemetry.close()


@contextmanager
def served(run: FakeRun, port: int):
    """The page of a run, updated by a thread as `run_page` does."""
    link = connect_page(run.telemetry.address)
    page, done = DeployPage(link, port=port), threading.Event()

    def update() -> None:
        while not done.wait(0.01):
            page.update()

    thread = threading.Thread(target=update, daemon=True)
    thread.start()
    try:
        yield page
    finally:
        done.set()
        thread.join(10)
        page.close()
        link.close()


@contextmanager
def browser():
    from playwright import sync_api as playwright

    path = find_browser()
    if path is None or "chrom" not in path:
        pytest.fail("no Chromium here: scripts/system-packages.sh installs it")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


def visit(opened, page):
    tab = opened.new_page(viewport={"width": 800, "height": 480})
    tab.goto(page.url)
    tab.get_by_text("EMERGENCY STOP").wait_for(timeout=120_000)
    return tab


def button(tab):
    return tab.get_by_role("button", name="EMERGENCY STOP")


@pytest.mark.medium
def test_only_the_operator_stops_and_everybody_sees_why():
    with closing(FakeRun()) as run, served(run, 18400) as page, browser() as opened:
        operator, onlooker = visit(opened, page), visit(opened, page)
        assert button(operator).is_disabled()
        assert button(onlooker).is_disabled()
        for tab in (operator, onlooker):
            tab.get_by_text("asked: forward +0.30").wait_for(timeout=60_000)
            tab.get_by_text("tilt 90%").wait_for(timeout=60_000)
            tab.get_by_text("27.5 V").wait_for(timeout=60_000)
        onlooker.get_by_role("textbox").first.fill("not the token")
        onlooker.get_by_text("Wrong token").wait_for(timeout=60_000)
        assert button(onlooker).is_disabled()
        assert not run.telemetry.stop_requested
        operator.get_by_role("textbox").first.fill(run.telemetry.token)
        operator.get_by_text("You are the operator").wait_for(timeout=60_000)
        assert button(onlooker).is_disabled()  # of one visitor only
        button(operator).dispatch_event("click", timeout=120_000)
        wait(lambda: run.telemetry.stop_requested)
        for tab in (operator, onlooker):
            tab.get_by_text("STOPPED: stop: the operator of a live page").wait_for(timeout=60_000)


@pytest.mark.medium
def test_the_robot_in_the_page_moves_as_its_sensors_say():
    with closing(FakeRun()) as run, served(run, 18410) as page, browser() as opened:
        tab = visit(opened, page)
        wait(lambda: page._drawn > 0.0)
        tab.wait_for_timeout(2000)
        before = pixels(tab)
        run.quat = np.array([np.cos(0.5), np.sin(0.5), 0.0, 0.0])  # rolls by 1 rad
        tab.wait_for_timeout(2000)
        rolled = pixels(tab)
        assert (np.abs(rolled - before).max(axis=2) > 30).mean() > 0.003
        run.pose = np.full(12, np.nan)  # a broken sensor leaves the picture alone
        tab.wait_for_timeout(1000)
        np.testing.assert_array_equal(pixels(tab), rolled)


@pytest.mark.medium
def test_a_browser_that_enables_the_button_by_itself_cannot_stop():
    with closing(FakeRun()) as run, served(run, 18420) as page, browser() as opened:
        tab = visit(opened, page)
        wait(lambda: len(page.visitors) == 1)
        (visitor,) = page.visitors.values()
        visitor.button.disabled = False  # as if the browser had done it
        wait(lambda: button(tab).is_enabled())
        button(tab).dispatch_event("click", timeout=120_000)
        time.sleep(1.0)
        assert not run.telemetry.stop_requested
        assert run.telemetry.refused == 0  # it was not even asked


@pytest.mark.medium
def test_the_page_ends_with_the_run():
    run, urls = FakeRun(), []

    def over() -> None:
        wait(lambda: bool(urls))
        time.sleep(0.5)
        run.close()

    threading.Thread(target=over, daemon=True).start()
    assert run_page(PageVerb(address=run.telemetry.address, port=18430), urls.append) == 0
    assert urls == ["http://127.0.0.1:18430"]


def news(**changes) -> News:
    state = RobotState(
        sequence=1,
        time_s=0.0,
        joint_pos=POSE,
        joint_vel=POSE,
        joint_torque=POSE,
        joint_temperature=np.full(12, np.nan),
        voltage=float("nan"),
    )
    given = {"asked": {}, "margins": {}, "flags": (), "trip": "", "stop": False} | changes
    return News.of(
        "run", 1, 2.0, state, None, given["asked"], given["margins"], given["flags"], given["trip"], given["stop"]
    )


def test_margins_are_bars_the_closest_first_and_red_when_low():
    page = readout(ROBOT, news(margins={"tilt": 0.9, "torque": 0.05, "odd": float("nan")}), 0.0, False)
    assert page.index("odd 0%") < page.index("torque 5%") < page.index("tilt 90%")
    assert page.count("#c62828") == 2
    assert "width:90%" in page


def test_text_of_a_run_cannot_become_part_of_the_page():
    page = readout(ROBOT, news(flags=("<script>x</script>",), trip="<b>", asked={"<i>": 1.0}), 0.0, False)
    assert "<script>" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "STOPPED: &lt;b&gt;" in page


def test_a_silent_run_and_one_that_is_over_are_told_apart():
    assert "waiting for the run" in readout(ROBOT, None, float("inf"), False)
    assert "no news for 4 s" in readout(ROBOT, news(), 4.2, False)
    over = readout(ROBOT, news(), 4.2, True)
    assert "the run is over" in over
    assert "no news" not in over
    assert "no news" not in readout(ROBOT, news(), 0.3, False)


def test_numbers_that_are_not_measured_are_dashes():
    page = readout(ROBOT, news(), 0.0, False)
    assert page.count(">-</td>") == 24  # no temperature, no target
    assert "nan" not in page
    assert " V " not in page


def test_no_run_at_an_address_is_said_with_what_to_do():
    with pytest.raises(TrueupError, match="trueup deploy --live"):
        connect_page("127.0.0.1:9", seconds=0.2)


def test_telemetry_needs_neither_viser_nor_mujoco():
    code = (
        "import sys, trueup.deploy.telemetry, trueup.deploy.page_link; "
        "print([m for m in ('viser', 'mujoco', 'torch', 'scipy') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
