"""Nursery: where rows are made ready for their next episode, many at a time.

The beginning of an episode costs constants that the engine derives from new masses, a forward pass, and some two
hundred small calls, nearly the same for one row as for hundreds; and in a large batch a few rows begin in almost every
step. So that work is done in a second simulation of the same rows, for every row that lacks it as soon as one does.
What comes out is moved over, bit for bit what the first simulation would have come to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.ahead import Ahead
from trueup.tasks.build import Parts
from trueup.tasks.start import Starts
from trueup.tasks.variation import Variation
from trueup.world.batch import BatchSim
from trueup.world.parameters.params import derived_fields

Ids = NDArray[np.intp]
Rows = dict[str, NDArray[Any]]


class Nursery:
    """Prepares rows of `sim` in `room`, parts of the same task and size.

    Not for what an episode's beginning takes from the end of the one before (terrain levels, ADR), for parameters that
    are drawn within episodes, nor for learned actuators.
    """

    def __init__(self, sim: BatchSim, room: Parts, variation: Variation, starts: Starts) -> None:
        self._sim, self._room, self._variation, self._starts = sim, room, variation, starts
        randomizer = variation.randomizer
        self._targets = None if randomizer is None else randomizer.targets_of(room.sim)
        room.sim.params.refresh()
        self._times_set = sim.params.times_set
        self._derived = {name: sim.batch.expand(name) for name in derived_fields(room.sim.batch)}
        self._ahead = Ahead(sim.nsim, self._prepare)

    def begin(self, ids: Ids) -> Rows | None:
        """Begin episodes of rows `ids`; returns what can be seen of them.

        None: they must begin in the simulation itself, since ranges are moving or somebody has set its parameters.
        """
        randomizer = self._variation.randomizer
        is_settled = randomizer is None or randomizer.settled()
        if not is_settled or self._sim.params.times_set != self._times_set:
            self._ahead.forget()
            return None
        parts: dict[str, Rows] = {"start": {}, "draw": {}, "derived": {}, "sim": {}, "seen": {}}
        for (part, name), values in self._ahead.take(ids).items():
            parts[part][name] = values
        self._starts.accept(ids, parts["start"])
        self._variation.accept(ids, parts["draw"])
        for name, values in parts["derived"].items():
            self._derived[name][ids] = values
        self._sim.params.mark_fresh(ids)
        self._sim.place(ids, **parts["sim"])
        return parts["seen"]

    def forget(self) -> None:
        """Counters or parameters were set from outside."""
        self._ahead.forget()

    def _prepare(self, ids: Ids) -> dict[tuple[str, str], NDArray[Any]]:
        room, randomizer = self._room.sim, self._variation.randomizer
        start, draw = self._starts.draw_ahead(ids), {} if randomizer is None else randomizer.draw_ahead(ids)
        if self._targets is not None and randomizer is not None:
            self._targets.put(randomizer.fields_in(draw), ids)
        room.reset(ids, qpos=start["qpos"], qvel=start["qvel"])
        parts: dict[str, Rows] = {
            "start": {"counter": start["counter"]},
            "draw": draw,
            "derived": {name: room.batch.expand(name)[ids] for name in self._derived},
            "sim": {"state": room.batch.state[ids], "sample": room.sensors.clean(ids)},
            "seen": self._room.sense.measure(ids),
        }
        return {(part, name): values for part, rows in parts.items() for name, values in rows.items()}
