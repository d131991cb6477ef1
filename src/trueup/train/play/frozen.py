"""Frozen policies: a trained actor or student as plain NumPy, for assessments, films and the live view. No noise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueup.policy.layers import Layer, forward
from trueup.policy.normalizer import Normalizer
from trueup.policy.student import Student
from trueup.rl.collect import part
from trueup.rl.env import Floats, Obs

Arrays = Mapping[str, NDArray[np.generic]]


class Policy(Protocol):
    """Acts for a number of rows; may remember the past of each."""

    def __call__(self, obs: Obs) -> Floats: ...
    def restart(self, rows: NDArray[np.intp]) -> None:
        """The episodes of these rows ended."""
        ...


def frozen(arrays: Arrays, nrow: int = 1) -> Policy:
    """The policy in a learner's state or checkpoint: PPO's actor, or a student for `nrow` rows."""
    return FrozenStudent(arrays, nrow) if "trace" in arrays else FrozenPolicy(arrays)


class FrozenPolicy:
    """Mean action of PPO's averaged actor; with an encoder it also needs the privileged factors."""

    def __init__(self, arrays: Arrays) -> None:
        state = dict(arrays)
        mean = "average" if "average/log_std" in state else "actor"  # a student's teacher has but one form
        self.layers = _layers(state, f"{mean}/actor/")
        self.encoder = _layers(state, f"{mean}/encoder/")
        self.normalizer = _normalizer(state, "actor")
        self._privileged = _normalizer(state, "privileged")

    def __call__(self, obs: Obs) -> Floats:
        """Actions (n, naction) of observations (n, nactor)."""
        x = self.normalizer(obs.actor)
        if self.encoder:
            x = np.concatenate([x, self.latent(obs)], axis=1)
        return forward(self.layers, x)

    def latent(self, obs: Obs) -> Floats:
        """z = mu(e)."""
        return forward(self.encoder, self._privileged(obs.privileged))

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Remembers nothing."""


class FrozenStudent:
    """A student: estimates the latent from its own past, or acts on that past itself."""

    def __init__(self, arrays: Arrays, nrow: int) -> None:
        self.teacher, state = FrozenPolicy(arrays), dict(arrays)
        acts = bool(state["student_acts"])
        self.student = Student(
            _layers(state, "student/student/"),
            [] if acts else self.teacher.layers,
            steps=state["trace"].shape[1],
            naction=state["last_action"].shape[1],
            nrow=nrow,
        )

    def __call__(self, obs: Obs) -> Floats:
        return self.student(self.teacher.normalizer(obs.actor))

    def restart(self, rows: NDArray[np.intp]) -> None:
        self.student.restart(rows)


def _layers(state: dict[str, NDArray[np.generic]], prefix: str) -> list[Layer]:
    found = part(state, prefix)
    numbers = sorted({int(match[1]) for name in found if (match := re.match(r"(\d+)/weight$", name))})
    return [
        (np.array(found[f"{k}/weight"], np.float32), np.array(found[f"{k}/bias"], np.float32))
        for k in numbers
    ]


def _normalizer(state: dict[str, NDArray[np.generic]], name: str) -> Normalizer:
    found = part(state, f"normalizer/{name}/")
    normalizer = Normalizer(len(found["mean"]))
    normalizer.restore(found)  # type: ignore[arg-type]
    return normalizer
