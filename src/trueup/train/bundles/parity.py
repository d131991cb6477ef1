"""Parity: one policy computed in several ways over the same observations, memory and restarts included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.policy.bundle.golden import TOLERANCE, action_distance
from trueup.policy.normalizer import Float32

_RANDOM_STEPS, _RANDOM_ROWS = 30, 16


class RestartablePolicy(Protocol):
    """A policy for a number of rows."""

    def act(self, actor: Float32) -> Float32: ...
    def restart(self, rows: NDArray[np.intp]) -> None: ...


def check_parity(bundle: PolicyBundle, others: Mapping[str, Callable[[int], RestartablePolicy]]) -> dict[str, float]:
    """Largest difference of each way to NumPy's on golden and random observations; a TrueupError above 1e-5."""
    makers = {"onnxruntime": lambda nrow: bundle.runner(nrow, "onnxruntime"), **others}
    sequences = {"golden": (bundle.golden["walk/obs"], bundle.golden["walk/restart"]), "random": _random(bundle)}
    worst = dict.fromkeys(makers, 0.0)
    for what, (obs, restart) in sequences.items():
        expected = _play(bundle.runner(restart.shape[1]), obs, restart)
        for name, make in makers.items():
            found = action_distance(_play(make(restart.shape[1]), obs, restart), expected)
            worst[name] = max(worst[name], found)
            if not found <= TOLERANCE:
                raise TrueupError(
                    f"{name} and NumPy give actions that differ by {found:.3g} on {what} observations, allowed is "
                    f"{TOLERANCE:g}: the export is not what was trained",
                    file=bundle.path,
                )
    return worst


def _random(bundle: PolicyBundle) -> tuple[Float32, NDArray[np.bool_]]:
    """Observations spread as in training where that is known, else standard normal; rows restart now and then."""
    rng, ranges = np.random.default_rng(1), bundle.passport.ranges
    nobs = bundle.passport.policy.observation.nactor
    obs = rng.normal(size=(_RANDOM_STEPS, _RANDOM_ROWS, nobs))
    if ranges is not None:
        obs = np.array(ranges.mean) + np.array(ranges.std) * obs
    restart = rng.random((_RANDOM_STEPS, _RANDOM_ROWS)) < 0.1
    restart[0] = True
    return obs.astype(np.float32), restart


def _play(policy: RestartablePolicy, obs: NDArray[np.generic], restart: NDArray[np.generic]) -> Float32:
    out = []
    for seen, fresh in zip(np.asarray(obs, np.float32), restart, strict=True):
        policy.restart(np.flatnonzero(fresh))
        out.append(policy.act(np.ascontiguousarray(seen)))
    return np.array(out)
