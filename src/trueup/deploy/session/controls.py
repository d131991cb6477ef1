"""Operator input: keys of the terminal and a gamepad, polled once a control step without waiting.

    W or up, S or down      forward faster, slower         A or left, D or right   turn left, right
    Q, E                    sideways left, right           X or 0                  stand still
    space                   emergency stop                 Esc                     end in order

A gamepad is read from Linux' joydev (/dev/input/js0): left stick forward and sideways, right stick turn, any button is
the emergency stop. A gamepad that disappears is an emergency stop too, since its button is gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import struct
import sys
import termios
import tty
from pathlib import Path
from typing import Any, Protocol

from trueup.core.errors import TrueupError
from trueup.deploy.control.goal import AskedGoal

_KEYS: dict[str, tuple[str, int]] = {
    "w": ("forward", 1), "\x1b[A": ("forward", 1), "s": ("forward", -1), "\x1b[B": ("forward", -1),
    "a": ("turn", 1), "\x1b[D": ("turn", 1), "d": ("turn", -1), "\x1b[C": ("turn", -1),
    "q": ("sideways", 1), "e": ("sideways", -1),
}  # fmt: skip
_STAND, _STOP, _ESCAPE = ("x", "0"), " ", "\x1b"
_EVENT = struct.Struct("<IhBB")  # time in ms, value, kind, number
_BUTTON, _AXIS, _INITIAL = 0x01, 0x02, 0x80
_STICKS = {0: ("sideways", -1.0), 1: ("forward", -1.0), 3: ("turn", -1.0)}  # joydev's axes point right and down
_DEAD_ZONE = 0.08


class Controls(Protocol):
    """An input device of the operator."""

    def poll(self, goal: AskedGoal) -> str:
        """Change the goal by the input; returns "", "end" for an orderly end, or the reason of an emergency stop."""
        ...

    def close(self) -> None: ...


class Keys:
    """Single keys of a terminal (`file` is its descriptor), which is put back as it was by `close`."""

    def __init__(self, file: int | None = None) -> None:
        self._file = sys.stdin.fileno() if file is None else file
        try:
            self._before: list[Any] | None = termios.tcgetattr(self._file)
            tty.setcbreak(self._file, termios.TCSANOW)
        except termios.error as error:
            raise TrueupError(f"keys need a terminal: {error}") from None

    def poll(self, goal: AskedGoal) -> str:
        text = self._text()
        while text:
            key = next((known for known in _KEYS if len(known) > 1 and text.startswith(known)), text[0])
            text = text[len(key) :]
            if key == _STOP:
                return "emergency stop by the space bar"
            if key == _ESCAPE and not text:
                return "end"
            if key.lower() in _STAND:
                goal.rest()
            name, sign = _KEYS.get(key, _KEYS.get(key.lower(), ("", 0)))
            goal.nudge(name, sign)
        return ""

    def close(self) -> None:
        if self._before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._file, termios.TCSANOW, self._before)
            self._before = None

    def _text(self) -> str:
        if not select.select([self._file], [], [], 0.0)[0]:
            return ""
        with contextlib.suppress(OSError):
            return os.read(self._file, 256).decode(errors="ignore")
        return ""


class Gamepad:
    """A gamepad behind joydev; a path that is not there is a TrueupError."""

    def __init__(self, path: str | Path = "/dev/input/js0") -> None:
        self._path, self._rest, self._armed = Path(path), b"", False
        try:
            self._file: int | None = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise TrueupError(f"no gamepad: {error.strerror}; is it plugged in?", file=path) from None

    def poll(self, goal: AskedGoal) -> str:
        data = self._read()
        if data is None:
            return f"the gamepad {self._path} is gone, and its emergency stop with it"
        data = self._rest + data
        whole = len(data) // _EVENT.size * _EVENT.size
        self._rest = data[whole:]
        for _, value, kind, number in _EVENT.iter_unpack(data[:whole]):
            if kind == _BUTTON and value:  # not the state at the start (_INITIAL): a button held then is no press
                return f"emergency stop by button {number} of the gamepad"
            if kind & ~_INITIAL == _AXIS and number in _STICKS:
                name, sign = _STICKS[number]
                share = sign * value / 32767.0
                goal.steer(name, 0.0 if abs(share) < _DEAD_ZONE else share)
        return ""

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self) -> bytes | None:
        """Waiting input; None when the device is gone."""
        if self._file is None:
            return None
        try:
            data = os.read(self._file, 64 * _EVENT.size)
        except BlockingIOError:
            self._armed = True
            return b""
        except OSError:
            return None
        self._armed = self._armed or bool(data)
        return data if data or not self._armed else None


def open_controls(gamepad: str | None, *, keys: bool) -> list[Controls]:
    """The operator's devices: a gamepad if one was named, keys if this is a terminal."""
    found: list[Controls] = [] if gamepad is None else [Gamepad(gamepad)]
    if keys and sys.stdin is not None and sys.stdin.isatty():
        found.append(Keys())
    return found
