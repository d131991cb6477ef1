"""Several ways of learning in a race: each has one round, and the one that leads on the part kept back goes on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trueup.calibrate.nets.uan.regress import RegressTrainer
from trueup.models.actuator_net import ActuatorNet, Float32

State = dict[str, NDArray[np.generic]]


class Race:
    """A trainer made of trainers; who leads after the first round only gets better, so it leads to the end."""

    def __init__(self, runners: Sequence[RegressTrainer]) -> None:
        self.runners = list(runners)

    @property
    def leader(self) -> RegressTrainer:
        """The best so far."""
        return min(self.runners, key=lambda one: one.best_error)

    @property
    def low(self) -> Float32:
        return self.leader.low

    @property
    def high(self) -> Float32:
        return self.leader.high

    @property
    def done(self) -> bool:
        return self._waiting is None and self.leader.done

    @property
    def progress(self) -> float:
        """Share that is done: first rounds of all, then the leader's others."""
        if self.done:
            return 1.0
        first = self.runners[0].first_share
        more = max((one.progress - first for one in self.runners), default=0.0)
        passed = sum(min(one.progress, first) for one in self.runners) + max(0.0, more)
        return passed / (1.0 + first * (len(self.runners) - 1))

    def iterate(self) -> None:
        """Some steps of whose turn it is."""
        (self._waiting or self.leader).iterate()

    def result(self) -> ActuatorNet:
        """The leader's net, or the base."""
        return self.leader.result()

    @property
    def _waiting(self) -> RegressTrainer | None:
        """The first that has not had its round."""
        return next((one for one in self.runners if one.round == 0), None)

    # --- checkpoints ---
    def state(self) -> State:
        """What a resumed training needs, of all."""
        return {
            f"{k}/{name}": part for k, one in enumerate(self.runners) for name, part in one.state().items()
        }

    def restore(self, state: State) -> None:
        """Go on from `state`."""
        for k, one in enumerate(self.runners):
            start = f"{k}/"
            one.restore(
                {name.removeprefix(start): part for name, part in state.items() if name.startswith(start)}
            )
