"""The policy of a run as the robot needs it: weights, statistics and the specs they belong to."""

from __future__ import annotations

from pathlib import Path

from trueup.policy.mlp import MlpPolicy
from trueup.tasks.env import TaskEnv
from trueup.train.folder import RunFolder


def export_policy(folder: RunFolder, env: TaskEnv) -> Path:
    """Write the newest checkpoint's policy to RUN/policy; one that needs the hidden factors is refused."""
    MlpPolicy(env.policy_spec(), folder.newest_policy()).save(folder.policy)
    return folder.policy
