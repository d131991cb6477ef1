"""Warm start: a bundle's policy, from any source, as the start of a training with its own layout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.layers import Layer
from trueup.policy.bundle.bundle import PolicyBundle, load_bundle
from trueup.policy.bundle.manifest import NETWORK
from trueup.policy.foreign.layout import Layout
from trueup.policy.graph.policy_onnx import read_normalizer_of
from trueup.policy.net import NetWiring, PolicyNet
from trueup.policy.normalizer import EPS, LIMIT, Normalizer
from trueup.rl.settings import LearnerCfg, PpoCfg
from trueup.tasks.foreign import is_foreign, layout_of
from trueup.tasks.goals.tracking import TrackingGoal
from trueup.tasks.task import Reward, Task
from trueup.tasks.terms.tracking import Lost, strayed

STD = 0.15  # of actions at the start: the policy is good, and noise of 1 would hide it
KL_TARGET, LEARNING_RATE = 0.01, 1e-4  # of whole networks: with larger steps they wander more than they learn
CRITIC_FIRST = 8  # iterations in which the critic, which a bundle does not have, learns alone
_BEYOND = 3.0  # times the measured range, from where on the normaliser would cut observations off
_FAILED = -25.0  # for an end before its time: what it then misses costs as much again
_CERTAIN = 1e12  # assumed count of observations behind the statistics: they stay as they are


def warm_layout(path: str | Path) -> Layout | None:
    """The layout that a training must have to begin from this bundle; None: that of its task."""
    passport = load_bundle(path).passport
    if is_foreign(passport):
        return layout_of(passport)
    spec = passport.policy
    if spec.action.cycle is not None and not any(term.signal == "clock" for term in spec.observation.terms):
        reason = "has a feedforward, which its task does not have: begin from the policy that it was learned for"
        raise TrueupError(reason, file=Path(path))
    return None


def warm_settings(cfg: LearnerCfg, path: str | Path, *, chosen: bool = False) -> LearnerCfg:
    """The settings with the bundle's network, little noise, and a critic that learns first.

    Steps are small, unless the settings were `chosen` for this training.
    """
    if not isinstance(cfg, PpoCfg):
        raise TrueupError(f"a policy of a bundle is a start for ppo, not for {cfg.algorithm}")
    if cfg.net.latent:
        raise TrueupError("a policy of a bundle has no latent: leave --latent out")
    hidden = tuple(len(bias) for _, bias in _dense(load_bundle(path))[:-1])
    net = replace(cfg.net, actor=hidden, std=min(cfg.net.std, STD))
    first = max(cfg.critic_first, CRITIC_FIRST)
    kl, rate = (cfg.kl_target, cfg.learning_rate) if chosen else (KL_TARGET, LEARNING_RATE)
    return replace(cfg, net=net, noise_schedule=None, critic_first=first, kl_target=kl, learning_rate=rate)


def warm_task(task: Task) -> Task:
    """A tracking task for a policy that follows the motion already.

    It has no sensor of its place, so an episode ends where it falls and not where it has drifted to; the distance that
    ends episodes stays as wide as it is at first, or failures would grow with the training and hide all else.
    """
    goal = task.goal
    if not isinstance(goal, TrackingGoal):
        return task
    wide = replace(goal, limit_m=(goal.limit_m[0], goal.limit_m[0]))
    ends = {name: end for name, end in task.terminations.items() if not isinstance(end, Lost)}
    rewards = {**task.rewards, "failed": Reward(strayed, _FAILED)}
    return replace(task, goal=wide, terminations=ends, rewards=rewards)


def warm_net(path: str | Path) -> PolicyNet:
    """The bundle's policy with statistics of its observations, which stay fixed; it acts as the bundle does.

    A network without a normaliser gets one from the ranges of the passport, and its first layer is rewritten for it.
    """
    bundle = load_bundle(path)
    layers, own = _dense(bundle), read_normalizer_of(bundle.graph)
    normalizer = Normalizer(bundle.passport.policy.observation.nactor)
    normalizer.count = _CERTAIN
    if own is not None:
        normalizer.mean, normalizer.var = own[0].astype(float), np.square(own[1].astype(float))
        return PolicyNet(spec=NetWiring(), actor=layers, normalizer=normalizer)
    ranges = bundle.passport.ranges
    if ranges is None:
        reason = "says nothing of the range of its observations: import it again without --seconds 0"
        raise TrueupError(reason, file=bundle.path)
    normalizer.mean = np.array(ranges.mean)
    reach = np.maximum(np.abs(np.array(ranges.minimum) - normalizer.mean), np.array(ranges.maximum) - normalizer.mean)
    std = np.maximum.reduce([np.array(ranges.std), _BEYOND * reach / LIMIT, np.full(len(reach), EPS)])
    normalizer.var = np.square(std)
    (weight, bias), *rest = layers
    wide = weight.astype(np.float64)
    first = (
        (wide * (std + EPS)).astype(np.float32),
        (bias.astype(np.float64) + wide @ normalizer.mean).astype(np.float32),
    )
    return PolicyNet(spec=NetWiring(), actor=(first, *rest), normalizer=normalizer)


def _dense(bundle: PolicyBundle) -> tuple[Layer, ...]:
    """The layers of a network that is dense with ELU between them, behind our normaliser or none."""
    graph, layers, elu = bundle.graph, [], True
    passed = {"Sub", "Mul", "Clip", "Identity"} if read_normalizer_of(graph) is not None else {"Identity"}
    for node in graph.nodes:
        if node.op == "Gemm" and elu and node.attributes.get("transB", 0) == 1 and len(node.inputs) == 3:
            weight, bias = (np.asarray(graph.constants[name], np.float32) for name in node.inputs[1:])
            layers.append((weight, bias))
            elu = False
        elif node.op == "Elu" and not elu and node.attributes.get("alpha", 1.0) == 1.0:
            elu = True
        elif layers or node.op not in passed:
            reason = f"its network has {node.op}: a training can begin from dense layers with ELU between them only"
            raise TrueupError(reason, file=bundle.path / NETWORK)
    if elu or not layers:
        raise TrueupError("its network does not end in a dense layer", file=bundle.path / NETWORK)
    return tuple(layers)
