"""The driver over loopback DDS: against a twin, and against robots that are silent, wrong, or not alone."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cyclonedds")
from unitree_bench import GO2, driver_for, driving, hold, own_domain, serving, stranger, wait_until

from trueup.core.errors import TrueupError
from trueup.hardware.driver import RobotState
from trueup.hardware.drivers import dds
from trueup.hardware.drivers.dds import DdsBus
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.drivers.unitree.codec import decode_command, encode_command, encode_state
from trueup.hardware.drivers.unitree.crc import is_sound, stamp
from trueup.hardware.drivers.unitree.driver import UnitreeDriver, make_driver
from trueup.hardware.drivers.unitree.motors import wiring_of
from trueup.hardware.drivers.unitree.rpc import Service, ServiceReply
from trueup.hardware.drivers.unitree.streams import LOW_CMD, LOW_STATE
from trueup.hardware.drivers.unitree.switcher import CHECK_MODE
from trueup.twin.speak.unitree import UnitreeSpeaker

medium = pytest.mark.medium
WIRING = wiring_of(GO2.spec)
N = GO2.spec.njoint


@pytest.fixture(scope="module")
def twin() -> Iterator[UnitreeSpeaker]:
    with serving(GO2) as speaker:
        yield speaker


class PlainRobot(threading.Thread):
    """A robot that only sends states, each made by `frame(k)`, and hears commands."""

    def __init__(self, domain: int, frame: Callable[[int], bytes], mode: str | None = None) -> None:
        super().__init__(daemon=True)
        self._bus = DdsBus("lo", domain, "unitree")
        self._out = self._bus.outbox(LOW_STATE, WIRING.family.low_state.sample)
        self._in = self._bus.inbox(LOW_CMD, WIRING.family.low_cmd.sample)
        answer = ServiceReply(0, f'{{"name":"{mode}"}}')
        self._switcher = (
            None if mode is None else Service(self._bus, "motion_switcher", lambda api, _: self._say(api, answer))
        )
        self._frame, self._is_over = frame, threading.Event()
        self.calls: list[int] = []
        self.commands: list[bytes] = []

    def _say(self, api_id: int, answer: ServiceReply) -> ServiceReply:
        self.calls.append(api_id)
        return answer

    def run(self) -> None:
        k = 0
        while not self._is_over.wait(0.004):
            self._out.send(self._frame(k))
            self.commands += [sample.cdr for sample in self._in.take()]
            if self._switcher is not None:
                self._switcher.serve()
            k += 1

    def __enter__(self) -> PlainRobot:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        self.join()
        self._bus.close()


def state_frame(tick: int, *, sound: bool = True) -> bytes:
    zero = np.zeros(N)
    state = RobotState(
        sequence=0, time_s=0.0, joint_pos=zero, joint_vel=zero, joint_torque=zero, joint_temperature=zero, voltage=29.0
    )
    record = stamp(encode_state(WIRING, state, tick=tick))
    record["crc"] ^= 0 if sound else 1
    return WIRING.family.low_state.to_cdr(record)


def plain_driver(domain: int, **options: str) -> UnitreeDriver:
    return make_driver(GO2, 250.0, "lo", **{"domain": str(domain), "connect": "1", "timeout": "0.2"} | options)


# --- with a twin ---
@medium
def test_connecting_ends_sport_mode_and_moves_nothing(twin: UnitreeSpeaker) -> None:
    assert twin.mode == "normal"
    with driving(twin) as driver:
        assert driver.released == "normal"
        assert twin.mode == ""
        assert twin.twin.tap().commands == 0
        assert driver.other_commander is None


@medium
def test_what_is_written_comes_back_as_float32_and_is_obeyed(twin: UnitreeSpeaker) -> None:
    with driving(twin) as driver:
        wanted = hold(GO2, GO2.spec.default_pose + 1e-9)
        for _ in range(150):
            sent = driver.write(wanted)
            state = driver.read()
        np.testing.assert_array_equal(sent.target_pos, sent.target_pos.astype(np.float32))
        np.testing.assert_allclose(sent.target_pos, wanted.target_pos, atol=3e-7)
        np.testing.assert_allclose(state.joint_pos, GO2.spec.default_pose, atol=0.12)
        assert state.voltage == pytest.approx(24.0)
        np.testing.assert_allclose(state.imu_quat, [1, 0, 0, 0], atol=1e-6)
        np.testing.assert_allclose(state.imu_acc, [0, 0, 9.81], atol=1e-5)


@medium
def test_one_thread_reads_while_another_writes_and_nothing_is_lost(twin: UnitreeSpeaker) -> None:
    with driving(twin) as driver:
        before, states, over = twin.twin.tap(), [driver.read()], threading.Event()

        def read() -> None:
            while not over.is_set():
                states.append(driver.read())

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(250):
            driver.write(hold(GO2))
            time.sleep(0.002)
        over.set()
        reader.join()
        wait_until(lambda: twin.twin.tap().commands - before.commands == 250)
        assert twin.twin.tap().accepted - before.accepted == 250
        assert twin.twin.tap().bad_frames == before.bad_frames
        sequence, time_s = (np.array([getattr(state, name) for state in states]) for name in ("sequence", "time_s"))
        assert (np.diff(sequence) >= 1).all()
        assert (np.diff(time_s) > 0.0).all()
        np.testing.assert_allclose(np.diff(time_s), 0.004 * np.diff(sequence), atol=1e-9)  # every state was seen


@medium
def test_another_commander_is_noticed_and_named(twin: UnitreeSpeaker) -> None:
    with driving(twin) as driver, stranger(twin) as other:
        for _ in range(20):
            driver.write(hold(GO2))
            driver.read()
        assert driver.other_commander is None
        rows = np.zeros((5, N))
        other.send(WIRING.family.low_cmd.to_cdr(stamp(encode_command(WIRING, rows, 0))))
        wait_until(lambda: driver.read() and driver.other_commander)
        assert driver.other_commander is not None
        assert "rt/lowcmd on lo" in driver.other_commander
        assert "DDS participant" in driver.other_commander


@medium
def test_a_listener_sees_what_sport_mode_commands_and_sends_nothing() -> None:
    with serving(GO2) as twin, driving(twin, listen="1") as driver:
        wait_until(lambda: driver.observe()[1] is not None)
        state, command = driver.observe()
        assert command is not None
        np.testing.assert_allclose(command.target_pos, GO2.spec.default_pose, atol=1e-6)
        np.testing.assert_allclose(command.kp, GO2.spec.kp)
        np.testing.assert_allclose(state.joint_pos, GO2.spec.default_pose, atol=0.12)
        for send in (driver.damp, lambda: driver.write(hold(GO2))):
            with pytest.raises(TrueupError, match="listens only"):
                send()
        driver.close()
        time.sleep(0.1)
        assert twin.mode == "normal"
        assert twin.ignored == twin.twin.tap().commands == 0
        assert driver.other_commander is None


@medium
def test_observing_says_none_when_nobody_commands(twin: UnitreeSpeaker) -> None:
    with driving(twin) as driver:
        assert driver.observe()[1] is None
        driver.write(hold(GO2))
        assert driver.observe()[1] is None  # one's own commands are not those of others


@medium
def test_quadrupeds_lie_down_before_sport_mode_is_ended() -> None:
    with serving(GO2) as twin, driving(twin, stand_down="1") as driver:
        assert driver.released == "normal"
        calf = [k for k, name in enumerate(GO2.spec.joint_names) if "calf" in name]
        assert (driver.read().joint_pos[calf] < -2.4).all()


@medium
def test_closing_damps_and_leaves_at_once() -> None:
    with own_domain() as domain, PlainRobot(domain, lambda k: state_frame(4 * k)) as robot:
        driver = plain_driver(domain, release="0")
        driver.connect()
        driver.write(hold(GO2))
        driver.close()
        driver.close()
        wait_until(lambda: len(robot.commands) == 11)
        records = [WIRING.family.low_cmd.from_cdr(cdr) for cdr in robot.commands]
        assert all(is_sound(record) for record in records)
        for record in records[1:]:
            rows, free = decode_command(WIRING, record)
            assert free.all()
            np.testing.assert_allclose(rows[3], GO2.spec.kd)
            assert not rows[4].any()
        with pytest.raises(TrueupError, match="connect"):
            driver.read()


# --- robots that are wrong ---
@medium
def test_a_robot_that_is_not_there_is_said_to_be_silent() -> None:
    with own_domain() as domain, pytest.raises(TrueupError, match=r"go2 is silent: no rt/lowstate on lo, domain"):
        plain_driver(domain, connect="0.3").connect()
    assert domain not in dds._domains  # nothing is left behind


def one_in_three_sound(domain: int) -> PlainRobot:
    return PlainRobot(domain, lambda k: state_frame(4 * k, sound=k % 3 == 0))


def read_on(driver: UnitreeDriver) -> None:
    while True:
        driver.read()


@medium
def test_states_with_a_wrong_checksum_are_dropped_counted_and_reported() -> None:
    with own_domain() as domain, one_in_three_sound(domain), plain_driver(domain, release="0") as driver:
        start, first = driver.bad_states, driver.read().sequence
        while driver.read().sequence < first + 20:
            pass
        assert 30 <= driver.bad_states - start <= 50  # two of three
    with own_domain() as domain, PlainRobot(domain, lambda k: state_frame(4 * k, sound=False)):
        with pytest.raises(TrueupError, match=r"none with the right checksum.*crc=0"):
            plain_driver(domain, release="0").connect()
        with plain_driver(domain, release="0", crc="0") as driver:
            assert driver.read().voltage == 29.0


@medium
def test_states_that_are_replayed_are_no_new_states() -> None:
    replay = threading.Event()

    def frame(k: int) -> bytes:
        return state_frame(k % 50 if replay.is_set() else 1000 + k)

    with own_domain() as domain, PlainRobot(domain, frame), plain_driver(domain, release="0") as driver:
        driver.read()
        replay.set()
        with pytest.raises(TrueupError, match="silent"):
            read_on(driver)
        assert driver.old_states > 10


@medium
def test_a_robot_that_falls_silent_is_an_error_within_the_timeout() -> None:
    with own_domain() as domain:
        with PlainRobot(domain, lambda k: state_frame(4 * k)):
            driver = plain_driver(domain, release="0")
            driver.connect()
        start = time.monotonic()
        with pytest.raises(TrueupError, match="silent"):
            read_on(driver)
        assert time.monotonic() - start < 0.2 + 0.3
        driver.close()


@medium
def test_without_an_answer_about_sport_mode_nothing_is_commanded() -> None:
    with own_domain() as domain, PlainRobot(domain, lambda k: state_frame(4 * k)) as robot:
        with pytest.raises(TrueupError, match=r"did not answer.*release=0"):
            plain_driver(domain).connect()
        assert not robot.commands


@medium
def test_a_motion_service_that_does_not_end_is_an_error() -> None:
    with own_domain() as domain, PlainRobot(domain, lambda k: state_frame(4 * k), mode="mcf") as robot:
        with pytest.raises(TrueupError, match=r"'mcf' was told to end and still runs"):
            plain_driver(domain, stand_down="0").connect()
        assert not robot.commands
        assert robot.calls[0] == CHECK_MODE
        assert 1003 in robot.calls


@medium
def test_a_robot_that_cannot_lie_down_is_not_released() -> None:
    with own_domain() as domain, PlainRobot(domain, lambda k: state_frame(4 * k), mode="normal") as robot:
        with pytest.raises(TrueupError, match=r"lie down.*stand_down=0"):
            plain_driver(domain).connect()
        assert set(robot.calls) == {CHECK_MODE}


# --- what is asked for ---
@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("unitree:", "needs a network interface"),
        ("unitree:nowhere0", r"no network interface 'nowhere0' here; there are .*lo"),
        ("unitree:lo?domain=300", "between 0 and 232"),
        ("unitree:lo?domain=x", "domain"),
        ("unitree:lo?listen=perhaps", "listen"),
        ("unitree:lo?frequency=500", r"no option 'frequency'.*it has domain, release, stand_down, listen"),
    ],
)
def test_references_that_make_no_sense_are_refused_in_words(reference: str, words: str) -> None:
    with pytest.raises(TrueupError, match=words):
        open_driver(reference, GO2).connect()


def test_nothing_works_before_connect(twin: UnitreeSpeaker) -> None:
    driver = driver_for(twin)
    for call in (driver.read, driver.damp, lambda: driver.write(hold(GO2))):
        with pytest.raises(TrueupError, match="call connect"):
            call()
    driver.close()


@medium
def test_connecting_twice_is_refused_and_the_first_connection_stays(twin: UnitreeSpeaker) -> None:
    with driving(twin) as driver:
        with pytest.raises(TrueupError, match="connected already"):
            driver.connect()
        driver.read()


@medium
def test_a_domain_is_on_one_interface_in_a_process() -> None:
    interfaces = [name for name in ("eth0", "docker0") if Path(f"/sys/class/net/{name}").exists()]
    if not interfaces:
        pytest.skip("loopback is the only interface here")
    with own_domain() as domain:
        bus = DdsBus("lo", domain, "unitree")
        with pytest.raises(TrueupError, match=f"domain {domain} is on lo"):
            DdsBus(interfaces[0], domain, "unitree")
        bus.close()
        assert not dds._domains.get(domain)


@medium
def test_without_cyclonedds_the_driver_says_what_to_install_and_nothing_heavy_is_loaded() -> None:
    code = """
import sys
sys.modules["cyclonedds"] = None
from trueup.hardware.drivers.open import open_driver
from trueup.robot.load import load_robot
from trueup.core.errors import TrueupError
driver = open_driver("unitree:lo", load_robot("go2"))
assert not {"mujoco", "torch", "scipy"} & set(sys.modules)
try:
    driver.connect()
except TrueupError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "pip install 'trueup[unitree]'" in done.stdout
    assert done.stdout.count("\n") == 1
