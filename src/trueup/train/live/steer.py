"""Steering of the live page: sliders of a velocity command, keys that move them, and the velocity that comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import viser
from numpy.typing import NDArray

from trueup.tasks.goals.commands import VelocityCommand

Floats = NDArray[np.float64]
HotKey = Literal["W", "S", "A", "D", "Q", "E", "P", "R", "space"]
NAMES = ("forward, m/s", "sideways, m/s", "turn, rad/s")
NUDGE = 0.1  # m/s or rad/s for each press of a key
_AVERAGE_S = 0.5  # a trunk sways within every step: the mean is what was asked for


class Key(NamedTuple):
    """A key, the slider it moves, and the way; `does` as said on the page."""

    key: HotKey
    slider: int
    sign: int
    does: str


KEYS = (
    Key("W", 0, 1, "forward"),
    Key("S", 0, -1, "back"),
    Key("A", 2, 1, "turn left"),
    Key("D", 2, -1, "turn right"),
    Key("Q", 1, 1, "left"),
    Key("E", 1, -1, "right"),
)
# viser's page moves its camera by the same keys and has no switch for it. Hotkeys are heard on <html>, camera keys on
# the document above it: so the event may go no further than <html>.
_CODES = " ".join(f"Key{key.key}" for key in KEYS)
_KEEP_CAMERA = (
    "if(!window.trueupKeys){window.trueupKeys=true;document.documentElement.addEventListener('keydown',"
    f"e=>{{if('{_CODES}'.split(' ').includes(e.code))e.stopPropagation()}})}}"
)


class Steering:
    """Velocity command of the page: the sliders hold it, keys move the sliders."""

    def __init__(self, gui: viser.GuiApi, cfg: VelocityCommand) -> None:
        ranges = (cfg.forward, cfg.sideways, cfg.turn)
        self.sliders = tuple(
            gui.add_slider(name, min=low, max=high, step=0.05, initial_value=min(max(0.0, low), high))
            for name, (low, high) in zip(NAMES, ranges, strict=True)
        )
        self._readout = gui.add_html("")
        self._measured = np.zeros(3)
        for key in KEYS:
            add_key(gui, key.key, key.does, partial(self.nudge, key.slider, key.sign))
        add_key(gui, "space", "stop", self.stop)
        gui.add_html(f'<img src="data:," alt="" style="display:none" onerror="{_KEEP_CAMERA}">')

    @property
    def command(self) -> Floats:
        """Forward, sideways (m/s) and turn (rad/s) as the sliders stand."""
        return np.array([slider.value for slider in self.sliders], np.float64)

    def set(self, command: Sequence[float]) -> None:
        """Move the sliders, within their ranges."""
        for slider, value in zip(self.sliders, command, strict=True):
            within = min(max(float(value), slider.min), slider.max)
            slider.value = round(within, 3)  # type: ignore[misc]  # viser's setter, apart from its getter

    def nudge(self, k: int, sign: int) -> None:
        """Move slider `k` by one press of a key."""
        command = self.command
        command[k] += sign * NUDGE
        self.set(command.tolist())

    def stop(self) -> None:
        """Ask to stand still."""
        self.set((0.0, 0.0, 0.0))

    def measure(self, velocity: Floats, dt: float) -> None:
        """Take in the velocity (3,) after a control step of `dt` seconds."""
        if np.isfinite(velocity).all():
            self._measured += min(1.0, dt / _AVERAGE_S) * (velocity - self._measured)

    def show(self) -> None:
        """Bring the table of asked and measured velocities up to date."""
        self._readout.content = velocity_table(self.command, self._measured)


def velocity_table(asked: Floats, measured: Floats) -> str:
    """HTML of asked and measured velocities side by side."""
    cell = '<td style="text-align:right;padding:0 0.5em;font-variant-numeric:tabular-nums">'
    rows = "".join(
        f"<tr><td>{name}</td>{cell}{a + 0.0:.2f}</td>{cell}{round(m, 2) + 0.0:.2f}</td></tr>"
        for name, a, m in zip(NAMES, asked, measured, strict=True)
    )
    head = f"<tr><td></td>{cell}asked</td>{cell}measured</td></tr>"
    return f'<div style="padding:0.4em 0.6em"><table style="width:100%;font-size:0.85em">{head}{rows}</table></div>'


def add_key(gui: viser.GuiApi, key: HotKey, does: str, act: Callable[[], None]) -> None:
    """Let a key act; it is also a command of the page's palette (Ctrl+K)."""

    # on the event loop, one after the other: two presses are two steps
    @gui.add_command(does.capitalize(), hotkey=key).on_trigger
    async def _(_: object) -> None:
        act()
