"""The interface of environments: many simulations of one task, stepped together, NumPy in and out.

`trueup.tasks` gives such environments; anything else with these attributes learns as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
State = dict[str, NDArray[np.generic]]


class Obs(NamedTuple):
    """Observations, float32 (rows, n): of the actor, of the critic, and the hidden factors e of an episode.

    The hidden factors are the last columns of the critic's observations.
    """

    actor: Floats
    critic: Floats
    privileged: Floats


class Step(NamedTuple):
    """Result of one control step. Rows that ended are reset at once.

    obs      of all rows; of those that ended, the first of the new episode
    ended    (k,) rows that ended in this step, ascending
    last     the k final observations of those rows, to bootstrap truncated episodes from
    metrics  batch means of this step; a task's own metrics (errors, red flags) of every eighth
    """

    obs: Obs
    reward: Floats
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    ended: NDArray[np.intp]
    last: Obs
    metrics: dict[str, float]


class Mirror(NamedTuple):
    """Left and right exchanged: mirrored[..., k] = sign[k] * original[..., index[k]]."""

    actor_index: NDArray[np.intp]
    actor_sign: Floats
    critic_index: NDArray[np.intp]
    critic_sign: Floats
    action_index: NDArray[np.intp]
    action_sign: Floats


class Env(Protocol):
    """`nenv` simulations of one task. `state` and `restore` continue bit for bit."""

    nenv: int
    nactor: int
    ncritic: int
    nprivileged: int
    naction: int
    control_dt: float

    @property
    def mirror(self) -> Mirror | None: ...
    def reset(self) -> Obs: ...
    def step(self, action: Floats) -> Step: ...
    def state(self) -> State: ...
    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None: ...


def part(state: State, prefix: str) -> dict[str, NDArray[np.generic]]:
    """The entries whose name starts with `prefix`, without it."""
    return {name[len(prefix) :]: value for name, value in state.items() if name.startswith(prefix)}
