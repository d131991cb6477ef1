"""A PolicyNet as an ONNX file: normaliser, networks, squash and memory in one graph, from readings to actions.

    x = clip((obs - normalizer_mean) * normalizer_scale, -10, 10)
    past_out = [past_in without its oldest step, x, last_in],  last_out = actions

`past_in` and `last_in` are hidden states, zero at the start of an episode; a net without memory has neither.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trueup.core.errors import TrueupError
from trueup.core.layers import Layer
from trueup.policy.graph.onnx_file import OnnxGraph
from trueup.policy.graph.write import OnnxWriter
from trueup.policy.net import PolicyNet
from trueup.policy.normalizer import EPS, LIMIT, Float32, Normalizer

MEAN, SCALE = "normalizer_mean", "normalizer_scale"


def policy_onnx(net: PolicyNet) -> bytes:
    """The file's content."""
    if net.spec.kind == "privileged":
        raise TrueupError("this policy needs the hidden factors, which no robot knows; export its student")
    nobs, naction, out = len(net.normalizer.mean), net.naction, OnnxWriter("policy")
    x = _normalized(out, out.port("obs", (None, nobs)), net.normalizer)
    past = _remembered(out, x, net, nobs) if net.spec.steps else x
    if net.spec.kind == "latent":
        past = out.add("Concat", [x, _layers(out, "encoder", net.encoder, past)], axis=1)
    if net.spec.squash:
        action = out.add("Tanh", [_layers(out, "actor", net.actor, past)])
        squash = out.constant("squash", np.array(net.spec.squash, np.float32))
        out.add("Mul", [action, squash], "actions")
    else:
        _layers(out, "actor", net.actor, past, "actions")
    out.port("actions", (None, naction), out=True)
    if net.spec.steps:
        out.port("past_out", (None, net.spec.steps * (nobs + naction)), out=True)
        out.add("Identity", ["actions"], "last_out")
        out.port("last_out", (None, naction), out=True)
    return out.encode()


def read_normalizer_of(graph: OnnxGraph) -> tuple[Float32, Float32] | None:
    """Mean and standard deviation of the file's normaliser; None if trueup did not write it."""
    if MEAN not in graph.constants or SCALE not in graph.constants:
        return None
    mean, scale = (np.asarray(graph.constants[name], np.float32) for name in (MEAN, SCALE))
    return mean, 1.0 / scale - np.float32(EPS)


def _normalized(out: OnnxWriter, obs: str, normalizer: Normalizer) -> str:
    scale = 1.0 / (np.sqrt(normalizer.var) + EPS)
    mean, times = out.constant(MEAN, normalizer.mean.astype(np.float32)), out.constant(SCALE, scale.astype(np.float32))
    low, high = (out.constant(name, np.array(value)) for name, value in (("low", -LIMIT), ("high", LIMIT)))
    return out.add("Clip", [out.add("Mul", [out.add("Sub", [obs, mean]), times]), low, high])


def _remembered(out: OnnxWriter, x: str, net: PolicyNet, nobs: int) -> str:
    width, steps = nobs + net.naction, net.spec.steps
    past, last = out.port("past_in", (None, steps * width)), out.port("last_in", (None, net.naction))
    cut = [out.constant(name, np.array([k])) for name, k in (("first", width), ("end", steps * width), ("columns", 1))]
    return out.add("Concat", [out.add("Slice", [past, *cut]), x, last], "past_out", axis=1)


def _layers(out: OnnxWriter, name: str, layers: Sequence[Layer], x: str, result: str | None = None) -> str:
    for k, (weight, bias) in enumerate(layers):
        is_last = k == len(layers) - 1
        parts = [out.constant(f"{name}_{k}_{what}", values) for what, values in (("weight", weight), ("bias", bias))]
        x = out.add("Gemm", [x, *parts], result if is_last else None, transB=1)
        x = x if is_last else out.add("Elu", [x])
    return x
