"""Live view: a policy drives one simulation in real time, seen and steered in a browser.

The page has sliders for the velocities, buttons for a push and for a new start. Whatever the browser asks is noted and
carried out between two control steps, so that the simulation belongs to one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO

import mujoco
import numpy as np
import viser
from mjviser import ViserMujocoScene

from trueup.core.errors import TrueupError
from trueup.rl.env import Obs
from trueup.tasks.commands import VelocityCommand
from trueup.tasks.env import TaskEnv
from trueup.train.frozen import Policy
from trueup.train.show import visual_model

_PUSH_M_S = 0.8
_FRAME_S = 1.0 / 30.0


@dataclass
class Wishes:
    """What the browser asked for since the last control step."""

    pushes: int = 0
    restarts: int = 0
    command: list[float] = field(default_factory=list)


class LiveView:
    """A page at `url` that shows `env` (one row) driven by `policy`; `run` until `stop` says so."""

    def __init__(self, env: TaskEnv, policy: Policy, *, host: str = "127.0.0.1", port: int = 8080) -> None:
        if env.nenv != 1:
            raise TrueupError(f"a live view shows one simulation, found {env.nenv}")
        self.env, self.policy, self.wishes = env, policy, Wishes()
        with redirect_stdout(StringIO()):  # the library prints a banner of its own
            self._server = viser.ViserServer(host=host, port=port, label="trueup", verbose=False)
        self.url = f"http://{host}:{self._server.get_port()}"
        self._model = visual_model(env)
        self._data = mujoco.MjData(self._model)
        self._scene = ViserMujocoScene(self._server, self._model, num_envs=1)
        self._add_controls()
        self._rng = np.random.default_rng(0)
        self._obs: Obs = env.reset()
        self.steps = self.episodes = self.pushed = self.restarted = 0
        self._draw()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Step in real time; late steps are not made up for."""
        due, drawn = time.monotonic(), 0.0
        while not stop():
            self.step()
            now = time.monotonic()
            if now - drawn >= _FRAME_S:
                self._draw()
                drawn = now
            due = max(due + self.env.control_dt, time.monotonic() - 5 * self.env.control_dt)
            time.sleep(max(0.0, due - time.monotonic()))

    def step(self) -> None:
        """Carry out what was asked, then one control step."""
        self._obey()
        step = self.env.step(np.ascontiguousarray(self.policy(self._obs), np.float32))
        self.policy.restart(step.ended)
        self.steps, self.episodes, self._obs = self.steps + 1, self.episodes + len(step.ended), step.obs

    def close(self) -> None:
        """End the server."""
        with redirect_stdout(StringIO()):
            self._server.stop()

    def _obey(self) -> None:
        wishes, sim = self.wishes, self.env.sim
        if wishes.restarts:
            wishes.restarts = 0
            self.restarted += 1
            self._obs = self.env.reset()
            self.policy.restart(np.arange(1))
        if wishes.command:
            self.env.hold_command(np.array(wishes.command))
        if wishes.pushes:
            wishes.pushes = 0
            self.pushed += 1
            angle = self._rng.uniform(0.0, 2.0 * np.pi)
            push = _PUSH_M_S * np.array([np.cos(angle), np.sin(angle)])
            if sim.free_base:
                sim.qvel[0, sim.base_dof : sim.base_dof + 2] += push
            else:
                sim.qvel[0] += 2.0 * push[0]

    def _draw(self) -> None:
        self._data.qpos[:] = self.env.sim.qpos[0]
        mujoco.mj_kinematics(self._model, self._data)
        with self._server.atomic():
            self._scene.update_from_mjdata(self._data)
        self._server.flush()

    def _add_controls(self) -> None:
        gui, wishes = self._server.gui, self.wishes
        gui.add_markdown(f"**{self.env.task.name}**")
        push, restart = gui.add_button("Push"), gui.add_button("Start again")

        @push.on_click
        def _(_: object) -> None:
            wishes.pushes += 1

        @restart.on_click
        def _(_: object) -> None:
            wishes.restarts += 1

        cfg = self.env.task.commands
        if isinstance(cfg, VelocityCommand):
            names = ("forward, m/s", "sideways, m/s", "turn, rad/s")
            ranges = (cfg.forward, cfg.sideways, cfg.turn)
            wishes.command = [0.0, 0.0, 0.0]
            for k, (name, (low, high)) in enumerate(zip(names, ranges, strict=True)):
                self._add_slider(k, name, low, high)

    def _add_slider(self, k: int, name: str, low: float, high: float) -> None:
        slider = self._server.gui.add_slider(name, min=low, max=high, step=0.05, initial_value=0.0)

        @slider.on_update
        def _(_: object) -> None:
            self.wishes.command[k] = float(slider.value)
