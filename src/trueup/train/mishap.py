"""When a number is not finite: write down the state just before it appeared, and show it again.

The learner finds it in the step where it appears. The state at the start of the iteration is at hand and steps repeat
bit for bit, so the state right before the bad step is computed by doing the good ones again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from trueup.core.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from trueup.core.errors import TrueupError
from trueup.rl.collect import NonFiniteError, part
from trueup.rl.env import Env, Floats, State
from trueup.rl.learner import Learner


def dump(folder: Path, learner: Learner, before: State, error: NonFiniteError) -> Path:
    """Write state and action of the bad step; `before` is the learner's state at the start of the iteration.

    A gradient that is not finite belongs to no step: the whole learner before the iteration is written.
    """
    facts = {
        "what": error.what,
        "iteration": learner.iteration,
        "step": error.step,
        "rows": error.rows[:64].tolist(),
    }
    if error.step >= learner.steps:
        return write_checkpoint(folder, Checkpoint(arrays=before, facts=facts | {"kind": "iteration"}))
    env = learner.env
    env.restore(part(before, "env/"))
    for t in range(error.step):
        env.step(learner.actions(t))
    action = learner.actions(error.step)
    arrays = {f"env/{name}": value for name, value in env.state().items()} | {"action": action}
    return write_checkpoint(folder, Checkpoint(arrays=arrays, facts=facts | {"kind": "step"}))


def replay(folder: Path, make: Callable[[], Env]) -> list[str]:
    """Do the bad step again; returns what is not finite in it: names of outputs with rows."""
    found = read_checkpoint(folder)
    if found.facts.get("kind") != "step":
        raise TrueupError("holds an iteration, not a step: resume the run to see it again", file=folder)
    env = make()
    env.reset()
    env.restore(part(found.arrays, "env/"))
    action = np.asarray(found.arrays["action"], np.float32)
    step = env.step(action)
    outputs: dict[str, Floats] = {
        "action": action,
        "reward": step.reward,
        "obs.actor": step.obs.actor,
        "obs.critic": step.obs.critic,
    }
    return [f"{name}: rows {_bad(values)}" for name, values in outputs.items() if _bad(values)]


def _bad(values: Floats) -> list[int]:
    finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    rows: list[int] = np.flatnonzero(~finite).tolist()
    return rows
