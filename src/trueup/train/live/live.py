"""Live view: a policy drives one simulation in real time, seen and steered in a browser.

The page has sliders and keys for the command, a push and a restart. Requests of the browser are
queued and handled between two control steps, so that one thread owns the simulation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.policy.runner import Policy
from trueup.rl.env import Obs
from trueup.tasks.env import TaskEnv
from trueup.train.live.model_page import ModelPage
from trueup.train.live.steer import Steering, add_key
from trueup.train.play.show import facing
from trueup.view.camera import CameraCfg
from trueup.view.draw import visual_model

_PUSH_M_S = 0.8
_FRAME_S = 1.0 / 30.0
_READOUT_S = 0.2


@dataclass
class Requests:
    """Pushes and restarts asked for since the last control step."""

    pushes: int = 0
    restarts: int = 0

    def ask_push(self) -> None:
        self.pushes += 1

    def ask_restart(self) -> None:
        self.restarts += 1


class LiveView(ModelPage):
    """A page at `url` that shows `env` (one row) driven by `policy`; `run` until `stop` returns True."""

    def __init__(self, env: TaskEnv, policy: Policy, *, host: str = "127.0.0.1", port: int = 8080) -> None:
        if env.nenv != 1:
            raise TrueupError(f"a live view shows one simulation, found {env.nenv}")
        self.env, self.policy, self.requests = env, policy, Requests()
        super().__init__(visual_model(env.sim.scene, env.sim.cfg.model), host=host, port=port)
        self.steering: Steering | None = None
        self._add_controls()
        self._rng = np.random.default_rng(0)
        self._obs: Obs = env.reset()
        base = self.model.body(env.robot.spec.base.body).id if env.sim.free_base else None
        qpos = env.sim.qpos[0].copy()
        self.look(qpos, base, facing(env, CameraCfg(), qpos))
        self.steps = self.pushed = self.restarted = 0
        self.draw(qpos)

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Step in real time; late steps are not made up for."""
        due, drawn, shown = time.monotonic(), 0.0, 0.0
        while not stop():
            self.step()
            now = time.monotonic()
            if now - drawn >= _FRAME_S:
                self.draw(self.env.sim.qpos[0])
                drawn = now
            if self.steering is not None and now - shown >= _READOUT_S:
                self.steering.show()
                shown = now
            due = max(due + self.env.control_dt, time.monotonic() - 5 * self.env.control_dt)
            time.sleep(max(0.0, due - time.monotonic()))

    def step(self) -> None:
        """Handle the page's requests, then make one control step."""
        self._handle_requests()
        step = self.env.step(np.ascontiguousarray(self.policy(self._obs), np.float32))
        self.policy.restart(step.ended)
        self.steps, self._obs = self.steps + 1, step.obs
        found = self.env.goal.measured(self.env.frame)
        if self.steering is not None and found is not None:
            self.steering.measure(found[0].astype(np.float64), self.env.control_dt)

    def ask(self, command: Sequence[float]) -> None:
        """Set the sliders."""
        if self.steering is None:
            raise TrueupError(f"task {self.env.task.name!r} takes no command")
        self.steering.set(command)

    def _handle_requests(self) -> None:
        if self.requests.restarts:
            self.requests.restarts = 0
            self.restarted += 1
            self._obs = self.env.reset()
            self.policy.restart(np.arange(1))
        if self.steering is not None:
            self.env.goal.hold(self.steering.command)
        if self.requests.pushes:
            self.requests.pushes = 0
            self.pushed += 1
            self._push()

    def _push(self) -> None:
        sim, angle = self.env.sim, self._rng.uniform(0.0, 2.0 * np.pi)
        push = _PUSH_M_S * np.array([np.cos(angle), np.sin(angle)])
        if sim.free_base:
            sim.qvel[0, sim.base_dof : sim.base_dof + 2] += push
        else:
            sim.qvel[0, sim.index.dof] += 2.0 * push[0]

    def _add_controls(self) -> None:
        gui, sliders = self.server.gui, self.env.goal.sliders
        gui.add_markdown(f"**{self.env.task.name}**")
        gui.add_button("Push").on_click(lambda _: self.requests.ask_push())
        gui.add_button("Start again").on_click(lambda _: self.requests.ask_restart())
        add_key(gui, "P", "push", self.requests.ask_push)
        add_key(gui, "R", "start again", self.requests.ask_restart)
        steer = ""
        if sliders:
            self.steering = Steering(gui, sliders)
            steer = self.steering.keys_help + " · "
        gui.add_markdown(f"Keys: {steer}**P** push, **R** start again")


def serve_live(
    env: TaskEnv,
    policy: Policy,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    seconds: float | None = None,
    command: Sequence[float] | None = None,
    on_url: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve a live view until Ctrl-C, or for `seconds`."""
    view = LiveView(env, policy, host=host, port=port)
    if command is not None:
        view.ask(command)
    on_url(view.url)
    run_for(view, view.run, seconds)


def run_for(page: ModelPage, run: Callable[[Callable[[], bool]], None], seconds: float | None) -> None:
    """Run a page until Ctrl-C, or for `seconds`, and close it."""
    end = None if seconds is None else time.monotonic() + seconds
    try:
        with stop_on_signal() as stop:
            run(lambda: stop.is_set() or (end is not None and time.monotonic() > end))
    finally:
        page.close()
