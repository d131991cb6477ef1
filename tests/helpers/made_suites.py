"""A policy that holds the default pose, and suites in which it stands: enough to run whole evaluations in seconds."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from trueup.policy.mlp import PolicySpec
from trueup.tasks.env import EnvCfg, TaskEnv
from trueup.tasks.load import load_task

STAND = """
schema = 1
title = "Stand"

[defaults]
seconds = 1.0
command = { forward = 0.0 }
success = { error = 0.2 }
least = 0.5

[vary]
contact_friction = { set = [0.6, 1.0] }

[[scenario]]
name = "stand"

[[scenario]]
name = "limp"
title = "no torque"
params = { torque_limit = { scale = 0.05 } }

[[probe]]
title = "torque"
param = "torque_limit"
unit = "x"
scale = [0.9, 0.8, 0.05, 0.04]

[[probe]]
title = "delay"
param = "delay"
unit = "s"
set = [0.01, 0.02]
"""


def spec_of(task: str = "go2-velocity") -> PolicySpec:
    return TaskEnv(load_task(task), EnvCfg(nenv=1, threads=1)).policy_spec()


class Holds:
    """Answers each row by its own observations only, bit for bit alike in any batch; `size` 0: stays in the pose."""

    def __init__(self, naction: int, size: float = 0.0) -> None:
        self._naction, self._size = naction, np.float32(size)

    def act(self, actor: np.ndarray) -> np.ndarray:
        return self._size * np.sin(7.0 * actor[:, : self._naction]).astype(np.float32)


def made_bundle(spec: PolicySpec, size: float = 0.0) -> SimpleNamespace:
    naction = len(spec.action.controlled_joints)
    return SimpleNamespace(
        passport=SimpleNamespace(policy=spec),
        hash="0" * 64,
        path=Path("holds.bundle"),
        runner=lambda n: Holds(naction, size),
    )


def suite_file(folder: Path, text: str = STAND) -> Path:
    file = folder / "suite.toml"
    file.write_text(text)
    return file
