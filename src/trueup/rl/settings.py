"""Settings of the learner: plain data, so that a task can name its own without loading a learner."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class NetCfg:
    """Sizes of the networks.

    actor, critic  hidden layers
    latent         numbers in z = mu(e) that the actor also sees (RMA, arXiv 2107.04034); 0: none
    encoder        hidden layers of mu
    std            of actions at the start; `min_std` below which it never falls
    """

    actor: tuple[int, ...] = (256, 128, 64)
    critic: tuple[int, ...] = (256, 128, 64)
    latent: int = 0
    encoder: tuple[int, ...] = (64,)
    std: float = 1.0
    min_std: float = 0.05


@dataclass(frozen=True, kw_only=True)
class PpoCfg:
    """Settings of PPO; the defaults suit locomotion with some hundred simulations.

    kl_target     how far the policy may move in an iteration; the actor stops learning at four times that
    rate          of the actor at the start; follows `kl_target` from then on
    critic_rate   fixed
    max_gradient  length to which gradients are shortened
    quiet         (std, first, last): a bound of the noise that falls to `std` between these iterations; None: no bound
    average       iterations over which the policy that leaves training is averaged; 1: it is the newest one
    symmetry      half of each minibatch is seen in the mirror, where the environment offers one
    side_by_side  critic on a second core
    """

    steps: int = 24
    epochs: int = 5
    minibatches: int = 4
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    value_clip: float = 0.2
    entropy: float = 0.005
    kl_target: float = 0.01
    rate: float = 1e-3
    critic_rate: float = 1e-3
    max_gradient: float = 1.0
    quiet: tuple[float, int, int] | None = None
    average: int = 20
    symmetry: bool = False
    side_by_side: bool = True
    net: NetCfg = field(default_factory=NetCfg)
