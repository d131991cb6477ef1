"""Client of the telemetry: subscribes to a run, keeps its newest state, requests a stop with the operator's token.

`report.live_deploy` draws the page in the same process; the run is another process.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import tyro

from trueup.core.errors import TrueupError
from trueup.deploy import telemetry_wire as wire
from trueup.robot.load import Robot

_AGAIN_S = 0.5  # between subscriptions
_STOP_AGAIN_S, _STOP_S = 0.05, 10.0  # a stop is repeated until it is acknowledged


@dataclass(frozen=True, kw_only=True)
class PageVerb:
    """Serve a live page of a run: the robot as measured, commands, margins of the guards, an emergency stop.

    In: the address that `trueup deploy --live` prints. Out: a page in the browser; whoever enters the operator's token
    there can stop the robot, everybody else can only watch. Ends with the run, or by Ctrl-C.
    """

    address: tyro.conf.Positional[str]  # HOST:PORT of the run's telemetry.
    host: str = "127.0.0.1"
    """Address the page is served on; others than 127.0.0.1 let other computers connect."""
    port: int = 8090  # Port of the page.
    keep: bool = False  # Stay after the run has ended.


class PageLink:
    """A subscription to one run; `poll` often, nothing blocks.

    about   which robot runs; None until the run has answered
    news    the newest message, None before the first; `age_s`: its age
    is_over the run has ended
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise TrueupError(f"a run's address is HOST:PORT, found {address!r}; `trueup deploy --live` prints it")
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.connect((host, int(port)))
        except OSError as error:
            self._socket.close()
            raise TrueupError(f"cannot reach {address}: {error.strerror}") from None
        self._socket.setblocking(False)
        self.about: wire.About | None = None
        self.news: wire.News | None = None
        self.is_over = False
        self._came = self._subscribed = self._stop_sent = self._stop_until = 0.0
        self._stop_token = ""
        self._answers: dict[int, bool] = {}

    @property
    def age_s(self) -> float:
        """Age of the newest message, s."""
        return time.monotonic() - self._came if self.news is not None else float("inf")

    def robot(self) -> Robot:
        """The robot of the run."""
        assert self.about is not None
        about = self.about
        path = Path(about.model_path)
        return Robot(spec=about.spec, model_path=path, built_in=about.built_in, options=about.options)

    def poll(self) -> None:
        """Receive waiting messages; renew the subscription and repeat a stop request when due."""
        now = time.monotonic()
        if now - self._subscribed > _AGAIN_S:
            self._subscribed = now
            self._send(wire.Request(does="subscribe"))
        with contextlib.suppress(BlockingIOError):
            while True:
                try:
                    self._take(self._socket.recv(65536))
                except ConnectionRefusedError:
                    break
        has_it = self.news is not None and self.news.stop_requested
        if now < self._stop_until and not has_it and now - self._stop_sent > _STOP_AGAIN_S:
            self._stop_sent = now
            self._ask("stop", self._stop_token, 0)

    def check(self, token: str, number: int) -> None:
        """Request verification of a token; `granted(number)` has the answer."""
        self._answers.pop(number, None)
        self._ask("check", token, number)

    def granted(self, number: int) -> bool | None:
        """The answer to a verification; None while there is none."""
        return self._answers.get(number)

    def stop(self, token: str) -> None:
        """Request a stop, repeated until the run acknowledges it."""
        self._stop_token, self._stop_until, self._stop_sent = token, time.monotonic() + _STOP_S, 0.0
        self.poll()

    def close(self) -> None:
        self._socket.close()

    def _ask(self, does: wire.Does, token: str, number: int) -> None:
        if self.about is not None:
            code = wire.code(token, self.about.run, does)
            self._send(wire.Request(does=does, number=number, code=code))

    def _send(self, request: wire.Request) -> None:
        with contextlib.suppress(OSError):
            self._socket.send(msgspec.msgpack.encode(request))

    def _take(self, data: bytes) -> None:
        try:
            message = msgspec.msgpack.decode(data, type=wire.Message)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        if isinstance(message, wire.About):
            self.about = self.about or message
        elif self.about is None or message.run != self.about.run:
            return
        elif isinstance(message, wire.News):
            if self.news is None or message.sequence > self.news.sequence:
                self.news, self._came = message, time.monotonic()
        elif isinstance(message, wire.CodeAnswer):
            self._answers[message.number] = message.granted
        else:
            self.is_over = True
