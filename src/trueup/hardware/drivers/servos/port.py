"""A serial port: opened exclusively, read against a deadline, with an error when it is unplugged."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from glob import glob
from importlib import import_module
from typing import Any

from trueup.core.errors import TrueupError

_CHUNK = 4096
_GONE = (errno.EIO, errno.ENXIO, errno.ENODEV, errno.EBADF)


class PortGoneError(TrueupError):
    """The port is gone: unplugged, or its other end has closed."""


class SerialPort:
    """A port of 8 data bits, no parity, one stop bit, locked against other programs."""

    def __init__(self, place: str, baud: int) -> None:
        self.place, self.baud = place, baud
        self._serial = _open(place, baud)
        self._fd: int = self._serial.fileno()

    def set_baud(self, baud: int) -> None:
        """Change the baud rate."""
        self._serial.baudrate = self.baud = baud

    def write(self, data: bytes) -> None:
        """Send bytes."""
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:
                if not select.select([], [self._fd], [], 0.1)[1]:
                    raise TrueupError("the serial port takes no more bytes: is it stuck?", file=self.place) from None
            except OSError as error:
                raise self._gone(error) from None

    def read(self, deadline: float) -> bytes:
        """Received bytes, waited for until `deadline` (time.monotonic); b"" if there are none."""
        try:
            if not select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return b""
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return b""
        except (OSError, ValueError) as error:  # ValueError: closed by another thread
            raise self._gone(error) from None
        if not data:
            raise self._gone(OSError(errno.EIO, "end of file"))
        return data

    def settle(self, quiet_s: float, most_s: float = 0.05) -> None:
        """Discard received bytes until the line is silent for `quiet_s` seconds."""
        end = time.monotonic() + most_s
        while time.monotonic() < end and self.read(min(end, time.monotonic() + quiet_s)):
            pass

    def close(self) -> None:
        """Close the port. Safe to call twice."""
        self._fd = -1
        with contextlib.suppress(OSError):
            self._serial.close()

    def _gone(self, error: Exception) -> TrueupError:
        number = error.errno if isinstance(error, OSError) else errno.EBADF
        what = "the port is gone: unplugged?" if number in _GONE else f"the port fails: {error}"
        return PortGoneError(what, file=self.place)


def _open(place: str, baud: int) -> Any:
    """Open a port for one program alone; every failure in one line."""
    try:
        serial: Any = import_module("serial")
    except ModuleNotFoundError:
        raise TrueupError("a serial port needs pyserial: pip install 'trueup[serial]'") from None
    try:
        port = serial.Serial(place, baud, timeout=0, exclusive=True)
    except (OSError, ValueError) as error:
        raise TrueupError(_reason(error, baud), file=place) from None
    with contextlib.suppress(ValueError, OSError, AttributeError):
        port.set_low_latency_mode(True)  # USB adapters of FTDI else hold bytes back for 16 ms
    return port


def _reason(error: Exception, baud: int) -> str:
    """Text why a port did not open, and what to do."""
    number = getattr(error, "errno", None)
    if number == errno.ENOENT:
        ports = sorted(glob("/dev/ttyACM*") + glob("/dev/ttyUSB*"))
        return f"no such port; found here: {', '.join(ports) or 'no /dev/ttyACM* or /dev/ttyUSB* (is it plugged in?)'}"
    if number == errno.EACCES:
        return "permission denied: join the group that owns the port (sudo usermod -aG dialout $USER), log in again"
    if number in (errno.EAGAIN, errno.EBUSY):
        return "another program has this port; end it first"
    if isinstance(error, ValueError):
        return f"this port has no speed of {baud} baud"
    if "Inappropriate ioctl" in str(error) or number == errno.EISDIR:
        return "is not a serial port"
    return f"does not open: {error}"
