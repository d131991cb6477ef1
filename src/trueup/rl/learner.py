"""What a run asks of a learner, whichever it is."""

from __future__ import annotations

from typing import Protocol

from trueup.rl.env import Env, Floats, State


class Learner(Protocol):
    """Learns an iteration at a time; what it computes depends on its state alone."""

    @property
    def env(self) -> Env: ...
    @property
    def steps(self) -> int:
        """Control steps of an iteration."""
        ...

    @property
    def iteration(self) -> int: ...
    @property
    def steps_done(self) -> int:
        """Control steps of all copies so far."""
        ...

    def iterate(self) -> dict[str, float]: ...
    def actions(self, t: int) -> Floats:
        """What was done at step `t` of the iteration that runs or ran last."""
        ...

    def state(self) -> State: ...
    def restore(self, state: State) -> None: ...
    def close(self) -> None: ...
