"""NumpySession: runs an OnnxGraph with NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from trueup.core.errors import TrueupError
from trueup.policy.graph.allowed import ALLOWED
from trueup.policy.graph.onnx_file import OnnxGraph
from trueup.policy.graph.operators import Array, WorkBudget


class NumpySession:
    """Computes outputs of a graph from its inputs; a failure names the operator."""

    def __init__(self, graph: OnnxGraph, file: str | Path) -> None:
        self.graph, self.file = graph, file
        last: dict[str, int] = {}
        for k, node in enumerate(graph.nodes):
            last |= dict.fromkeys(node.inputs, k)
        kept = {port.name for port in graph.outputs} | set(graph.constants)
        self._done = [
            [name for name in {*node.inputs} if name and name not in kept and last[name] == k]
            for k, node in enumerate(graph.nodes)
        ]

    def run(self, outputs: Sequence[str], feed: Mapping[str, Array]) -> list[Array]:
        """The outputs of these names; the first axis of the first input that is fed counts the rows."""
        graph, first = self.graph, next(iter(feed.values()), np.zeros(0))
        rows = len(first) if first.ndim else 1
        budget, known = WorkBudget(rows, graph.opset), dict(graph.constants) | dict(feed)
        for node, done in zip(graph.nodes, self._done, strict=True):
            try:
                made = ALLOWED[node.op](budget, node, [known[name] if name else None for name in node.inputs])
            except (ValueError, TypeError, IndexError, KeyError, ZeroDivisionError) as error:
                raise TrueupError(f"cannot be run: {str(error)[:300]}", file=self.file, place=node.label) from None
            known |= {name: values for name, values in zip(node.outputs, made, strict=False) if name}
            for name in done:
                known.pop(name, None)
        missing = [name for name in outputs if name not in known]
        if missing:
            raise TrueupError(f"does not give {missing[0]!r}", file=self.file)
        return [np.asarray(known[name]) for name in outputs]
