"""Where a recording goes, row by row: the contract, and the sink that keeps the rows in memory as a Log.

The sink that writes a file while the robot moves is `data.mcap.write.LogWriter`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from trueup.core.errors import TrueupError
from trueup.data.log import SIGNALS, Log


class RowSink(Protocol):
    """Takes the rows of a log and what is said about it."""

    def append(self, time_s: float, **signals: ArrayLike) -> None:
        """Add one row: one value per joint (or per axis) and signal. The first row fixes the signals."""

    def note(self, meta: Mapping[str, object]) -> None:
        """Add to what the log says about itself; may be called until the log is closed."""


class LogRows:
    """Keeps the rows in memory; `log()` is the Log so far."""

    def __init__(self, joint_names: Sequence[str], meta: Mapping[str, object] | None = None) -> None:
        self._joint_names, self._meta = tuple(joint_names), dict(meta or {})
        self._times: list[float] = []
        self._rows: list[dict[str, ArrayLike]] = []

    def append(self, time_s: float, **signals: ArrayLike) -> None:
        """Add one row."""
        if self._rows and signals.keys() != self._rows[0].keys():
            other = sorted(signals.keys() ^ self._rows[0].keys())
            raise TrueupError(f"every row needs the signals of the first one; {other[0]!r} differs", place=other[0])
        self._times.append(time_s)
        self._rows.append({name: np.array(value, np.float64).ravel() for name, value in signals.items()})

    def note(self, meta: Mapping[str, object]) -> None:
        """Add to the meta of the log."""
        self._meta |= meta

    def log(self) -> Log:
        """The rows so far; without any, a log that has no signals."""
        names = self._rows[0] if self._rows else ()
        signals = {name: np.array([row[name] for row in self._rows], np.float64) for name in names if name in SIGNALS}
        return Log(time=np.array(self._times), joint_names=self._joint_names, signals=signals, meta=dict(self._meta))
