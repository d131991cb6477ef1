"""The policy of a run as the robot needs it: weights, statistics and the specs they belong to."""

from __future__ import annotations

from pathlib import Path

from trueup.core.errors import TrueupError
from trueup.policy.mlp import MlpPolicy, PolicySpec
from trueup.tasks.env import TaskEnv
from trueup.train.folder import RunFolder
from trueup.train.frozen import Arrays, FrozenPolicy


def make_policy(env: TaskEnv, arrays: Arrays) -> MlpPolicy:
    """A learner's actor with the specs of its environment; one that needs hidden factors cannot leave simulation."""
    actor, spec = FrozenPolicy(arrays), env.robot.spec
    if actor.encoder or "trace" in arrays:
        raise TrueupError(
            "only policies that act on observations alone can be exported: this one has a latent"
        )
    policy = PolicySpec(
        task=env.task.name,
        robot=spec.name,
        control_hz=1.0 / env.control_dt,
        kp=tuple(spec.kp.tolist()),
        kd=tuple(spec.kd.tolist()),
        observation=env.observation_spec,
        action=env.action_spec,
    )
    return MlpPolicy(policy, actor.layers, actor.normalizer)


def export_policy(folder: RunFolder, env: TaskEnv) -> Path:
    """Write the newest checkpoint's policy to RUN/policy."""
    make_policy(env, folder.newest().arrays).save(folder.policy)
    return folder.policy
