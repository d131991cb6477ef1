"""A twin behind ROS 2 topics: the driver over real DDS in another process, and what the twin refuses."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ros2_robot import free_domain

from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.drivers.ros2.bus import RosBus
from trueup.hardware.drivers.ros2.driver import Ros2Driver
from trueup.hardware.drivers.ros2.messages import Bool, JointState
from trueup.hardware.twin_cfg import ServeCfg
from trueup.robot.load import Robot, load_robot
from trueup.twin.firmware import Twin
from trueup.twin.speak.ros2 import Ros2Speaker
from trueup.twin.tap import read_tap


class Served:
    """A twin of the so101 that a thread serves in real time."""

    def __init__(self, robot: Robot, options: str = "", tap: Path | None = None) -> None:
        place = f"lo?domain={free_domain()}{options}"
        # a busy machine may keep the driver from sending for a while: that is not what is tested here
        patient = ServeCfg(preset="ideal", command_timeout_s=5.0, speak="ros2", place=place)
        cfg = replace(patient, tap=None if tap is None else str(tap))
        self.robot, self.twin = robot, Twin(robot, cfg)
        self.speaker = Ros2Speaker(self.twin, cfg)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_over = False
        self._thread.start()

    def _run(self) -> None:
        period = self.twin.period

        def counted() -> None:
            if self._is_over:
                raise InterruptedError
            period()

        self.twin.period = counted  # type: ignore[method-assign]
        try:
            self.speaker.run()
        except InterruptedError:
            self.speaker.close()

    def connected(self) -> Ros2Driver:
        driver = open_driver(self.speaker.reference, self.robot, command_hz=100.0)
        assert isinstance(driver, Ros2Driver)
        driver.connect()
        return driver

    def close(self) -> None:
        self._is_over = True
        self._thread.join(5.0)


@pytest.fixture(scope="module")
def so101() -> Robot:
    return load_robot("so101")


def command(robot: Robot, target: np.ndarray) -> Command:
    zero = np.zeros(len(target))
    return Command(target_pos=target, target_vel=zero, kp=robot.spec.kp, kd=robot.spec.kd, torque=zero)


def test_twin_goes_where_it_is_told(so101: Robot, tmp_path: Path) -> None:
    served = Served(so101, tap=tmp_path / "tap")
    driver = served.connected()
    target = driver.read().joint_pos + np.array([0.2, 0.0, 0.0, 0.0, -0.2, 0.1])
    end = time.monotonic() + 10.0  # for a machine that is busy; a quarter of a second otherwise
    reached = driver.read().joint_pos
    while time.monotonic() < end and np.abs(reached - target)[[0, 4, 5]].max() > 0.07:
        driver.write(command(so101, target))
        reached = driver.read().joint_pos
    driver.close()
    served.close()
    assert np.abs(reached - target)[[0, 4, 5]].max() < 0.08
    counts = served.twin.tap()
    assert counts.accepted == counts.commands > 3
    assert counts.malformed == counts.nonfinite == 0
    tap = read_tap(tmp_path / "tap")
    received = tap.commands[np.isfinite(tap.commands).all(axis=(1, 2))]
    assert (received[:, 0] == target).all(axis=1).any()
    assert (received[:, 2] == so101.spec.kp).all()  # gains are the twin's own


@pytest.mark.parametrize("kind", ["float64", "trajectory"])
def test_other_messages_move_the_twin_too(so101: Robot, kind: str) -> None:
    served = Served(so101, f"&kind={kind}")
    driver = served.connected()
    start = driver.read().joint_pos
    moved, end = np.zeros(6), time.monotonic() + 10.0
    while time.monotonic() < end and not (moved[[0, 4]] > 0.04).all():
        moved = driver.read().joint_pos - start
        driver.write(command(so101, start + 0.1))
    driver.close()
    served.close()
    assert (moved[[0, 4]] > 0.04).all()


def test_malformed_and_nonfinite_commands_are_counted_and_refused(so101: Robot) -> None:
    served = Served(so101)
    driver = served.connected()
    out = RosBus("lo", driver.cfg.domain).outbox("/joint_commands", JointState)
    end = time.monotonic() + 3.0
    while not out.listeners and time.monotonic() < end:
        time.sleep(0.01)
    names = list(so101.spec.joint_names)
    out.send(JointState(name=names[:3], position=[0.0] * 3))
    out.send(JointState(name=names, position=[float("nan")] * 6))
    while served.twin.tap().commands < 2 and time.monotonic() < end:
        time.sleep(0.01)
    driver.close()
    served.close()
    counts = served.twin.tap()
    assert (counts.commands, counts.malformed, counts.nonfinite, counts.accepted) == (2, 1, 1, 0)


def test_damp_topic_stops_the_twin_for_good(so101: Robot) -> None:
    served = Served(so101, "&damp_topic=/stop")
    driver = served.connected()
    driver.damp()
    end = time.monotonic() + 3.0
    while not served.speaker.is_stopped and time.monotonic() < end:
        driver.read()
    before = served.twin.tap().accepted
    target = driver.read().joint_pos + 0.3
    for _ in range(10):
        driver.read()
        driver.write(command(so101, target))
    driver.close()
    served.close()
    assert served.speaker.is_stopped
    assert served.twin.tap().accepted == before


def test_stop_topic_that_says_false_does_not_stop(so101: Robot) -> None:
    served = Served(so101, "&damp_topic=/stop")
    driver = served.connected()
    stop = RosBus("lo", driver.cfg.domain).outbox("/stop", Bool)
    end = time.monotonic() + 3.0
    while not stop.listeners and time.monotonic() < end:
        time.sleep(0.01)
    stop.send(Bool(data=False))
    for _ in range(10):
        driver.read()
    driver.close()
    served.close()
    assert not served.speaker.is_stopped


def test_options_that_are_none_are_refused(so101: Robot) -> None:
    with pytest.raises(TrueupError, match="key=value"):
        Ros2Speaker(Twin(so101, ServeCfg(preset="ideal")), ServeCfg(preset="ideal", speak="ros2", place="lo?domain"))


@pytest.mark.medium
def test_quadruped_in_another_process_reports_joints_and_imu_every_period() -> None:
    place = f"lo?domain={free_domain()}"
    order = ["twin", "serve", "go2", "--speak", "ros2", "--place", place, "--command-hz", "500"]
    order += ["--command-timeout-s", "5"]
    code = "import sys; from trueup.cli import main; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code, *order], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert f"--driver ros2:{place}" in process.stdout.readline()
        robot = load_robot("go2")
        driver = open_driver(f"ros2:{place}", robot, command_hz=500.0)
        driver.connect()
        states, started = [driver.read()], time.perf_counter()
        while time.perf_counter() - started < 2.0:
            states.append(driver.read())
            driver.write(command(robot, robot.spec.default_pose))
        driver.close()
        first, last = states[0], states[-1]
        # stamps are the twin's clock: whole periods of 2 ms, one for every state that was counted
        periods = np.array([500.0 * (state.time_s - first.time_s) for state in states])
        counted = np.array([state.sequence - first.sequence for state in states])
        np.testing.assert_allclose(periods, np.rint(periods), atol=1e-3)
        assert (np.diff(periods) > 0.5).all()
        assert (counted <= np.rint(periods)).all()
        assert counted[-1] > 0.5 * periods[-1] > 100  # a machine that is busy elsewhere may lose some
        assert first.imu_quat is not None
        assert np.abs(last.joint_pos - robot.spec.default_pose).max() < 0.2
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10.0) == 0
