"""Telemetry over a real socket: what pages are told, who may stop the robot, and that a run is never held up."""

import secrets
import socket
import time

import msgspec
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.deploy import telemetry_wire as wire
from trueup.deploy.page_link import PageLink
from trueup.deploy.telemetry import MAX_PAGES, Telemetry
from trueup.hardware.driver import Command, RobotState
from trueup.robot.load import load_robot

ROBOT = load_robot("go2")
ZERO = np.zeros(12)
STATE = RobotState(
    sequence=1,
    time_s=0.5,
    joint_pos=np.arange(12) / 10,
    joint_vel=ZERO,
    joint_torque=ZERO,
    joint_temperature=np.full(12, np.nan),
    voltage=28.5,
    imu_quat=np.array([1.0, 0, 0, 0]),
)
COMMAND = Command(target_pos=ZERO + 0.25, target_vel=ZERO, kp=ZERO, kd=ZERO, torque=ZERO)


@pytest.fixture
def run():
    with Telemetry.open(ROBOT) as telemetry:
        yield telemetry


def publish(run: Telemetry, **more: object) -> None:
    run._due = 0.0  # tests do not wait for the rate
    run.publish(1.5, STATE, COMMAND, {"forward": 0.3}, {"tilt": 0.8}, ("policy",), **more)


def met(run: Telemetry) -> PageLink:
    """A page that the run knows."""
    link = PageLink(run.address)
    link.poll()
    publish(run)
    link.poll()
    return link


def settle(link: PageLink, run: Telemetry, condition) -> None:
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        assert run.stop_requested in (True, False)  # listens
        link.poll()


def test_a_page_learns_the_robot_and_how_the_run_stands(run):
    link = met(run)
    assert link.robot().spec == ROBOT.spec
    assert link.robot().model_path.samefile(ROBOT.model_path)
    news = link.news
    assert news.joint_pos == pytest.approx([k / 10 for k in range(12)])
    assert news.target_pos == [0.25] * 12
    assert (news.asked, news.margins, news.flags) == ({"forward": 0.3}, {"tilt": 0.8}, ["policy"])
    assert (news.trip, news.stop_requested, news.time_s, news.voltage) == ("", False, 1.5, 28.5)
    assert np.isnan(news.joint_temperature).all()
    assert link.age_s < 1.0
    link.close()


def test_a_trip_is_told_at_once_whatever_the_rate(run):
    link = met(run)
    run.publish(1.6, STATE, None, {}, {}, (), trip="tilt: 1.2 rad")
    link.poll()
    assert link.news.trip == "tilt: 1.2 rad"
    assert link.news.target_pos is None
    link.close()


def test_news_come_at_sixty_hertz_at_most(run):
    link = met(run)
    before = link.news.sequence
    began = time.monotonic()
    while time.monotonic() - began < 0.25:
        run.publish(1.6, STATE, COMMAND, {}, {}, ())
    link.poll()
    assert 1 <= link.news.sequence - before <= 0.25 * 60 + 2
    link.close()


def test_the_right_token_stops_and_a_wrong_one_does_not(run):
    link = met(run)
    link.check("wrong token", 7)
    settle(link, run, lambda: link.granted(7) is not None)
    assert link.granted(7) is False
    link.stop("wrong token")
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        link.poll()
        assert not run.stop_requested
    assert run.refused >= 2
    link.check(run.token, 8)
    settle(link, run, lambda: link.granted(8) is not None)
    assert link.granted(8) is True
    assert not run.stop_requested  # asking who one is stops nothing
    link.stop(run.token)
    settle(link, run, lambda: run.stop_requested)
    publish(run)
    link.poll()
    assert link.news.stop_requested
    link.close()


def test_a_code_overheard_in_another_run_or_for_another_request_is_refused(run):
    with Telemetry.open(ROBOT, run.token) as other:
        page = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        page.connect(("127.0.0.1", run.port))
        for code in (wire.code(run.token, other.run, "stop"), wire.code(run.token, run.run, "check"), b""):
            page.send(msgspec.msgpack.encode(wire.Request(does="stop", code=code)))
        time.sleep(0.05)
        assert not run.stop_requested
        assert run.refused == 3
        page.close()


def test_the_token_never_travels(run):
    link = met(run)
    link.check(run.token, 1)
    link.stop(run.token)
    time.sleep(0.05)
    seen = []
    while True:
        try:
            seen.append(run._socket.recvfrom(4096)[0])
        except BlockingIOError:
            break
    assert len(seen) >= 2
    assert all(run.token.encode() not in data for data in seen)
    link.close()


def test_rubbish_is_passed_over_and_does_not_stop(run):
    page = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    page.connect(("127.0.0.1", run.port))
    random = np.random.default_rng(0)
    for _ in range(300):
        page.send(random.bytes(int(random.integers(0, 300))))
        if random.random() < 0.2:
            publish(run)
    assert not run.stop_requested
    page.close()


def test_a_flood_holds_a_step_up_by_a_millisecond_at_most_in_the_median(run):
    page = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    page.setblocking(False)
    page.connect(("127.0.0.1", run.port))
    request = msgspec.msgpack.encode(wire.Request(does="stop", code=secrets.token_bytes(32)))
    took = []
    for _ in range(50):
        for _ in range(40):
            page.send(request)
        began = time.perf_counter()
        publish(run)
        took.append(time.perf_counter() - began)
    assert np.median(took) < 0.005
    assert not run.stop_requested
    page.close()


def test_pages_that_went_away_are_forgotten_and_too_many_are_not_served(run):
    links = [PageLink(run.address) for _ in range(MAX_PAGES + 3)]
    for link in links:
        link.poll()
        publish(run)
    assert len(run._pages) == MAX_PAGES
    for link in links:
        link.close()
    publish(run)
    publish(run)  # the refusals of closed sockets come back and are passed over
    run._pages = {page: seen - 10.0 for page, seen in run._pages.items()}
    publish(run)
    assert not run._pages


def test_closing_says_goodbye_and_is_safe_twice():
    run = Telemetry.open(ROBOT)
    link = met(run)
    run.close()
    run.close()
    publish(run)
    link.poll()
    assert link.is_over
    assert not run.stop_requested
    link.close()


def test_bad_tokens_addresses_and_ports_are_refused_in_words(run):
    with pytest.raises(TrueupError, match="8 characters or more, found 3"):
        Telemetry.open(ROBOT, "abc")
    with pytest.raises(TrueupError, match=f"127.0.0.1:{run.port}"):
        Telemetry.open(ROBOT, port=run.port)
    for address in ("localhost", "host:port", ":1", "a:99999"):
        with pytest.raises(TrueupError, match="HOST:PORT"):
            PageLink(address)


def test_tokens_are_long_and_never_the_same():
    tokens = set()
    for _ in range(20):
        with Telemetry.open(ROBOT) as run:
            tokens.add(run.token)
            assert len(run.token) >= 12
    assert len(tokens) == 20
