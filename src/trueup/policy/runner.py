"""PolicyRunner: runs a PolicyNet without exploration, in assessments, films, the live view and on robots; NumPy."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueup.core.layers import forward
from trueup.policy.net import PolicyNet
from trueup.policy.normalizer import Float32
from trueup.policy.reading import History


class Observed(Protocol):
    """Observations of an environment: those of a robot (n, nactor), and the hidden factors (n, nprivileged)."""

    @property
    def actor(self) -> Float32: ...
    @property
    def privileged(self) -> Float32: ...


class Policy(Protocol):
    """Anything that acts in environments for a number of rows; it may remember the past of each."""

    def __call__(self, obs: Observed) -> Float32: ...
    def restart(self, rows: NDArray[np.intp]) -> None:
        """The episodes of these rows ended."""
        ...


class PolicyRunner:
    """Acts for `nrow` rows, one call a control step; without memory (`net.spec.steps` = 0) for any number of rows."""

    def __init__(self, net: PolicyNet, nrow: int = 1) -> None:
        self.net = net
        self._last: Float32 = np.zeros((nrow, net.naction), np.float32)
        self._past: History | None = None
        if net.spec.steps:
            self._past = History(nrow, net.spec.steps, len(net.normalizer.mean) + net.naction)

    def __call__(self, obs: Observed) -> Float32:
        """Actions (n, naction) of an environment's observations."""
        return self.act(obs.actor, obs.privileged)

    def act(self, actor: Float32, privileged: Float32 | None = None) -> Float32:
        """Actions (n, naction) of observations (n, nactor); only kind `privileged` needs the hidden factors."""
        x, kind = self.net.normalizer(actor), self.net.spec.kind
        past = x if self._past is None else self._past.push(np.concatenate([x, self._last], axis=1))
        if kind == "privileged":
            assert privileged is not None
            out = self.act_on_latent(x, self.latent(privileged))
        elif kind == "latent":
            out = self.act_on_latent(x, forward(self.net.encoder, past))
        else:
            out = self._output(past)
        if self._past is not None:
            self._last = out.copy()
        return out

    def latent(self, privileged: Float32) -> Float32:
        """z = encoder(e) of a policy of kind `privileged`."""
        assert self.net.privileged_normalizer is not None
        return forward(self.net.encoder, self.net.privileged_normalizer(privileged))

    def act_on_latent(self, x: Float32, latent: Float32) -> Float32:
        """Actions of normalised observations and a latent, which may be a student's estimate."""
        return self._output(np.concatenate([x, latent], axis=1))

    def restart(self, rows: NDArray[np.intp]) -> None:
        """Forget the past of rows whose episode ended."""
        if self._past is not None:
            self._past.frames[rows] = 0.0
            self._last[rows] = 0.0

    def _output(self, x: Float32) -> Float32:
        out, squash = forward(self.net.actor, x), self.net.spec.squash
        return out if squash == 0.0 else np.float32(squash) * np.tanh(out)
