"""Stepper: steps an environment through an iteration, checks every number, and averages metrics and episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup.rl.env import Env, Floats, Obs, State, Step, part


class NonFiniteError(ArithmeticError):
    """A number that is not finite.

    step     control step of the iteration in which it appeared; None: it is a gradient's
    rows     simulations in which it appeared
    before   `env/...`: the environment's state before that step, and `action`: that step's actions
    """

    def __init__(
        self, what: str, step: int | None = None, rows: Sequence[int] = (), before: State | None = None
    ) -> None:
        self.what, self.step, self.rows, self.before = what, step, list(rows), before or {}
        where = "in learning" if step is None else f"at step {step} of the iteration, rows {self.rows[:8]}"
        super().__init__(f"{what} is not finite {where}")


class Stepper:
    """Holds the environment's last observations and the running episodes.

    To reproduce a bad step it keeps the environment's state at the start of the iteration and the actions since then:
    steps repeat bit for bit, so doing the good ones again leads to the state before the bad one.
    """

    def __init__(self, env: Env) -> None:
        self.env = env
        self.obs: Obs = env.reset()
        self.episode_return, self.episode_length = np.zeros(env.nenv), np.zeros(env.nenv, np.int64)
        self._start: State = {}
        self._actions: list[Floats] = []
        self._sums: dict[str, float] = {}
        self._episodes: list[tuple[float, float]] = []

    def begin(self) -> None:
        """Begin an iteration."""
        self._start = {name: value.copy() for name, value in self.env.state().items()}
        self._actions, self._sums, self._episodes = [], {}, []

    def step(self, action: Floats) -> Step:
        """One control step of every simulation; `action` (nenv, naction) is copied."""
        self._actions.append(np.array(action, np.float32))
        self._check("the policy's action", action)
        step = self.env.step(self._actions[-1].copy())
        self._check("the reward", step.reward)
        self._check("the actor's observation", step.obs.actor)
        self._check("the critic's observation", step.obs.critic)
        self.obs = step.obs
        self._count(step)
        return step

    def metrics(self) -> dict[str, float]:
        """Means over the iteration's steps, and over the episodes that ended in it."""
        out = {name: total / len(self._actions) for name, total in self._sums.items()}
        if self._episodes:
            returns, lengths = np.array(self._episodes).T
            out |= {"episode_return": float(returns.mean()), "episode_length": float(lengths.mean())}
        return out

    def state(self) -> State:
        """Everything needed to continue bit for bit."""
        out: State = {f"env/{name}": value for name, value in self.env.state().items()}
        out |= {f"obs/{name}": getattr(self.obs, name) for name in Obs._fields}
        return out | {"episode/return": self.episode_return, "episode/length": self.episode_length}

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.env.restore(part(state, "env/"))
        self.obs = Obs(*(np.array(state[f"obs/{name}"], np.float32) for name in Obs._fields))
        self.episode_return = np.array(state["episode/return"], np.float64)
        self.episode_length = np.array(state["episode/length"], np.int64)

    def _count(self, step: Step) -> None:
        for name, number in (("reward", float(step.reward.mean())), *step.metrics.items()):
            self._sums[name] = self._sums.get(name, 0.0) + number
        self.episode_return += step.reward
        self.episode_length += 1
        rows = step.ended
        if len(rows):
            self._episodes += zip(self.episode_return[rows], self.episode_length[rows], strict=True)
            self.episode_return[rows], self.episode_length[rows] = 0.0, 0

    def _check(self, what: str, values: Floats) -> None:
        if not np.isfinite(values).all():
            rows = bad_rows(values)
            self.env.restore(self._start)
            for action in self._actions[:-1]:
                self.env.step(action)
            before: State = {f"env/{name}": value.copy() for name, value in self.env.state().items()}
            before |= {"action": self._actions[-1]}
            raise NonFiniteError(what, len(self._actions) - 1, rows, before)


def bad_rows(values: Floats) -> list[int]:
    """Rows that hold a number which is not finite."""
    finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    rows: list[int] = np.flatnonzero(~finite).tolist()
    return rows
