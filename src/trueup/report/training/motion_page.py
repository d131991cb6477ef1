"""The live page of a motion: it plays again and again, and can be stopped, slowed down and moved to any time."""

from __future__ import annotations

import time
from collections.abc import Callable

import viser

from trueup.motion.motion import Motion
from trueup.report.training.motion import qpos_of
from trueup.robot.load import Robot
from trueup.train.live.model_page import ModelPage
from trueup.view.camera import CameraCfg, turned
from trueup.view.draw import visual_model

_FRAME_S, _READOUT_S = 1.0 / 30.0, 0.2


class MotionPage(ModelPage):
    """A page at `url` that shows a motion of a robot; `run` until `stop` says so. `at_s`: the time that is shown."""

    def __init__(self, motion: Motion, robot: Robot, *, host: str = "127.0.0.1", port: int = 8080) -> None:
        model = visual_model(robot)
        self.qpos = qpos_of(motion, robot, model)
        super().__init__(model, host=host, port=port)
        self.motion, self.at_s, self._told = motion, 0.0, time.monotonic()
        gui = self.server.gui
        gui.add_markdown(f"**{motion.source or robot.spec.name}**, {motion.seconds:.2f} s, {robot.spec.name}")
        self.plays = True
        gui.add_button("Pause").on_click(lambda _: self.pause())
        gui.add_button("Start again").on_click(lambda _: self.move_to(0.0))
        self.speed = gui.add_slider("Speed", min=0.1, max=2.0, step=0.1, initial_value=1.0)
        self.place = gui.add_slider("Time, s", min=0.0, max=motion.seconds, step=0.01, initial_value=0.0)
        self._feet = gui.add_markdown("")
        self.look(self.qpos[0], model.body(robot.spec.base.body).id, turned(CameraCfg(), self.qpos[0, 3:7]))

        @self.place.on_update
        def _(event: viser.GuiEvent) -> None:  # type: ignore[type-arg]
            if event.client is not None:  # moved by a visitor, not by the clock
                self.move_to(float(self.place.value))

    @property
    def row(self) -> int:
        """The row of the motion that is shown."""
        return min(round(self.at_s * self.motion.rate_hz), len(self.motion) - 1)

    def pause(self) -> None:
        """Pause or resume."""
        self.plays = not self.plays

    def move_to(self, seconds: float) -> None:
        """Show another time."""
        self.at_s = seconds

    def step(self, seconds: float) -> None:
        """Advance by `seconds`, wrapping at the end, and draw."""
        if self.plays:
            self.at_s = (self.at_s + seconds * self.speed.value) % max(self.motion.seconds, _FRAME_S)
        self.draw(self.qpos[self.row])
        now = time.monotonic()
        if now - self._told > _READOUT_S:
            self._told = now
            if self.plays:
                self.place.value = round(self.at_s, 2)  # type: ignore[misc]  # viser's setter, apart from its getter
            self._feet.content = self._standing()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Play in real time."""
        before = time.monotonic()
        while not stop():
            now = time.monotonic()
            self.step(now - before)
            before = now
            time.sleep(max(0.0, now + _FRAME_S - time.monotonic()))

    def _standing(self) -> str:
        if not self.motion.foot_names:
            return ""
        names = [name for name, on in zip(self.motion.foot_names, self.motion.contacts[self.row], strict=True) if on]
        return f"On the ground: {', '.join(names) or 'no foot'}"
