"""Parameters of a scene's objects: mass, which the inertia follows, and friction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]
Ids = NDArray[np.intp]


class ObjectParams:
    """Reads and writes the parameters with scope "object" of one batch, (nsim, nobject) in the scene's order."""

    def __init__(self, sim: BatchSim) -> None:
        self._sim, self._expand, model = sim, sim.batch.expand, sim.model
        self.names = tuple(one.name for one in sim.scene.objects)
        self.bodies = np.array([model.body(name).id for name in self.names], np.intp)
        self.geoms = np.array([model.geom(name).id for name in self.names], np.intp)

    def get(self, name: str) -> FloatArray:
        """Return (nsim, nobject) values."""
        if not self.names:
            raise TrueupError(f"parameter {name!r} needs an object in the scene: there is none", place=name)
        if name == "object_mass":
            return self._expand("body_mass")[:, self.bodies].copy()
        return self._expand("geom_friction")[:, self.geoms, 0].copy()

    def set(self, name: str, values: FloatArray, rows: Ids, columns: Ids | None = None) -> None:
        """Write values (rows, ncolumn); columns None: all objects."""
        which = slice(None) if columns is None else columns
        if name == "object_friction":
            self._expand("geom_friction")[..., 0][np.ix_(rows, self.geoms[which])] = values
            return
        bodies, model = self.bodies[which], self._sim.model
        at = np.ix_(rows, bodies)
        self._expand("body_mass")[at] = values
        ratio = values / model.body_mass[bodies]  # from nominal: rounding must not add up
        self._expand("body_inertia")[at] = model.body_inertia[bodies] * ratio[..., None]
        self._sim.params.mark_stale(rows)
