"""Live view: a policy drives one simulation in real time, seen and steered in a browser.

The page has sliders and keys for what the goal asks, and for a push and a new start. Requests of the browser are
queued and handled between two control steps, so that one thread owns the simulation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO

import mujoco
import numpy as np
import viser
from mjviser import ViserMujocoScene

from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.policy.runner import Policy
from trueup.rl.env import Obs
from trueup.tasks.env import TaskEnv
from trueup.train.live.steer import Floats, Steering, add_key
from trueup.train.play.show import facing
from trueup.view.camera import CameraCfg, MotionFrames, TrackingCamera
from trueup.view.draw import visual_model

_PUSH_M_S = 0.8
_FRAME_S = 1.0 / 30.0
_READOUT_S = 0.2
_PER_FRAME = np.array([0.25, 0.25, 0.05])  # share of the way made up in a frame: the floor must not bob with every step
_JUMP_M = 1.0  # a new episode elsewhere, not a step
_ROOM = 1.6  # times as far as a film's camera: the panel covers a part of the page


@dataclass
class Requests:
    """Pushes and restarts asked for since the last control step."""

    pushes: int = 0
    restarts: int = 0

    def ask_push(self) -> None:
        self.pushes += 1

    def ask_restart(self) -> None:
        self.restarts += 1


class LiveView:
    """A page at `url` that shows `env` (one row) driven by `policy`; `run` until `stop` returns True."""

    def __init__(self, env: TaskEnv, policy: Policy, *, host: str = "127.0.0.1", port: int = 8080) -> None:
        if env.nenv != 1:
            raise TrueupError(f"a live view shows one simulation, found {env.nenv}")
        self.env, self.policy, self.requests = env, policy, Requests()
        with redirect_stdout(StringIO()):  # the library prints a banner of its own
            self._server = viser.ViserServer(host=host, port=port, label="trueup", verbose=False)
        self.url = f"http://{host}:{self._server.get_port()}"
        self._model = visual_model(env.sim.scene, env.sim.cfg.model)
        self._body = ShownModel(self._server, self._model)
        self.steering: Steering | None = None
        self._add_controls()
        self._rng = np.random.default_rng(0)
        self._obs: Obs = env.reset()
        base = self._model.body(env.robot.spec.base.body).id if env.sim.free_base else None
        qpos = env.sim.qpos[0].copy()
        self._follow = Follow(self._server, self._model, qpos, base, facing(env, CameraCfg(), qpos))
        self.steps = self.pushed = self.restarted = 0
        self._draw()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Step in real time; late steps are not made up for."""
        due, drawn, shown = time.monotonic(), 0.0, 0.0
        while not stop():
            self.step()
            now = time.monotonic()
            if now - drawn >= _FRAME_S:
                self._draw()
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

    def close(self) -> None:
        """End the server."""
        with redirect_stdout(StringIO()):
            self._server.stop()

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

    def _draw(self) -> None:
        self._body.show(self.env.sim.qpos[0], self._follow)

    def _add_controls(self) -> None:
        gui, sliders = self._server.gui, self.env.goal.sliders
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


class ShownModel:
    """A model in the browser's scene, shown in one pose after another."""

    def __init__(self, server: viser.ViserServer, model: mujoco.MjModel) -> None:
        self._server, self._model, self._data = server, model, mujoco.MjData(model)
        self._scene = ViserMujocoScene(server, model, num_envs=1)
        self._scene.camera_tracking_enabled = False  # `Follow` does it, without the robot's bobbing

    def show(self, qpos: Floats, follow: Follow) -> None:
        """Show the pose `qpos` (nq,)."""
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, self._data)
        shift = follow.shift(self._data)
        self._data.xpos += shift
        with self._server.atomic():
            self._scene.update_from_mjdata(self._data)
            self._scene.fixed_bodies_frame.position = shift
        self._server.flush()


class Follow:
    """Point of view of the page: starts near the robot and keeps a walking one in the middle.

    The scene moves under a camera that belongs to the user: a camera set by the server would fight with the mouse.
    `body` is the one to follow, None where the robot stays in its place.
    """

    def __init__(
        self, server: viser.ViserServer, model: mujoco.MjModel, qpos: Floats, body: int | None, camera: CameraCfg
    ) -> None:
        self._body, self._centre = body, np.zeros(3)
        motion = MotionFrames(model, qpos[None], 1.0, 1.0)
        if body is not None:
            self._centre = motion.place(0).xpos[body].copy()
        self._aim(server, model, TrackingCamera(motion, camera, aspect=1.0, fps=1.0).at(0))
        self._box: viser.GuiCheckboxHandle | None = None
        if body is not None:
            self._box = server.gui.add_checkbox("Follow the robot", initial_value=True)

    def shift(self, data: mujoco.MjData) -> Floats:
        """What to add to every position (3,) in this frame; the view stays where it is while following is off."""
        if self._box is not None and self._box.value:
            away = data.xpos[self._body] - self._centre
            if np.isfinite(away).all():
                self._centre += away if np.linalg.norm(away) > _JUMP_M else _PER_FRAME * away
        return -self._centre

    def _aim(self, server: viser.ViserServer, model: mujoco.MjModel, view: mujoco.MjvCamera) -> None:
        azimuth, elevation = math.radians(view.azimuth), math.radians(view.elevation)
        ahead = np.array(
            [math.cos(elevation) * math.cos(azimuth), math.cos(elevation) * math.sin(azimuth), math.sin(elevation)]
        )
        target = view.lookat - self._centre
        if self._body is not None:
            target[:2] = 0.0  # it will turn
        server.initial_camera.fov = math.radians(model.vis.global_.fovy)
        server.initial_camera.position = target - _ROOM * view.distance * ahead
        server.initial_camera.look_at = target


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
    end = None if seconds is None else time.monotonic() + seconds
    try:
        with stop_on_signal() as stop:
            view.run(lambda: stop.is_set() or (end is not None and time.monotonic() > end))
    finally:
        view.close()
