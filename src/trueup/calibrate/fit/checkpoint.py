"""The state of a fit on disk, so that a killed one goes on where it was.

DIR/fit.json is replaced whole while the fit runs and removed when its result is written. It belongs to one problem
(the same logs, parameters and settings); anything else is refused.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.data.windows import Windows
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.core.hashes import sha256_of
from trueup.world.fitted.fit_parameter import FitParameter

FloatArray = NDArray[np.float64]
STATE_FILE = "fit.json"
SCHEMA = 1
_EVERY_S = 0.5
_MAX_BYTES = 50_000_000


class FitState(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where a fit is.

    key      of the problem: see `problem_key`
    phase    number of the phase under way, in the order of the method
    x        where the phase is (a search: its centre)
    best     best point so far under the present weights, and its cost
    starts, ends, end_costs   of the local descents
    sigma    weights of the channels, if they were set anew
    batches  of candidates that a search has used: its random numbers go on from there
    spread   of a search, per parameter
    """

    schema: int = SCHEMA
    key: str = ""
    method: str = ""
    phase: int = 0
    x: list[float] = []
    best: list[float] = []
    best_cost: float = 1e300
    starts: list[list[float]] = []
    ends: list[list[float]] = []
    end_costs: list[float] = []
    sigma: list[float] = []
    iterations: int = 0
    batches: int = 0
    spread: list[float] = []
    seconds: float = 0.0


class Checkpoint:
    """Keeps a state in a folder, at most twice a second."""

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder) / STATE_FILE
        self._last = -1e9

    def save(self, state: FitState, *, now: bool = False) -> None:
        """Write the state, unless one was just written and `now` is not asked for."""
        if now or time.monotonic() - self._last >= _EVERY_S:
            write_atomic(self.path, msgspec.json.encode(state))
            self._last = time.monotonic()

    def load(self, key: str, method: str) -> FitState | None:
        """The state left by a fit of the same problem; None when there is none."""
        if not self.path.exists():
            return None
        state = self._read()
        if (state.schema, state.key, state.method) != (SCHEMA, key, method):
            raise TrueupError(
                f"is the state of another fit (method {state.method!r}): other logs, parameters or settings; "
                "choose another folder, or start anew without --resume",
                file=self.path,
            )
        return state

    def _read(self) -> FitState:
        if self.path.stat().st_size > _MAX_BYTES:
            raise TrueupError(f"is larger than {_MAX_BYTES} bytes: not the state of a fit", file=self.path)
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=FitState)
        except msgspec.MsgspecError as error:
            raise TrueupError(f"is not the state of a fit: {error}; delete it", file=self.path) from None

    def clear(self) -> None:
        """The fit is done."""
        self.path.unlink(missing_ok=True)


def problem_key(windows: Windows, parameters: Sequence[FitParameter], settings: str) -> str:
    """A hash of what is fitted to what."""
    arrays = (windows.measured, windows.target, windows.pos, windows.judged)
    return sha256_of((settings, msgspec.json.encode(list(parameters)), *arrays))
