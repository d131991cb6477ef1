"""Learner: what a run asks of an algorithm, whichever it is, and the way from its settings to its class."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Protocol

from trueup.core.errors import TrueupError
from trueup.policy.net import PolicyNet
from trueup.rl.env import Env, State
from trueup.rl.settings import LEARNERS, LearnerCfg


class Learner(Protocol):
    """Learns in iterations; what it computes depends on its state and its settings alone.

    `iterate` raises NonFiniteError where a number is not finite. `state` may return views: whoever keeps it, copies.
    """

    @property
    def env(self) -> Env: ...
    @property
    def iteration(self) -> int: ...
    @property
    def steps_done(self) -> int:
        """Control steps of all simulations so far."""
        ...

    def iterate(self) -> dict[str, float]:
        """Collect and learn once; returns metrics worth plotting."""
        ...

    def policy(self) -> PolicyNet:
        """A copy of the policy that would leave training now."""
        ...

    def state(self) -> State:
        """Everything needed to continue bit for bit, as named arrays."""
        ...

    def restore(self, state: State) -> None: ...
    def close(self) -> None: ...


def learner_class(cfg: LearnerCfg) -> Callable[..., Learner]:
    """The class that these settings belong to; it is called with (env, cfg, seed), a student also with its teacher."""
    if type(cfg) not in LEARNERS:
        raise TrueupError(f"no learner has settings of type {type(cfg).__name__}: add it to rl.settings.LEARNERS")
    module, name = LEARNERS[type(cfg)]
    found: Callable[..., Learner] = getattr(import_module(module), name)
    return found
