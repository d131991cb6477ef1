"""History: the last few frames of every row, oldest first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]


class History:
    """Keeps `length` frames of `width` numbers for `nrow` rows."""

    def __init__(self, nrow: int, length: int, width: int) -> None:
        self.frames: Float32 = np.zeros((nrow, length, width), np.float32)

    def fill(self, frame: Float32, ids: NDArray[np.intp] | None = None) -> Float32:
        """Make `frame` (rows, width) the whole past of rows `ids`; return their stacked frames."""
        rows = slice(None) if ids is None else ids
        self.frames[rows] = frame[:, None, :]
        return self._stacked(self.frames[rows].copy())

    def push(self, frame: Float32) -> Float32:
        """Append a frame of all rows; return (nrow, length width)."""
        if self.frames.shape[1] == 1:
            self.frames[:, 0] = frame
            return frame
        stacked = np.empty_like(self.frames)
        stacked[:, :-1] = self.frames[:, 1:]
        stacked[:, -1] = frame
        self.frames[:] = stacked  # moved within, they would be copied first: the two places overlap
        return self._stacked(stacked)

    def _stacked(self, frames: Float32) -> Float32:
        return frames.reshape(len(frames), -1)
