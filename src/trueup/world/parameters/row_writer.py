"""Writes a parameter of a few rows straight into the engine's fields: what `params.set` does, without its checks.

Resets of single environments happen in almost every step of a large batch, so their cost is that of the calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.world.batch import BatchSim
from trueup.world.parameters.fields import make_field


class Writer(NamedTuple):
    """How a parameter's values reach the engine.

    ready  what `put` takes, (rows, ...), from values (rows, ...)
    put    writes that into rows
    """

    ready: Callable[[FloatArray], FloatArray]
    put: Callable[[FloatArray, NDArray[np.intp]], None]


def row_writer(sim: BatchSim, name: str, of: tuple[str, ...] | None) -> Writer:
    """The writer of a parameter, of the bodies `of` if it belongs to bodies."""
    put, columns = make_field(sim, name, drawn=True).put, sim.params.columns(name, of)
    return Writer(lambda values: values, lambda values, rows: put(values, rows, columns))
