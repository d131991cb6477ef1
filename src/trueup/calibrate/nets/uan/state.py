"""The state of a net's training on disk: replaced whole while it runs, removed when it is done; never pickle."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic

STATE_FILE = "uan.safetensors"
_EVERY_S = 5.0


class StateFile:
    """DIR/uan.safetensors; `key` says which problem it belongs to."""

    def __init__(self, folder: str | Path, key: str) -> None:
        self.path, self._key, self._last = Path(folder) / STATE_FILE, key, time.monotonic()

    def save(self, state: dict[str, NDArray[np.generic]], *, now: bool = False) -> None:
        """Write the state, unless one was just written and `now` is not asked for."""
        from safetensors.numpy import save

        if now or time.monotonic() - self._last >= _EVERY_S:
            arrays = {name: np.ascontiguousarray(values) for name, values in state.items()}
            write_atomic(self.path, save(arrays, metadata={"key": self._key}))
            self._last = time.monotonic()

    def load(self) -> dict[str, NDArray[np.generic]] | None:
        """The state left by a training of the same problem; None when there is none."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="numpy") as file:
                key = (file.metadata() or {}).get("key")
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise TrueupError(f"is not the state of a training: {error}; delete it", file=self.path) from None
        if key != self._key:
            raise TrueupError(
                "is the state of another training: other logs or settings; choose another folder, or start anew "
                "without --resume",
                file=self.path,
            )
        return state

    def clear(self) -> None:
        """The training is done."""
        self.path.unlink(missing_ok=True)
