"""PolicyBundle: a policy as a folder that can be checked: manifest.json, spec.json, policy.onnx, golden.npz.

Opening one verifies, in this order: sizes, hashes, the passport's types and consistency, the network's operators and
widths, and that both give the golden sequences. NumPy and msgspec suffice; no pickle, no onnx, no onnxruntime.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from trueup.core.documents import parse_json, to_json
from trueup.core.errors import TrueupError
from trueup.policy.bundle.golden import Arrays, check_golden, decode_golden, encode_golden, make_golden
from trueup.policy.bundle.manifest import GOLDEN, MANIFEST, NETWORK, SPEC, read_files, write_files
from trueup.policy.bundle.passport import NormalizerFacts, Passport
from trueup.policy.graph.net import GraphNet, GraphPolicy
from trueup.policy.graph.onnx_file import OnnxGraph, parse_onnx
from trueup.policy.graph.policy_onnx import read_normalizer_of

Engine = Literal["numpy", "onnxruntime"]


@dataclass(frozen=True, kw_only=True)
class PolicyBundle:
    """A bundle that passed every check.

    hash    sha256 of its manifest, which holds the hashes of everything else
    worst   largest difference to the golden sequences on this computer
    """

    path: Path
    passport: Passport
    hash: str
    worst: float
    graph: OnnxGraph
    onnx: bytes
    golden: Arrays

    def runner(self, nrow: int = 1, engine: Engine = "numpy") -> GraphPolicy:
        """The policy for a number of rows."""
        return GraphPolicy(self.net(nrow, engine))

    def net(self, nrow: int, engine: Engine = "numpy") -> GraphNet:
        """The network alone, run by NumPy or by ONNX Runtime where that is installed."""
        session = None
        if engine == "onnxruntime":
            from trueup.policy.foreign.onnx_net import open_session

            session = open_session(self.onnx, self.path / NETWORK)
        return GraphNet(self.graph, self.path / NETWORK, nrow, session)


def is_bundle(path: str | Path) -> bool:
    """Whether a folder looks like a bundle; `load_bundle` tells whether it is one."""
    return (Path(path) / SPEC).is_file() or ((Path(path) / MANIFEST).is_file() and (Path(path) / NETWORK).is_file())


def load_bundle(path: str | Path) -> PolicyBundle:
    """Open a bundle; whatever was changed, damaged or does not fit is a TrueupError that names the file."""
    folder = Path(path)
    manifest, files, digest = read_files(folder)
    passport = decode_passport(files[SPEC], folder / SPEC)
    graph = parse_onnx(files[NETWORK], folder / NETWORK)
    operators = tuple(sorted({node.op for node in graph.nodes}))
    if (manifest.opset, manifest.operators) != (graph.opset, operators):
        raise TrueupError("names other operators than the network has", file=folder / MANIFEST)
    check_network(passport, graph, folder)
    golden = decode_golden(files[GOLDEN], folder / GOLDEN)
    worst = check_golden(passport, lambda nrow: GraphNet(graph, folder / NETWORK, nrow), golden, folder / GOLDEN)
    return PolicyBundle(
        path=folder, passport=passport, hash=digest, worst=worst, graph=graph, onnx=files[NETWORK], golden=golden
    )


def write_bundle(path: str | Path, passport: Passport, onnx: bytes) -> PolicyBundle:
    """Write a bundle of a passport and a network; its golden sequences are made here. Returns it as it opens."""
    folder = Path(path)
    graph = parse_onnx(onnx, folder / NETWORK)
    passport = with_normalizer(passport, graph)
    check_network(passport, graph, folder)
    golden = make_golden(passport, lambda nrow: GraphNet(graph, folder / NETWORK, nrow), passport.policy.net.steps)
    files = {SPEC: to_json(passport), NETWORK: onnx, GOLDEN: encode_golden(golden)}
    write_files(folder, files, graph.opset, tuple(sorted({node.op for node in graph.nodes})))
    return load_bundle(folder)


def decode_passport(data: bytes, file: Path) -> Passport:
    """Read and check a passport."""
    return parse_json(data, Passport, "policy's passport", file)


def with_normalizer(passport: Passport, graph: OnnxGraph) -> Passport:
    """The passport with the statistics of the normaliser that the network holds."""
    found = read_normalizer_of(graph)
    if found is None:
        return msgspec.structs.replace(passport, normalizer=None)
    mean, std = (tuple(values.astype(float).tolist()) for values in found)
    return msgspec.structs.replace(passport, normalizer=NormalizerFacts(mean=mean, std=std))


def check_network(passport: Passport, graph: OnnxGraph, folder: Path) -> None:
    """Refuse a network of other widths, memory or normaliser than the passport says."""
    net, spec = GraphNet(graph, folder / NETWORK), passport.policy
    for what, found, required in (
        ("observations", net.nobs, spec.observation.nactor),
        ("actions", net.naction, len(spec.action.controlled_joints)),
    ):
        if found != required:
            raise TrueupError(f"has {found} {what}, but the passport says {required}", file=folder / NETWORK)
    if passport.origin.format == "trueup" and net.has_memory != bool(spec.net.steps):
        raise TrueupError(
            f"the passport says {spec.net.steps} steps of memory, the network is another", file=folder / SPEC
        )
    inside, normalizer = read_normalizer_of(graph), passport.normalizer
    if (inside is None) != (normalizer is None):
        where = (
            "no normaliser, but the passport has one" if normalizer else "a normaliser that the passport does not have"
        )
        raise TrueupError(f"has {where}", file=folder / NETWORK)
    if inside is not None and normalizer is not None:
        for name, held, expected in (("mean", inside[0], normalizer.mean), ("std", inside[1], normalizer.std)):
            error = np.abs(held - np.array(expected)) / np.maximum(1.0, np.abs(held))
            if not error.max(initial=0.0) <= 1e-6:
                k = int(error.argmax())
                raise TrueupError(
                    f"normaliser: {name} of column {k} is {expected[k]:g}, but in the network it is {held[k]:g}",
                    file=folder / SPEC,
                )
