"""Command delay of any length, a fraction of a physics step included.

A command is held from its control step to the next. Delayed by D, the physics step [t, t + dt] sees that
staircase moved D to the right; its mean over the step, with D = (n + f) dt and 0 <= f < 1, is

    (1 - f) u[k - n] + f u[k - n - 1],      u[k] the command held in physics step k,

which is exact, and continuous in D: an optimiser can move a delay through whole steps without a jump.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.models.values import require_positive

IntArray = NDArray[np.intp]
_TAPE_LENGTHS = 4  # histories per tape: longer moves memory less often, shorter stays in cache


class DelayLine:
    """Delays the commands of `nsim` rows of `njoint` joints, each by its own time.

    Give `step` a command per control step; it returns what each physics step sees. The command history starts
    at zero: call `reset` with the pose that the robot starts in.
    """

    def __init__(self, nsim: int, njoint: int, *, dt_s: float, max_delay_s: float, delay_s: ArrayLike = 0.0) -> None:
        require_positive("dt_s", dt_s)
        require_positive("max_delay_s", max_delay_s, or_zero=True)
        self.nsim, self.njoint = nsim, njoint
        self.dt_s, self.max_delay_s = dt_s, max_delay_s
        # one more than the longest delay reaches: the neighbour of a whole delay is read too, at weight 0
        self.depth = math.ceil(max_delay_s / dt_s) + 1
        # commands of past physics steps, oldest first; rows [_head - depth, _head) are the history
        self._tape = np.zeros((_TAPE_LENGTHS * self.depth, nsim, njoint))
        self._head = self.depth
        # of each row and joint: seconds, whole physics steps, the fraction of one that is left
        self._plan: FloatArray = np.zeros((nsim, 3, njoint))
        self._reads = _Reads.of(self._plan)
        self._is_stale = False  # `_reads` does not follow from `_plan` any more
        self.set_delay(delay_s)

    @property
    def delay_s(self) -> FloatArray:
        """Delay in force, (nsim, njoint) seconds; a copy."""
        return self._plan[:, 0].copy()

    @property
    def any(self) -> bool:
        """Whether any command is delayed."""
        self._bring_up_to_date()
        return self._reads.any

    def set_delay(self, values: ArrayLike, ids: IntArray | None = None) -> None:
        """Set the delay in seconds of all rows, or of rows `ids`, from the next step on.

        `values` broadcasts to (rows, njoint): (rows, 1) gives all joints of a row the same delay.
        """
        seconds = np.asarray(values, np.float64)
        rows = np.arange(self.nsim) if ids is None else ids
        try:
            self.put(self.plan(np.broadcast_to(seconds, (*rows.shape, self.njoint))), rows)
        except (ValueError, IndexError) as error:
            raise self._misfit("delay_s", seconds, rows, error) from error

    def plan(self, seconds: FloatArray) -> FloatArray:
        """What `put` takes, (rows, 3, njoint), from delays (rows, njoint): for as many rows as one likes."""
        wrong = ~((seconds >= 0.0) & (seconds <= self.max_delay_s))  # NaN is wrong too
        if np.any(wrong):
            raise TrueupError(
                f"a delay must be within 0 and max_delay_s = {self.max_delay_s} s,"
                f" found {seconds[wrong].flat[0]} s; shorten it or build the line with a larger max_delay_s",
                place="delay_s",
            )
        steps = seconds / self.dt_s
        whole = np.floor(steps)
        return np.stack([seconds, whole, steps - whole], axis=1)

    def put(self, plan: FloatArray, rows: IntArray) -> None:
        """Set the delays of rows as planned, from the next step on."""
        self._plan[rows] = plan
        self._is_stale = True

    def reset(self, ids: IntArray | None, value: ArrayLike) -> None:
        """Fill the history of rows `ids` (None: all) with `value`, as if it had always been commanded.

        `value` broadcasts to (rows, njoint).
        """
        history = self._tape[self._head - self.depth : self._head]
        rows, values = np.arange(self.nsim) if ids is None else ids, np.asarray(value, np.float64)
        try:
            if values.shape != (*rows.shape, self.njoint):
                values = np.broadcast_to(values, (*rows.shape, self.njoint))
            history[:, rows] = values
        except (ValueError, IndexError) as error:
            raise self._misfit("value", values, rows, error) from error

    def step(self, command: FloatArray, substeps: int) -> FloatArray:
        """Return (nsim, substeps, njoint): what each physics step sees when `command` (nsim, njoint) is held.

        Where the delay is zero the command comes back bit for bit.
        """
        if command.shape != (self.nsim, self.njoint):
            raise TrueupError(
                f"a command must have shape {(self.nsim, self.njoint)} (nsim, njoint), found {command.shape}"
            )
        if substeps < 1:
            raise TrueupError(f"a control step needs at least one physics step, found substeps = {substeps}")
        self._make_room(substeps)
        self._tape[self._head : self._head + substeps] = command
        self._bring_up_to_date()
        reads, now = self._reads, np.arange(self._head, self._head + substeps) * self.nsim
        tape: FloatArray
        if reads.by_row is not None:
            index, stride, tape = reads.by_row + now, self.nsim, self._tape.reshape(-1, self.njoint)
        else:
            index, stride = reads.by_joint + self.njoint * now[:, None], self.nsim * self.njoint
            tape = self._tape.reshape(-1)
        later = tape.take(index, axis=0)
        index -= stride
        earlier = tape.take(index, axis=0)
        # later + f (earlier - later): a held command stays exactly itself
        with np.errstate(invalid="ignore", over="ignore"):  # a row that has blown up must not stop the others
            earlier -= later
            earlier *= reads.fraction
        np.add(later, earlier, out=later, where=reads.is_fractional)
        self._head += substeps
        return later

    def state(self) -> dict[str, FloatArray]:
        """Return what a resumed run needs: `history` (nsim, depth, njoint), oldest first, and `delay_s`."""
        history = self._tape[self._head - self.depth : self._head]
        return {"history": np.ascontiguousarray(history.swapaxes(0, 1)), "delay_s": self.delay_s}

    def restore(self, state: Mapping[str, FloatArray]) -> None:
        """Continue from what `state` returned, in a line of the same shape and the same longest delay."""
        shapes = {"history": (self.nsim, self.depth, self.njoint), "delay_s": (self.nsim, self.njoint)}
        for name, shape in shapes.items():
            found = np.shape(state[name]) if name in state else "nothing"
            if found != shape:
                raise TrueupError(
                    f"a delay line of this size restores {name!r} of shape {shape}, found {found};"
                    " build it as the saved one was built",
                    place=name,
                )
        self.set_delay(state["delay_s"])
        self._tape[self._head - self.depth : self._head] = state["history"].swapaxes(0, 1)

    def _make_room(self, substeps: int) -> None:
        """Move the history to the front of the tape (a longer tape if need be) when `substeps` do not fit."""
        if self._head + substeps <= len(self._tape):
            return
        history = self._tape[self._head - self.depth : self._head].copy()
        length = max(len(self._tape), _TAPE_LENGTHS * (self.depth + substeps))
        if length > len(self._tape):
            self._tape = np.zeros((length, self.nsim, self.njoint))
        self._tape[: self.depth] = history
        self._head = self.depth

    def _bring_up_to_date(self) -> None:
        if self._is_stale:
            self._reads, self._is_stale = _Reads.of(self._plan), False

    def _misfit(self, name: str, values: FloatArray, rows: IntArray, error: Exception) -> TrueupError:
        return TrueupError(
            f"{name} of shape {values.shape} does not fit rows of shape {(*rows.shape, self.njoint)}"
            f" of {self.nsim}: {error}",
            place=name,
        )


@dataclass(frozen=True)
class _Reads:
    """Where in the tape a delayed command is: u[k - n] relative to the start of tape row k.

    by_row    (nsim, 1), in rows of njoint, if no row's joints differ in whole steps: rows are moved as a whole
    by_joint  (nsim, 1, njoint), in single numbers
    """

    by_row: IntArray | None
    by_joint: IntArray
    fraction: FloatArray
    is_fractional: NDArray[np.bool_]
    any: bool

    @classmethod
    def of(cls, plan: FloatArray) -> _Reads:
        nsim, _, njoint = plan.shape
        whole, fraction = plan[:, 1], plan[:, 2:]
        by_row, by_joint = None, np.zeros((0, 1, njoint), np.intp)
        if (whole == whole[:, :1]).all():
            by_row = (np.arange(nsim) - whole[:, 0].astype(np.intp) * nsim)[:, None]
        else:
            columns = np.arange(nsim * njoint).reshape(nsim, 1, njoint)
            by_joint = columns - plan[:, 1:2].astype(np.intp) * columns.size
        return cls(by_row, by_joint, fraction, fraction > 0.0, bool(plan[:, 0].any()))
