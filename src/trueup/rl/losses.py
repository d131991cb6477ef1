"""Losses of PPO (arXiv 1707.06347) with their derivatives, advantages, and the rate adapted to the KL divergence.

Diagonal Gaussian policy with mean m and logarithm of the standard deviation s, per action:
    log p = sum_j [ -(a - m)^2 / (2 sigma^2) - s - log(2 pi)/2 ],   d log p/dm = (a - m)/sigma^2,
    d log p/ds = ((a - m)/sigma)^2 - 1,   entropy = sum_j [ s + log(2 pi e)/2 ]

Generalised advantage estimation (arXiv 1506.02438), with time-outs bootstrapped:
    delta_t = r_t + gamma V(s_{t+1}) (1 - done_t) - V(s_t)
    A_t     = delta_t + gamma lambda (1 - done_t) A_{t+1}
    R_t     = A_t + V(s_t)
A truncated episode (time-out) has not ended for the robot: gamma V(final state) is added to its last reward.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueup.rl.env import Floats

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


def log_prob(action: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """Logarithm of the density of actions (n, nact) -> (n,)."""
    scaled = (action - mean).mul_(torch.exp(-log_std))
    return scaled.square_().sum(1).mul_(-0.5).sub_(log_std.sum() + HALF_LOG_2PI * len(log_std))


def entropy(log_std: Tensor) -> float:
    """Entropy of the policy, in nats."""
    return float(log_std.sum()) + (0.5 + HALF_LOG_2PI) * len(log_std)


def divergence(old_mean: Tensor, old_log_std: Tensor, mean: Tensor, log_std: Tensor) -> float:
    """Mean KL(old || new) of two diagonal Gaussians."""
    spread = torch.exp(2.0 * (old_log_std - log_std)).sum()
    shift = (old_mean - mean).mul_(torch.exp(-log_std)).square_().sum() / len(mean)
    return float((log_std - old_log_std).sum() + 0.5 * (spread + shift - len(log_std)))


def policy_loss(
    action: Tensor,
    advantage: Tensor,
    old_log_prob: Tensor,
    mean: Tensor,
    log_std: Tensor,
    *,
    clip: float,
    entropy_weight: float,
) -> tuple[float, Tensor, Tensor, float]:
    """-mean(min(r A, clip(r) A)) - weight * entropy, with r = p/p_old.

    Returns the loss, its derivatives by mean and log_std, and the share of samples whose ratio was clipped.
    """
    inverse = torch.exp(-log_std)
    scaled = (action - mean).mul_(inverse)  # (a - m)/sigma
    squared = scaled.square()
    new_log_prob = squared.sum(1).mul_(-0.5).sub_(log_std.sum() + HALF_LOG_2PI * len(log_std))
    ratio = new_log_prob.sub_(old_log_prob).exp_()
    free, bound = ratio * advantage, ratio.clamp(1.0 - clip, 1.0 + clip).mul_(advantage)
    active = free <= bound  # where equal, both have the same derivative
    weight = (free * active).mul_(-1.0 / len(free))  # dL/dlog p
    grad_mean = scaled.mul_(weight[:, None]).mul_(inverse)
    grad_log_std = torch.mv(squared.sub_(1.0).t(), weight).sub_(entropy_weight)
    loss = -float(torch.minimum(free, bound).mean()) - entropy_weight * entropy(log_std)
    return loss, grad_mean, grad_log_std, 1.0 - float(active.float().mean())


def value_loss(value: Tensor, old_value: Tensor, returns: Tensor, clip: float) -> tuple[float, Tensor]:
    """mean(max((v - R)^2, (v_old + clip(v - v_old) - R)^2)) and its derivative by v, all (n,)."""
    step = value - old_value
    bounded = step.clamp(-clip, clip)
    free, bound = value - returns, bounded + old_value - returns
    free_square, bound_square = free.square(), bound.square()
    inside = step == bounded
    grad = torch.where(free_square >= bound_square, free, bound * inside).mul_(2.0 / len(value))
    return float(torch.maximum(free_square, bound_square).mean()), grad


def adapted_rate(rate: float, kl: float, target: float, low: float = 1e-5, high: float = 1e-2) -> float:
    """Learning rate of the next iteration: lower if the KL divergence was above twice the target, higher below half."""
    if kl > 2.0 * target:
        return max(low, rate / 1.5)
    if 0.0 < kl < 0.5 * target:
        return min(high, rate * 1.5)
    return rate


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
