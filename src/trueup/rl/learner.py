"""Learner: the interface of every algorithm, and the lookup from settings to class."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from trueup.core.errors import TrueupError
from trueup.policy.net import PolicyNet
from trueup.policy.normalizer import Normalizer, read_normalizer
from trueup.rl.env import Env, State
from trueup.rl.settings import LearnerCfg
from trueup.rl.stepper import NonFiniteError, Stepper

if TYPE_CHECKING:
    from trueup.rl.nets.parameters import Adam


class Learner(ABC):
    """An algorithm and the environment it acts in; what it computes depends on its state and its settings alone.

    adams        optimisers with their parameters, by name
    normalizers  running statistics of observations, by name

    Every iteration draws from a generator made from (seed, iteration): a checkpoint needs no random state.
    """

    cfg: LearnerCfg
    adams: dict[str, Adam]
    normalizers: dict[str, Normalizer]

    def __init__(self, env: Env, seed: int) -> None:
        self.env, self.seed, self.iteration = env, seed, 0
        self.stepper = Stepper(env)

    @property
    def steps_done(self) -> int:
        """Control steps of all simulations together."""
        return self.iteration * self.cfg.steps * self.env.nenv

    def draw(self) -> np.random.Generator:
        """The random numbers of this iteration."""
        return np.random.default_rng([self.seed, self.iteration])

    def descend(self, name: str, learning_rate: float, max_norm: float = math.inf) -> None:
        """Step an optimiser against its gradient, clipped to `max_norm`."""
        adam = self.adams[name]
        if not math.isfinite(adam.parameters.clip_gradient(max_norm)):
            raise NonFiniteError(f"the {name}'s gradient")
        adam.step(learning_rate)

    @abstractmethod
    def iterate(self) -> dict[str, float]:
        """Collect and learn once; returns metrics worth plotting. NonFiniteError where a number is not finite."""

    @abstractmethod
    def policy(self) -> PolicyNet:
        """A copy of the current policy, as it would be exported."""

    def state(self) -> State:
        """Everything needed to continue bit for bit, as named arrays; views: copy them to keep them."""
        out = self.stepper.state() | {"learner/iteration": np.array(self.iteration)}
        for name, adam in self.adams.items():
            out |= adam.state(name)
        for name, normalizer in self.normalizers.items():
            out |= normalizer.arrays(f"normalizer/{name}")
        return out

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.stepper.restore(state)
        for name, adam in self.adams.items():
            adam.restore(name, state)
        for name in self.normalizers:
            self.normalizers[name] = read_normalizer(state, f"normalizer/{name}")
        self.iteration = int(state["learner/iteration"])

    def start_from(self, state: State) -> None:
        """Take over networks, optimisers and statistics of another run's `state`; not its simulations or iteration.

        A critic that sees other simulator parameters than this one (another calibration) is left out here.
        """
        found = {name: read_normalizer(state, f"normalizer/{name}") for name in self.normalizers}
        others = [
            name for name, normalizer in found.items() if len(normalizer.mean) != len(self.normalizers[name].mean)
        ]
        if set(others) - {"critic", "privileged"}:
            raise ValueError(f"{', '.join(others)}: observations of another width")
        self.normalizers.update({name: normalizer for name, normalizer in found.items() if name not in others})
        for name, adam in self.adams.items():
            if not name.startswith(tuple(others)):
                adam.restore(name, state)

    def start_with(self, net: PolicyNet) -> None:
        """Take over a policy alone; critics and optimisers start from scratch."""
        raise ValueError(f"{self.cfg.algorithm} cannot begin with a policy alone")

    def close(self) -> None:  # noqa: B027  most have nothing to end
        """End threads that were started."""


def learner_class(cfg: LearnerCfg) -> Callable[..., Learner]:
    """The class that these settings name; it is called with (env, cfg, seed), a student also with its teacher."""
    learner = getattr(cfg, "learner", None)
    if learner is None:
        raise TrueupError(f"no learner has settings of type {type(cfg).__name__}: name one in its `learner`")
    if not isinstance(learner, str):
        made: Callable[..., Learner] = learner
        return made
    module, _, name = learner.partition(":")
    found: Callable[..., Learner] = getattr(import_module(module), name)
    return found
