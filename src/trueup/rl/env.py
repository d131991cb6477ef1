"""The interface of environments: many simulations of one task, stepped together, NumPy in and out.

`trueup.tasks` gives such environments; anything else with these attributes learns as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
State = dict[str, NDArray[np.generic]]


class Obs(Protocol):
    """Observations, float32 (rows, n): of the actor, of the critic, and the hidden factors e of an episode.

    The hidden factors are the last columns of the critic's observations.
    """

    @property
    def actor(self) -> Floats: ...
    @property
    def critic(self) -> Floats: ...
    @property
    def privileged(self) -> Floats: ...


class Step(Protocol):
    """Result of one control step. Rows that ended are reset at once: `obs` is of the new episode, `last` of the old.

    `ended` (k,) are the rows that ended and `last` their k final observations, to bootstrap truncated episodes from.
    """

    @property
    def obs(self) -> Obs: ...
    @property
    def reward(self) -> Floats: ...
    @property
    def terminated(self) -> NDArray[np.bool_]: ...
    @property
    def truncated(self) -> NDArray[np.bool_]: ...
    @property
    def ended(self) -> NDArray[np.intp]: ...
    @property
    def last(self) -> Obs: ...
    @property
    def metrics(self) -> dict[str, float]: ...


class Mirror(Protocol):
    """Left and right exchanged: mirrored[..., k] = sign[k] * original[..., index[k]]."""

    @property
    def actor_index(self) -> NDArray[np.intp]: ...
    @property
    def actor_sign(self) -> Floats: ...
    @property
    def critic_index(self) -> NDArray[np.intp]: ...
    @property
    def critic_sign(self) -> Floats: ...
    @property
    def action_index(self) -> NDArray[np.intp]: ...
    @property
    def action_sign(self) -> Floats: ...


class Env(Protocol):
    """`nenv` simulations of one task. `state` and `restore` continue bit for bit."""

    @property
    def nenv(self) -> int: ...
    @property
    def nactor(self) -> int: ...
    @property
    def ncritic(self) -> int: ...
    @property
    def nprivileged(self) -> int: ...
    @property
    def naction(self) -> int: ...
    @property
    def control_dt(self) -> float: ...
    @property
    def mirror(self) -> Mirror | None: ...

    def reset(self) -> Obs: ...
    def step(self, action: Floats) -> Step: ...
    def state(self) -> State: ...
    def restore(self, state: Mapping[str, NDArray[np.generic]]) -> None: ...
