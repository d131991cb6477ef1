"""Numbers that are not finite: the step in which one appeared is written to a dump and can be done again."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trueup.core.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from trueup.core.errors import TrueupError
from trueup.rl.env import Env, Floats, part
from trueup.rl.stepper import NonFiniteError


def write_dump(folder: Path, iteration: int, error: NonFiniteError) -> Path:
    """Write what was found, and for a control step the environment's state before it and the action."""
    facts = {"what": error.what, "iteration": iteration, "step": error.step, "rows": error.rows[:64]}
    return write_checkpoint(folder, Checkpoint(arrays=error.before, facts=facts))


def replay_step(folder: Path, env: Env) -> list[str]:
    """Do the step of a dump again; returns what is not finite in it: names of outputs with rows."""
    found = read_checkpoint(folder)
    if found.facts.get("step") is None:
        raise TrueupError(
            f"{found.facts.get('what')} belongs to no control step: resume the run to see it again", file=folder
        )
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
    return [f"{name}: rows {rows}" for name, values in outputs.items() if (rows := _bad_rows(values))]


def _bad_rows(values: Floats) -> list[int]:
    finite = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    rows: list[int] = np.flatnonzero(~finite).tolist()
    return rows
