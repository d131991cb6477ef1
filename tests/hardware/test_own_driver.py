"""A driver that the user brings: the one that the documentation shows, against a robot on a real socket."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.open import open_driver
from trueup.record.record import record
from trueup.record.session import plan_session
from trueup.record.sink import LogRows
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.load import load_robot

DOCS = Path(__file__).parents[2] / "docs" / "record.md"
PENDULUM = load_robot("pendulum")
RATE_HZ = 100.0


class UdpPendulum(threading.Thread):
    """A robot that speaks the packets of the documentation: follows its target like a slow servo."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.5 / RATE_HZ)
        self.port = self.socket.getsockname()[1]
        self.commands: list[np.ndarray] = []
        self.is_over = False

    def run(self) -> None:
        pos, target, start, driver = 0.0, 0.0, time.perf_counter(), None
        while not self.is_over:
            with contextlib.suppress(TimeoutError):
                data, driver = self.socket.recvfrom(65536)
                if len(data) == 40:
                    self.commands.append(np.frombuffer(data, "<f8"))
                    target = float(self.commands[-1][0])
            vel = 40.0 * (target - pos)
            pos += vel * 0.5 / RATE_HZ
            if driver is not None:
                now = time.perf_counter() - start
                self.socket.sendto(np.array([now, pos, vel], "<f8").tobytes(), driver)
        self.socket.close()


@pytest.fixture
def hardware() -> Iterator[UdpPendulum]:
    robot = UdpPendulum()
    robot.start()
    yield robot
    robot.is_over = True
    robot.join()


@pytest.fixture
def my_robot(tmp_path: Path) -> Path:
    """The file that the documentation shows."""
    (code,) = re.findall(r"```python\n(# my_robot.py\n.*?)```", DOCS.read_text(), re.DOTALL)
    path = tmp_path / "my_robot.py"
    path.write_text(code)
    return path


@pytest.mark.medium
def test_the_driver_of_the_documentation_records_a_robot_on_a_socket(hardware: UdpPendulum, my_robot: Path) -> None:
    plan = plan_session(PENDULUM, ExcitationCfg(seconds=3.0, rate_hz=RATE_HZ)).plan
    driver = open_driver(f"{my_robot}:make_driver?port={hardware.port}", PENDULUM, command_hz=RATE_HZ)
    rows = LogRows(PENDULUM.spec.joint_names)
    result = record(PENDULUM, driver, plan, rows)
    assert result.ended == "done", result.reason
    log = rows.log()
    assert "joint_torque" not in log.signals
    assert np.abs(log.signals["target_pos"]).max() > 0.1
    assert np.corrcoef(log.signals["joint_pos"][:, 0], log.signals["target_pos"][:, 0])[0, 1] > 0.9
    deadline = time.monotonic() + 5.0
    while hardware.commands[-1][2] != 0.0 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert hardware.commands[-1][2] == 0.0  # damped at the end: no stiffness


@pytest.mark.parametrize(
    ("code", "function", "words"),
    [
        ("def make(robot, command_hz): return 3", "make", "no driver: int has no connect"),
        ("def make(robot, command_hz): return 3", "mak", "did you mean 'make'"),
        ("def make(robot): return 3", "make", r"called as make\(robot, command_hz"),
        ("import no_such_module_anywhere", "make", "ModuleNotFoundError"),
        ("def broken(", "make", "SyntaxError"),
    ],
)
def test_a_wrong_driver_file_says_what_is_wrong(tmp_path: Path, code: str, function: str, words: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(code)
    with pytest.raises(TrueupError, match=words):
        open_driver(f"{path}:{function}", PENDULUM)


def test_a_file_that_is_not_there_and_a_module_that_is_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(TrueupError, match="no such file"):
        open_driver(f"{tmp_path}/none.py:make", PENDULUM)
    with pytest.raises(TrueupError, match="FILE.py:FUNCTION"):
        open_driver("no_such_module_anywhere:make", PENDULUM)
