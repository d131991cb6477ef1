"""The tap at the motors: a file of received commands and true motor torques, a row per command period.

One line of JSON (names of the joints), then rows of little-endian float64. A file that was cut short reads up to its
last whole row.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError


class Tap(NamedTuple):
    """Content of a tap: time (T,), true torque at the motors (T, n), commands received (T, 5, n).

    commands  NaN rows where no command came in this period
    """

    joint_names: tuple[str, ...]
    time: FloatArray
    torque: FloatArray
    commands: FloatArray


class TapFile:
    """Writes a tap."""

    def __init__(self, path: str | Path, joint_names: tuple[str, ...]) -> None:
        try:
            self._file = open(path, "wb")  # noqa: SIM115 - lives as long as the twin
        except OSError as error:
            raise TrueupError(f"the tap cannot be written: {error}", file=path) from None
        self._file.write(msgspec.json.encode(joint_names) + b"\n")
        self._row = np.full(1 + 6 * len(joint_names), np.nan)
        self._n = len(joint_names)

    def command(self, rows: FloatArray) -> None:
        """Remember a command of this period, also one that was refused; the newest counts."""
        if rows.shape == (5, self._n):
            self._row[1 + self._n :] = rows.reshape(-1)

    def period(self, time_s: float, torque: FloatArray) -> None:
        """Write the row of a period that has passed."""
        self._row[0] = time_s
        self._row[1 : 1 + self._n] = torque
        self._file.write(self._row.astype("<f8").tobytes())
        self._row[1 + self._n :] = np.nan

    def close(self) -> None:
        """Write out and close."""
        self._file.close()


def read_tap(path: str | Path) -> Tap:
    """Read a tap file."""
    try:
        head, _, body = Path(path).read_bytes().partition(b"\n")
        names = msgspec.json.decode(head, type=tuple[str, ...])
    except (OSError, msgspec.MsgspecError) as error:
        raise TrueupError(f"is not a tap of a twin: {error}", file=path) from None
    n, width = len(names), 1 + 6 * len(names)
    rows = np.frombuffer(body, "<f8", len(body) // (8 * width) * width).astype(np.float64).reshape(-1, width)
    return Tap(names, rows[:, 0], rows[:, 1 : 1 + n], rows[:, 1 + n :].reshape(-1, 5, n))
