"""Cycle: offsets that a policy's actions are added to: a made gait (a trajectory generator, arXiv 1910.02812), or what
was learned for every row of a motion (`train.bundles.feedforward`), whose clock takes the whole motion for one period.

With the phase p of the policy's clock and its observed command c, the offset from the default pose is

    g b(p),   g = min(1, |c| / full_at), or 1 without `full_at`

so that a robot steps from its first action on. With `full_at` one that is told to stand has no gait.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray

_MOST_ROWS = 100_000  # a file must not ask for all memory


class CycleSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Numbers of a cycle, rad, for the controlled joints in their order.

    rows     b at even phases of one period, (T, naction); linear between them, the first follows the last
    full_at  length of the command from which on the gait is whole; None: it never ends
    """

    rows: tuple[tuple[float, ...], ...]
    full_at: float | None = None

    def __post_init__(self) -> None:
        if not 2 <= len(self.rows) <= _MOST_ROWS or len({len(row) for row in self.rows}) != 1:
            raise ValueError(f"a cycle has 2 to {_MOST_ROWS} rows of one length")
        if self.full_at is not None and not self.full_at > 0.0:
            raise ValueError(f"a cycle needs full_at above 0, found {self.full_at}")


class Cycle:
    """Computes the offsets of a cycle."""

    def __init__(self, spec: CycleSpec) -> None:
        self._full_at, self._rows = spec.full_at, np.array(spec.rows)

    def offset(self, phase: NDArray[np.floating], command: NDArray[np.floating]) -> FloatArray:
        """(n, naction) of phases (n,) in periods and commands (n, ncommand)."""
        count = len(self._rows)
        at = np.mod(phase, 1.0) * count
        low = np.floor(at).astype(np.intp)
        first, second = (self._rows[k % count] for k in (low, low + 1))
        out: FloatArray = first + (at - low)[:, None] * (second - first)
        if self._full_at is not None:
            asked = np.sqrt(np.einsum("ij,ij->i", command, command, dtype=np.float64))
            out *= np.minimum(1.0, asked / self._full_at)[:, None]
        return out
