"""A servo bus: requests and answers on one wire; lost, damaged or late answers are requested again or reported.

Only one request is pending at a time. Reading yields to writing: a writer waits for one request at most, also
when another thread reads without pause. A damaged or late answer is requested again; before
that the line must be silent, so that late bytes are not taken for the next answer. Everything is sent to the
broadcast id (sync read, sync write), so an adapter that echoes what is sent cannot be mistaken for a servo.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.servos.packet import Codec, Reply
from trueup.hardware.drivers.servos.port import SerialPort

_QUIET_S = 0.002
_FIND_S = 0.02  # for one servo that is looked for
_BABBLE_S = 0.005  # past the deadline: a line that does not stop is no answer
_SET_TRIES = 3  # of values that are read back


class NoAnswerError(TrueupError):
    """Some servos did not answer a request."""


class NotTakenError(TrueupError):
    """A servo answers, but its register does not hold the value written."""


class ServoBus:
    """Servos on a port, by id.

    names      joint of each id, for messages
    timeout_s  for an answer, beyond the time its bytes need on the wire

    `asked` counts requests, `lost` those without a valid answer of every servo, `written` packets without an answer;
    `sent_at` is when bytes were last sent, `trouble` lists the servos that did not answer the newest request.
    """

    def __init__(self, port: SerialPort, codec: Codec, names: Mapping[int, str], *, timeout_s: float) -> None:
        self.port, self.codec, self.names, self._timeout = port, codec, dict(names), timeout_s
        self.asked = self.lost = self.written = 0
        self.sent_at = 0.0
        self.trouble: NoAnswerError | None = None
        self._turn, self._next, self._line = threading.Lock(), threading.Lock(), threading.Lock()

    def find(self, address: int, bauds: tuple[int, ...]) -> dict[int, int]:
        """Read each servo's model number, two bytes at `address`; servos that do not answer are named."""
        with self._held(is_urgent=False):
            found = self._models(address)
            missing = [servo for servo in self.names if servo not in found]
            if not missing:
                return found
            if found:
                raise self._no_answer(missing, "check its cable, its power, and that no two servos have one id")
            speeds = [baud for baud in bauds if baud != self.port.baud and self._answers_at(baud, address)]
        place, baud = self.port.place, self.port.baud
        if speeds:
            raise NoAnswerError(
                f"no servo answers at {baud} baud, but at {speeds[0]}: add ?baud={speeds[0]}", file=place
            )
        ids = ", ".join(map(str, self.names))
        raise NoAnswerError(f"no servo answers (ids {ids}, {baud} baud): is the motors' power on?", file=place)

    def read_all(
        self, address: int, length: int, *, patience_s: float = 0.05, is_urgent: bool = False
    ) -> dict[int, Reply]:
        """Read the same registers of every servo; those that do not answer are read once more, then until `patience_s`.

        Raises NoAnswerError with the names of those that stay silent.
        """
        replies: dict[int, Reply] = {}
        begun, is_last = time.monotonic(), False
        while True:
            missing = [servo for servo in self.names if servo not in replies]
            with self._held(is_urgent=is_urgent):
                replies |= self._ask(address, length, missing, self._timeout)
            if len(replies) == len(self.names):
                self.trouble = None
                return replies
            self.trouble = self._no_answer([servo for servo in missing if servo not in replies])
            if is_last:
                raise self.trouble
            is_last = time.monotonic() - begun >= patience_s

    def write_all(self, address: int, rows: Mapping[int, bytes]) -> None:
        """Write registers of several servos at once, without answers."""
        with self._held(is_urgent=True):
            self._send(self.codec.sync_write(address, rows))
            self.written += 1

    def set_all(self, address: int, rows: Mapping[int, bytes], what: str) -> None:
        """Write registers of servos and read them back; the servo that does not take a value is named."""
        length = len(next(iter(rows.values())))
        for _ in range(_SET_TRIES):
            self.write_all(address, rows)
            replies = self.read_all(address, length, is_urgent=True)
            wrong = [servo for servo, row in rows.items() if replies[servo].data != row]
            if not wrong:
                return
        servo = wrong[0]
        found, wanted = replies[servo].data.hex(" "), rows[servo].hex(" ")
        message = f"does not take {what}: from register {address} on it should hold {wanted}, it holds {found}"
        raise NotTakenError(f"servo {servo} ({self.names[servo]}) {message}", file=self.port.place)

    def close(self) -> None:
        """Close the port after the pending request."""
        with self._held(is_urgent=True):
            self.port.close()

    # --- one question ---
    @contextlib.contextmanager
    def _held(self, *, is_urgent: bool) -> Iterator[None]:
        """Exclusive use of the line; urgent waiters come first."""
        with contextlib.nullcontext() if is_urgent else self._turn:
            with self._next:
                self._line.acquire()
            try:
                yield
            finally:
                self._line.release()

    def _send(self, packet: bytes) -> None:
        self.port.write(packet)
        self.sent_at = time.monotonic()

    def _ask(self, address: int, length: int, ids: Sequence[int], timeout_s: float) -> dict[int, Reply]:
        """Send one request; returns the valid answers that came in time."""
        question = self.codec.sync_read(address, length, ids)
        size = self.codec.overhead + length
        self.port.settle(0.0)
        self._send(question)
        self.asked += 1
        deadline = self.sent_at + 10 * (len(question) + size * len(ids)) / self.port.baud + timeout_s
        replies: dict[int, Reply] = {}
        buffer = b""
        while len(replies) < len(ids):
            data = self.port.read(deadline)  # also past it: bytes wait for a computer that was busy elsewhere
            buffer += data
            replies = self._replies(buffer, ids, length) if len(buffer) >= size else {}
            if not data or time.monotonic() > deadline + _BABBLE_S:
                break
        if len(replies) < len(ids):
            self.lost += 1
            self.port.settle(_QUIET_S)
        return replies

    def _replies(self, buffer: bytes, ids: Sequence[int], length: int) -> dict[int, Reply]:
        """Answers of the requested length from the requested servos; the newer of two from one servo is used."""
        found = (self.codec.reply(packet) for packet in self.codec.scan(buffer).packets)
        return {reply.id: reply for reply in found if reply and reply.id in ids and len(reply.data) == length}

    # --- who is there ---
    def _models(self, address: int) -> dict[int, int]:
        replies: dict[int, Reply] = {}
        timeout_s = max(_FIND_S, self._timeout)
        for servo in self.names:
            replies |= self._ask(address, 2, [servo], timeout_s) or self._ask(address, 2, [servo], timeout_s)
        return {servo: int.from_bytes(reply.data, "little") for servo, reply in replies.items()}

    def _answers_at(self, baud: int, address: int) -> bool:
        """Whether a servo answers at another baud rate."""
        before = self.port.baud
        try:
            self.port.set_baud(baud)
            return any(self._ask(address, 2, [servo], _FIND_S) for servo in self.names)
        except (OSError, ValueError):  # this port has no such speed
            return False
        finally:
            self.port.set_baud(before)

    def _no_answer(self, missing: list[int], advice: str = "") -> NoAnswerError:
        servos = ", ".join(f"{servo} ({self.names[servo]})" for servo in missing)
        of = "servo" if len(missing) == 1 else "servos"
        return NoAnswerError(f"no answer from {of} {servos}" + (f"; {advice}" if advice else ""), file=self.port.place)
