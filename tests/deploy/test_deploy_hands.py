"""The operator's hands in a whole `trueup deploy` process: keys on its controlling terminal, a gamepad's events."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from made_deploys import standing_bundle

import trueup as tu
from trueup.core.errors import TrueupError
from trueup.deploy.session.recording import read_rows

LOCKSTEP, REALTIME = "twin:ideal?lockstep=1", "twin:ideal"
BUTTON, AXIS, AT_THE_START = 1, 2, 0x80
WAIT_S = 60.0


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A policy that stands, allowed to hang."""
    path = standing_bundle(tmp_path_factory.mktemp("hands") / "stand.bundle", swing=0.1).path
    for rung, driver in (("replay", None), ("shadow", "twin:ideal?base=free&lockstep=1")):
        assert tu.deploy(path, rung=rung, driver=driver).passed
    return path


@dataclass
class Running:
    """A deploy process at a terminal; `terminal` is the operator's end."""

    child: subprocess.Popen
    terminal: int
    line: int
    out: Path
    text: str = ""

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def listen(self, until, seconds=WAIT_S):
        """Take in what it prints until that holds."""
        end = time.monotonic() + seconds
        while not until() and time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.02)[0]:
                self.text += os.read(self.terminal, 4096).decode()
        assert until(), self.text

    def policy_rows(self):
        rows = read_rows(self.out / "policy.rows")
        return {name: column[rows.columns["phase"][:, 0] == 1] for name, column in rows.columns.items()}

    def listen_to_the_policy(self, steps=10):
        """Until so many more steps of the policy are on disk."""
        self.listen(lambda: (self.out / "policy.rows").exists())
        before = len(self.policy_rows()["tick"])
        self.listen(lambda: len(self.policy_rows()["tick"]) >= before + steps)

    def end(self):
        """Exit code, and everything that it said in one line."""
        self.listen(lambda: self.child.poll() is not None)
        self.listen(lambda: not select.select([self.terminal], [], [], 0.1)[0])
        return self.child.returncode, re.sub(r"\s+", " ", self.text)

    def damped(self):
        events = [json.loads(line) for line in (self.out / "events.jsonl").read_text().splitlines()]
        return [event["reason"] for event in events if event["event"] == "trip"] == ["damping was asked for"]


@pytest.fixture
def deploy(bundle, tmp_path):
    """Starts `trueup deploy --rung hang` at a terminal of its own; whatever is left of it is ended."""
    started = []
    own = tmp_path / bundle.name  # with a ladder of its own: a shadow that is cut off is not passed
    for suffix in ("", ".ladder"):
        shutil.copytree(f"{bundle}{suffix}", f"{own}{suffix}")

    def start(*options, driver=LOCKSTEP, rung="hang"):
        ours, theirs = pty.openpty()
        asked = [str(own), "--rung", rung, "--driver", driver, "--uncertified", "--seconds", "0"]
        child = subprocess.Popen(
            [sys.executable, "-m", "trueup", "deploy", *asked, "--out", str(tmp_path / "run"), *options],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        started.append(Running(child, ours, theirs, tmp_path / "run"))
        return started[-1]

    yield start
    for one in started:
        one.child.kill()
        one.child.wait()
        os.close(one.terminal)
        os.close(one.line)


@pytest.mark.medium
def test_keys_steer_and_space_stops_at_once_and_the_terminal_is_as_it_was(deploy):
    running = deploy()
    before = termios.tcgetattr(running.line)
    running.listen_to_the_policy()
    assert termios.tcgetattr(running.line)[3] != before[3]
    running.type("ww")
    running.listen(lambda: running.policy_rows()["asked"][-1, 0] == pytest.approx(0.12))
    running.type("x")
    running.listen(lambda: running.policy_rows()["asked"][-1, 0] == 0.0)
    running.type(" ")
    code, text = running.end()
    assert code == 3
    assert "emergency stop by the space bar" in text
    assert running.damped()
    assert termios.tcgetattr(running.line) == before
    targets = running.policy_rows()["target"]
    assert np.ptp(targets, axis=0).max() == pytest.approx(0.012, rel=0.01)  # it did follow: 0.1 rad for each m/s


@pytest.mark.medium
@pytest.mark.parametrize(("key", "said"), [("\x1b", "done"), ("\x03", "interrupted")])
def test_escape_and_ctrl_c_end_in_order(deploy, key, said):
    running = deploy()
    running.listen_to_the_policy()
    running.type(key)
    code, text = running.end()
    assert code in (0, 1), text  # 1: shorter than the rung asks
    assert f"{said} after" in text
    assert running.damped()


@pytest.mark.medium
def test_ctrl_c_ends_a_shadow_in_order(deploy):
    running = deploy(rung="shadow", driver="twin:ideal?base=free&lockstep=1")
    running.listen_to_the_policy()
    running.type("\x03")
    code, text = running.end()
    assert code in (0, 1), text
    assert "interrupted after" in text
    assert "Traceback" not in text


@pytest.mark.medium
def test_space_stops_a_robot_in_real_time_within_two_control_periods(deploy):
    running = deploy(driver=REALTIME)
    running.listen_to_the_policy(steps=5)
    running.type(" ")
    pressed = time.monotonic()
    code, text = running.end()
    assert code == 3
    assert "emergency stop by the space bar" in text
    events = [json.loads(line) for line in (running.out / "events.jsonl").read_text().splitlines()]
    (trip,) = [event for event in events if event["event"] == "trip"]
    assert trip["damped_s"] - pressed < 0.04


@pytest.mark.medium
def test_a_gamepad_steers_and_any_button_stops(deploy, tmp_path):
    with Gamepad(tmp_path / "js0") as pad:
        running = deploy("--gamepad", str(pad.path))
        pad.plug_in()
        pad.send(BUTTON | AT_THE_START, 3, 1)  # held since before: no press
        running.listen_to_the_policy()
        pad.send(AXIS, 1, -16384)
        running.listen(lambda: running.policy_rows()["asked"][-1, 0] == pytest.approx(0.15, abs=0.001))
        pad.send(BUTTON, 7, 1)
        code, text = running.end()
    assert code == 3
    assert "emergency stop by button 7 of the gamepad" in text
    assert running.damped()


@pytest.mark.medium
def test_a_gamepad_that_is_unplugged_stops(deploy, tmp_path):
    with Gamepad(tmp_path / "js0") as pad:
        running = deploy("--gamepad", str(pad.path))
        pad.plug_in()
        running.listen_to_the_policy()
    code, text = running.end()
    assert code == 3
    assert re.search(r"the gamepad .*js0 is gone", text)
    assert running.damped()


class Gamepad:
    """Events of Linux' joydev in a pipe, which is opened as /dev/input/js0 is; leaving unplugs it."""

    def __init__(self, path):
        self.path = path
        self._file = -1
        os.mkfifo(path)

    def plug_in(self):
        """Wait for the process to open its end."""
        end = time.monotonic() + WAIT_S
        while self._file < 0:
            try:
                self._file = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                if time.monotonic() > end:
                    raise TrueupError("the gamepad was never opened") from None
                time.sleep(0.01)

    def send(self, kind, number, value):
        os.write(self._file, struct.pack("<IhBB", 0, value, kind, number))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._file)
