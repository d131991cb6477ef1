"""Generalised advantage estimation (arXiv 1506.02438), with time-outs bootstrapped.

    delta_t = r_t + gamma V(s_{t+1}) (1 - done_t) - V(s_t)
    A_t     = delta_t + gamma lambda (1 - done_t) A_{t+1}
    R_t     = A_t + V(s_t)

A truncated episode (time-out) has not ended for the robot: gamma V(final state) is added to its last reward.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def bootstrap_timeouts(reward: Floats, index: NDArray[np.intp], last_value: Floats, gamma: float) -> None:
    """Add gamma V(final state) in place where episodes were truncated; `index` into the flattened (T N,) rewards."""
    reward.reshape(-1)[index] += np.float32(gamma) * last_value


def gae(
    reward: Floats, value: Floats, next_value: Floats, done: NDArray[np.bool_], gamma: float, lam: float
) -> tuple[Floats, Floats]:
    """Advantages and returns, both (T, N), of rewards, values and ends (T, N) and the value after the last (N,)."""
    alive = (~done).astype(np.float32)
    following = np.concatenate([value[1:], next_value[None]])
    delta = reward + np.float32(gamma) * following * alive - value
    advantage = np.empty_like(delta)
    carry = np.zeros_like(next_value)
    for t in range(len(delta) - 1, -1, -1):
        carry = delta[t] + np.float32(gamma * lam) * alive[t] * carry
        advantage[t] = carry
    return advantage, advantage + value
