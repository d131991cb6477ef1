"""A serial line without a cable: a pseudo-terminal whose one end a driver opens by name."""

from __future__ import annotations

import contextlib
import os
import stat
import termios
import tty
from pathlib import Path

from trueup.core.errors import TrueupError

_CHUNK = 4096
_SPEEDS = {getattr(termios, name): int(name[1:]) for name in dir(termios) if name[0] == "B" and name[1:].isdecimal()}


class PtyLine:
    """The servos' end of a line. `port` is what a driver opens: `place`, a symbolic link, or the terminal itself.

    The driver's end is kept open here too, so that drivers may come and go.
    """

    def __init__(self, place: str) -> None:
        self._master, self._slave = os.openpty()
        self._link: Path | None = None
        try:
            tty.setraw(self._slave)
            os.set_blocking(self._master, False)
            self.port = os.ttyname(self._slave)
            if place:
                self._link = _link(Path(place), self.port)
                self.port = place
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """For select."""
        return self._master

    def baud(self) -> int | None:
        """Speed that the driver has set; None when it has no name among the usual ones."""
        return _SPEEDS.get(termios.tcgetattr(self._slave)[4])

    def read(self) -> bytes:
        """What the driver has sent."""
        try:
            return os.read(self._master, _CHUNK)
        except BlockingIOError:
            return b""

    def write(self, data: bytes) -> None:
        """Send to the driver; what a driver that does not read leaves no room for is lost, as on a wire."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._master, data)

    def close(self) -> None:
        """Pull the cable: the driver finds its port gone. Safe to call twice."""
        if self._link is not None:
            with contextlib.suppress(OSError):
                self._link.unlink()
            self._link = None
        for end in (self._master, self._slave):
            if end >= 0:
                os.close(end)
        self._master = self._slave = -1


def _link(place: Path, target: str) -> Path:
    """Make a symbolic link; one that an earlier twin left behind is replaced, nothing else is."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISLNK(place.lstat().st_mode) or not os.readlink(place).startswith("/dev/pts/"):
            raise TrueupError("exists and is no link to a pseudo-terminal: choose another --place", file=place)
        place.unlink()
    try:
        place.symlink_to(target)
    except OSError as error:
        raise TrueupError(f"the link to the serial line cannot be made: {error.strerror}", file=place) from None
    return place
