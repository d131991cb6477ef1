"""`trueup deploy page`: a run in the browser. The robot as its sensors say, guard margins, an emergency stop.

A separate process: neither a slow browser nor this code can delay the control loop. Every visitor
has their own field for the operator's token; the stop of a visitor without it is disabled, and would be refused by the
run itself, which alone can verify a token.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np
import viser

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.core.verb_package import called_with
from trueup.deploy.page_link import PageLink, PageVerb
from trueup.deploy.telemetry_wire import News
from trueup.report.operate.live_panel import readout
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, default_qpos, joint_index
from trueup.train.live.model_page import ModelPage
from trueup.view.camera import CameraCfg
from trueup.view.draw import visual_model

_FRAME_S, _READOUT_S = 1.0 / 30.0, 0.2
_SEEN = 5e-4  # rad: smaller changes are not worth a picture
_FIRST_S = 10.0  # to wait for a run's first answer


@dataclass
class Visitor:
    """One browser: its token field, its stop button, and what the run says of its token."""

    token: viser.GuiTextHandle
    button: viser.GuiButtonHandle
    status: viser.GuiMarkdownHandle
    is_operator: bool = False


class DeployPage:
    """A page at `url` with the state of a run; call `update` often, from one thread."""

    def __init__(self, link: PageLink, *, host: str = "127.0.0.1", port: int = 8090) -> None:
        self._link, self._robot = link, link.robot()
        self._body = RobotBody(self._robot, host, port)
        self.url, server = self._body.url, self._body.server
        server.gui.add_markdown(f"**{self._robot.spec.name}** as its sensors say")
        self._readout = server.gui.add_html("")
        self.visitors: dict[int, Visitor] = {}
        self._drawn = self._shown = 0.0
        server.on_client_connect(self._welcome)
        server.on_client_disconnect(self._goodbye)

    def update(self) -> None:
        """Receive the state; draw and print it at its rates; verify tokens."""
        self._link.poll()
        # viser wakes its event loop from this thread by a call that is not thread-safe and may raise after the message
        # has been queued: the next message takes it along
        with contextlib.suppress(RuntimeError):
            self._show(time.monotonic(), self._link.news)

    def _show(self, now: float, news: News | None) -> None:
        if news is not None and now - self._drawn > _FRAME_S:
            self._drawn = now
            self._body.take(news)
        if now - self._shown > _READOUT_S:
            self._shown = now
            self._readout.content = readout(self._robot, news, self._link.age_s, self._link.is_over)
            for number, visitor in list(self.visitors.items()):
                self._settle(visitor, self._link.granted(number))

    def close(self) -> None:
        """End the server."""
        self._body.close()

    def _welcome(self, client: viser.ClientHandle) -> None:
        gui, number = client.gui, client.client_id
        button = gui.add_button("EMERGENCY STOP", color="red", disabled=True, order=-3)
        token = gui.add_text("Operator's token", "", order=-2)
        status = gui.add_markdown("Looking on: the stop needs the operator's token.", order=-1)
        visitor = Visitor(token, button, status)
        self.visitors[number] = visitor

        @token.on_update
        def _(_: object) -> None:
            visitor.is_operator, button.disabled = False, True
            self._link.check(token.value.strip(), number)

        @button.on_click
        def _(_: object) -> None:
            if visitor.is_operator:  # a browser that enables the button by itself gains nothing
                self._link.stop(token.value.strip())

    def _goodbye(self, client: viser.ClientHandle) -> None:
        self.visitors.pop(client.client_id, None)

    def _settle(self, visitor: Visitor, granted: bool | None) -> None:
        if granted is None or not visitor.token.value:
            return
        news = self._link.news
        visitor.is_operator, visitor.button.disabled = granted, not granted
        words = "You are the operator." if granted else "Wrong token: looking on."
        if granted and news is not None and news.stop_requested:
            words = "Stop requested; the run has it."
        if visitor.status.content != words:
            visitor.status.content = words


class RobotBody(ModelPage):
    """The robot in three dimensions: joints from their encoders, the base turned as the IMU says, above its place."""

    def __init__(self, robot: Robot, host: str, port: int) -> None:
        floating = robot.spec.base.floating
        model = visual_model(robot, ModelCfg(base="free" if floating else "fixed"))
        super().__init__(model, host=host, port=port, label="trueup deploy")
        self._index = joint_index(model, robot)
        self._qpos: FloatArray = default_qpos(model, robot)
        base = model.body(robot.spec.base.body)
        self._quat = int(model.jnt_qposadr[base.jntadr[0]]) + 3 if floating else None
        if self._quat is not None:
            self._qpos[self._quat - 1] = robot.spec.base.stand_height
        site = robot.spec.imu
        self._base_from_imu = np.array([1.0, 0.0, 0.0, 0.0])
        if site is not None:
            self._base_from_imu = np.array(model.site(site).quat, np.float64)
        self._drawn: FloatArray | None = None
        self.look(self._qpos.copy(), None, CameraCfg())

    def take(self, news: News) -> None:
        """Show one state; numbers that are not finite leave the robot as it was."""
        joints = np.array(news.joint_pos)
        if len(joints) == len(self._index.qpos) and np.isfinite(joints).all():
            self._qpos[self._index.qpos] = joints
        if self._quat is not None and news.imu_quat is not None and np.linalg.norm(news.imu_quat) > 0.5:
            imu_from_base, turned = np.zeros(4), np.zeros(4)
            mujoco.mju_negQuat(imu_from_base, self._base_from_imu)
            mujoco.mju_mulQuat(turned, np.array(news.imu_quat), imu_from_base)
            self._qpos[self._quat : self._quat + 4] = turned / np.linalg.norm(turned)
        if self._drawn is not None and np.abs(self._qpos - self._drawn).max() < _SEEN:
            return
        self._drawn = self._qpos.copy()
        self.draw(self._qpos)


def connect_page(address: str, *, seconds: float = _FIRST_S) -> PageLink:
    """Subscribe to a run and wait for it to say what it is."""
    link, end = PageLink(address), time.monotonic() + seconds
    while link.about is None:
        link.poll()
        if time.monotonic() > end:
            link.close()
            raise TrueupError(f"no run answers at {address}; `trueup deploy --live` prints the address of one")
        time.sleep(0.02)
    return link


def run_page(verb: PageVerb, on_url: Callable[[str], None] | None = None) -> int:
    """Serve the page until the run ends or Ctrl-C."""
    link = connect_page(verb.address)
    page = DeployPage(link, host=verb.host, port=verb.port)
    (on_url or (lambda url: print(f"live page: {url}", flush=True)))(page.url)
    over = 0.0
    try:
        with stop_on_signal() as stop:
            while not stop.is_set() and (verb.keep or not over or time.monotonic() - over < 2.0):
                page.update()
                over = over or (time.monotonic() if link.is_over else 0.0)
                time.sleep(_FRAME_S / 3)
    finally:
        page.close()
        link.close()
    return 0


deploy_page = called_with(PageVerb, run_page)
