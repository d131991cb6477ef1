"""Settings of the learners: plain data, so that a task can name its own without loading a learner.

An algorithm of your own is one file, with its Cfg and its Learner: `trueup train TASK --learner FILE.py:CFG`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from trueup.core.errors import TrueupError, did_you_mean
from trueup.core.own_code import is_own_code, own_function


class LearnerCfg:
    """Base of all learners' settings: frozen dataclasses whose `algorithm` names them in files and on the command line.

    learner    class of the learner, or MODULE:CLASS, imported when used; it is called with (env, cfg, seed)
    algorithm  ppo, sac, ..., or FILE.py:CFG, which the run writes there for settings of your own
    nenv       simulations that suit it; 0: measured on the machine
    steps      control steps of every simulation in an iteration
    """

    learner: ClassVar[Any]
    algorithm: str
    nenv: int
    steps: int


@dataclass(frozen=True, kw_only=True)
class NetCfg:
    """Sizes of the networks of PPO.

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
class PpoCfg(LearnerCfg):
    """Settings of PPO; the defaults suit locomotion with some hundred simulations.

    kl_target       KL divergence of policies wanted per iteration; the actor stops updating at four times that
    learning_rate   of the actor at the start; adapted to `kl_target` from then on
    critic_learning_rate   fixed
    max_gradient    norm to which gradients are clipped
    noise_schedule  (std, first, last): an upper bound of the standard deviation of actions that falls to `std` between
                    these iterations; None: no bound
    average         iterations over which the policy that leaves training is averaged; 1: it is the newest one
    symmetry        half of each minibatch is mirrored, where the environment offers a mirror
    side_by_side    critic on a second core
    critic_first    iterations in which the critic learns alone: an actor that is good already must not follow a new one
    last_layers     layers of the actor that learn, counted from its end; 0: all
    """

    learner = "trueup.rl.ppo:Ppo"
    algorithm: Literal["ppo"] = "ppo"
    nenv: int = 0
    steps: int = 24
    epochs: int = 5
    minibatches: int = 4
    gamma: float = 0.99
    lam: float = 0.95
    clip: float = 0.2
    value_clip: float = 0.2
    entropy: float = 0.005
    kl_target: float = 0.01
    learning_rate: float = 1e-3
    critic_learning_rate: float = 1e-3
    max_gradient: float = 1.0
    noise_schedule: tuple[float, int, int] | None = None
    average: int = 20
    symmetry: bool = False
    side_by_side: bool = True
    critic_first: int = 0
    last_layers: int = 0
    net: NetCfg = field(default_factory=NetCfg)


@dataclass(frozen=True, kw_only=True)
class SacCfg(LearnerCfg):
    """Settings of SAC (soft actor-critic).

    updates         gradient steps that follow the `steps` of an iteration
    batch           transitions of a minibatch, drawn from the last `buffer` transitions
    warmup          transitions with uniformly random actions before the first gradient step
    limit           actions are limit * tanh(...)
    tau             share of the critic that its target takes over in every gradient step
    alpha           temperature at the start; learned from then on
    entropy_target  wanted entropy per action dimension, of actions scaled to [-1, 1]
    hidden          hidden layers of actor and critics
    """

    learner = "trueup.rl.sac:Sac"
    algorithm: Literal["sac"] = "sac"
    nenv: int = 16
    steps: int = 4
    updates: int = 16
    batch: int = 256
    buffer: int = 100_000
    warmup: int = 2000
    gamma: float = 0.98
    tau: float = 0.005
    learning_rate: float = 1e-3
    limit: float = 2.0
    alpha: float = 0.1
    entropy_target: float = -1.0
    hidden: tuple[int, ...] = (128, 128)


@dataclass(frozen=True, kw_only=True)
class DistillCfg(LearnerCfg):
    """Settings of a student that imitates a teacher's latent or its actions; `history` in control steps."""

    learner = "trueup.rl.distill:Distiller"
    algorithm: Literal["distill"] = "distill"
    nenv: int = 0
    kind: Literal["latent", "action"] = "latent"
    history: int = 50
    hidden: tuple[int, ...] = (128, 64)
    steps: int = 8
    epochs: int = 1
    minibatches: int = 4
    learning_rate: float = 5e-4


ALGORITHMS: dict[str, type[LearnerCfg]] = {cfg.algorithm: cfg for cfg in (PpoCfg, SacCfg, DistillCfg)}


def settings_of(algorithm: str) -> type[LearnerCfg]:
    """The settings of a built-in algorithm by its name, or of your own as FILE.py:CFG."""
    if algorithm in ALGORITHMS:
        return ALGORITHMS[algorithm]
    if not is_own_code(algorithm):
        known = did_you_mean(algorithm, sorted(ALGORITHMS))
        raise TrueupError(f"no learner {algorithm!r}{known}; your own is named FILE.py:CFG")
    found = own_function(algorithm)
    if isinstance(found, type) and issubclass(found, LearnerCfg):
        return found
    raise TrueupError(f"{algorithm} must be a dataclass derived from trueup.rl.settings.LearnerCfg")


def with_reference(cfg: LearnerCfg) -> LearnerCfg:
    """Settings as a run records them: those of your own name the file and the class by which they are read again."""
    if cfg.algorithm in ALGORITHMS or is_own_code(cfg.algorithm):
        return cfg
    kind = type(cfg)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is None or not kind.__qualname__.isidentifier():
        raise TrueupError(f"a run must find {kind.__qualname__} again: define it at the top level of a file")
    return replace(cfg, algorithm=f"{Path(file).absolute()}:{kind.__qualname__}")  # type: ignore[type-var]
