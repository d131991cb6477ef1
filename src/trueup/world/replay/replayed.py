"""What a replay gives, and the project's number for it: root mean square per joint, then the mean over joints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trueup.data.log import Log

FloatArray = NDArray[np.float64]
_LOST_RAD = 10.0  # error of what blew up, and the most that counts


@dataclass(frozen=True, kw_only=True)
class Replay:
    """One log, simulated beside measured, (nwindow, L, njoint); sample 0 of each window is the measured start.

    start  (nwindow,) row of the log each window begins at
    """

    start: NDArray[np.intp]
    time: FloatArray
    joint_names: tuple[str, ...]
    joint_pos: FloatArray
    joint_vel: FloatArray
    measured_pos: FloatArray
    diverged: NDArray[np.bool_]

    @property
    def dt(self) -> float:
        return float(self.time[1] - self.time[0])

    @property
    def error(self) -> FloatArray:
        """(nwindow, L - 1, njoint) rad, the start excluded; what blew up is 10 rad off."""
        error = (self.joint_pos - self.measured_pos)[:, 1:]
        return np.where(np.isfinite(error), np.clip(error, -_LOST_RAD, _LOST_RAD), _LOST_RAD)

    @property
    def rmse(self) -> FloatArray:
        """Root mean square position error of each joint over all windows (rad)."""
        return joint_rmse([self])

    def only(self, keep: NDArray[np.bool_]) -> Replay:
        """Some of the windows."""
        names = ("start", "joint_pos", "joint_vel", "measured_pos", "diverged")
        return replace(self, **{name: getattr(self, name)[keep] for name in names})

    def shortened(self, length: int) -> Replay:
        """The first `length` samples of every window."""
        if length >= len(self.time):
            return self
        names = ("joint_pos", "joint_vel", "measured_pos")
        cut = {name: getattr(self, name)[:, :length] for name in names}
        return replace(self, time=self.time[:length], **cut)

    def to_log(self, window: int = 0) -> Log:
        """One simulated window as a Log."""
        signals = {"joint_pos": self.joint_pos[window], "joint_vel": self.joint_vel[window]}
        time = self.time + self.start[window] * self.dt
        return Log(time=time, joint_names=self.joint_names, signals=signals, meta={"source": "replay"})


def joint_rmse(replays: Sequence[Replay]) -> FloatArray:
    """Root mean square position error of each joint over all samples of all windows (rad)."""
    return np.sqrt(_mean(replays, lambda error: error**2))


def joint_mae(replays: Sequence[Replay]) -> FloatArray:
    """Mean absolute position error of each joint over all samples of all windows (rad)."""
    return _mean(replays, np.abs)


def block_squares(replays: Sequence[Replay], block_s: float) -> FloatArray:
    """Mean squared error of each block of time, (nblock, njoint); a shorter window is one block."""
    out: list[FloatArray] = []
    for one in replays:
        size = max(1, round(block_s / one.dt))
        for window in one.error**2:
            out += [part.mean(axis=0) for part in np.array_split(window, max(1, len(window) // size))]
    return np.array(out)


def _mean(replays: Sequence[Replay], of: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Summed window by window, so that the same windows give the same digits however they were batched."""
    windows = [of(window) for one in replays for window in one.error]
    total: FloatArray = np.array([window.sum(axis=0) for window in windows]).sum(axis=0)
    return total / sum(len(window) for window in windows)
