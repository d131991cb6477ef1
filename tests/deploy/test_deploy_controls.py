"""Keys on a real pseudo-terminal, and a gamepad's events from a pipe."""

import os
import pty
import struct
import termios
import time

import pytest
from test_deploy_goal import WALK

from trueup.core.errors import TrueupError
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.session.controls import Gamepad, Keys, open_controls


@pytest.fixture
def terminal():
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def typed(terminal, text):
    """The goal and the wish after these keys."""
    ours, theirs = terminal
    keys, goal = Keys(theirs), AskedGoal(WALK, speed=0.3)
    os.write(ours, text.encode())
    time.sleep(0.02)
    wish = keys.poll(goal)
    keys.close()
    return goal.as_dict(), wish


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("w", "forward", 0.06), ("\x1b[A\x1b[A", "forward", 0.12), ("s", "forward", -0.06),
        ("\x1b[B", "forward", -0.06),
        ("a", "turn", 0.06), ("\x1b[D", "turn", 0.06), ("D", "turn", -0.06), ("\x1b[C", "turn", -0.06),
        ("q", "sideways", 0.06), ("E", "sideways", -0.06), ("wwwwwwwwww", "forward", 0.3), ("wwx", "forward", 0.0),
        ("ww0", "forward", 0.0), ("zwz", "forward", 0.06),
    ],
)  # fmt: skip
def test_keys_steer(terminal, text, name, value):
    goal, wish = typed(terminal, text)
    assert wish == ""
    assert goal[name] == pytest.approx(value)


def test_space_is_the_emergency_stop_also_among_other_keys(terminal):
    assert "space bar" in typed(terminal, "ww www")[1]


def test_escape_ends_in_order(terminal):
    assert typed(terminal, "\x1b")[1] == "end"


def test_no_key_asks_for_nothing(terminal):
    assert typed(terminal, "") == ({"forward": 0.0, "sideways": 0.0, "turn": 0.0}, "")


def test_the_terminal_is_left_as_it_was(terminal):
    before = termios.tcgetattr(terminal[1])
    keys = Keys(terminal[1])
    assert termios.tcgetattr(terminal[1])[3] != before[3]
    keys.close()
    keys.close()
    assert termios.tcgetattr(terminal[1]) == before


def test_keys_without_a_terminal_are_refused(tmp_path):
    with open(tmp_path / "x", "w") as file, pytest.raises(TrueupError, match="need a terminal"):
        Keys(file.fileno())


# --- gamepad ---
@pytest.fixture
def pad(tmp_path):
    os.mkfifo(tmp_path / "js0")
    gamepad = Gamepad(tmp_path / "js0")
    writer = os.open(tmp_path / "js0", os.O_WRONLY)
    yield gamepad, writer
    gamepad.close()


def event(kind, number, value):
    return struct.pack("<IhBB", 1000, value, kind, number)


def test_sticks_steer_with_the_axes_of_joydev(pad):
    gamepad, writer = pad
    goal = AskedGoal(WALK, speed=0.3)
    os.write(writer, event(2, 1, -32767) + event(2, 0, 16384) + event(2, 3, -3277) + event(2, 5, 32767))
    assert gamepad.poll(goal) == ""
    found = goal.as_dict()
    assert found["forward"] == pytest.approx(0.3)  # up is negative
    assert found["sideways"] == pytest.approx(-0.15, abs=1e-4)  # right is to the right
    assert found["turn"] == pytest.approx(0.03, abs=1e-4)
    os.write(writer, event(2, 1, 600))  # within the dead zone
    gamepad.poll(goal)
    assert goal.as_dict()["forward"] == 0.0


@pytest.mark.parametrize("number", [0, 1, 7])
def test_any_button_is_the_emergency_stop(pad, number):
    os.write(pad[1], event(1, number, 1))
    assert f"button {number}" in pad[0].poll(AskedGoal(WALK))


def test_releases_and_the_state_at_the_start_are_no_presses(pad):
    os.write(pad[1], event(0x81, 0, 1) + event(0x82, 1, -32767) + event(1, 2, 0))
    goal = AskedGoal(WALK, speed=0.3)
    assert pad[0].poll(goal) == ""
    assert goal.as_dict()["forward"] == pytest.approx(0.3)


def test_an_event_that_comes_in_two_parts_is_one(pad):
    gamepad, writer = pad
    whole = event(1, 0, 1)
    os.write(writer, whole[:3])
    assert gamepad.poll(AskedGoal(WALK)) == ""
    os.write(writer, whole[3:])
    assert "button 0" in gamepad.poll(AskedGoal(WALK))


def test_a_gamepad_that_is_pulled_out_is_an_emergency_stop(pad):
    gamepad, writer = pad
    assert gamepad.poll(AskedGoal(WALK)) == ""
    os.close(writer)
    assert "gone" in gamepad.poll(AskedGoal(WALK))


def test_a_gamepad_that_is_not_there_is_refused():
    with pytest.raises(TrueupError, match="plugged in"):
        open_controls("/dev/input/js99", keys=False)
