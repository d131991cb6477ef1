"""Assessment: scores of a policy over whole episodes and the whole range of commands, without exploration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trueup.policy.runner import Policy
from trueup.tasks.env import TaskEnv
from trueup.tasks.evaluation.measure import Measure
from trueup.tasks.task import error_label, error_metric

EPISODES = 100
ASSESS_SEED = 1_000_000  # random numbers that no training uses


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """Means over all steps of all episodes; None where a task or robot does not have it.

    falls   episodes that ended before their time
    error   mean of the goal's error, whose name and unit are `error_label`
    error_se  standard error of `error`, from the spread of its means over episodes
    score   mean of the task's score, in [0, 1]
    turn_error        mean error of the turning rate, rad/s
    power_w           mean of the sum of |torque x joint velocity|, W
    swing_m           median of the highest points of all swings, m
    rest_speed        mean horizontal speed after more than a second of zero command, m/s
    rest_joint_speed  mean |joint velocity| there, rad/s
    """

    episodes: int
    seconds: float
    falls: int
    error: float | None
    score: float
    metrics: dict[str, float]
    error_label: str = ""
    turn_error: float | None = None
    power_w: float | None = None
    swing_m: float | None = None
    rest_speed: float | None = None
    rest_joint_speed: float | None = None
    error_se: float | None = None

    def reaches(self, target: float) -> bool:
        """No falls, and an error below the target; for tasks without an error, a score of at least the target."""
        good = self.score >= target if self.error is None else self.error < target
        return good and self.falls == 0


def assess(env: TaskEnv, policy: Policy, score: str, seconds: float = 20.0) -> Assessment:
    """Run one episode in every row of an environment that does not stagger its episodes.

    A row that falls is reset and goes on; its later steps count in the means, and the fall counts once.
    """
    obs = env.reset()
    policy.restart(np.arange(env.nenv))
    fallen = np.zeros(env.nenv, bool)
    sums: dict[str, float] = {}
    steps = round(seconds / env.control_dt)
    measure = Measure(env)
    env.watch = measure
    try:
        for _ in range(steps):
            step = env.step(np.ascontiguousarray(policy(obs), np.float32))
            policy.restart(step.ended)
            measure.swings.restart(step.ended)
            obs = step.obs
            fallen |= step.terminated
            for name, value in step.metrics.items():
                sums[name] = sums.get(name, 0.0) + value
    finally:
        env.watch = None
    error, (rest_speed, rest_joint_speed) = error_metric(env.task), measure.at_rest
    means = {name: value / steps for name, value in sums.items()} | measure.means
    power_w = means.pop("power")
    return Assessment(
        episodes=env.nenv,
        seconds=seconds,
        falls=int(fallen.sum()),
        error=None if error is None else means[error],
        score=means[f"reward/{score}"],
        metrics=means,
        error_label=error_label(env.task),
        turn_error=means.get("turn_error"),
        power_w=power_w,
        swing_m=measure.swings.median(),
        rest_speed=rest_speed,
        rest_joint_speed=rest_joint_speed,
        error_se=measure.standard_error(error),
    )
