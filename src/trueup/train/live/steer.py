"""Steering of the live page: command sliders, keys that move them, and the measured response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, cast

import numpy as np
import viser
from numpy.typing import NDArray

from trueup.tasks.goals.goal import Slider

Floats = NDArray[np.float64]
HotKey = Literal["W", "S", "A", "D", "Q", "E", "P", "R", "space"]
_NUDGE = 0.1  # for each press of a key
_AVERAGE_S = 0.5  # a trunk sways within every step: the mean is compared with the command
# viser's page moves its camera by the same keys and has no switch for it. Hotkeys are heard on <html>, camera keys on
# the document above it: so the event may go no further than <html>.
_KEEP_CAMERA = (
    "if(!window.trueupKeys){{window.trueupKeys=true;document.documentElement.addEventListener('keydown',"
    "e=>{{if('{codes}'.split(' ').includes(e.code))e.stopPropagation()}})}}"
)


class Steering:
    """The page's command: sliders hold it, keys move the sliders; `keys_help` lists the keys."""

    def __init__(self, gui: viser.GuiApi, sliders: Sequence[Slider]) -> None:
        self._names = tuple(slider.name for slider in sliders)
        self.sliders = tuple(
            gui.add_slider(name, min=low, max=high, step=0.05, initial_value=min(max(0.0, low), high))
            for name, low, high, _, _ in sliders
        )
        self._readout = gui.add_html("")
        self._measured = np.zeros(len(sliders))
        keys = {}
        for k, slider in enumerate(sliders):
            for key, sign, does in zip(slider.keys or (), (1, -1), slider.does, strict=False):
                add_key(gui, cast(HotKey, key), does, partial(self.nudge, k, sign))
                keys[key] = does
        add_key(gui, "space", "stop", self.stop)
        self.keys_help = " · ".join(f"**{key}** {does}" for key, does in (keys | {"space": "stop"}).items())
        keep = _KEEP_CAMERA.format(codes=" ".join(f"Key{key}" for key in keys))
        gui.add_html(f'<img src="data:," alt="" style="display:none" onerror="{keep}">')

    @property
    def command(self) -> Floats:
        """The command that the sliders give."""
        return np.array([slider.value for slider in self.sliders], np.float64)

    def set(self, command: Sequence[float]) -> None:
        """Move the sliders, within their ranges."""
        for slider, value in zip(self.sliders, command, strict=True):
            within = min(max(float(value), slider.min), slider.max)
            slider.value = round(within, 3)  # type: ignore[misc]  # viser's setter, apart from its getter

    def nudge(self, k: int, sign: int) -> None:
        """Move slider `k` by one press of a key."""
        command = self.command
        command[k] += sign * _NUDGE
        self.set(command.tolist())

    def stop(self) -> None:
        """Ask to stand still."""
        self.set([0.0] * len(self.sliders))

    def measure(self, found: Floats, dt: float) -> None:
        """Record the measured values after a control step of `dt` seconds."""
        if np.isfinite(found).all():
            self._measured += min(1.0, dt / _AVERAGE_S) * (found - self._measured)

    def show(self) -> None:
        """Update the table of commanded and measured values."""
        cell = '<td style="text-align:right;padding:0 0.5em;font-variant-numeric:tabular-nums">'
        rows = "".join(
            f"<tr><td>{name}</td>{cell}{command + 0.0:.2f}</td>{cell}{round(measured, 2) + 0.0:.2f}</td></tr>"
            for name, command, measured in zip(self._names, self.command, self._measured, strict=True)
        )
        table = f"<tr><td></td>{cell}asked</td>{cell}measured</td></tr>{rows}"
        self._readout.content = (
            f'<div style="padding:0.4em 0.6em"><table style="width:100%;font-size:0.85em">{table}</table></div>'
        )


def add_key(gui: viser.GuiApi, key: HotKey, does: str, act: Callable[[], None]) -> None:
    """Bind a key to an action; it is also listed in the page's palette (Ctrl+K)."""

    # on the event loop, one after the other: two presses are two steps
    @gui.add_command(does.capitalize(), hotkey=key).on_trigger
    async def _(_: object) -> None:
        act()
