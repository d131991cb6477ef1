"""Assessment: what a policy is worth, over whole episodes and the whole range of commands, without exploration."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from trueup.rl.env import Env
from trueup.train.frozen import Policy

ERROR = "velocity_error"


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Means over all steps of all episodes.

    falls   episodes that ended before their time
    error   mean length of the error of linear velocity, m/s; None for tasks that follow no velocity
    score   mean of the task's score, in [0, 1]
    """

    episodes: int
    seconds: float
    falls: int
    error: float | None
    score: float
    metrics: dict[str, float]

    def reaches(self, target: float) -> bool:
        """No falls, and an error below the target; for tasks without an error, a score of at least the target."""
        good = self.score >= target if self.error is None else self.error < target
        return good and self.falls == 0

    def record(self) -> dict[str, object]:
        return asdict(self)


def assess(env: Env, policy: Policy, score: str, seconds: float = 20.0) -> Assessment:
    """Run one episode in every row of an environment that does not stagger its episodes.

    A row that falls begins anew; its later steps count in the means, the fall counts once.
    """
    obs = env.reset()
    fallen = np.zeros(env.nenv, bool)
    sums: dict[str, float] = {}
    steps = round(seconds / env.control_dt)
    for _ in range(steps):
        step = env.step(np.ascontiguousarray(policy(obs), np.float32))
        policy.restart(step.ended)
        obs = step.obs
        fallen |= step.terminated
        for name, value in step.metrics.items():
            sums[name] = sums.get(name, 0.0) + value
    means = {name: value / steps for name, value in sums.items()}
    return Assessment(
        episodes=env.nenv,
        seconds=seconds,
        falls=int(fallen.sum()),
        error=means.get(ERROR),
        score=means[f"reward/{score}"],
        metrics=means,
    )
