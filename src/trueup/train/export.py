"""The policy of a run as the robot needs it: weights, statistics and the specs they belong to."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from trueup.core.errors import TrueupError
from trueup.policy.mlp import MlpPolicy
from trueup.tasks.env import TaskEnv
from trueup.train.folder import RunFolder
from trueup.train.play.frozen import Arrays, FrozenPolicy, FrozenStudent, frozen


def make_policy(env: TaskEnv, arrays: Arrays) -> MlpPolicy:
    """A learner's actor or student with the specs of its environment; one that needs hidden factors cannot leave."""
    policy = frozen(arrays)
    if isinstance(policy, FrozenStudent):
        student, spec = policy.student, replace(env.policy_spec(), student_steps=policy.student.steps)
        return MlpPolicy(spec, student.policy, policy.teacher.normalizer, student.layers)
    assert isinstance(policy, FrozenPolicy)
    if policy.encoder:
        raise TrueupError("this policy needs the hidden factors, which no robot knows; export its student")
    return MlpPolicy(env.policy_spec(), policy.layers, policy.normalizer)


def export_policy(folder: RunFolder, env: TaskEnv) -> Path:
    """Write the newest checkpoint's policy to RUN/policy."""
    make_policy(env, folder.newest().arrays).save(folder.policy)
    return folder.policy
