"""CMA-ES for several limbs at once: each has its own search, and one batch of candidates serves them all.

Candidate k of the batch is made of candidate k of every limb. Limbs must not feel each other, or be one limb.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError

FloatArray = NDArray[np.float64]
_STEP = 0.5  # first spread of the numbers
_REACH = 2.0  # numbers beyond this only make a motion that is scaled down again


class Populations:
    """Candidates (population, njoint, numbers) asked and told by limb."""

    def __init__(self, limb: NDArray[np.intp], numbers: int, population: int, *, seed: int) -> None:
        self._limb, self._numbers = limb, numbers
        self._searches = [
            _search(int((limb == g).sum()) * numbers, population, seed + g)
            for g in range(int(limb.max()) + 1)
        ]
        self._asked: list[list[FloatArray]] = []

    def ask(self) -> FloatArray:
        """The next candidates."""
        self._asked = [search.ask() for search in self._searches]
        return self._together([np.array(asked) for asked in self._asked])

    def tell(self, costs: FloatArray) -> None:
        """What they cost, (population, nlimb)."""
        for search, asked, cost in zip(self._searches, self._asked, costs.T, strict=True):
            search.tell(asked, cost.tolist())

    @property
    def best(self) -> FloatArray:
        """Every limb's best so far, (njoint, numbers)."""
        return self._together([search.result.xbest[None] for search in self._searches])[0]

    def _together(self, parts: list[FloatArray]) -> FloatArray:
        out = np.zeros((len(parts[0]), len(self._limb), self._numbers))
        for g, part in enumerate(parts):
            out[:, self._limb == g] = part.reshape(len(part), -1, self._numbers)
        return out


def _search(size: int, population: int, seed: int) -> Any:
    if find_spec("cma") is None:
        raise TrueupError("active excitation needs CMA-ES: `pip install 'trueup[calibrate]'`")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it misses a plotting library that is not used
        cma = import_module("cma")
    options = {"bounds": [-_REACH, _REACH], "popsize": population, "seed": seed + 1, "verbose": -9}
    start = 0.3 * np.random.default_rng(seed).standard_normal(size)
    return cma.CMAEvolutionStrategy(start, _STEP, options)
