"""The file that a recording grows in: what the MCAP writer writes reaches the kernel in one call, or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from trueup.core.errors import TrueupError


class RecordingFile:
    """The file of a recording: gathers what the MCAP writer writes and hands it to the kernel in one call."""

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self.path = path
        self._end, self._pending = 0, bytearray()
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if overwrite else os.O_EXCL)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, flags, 0o644)
        except FileExistsError:
            raise TrueupError("there is a recording here already; choose another name", file=path) from None
        except OSError as error:
            raise TrueupError(f"cannot be written: {error.strerror}", file=path) from None

    @property
    def is_open(self) -> bool:
        return self._fd >= 0

    def write(self, data: bytes) -> None:
        self._pending += data

    def tell(self) -> int:
        return self._end + len(self._pending)

    def flush(self) -> None:
        """Hand all to the kernel; on failure take back the part that was written, and keep all for the next try."""
        done = 0
        try:
            while done < len(self._pending):
                done += os.write(self._fd, self._pending[done:] if done else self._pending)
        except OSError as error:
            with contextlib.suppress(OSError):  # the first error is the one to tell
                os.ftruncate(self._fd, self._end)
                os.lseek(self._fd, self._end, os.SEEK_SET)
            text, place = f"could not be written: {error.strerror}", f"byte {self._end}"
            raise TrueupError(text, file=self.path, place=place) from None
        self._end += done
        self._pending.clear()

    def close(self) -> None:
        try:
            self.flush()
            os.fsync(self._fd)
        finally:
            os.close(self._fd)
            self._fd = -1
