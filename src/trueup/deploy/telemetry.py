"""Telemetry of a run to live pages on this computer: the newest state out, an authenticated stop in. Never blocks.

A page (`trueup deploy page HOST:PORT`, a process of its own) subscribes by a datagram to 127.0.0.1 and gets messages of
`telemetry_wire`. Anybody on this computer may look. A stop counts only with a code (HMAC-SHA-256) made with the
operator's token, which is never sent, and the run's random name, so that a code of an earlier run is not accepted.

At most `MAX_HZ` messages a second are sent; a message that does not fit into the socket's buffer is dropped, and
at most `MAX_READ` datagrams are read in one call, so that neither a slow page nor a flood can hold up a control loop.
"""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import socket
import time
from collections.abc import Mapping, Sequence

import msgspec

from trueup.core.errors import TrueupError
from trueup.deploy import telemetry_wire as wire
from trueup.hardware.driver import Command, RobotState
from trueup.robot.load import Robot

_log = logging.getLogger(__name__)
MAX_HZ = 60.0
MAX_READ = 32
MAX_PAGES = 8
_FORGET_S = 3.0  # a page that has not subscribed again is gone
Address = tuple[str, int]


class Telemetry:
    """Publishes a control loop's state to live pages; every method returns at once and none raises after `open`.

        telemetry = Telemetry.open(robot)            # prints nothing: show .address and .token to the operator
        while ...:
            telemetry.publish(time_s, state, command, {"vx": 0.3}, {"tilt": 0.8}, ("ramp",))
            if telemetry.stop_requested: ...         # a page's e-stop, given with the token

    address         HOST:PORT that a page is started with; `port` of it
    token           of the operator
    stop_requested  true for good once a valid stop came (also without a call of `publish` since)
    """

    def __init__(self, sock: socket.socket, robot: Robot, token: str) -> None:
        self._socket, self.token = sock, token
        self.port: int = sock.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.run = secrets.token_hex(8)
        self._about = msgspec.msgpack.encode(wire.About.of(self.run, robot))
        self._pages: dict[Address, float] = {}
        self._sequence, self._due, self._stop, self._open = 0, 0.0, False, True
        self.refused = 0  # stops with a wrong code

    @classmethod
    def open(cls, robot: Robot, token: str | None = None, *, port: int = 0) -> Telemetry:
        """Listen on 127.0.0.1 (`port` 0: a free one); a token is made up unless one is given."""
        token = secrets.token_urlsafe(9) if token is None else token
        if len(token) < wire.SHORTEST_TOKEN:
            raise TrueupError(f"an operator's token has {wire.SHORTEST_TOKEN} characters or more, found {len(token)}")
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.bind(("127.0.0.1", port))
        except OSError as error:
            sock.close()
            raise TrueupError(f"telemetry cannot listen on 127.0.0.1:{port}: {error.strerror}") from None
        sock.setblocking(False)
        return cls(sock, robot, token)

    def publish(
        self,
        time_s: float,
        state: RobotState,
        command: Command | None,
        asked: Mapping[str, float],
        margins: Mapping[str, float],
        flags: Sequence[str],
        *,
        trip: str = "",
    ) -> None:
        """Publish the current state.

        time_s   of the run; `command` as it was sent last, None before the first
        asked    the operator's command by name: {"vx": 0.3}
        margins  room left by guard: 1 far from its limit, 0 or less: it trips
        flags    lines shown unchanged: mode, warnings; `trip` is why the run was stopped, "" while it runs
        """
        self._listen()
        now = time.monotonic()
        if not self._open or not self._pages or (now < self._due and not trip):
            return
        self._due = now + 1.0 / MAX_HZ
        self._sequence += 1
        news = wire.News.of(self.run, self._sequence, time_s, state, command, asked, margins, flags, trip, self._stop)
        self._send_all(msgspec.msgpack.encode(news))

    @property
    def stop_requested(self) -> bool:
        """Whether an operator has pressed the stop of a page."""
        if not self._stop:
            self._listen()
        return self._stop

    def close(self) -> None:
        """Announce the end of the run to the pages. Safe to call twice."""
        if self._open:
            self._send_all(msgspec.msgpack.encode(wire.Goodbye(run=self.run)))
            self._open = False
            self._socket.close()

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _listen(self) -> None:
        """Receive waiting datagrams, at most `MAX_READ`."""
        if not self._open:
            return
        now = time.monotonic()
        for _ in range(MAX_READ):
            try:
                data, page = self._socket.recvfrom(wire.MAX_REQUEST_BYTES + 1)
            except BlockingIOError:
                break
            except OSError:  # an earlier datagram was refused: that page is gone
                continue
            self._handle(data, page, now)
        self._pages = {page: seen for page, seen in self._pages.items() if now - seen < _FORGET_S}

    def _handle(self, data: bytes, page: Address, now: float) -> None:
        try:
            request = msgspec.msgpack.decode(data, type=wire.Request)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        if request.does == "subscribe":
            if page not in self._pages:
                if len(self._pages) >= MAX_PAGES:
                    return
                self._send(self._about, page)
            self._pages[page] = now
            return
        right = hmac.compare_digest(wire.code(self.token, self.run, request.does), request.code)
        self.refused += not right
        if right and request.does == "stop" and not self._stop:
            self._stop = True
            _log.warning("stop requested on a live page")
        answer = wire.CodeAnswer(run=self.run, does=request.does, number=request.number, granted=right)
        self._send(msgspec.msgpack.encode(answer), page)

    def _send_all(self, message: bytes) -> None:
        for page in self._pages:
            self._send(message, page)

    def _send(self, message: bytes, page: Address) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendto(message, page)
