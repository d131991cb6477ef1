"""ONNX's LSTM and GRU in NumPy: one direction, standard activations, as PyTorch exports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueup.policy.graph.operators import Array, Inputs, Operator, WorkBudget, matmul, need, sigmoid, whole

if TYPE_CHECKING:
    from trueup.policy.graph.onnx_file import GraphNode

_ALLOWED = {"hidden_size", "direction", "linear_before_reset", "layout"}


def _parts(node: GraphNode, inputs: Inputs, gates: int) -> tuple[Array, Array, Array, Array, Array]:
    """Sequence (T, n, in), weights of inputs (gates h, in) and of the state (gates h, h), biases of both."""
    odd = set(node.attributes) - _ALLOWED
    if odd or node.attributes.get("direction", "forward") != "forward" or node.attributes.get("layout", 0):
        raise ValueError(f"{node.op} with {', '.join(sorted(odd)) or 'another direction or layout'} is not understood")
    x, w, r = (need(inputs[k]) for k in range(3))
    hidden = r.shape[-1]
    if w.shape != (1, gates * hidden, x.shape[-1]) or r.shape != (1, gates * hidden, hidden) or x.ndim != 3:
        raise ValueError(f"{node.op}: weights {w.shape} and {r.shape} do not fit {x.shape}")
    if whole(node, "hidden_size", hidden) != hidden or (len(inputs) > 4 and inputs[4] is not None):
        raise ValueError(f"{node.op} with sequences of different length is not understood")
    both = inputs[3] if len(inputs) > 3 else None
    b = np.zeros((1, 2 * gates * hidden), x.dtype) if both is None else both
    return x, w[0], r[0], b[0, : gates * hidden], b[0, gates * hidden :]


def _state(inputs: Inputs, k: int, rows: int, hidden: int, like: Array) -> Array:
    given = inputs[k] if len(inputs) > k else None
    if given is None:
        return np.zeros((rows, hidden), like.dtype)
    if given.shape != (1, rows, hidden):
        raise ValueError(f"a state of shape {given.shape} for {rows} rows and {hidden} numbers")
    return given[0]


def _lstm(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    """Gates in the order i, o, f, c: c' = f c + i tanh(c~), h = o tanh(c')."""
    x, w, r, bw, br = _parts(node, inputs, 4)
    if len(inputs) > 7 and inputs[7] is not None:
        raise ValueError("an LSTM with peepholes is not understood")
    rows, hidden = x.shape[1], r.shape[1]
    h, c = (_state(inputs, k, rows, hidden, x) for k in (5, 6))
    outputs = []
    for step in x:
        gates = matmul(budget, step, w.T) + matmul(budget, h, r.T) + (bw + br)
        i, o, f = (sigmoid(gates[:, k * hidden : (k + 1) * hidden]) for k in range(3))
        c = f * c + i * np.tanh(gates[:, 3 * hidden :])
        h = o * np.tanh(c)
        outputs.append(h)
    sequence = np.stack(outputs)[:, None] if outputs else np.zeros((0, 1, rows, hidden), x.dtype)
    return sequence, h[None], c[None]


def _gru(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    """Gates in the order z, r, h: h' = (1 - z) h~ + z h."""
    x, w, r, bw, br = _parts(node, inputs, 3)
    rows, hidden = x.shape[1], r.shape[1]
    h, outputs = _state(inputs, 5, rows, hidden, x), []
    linear = bool(node.attributes.get("linear_before_reset", 0))
    new = slice(2 * hidden, None)
    for step in x:
        a, s = matmul(budget, step, w.T) + bw, matmul(budget, h, r.T) + br
        z, reset = (sigmoid((a + s)[:, k * hidden : (k + 1) * hidden]) for k in range(2))
        fed = reset * s[:, new] if linear else matmul(budget, reset * h, r[new].T) + br[new]
        h = (1 - z) * np.tanh(a[:, new] + fed) + z * h
        outputs.append(h)
    sequence = np.stack(outputs)[:, None] if outputs else np.zeros((0, 1, rows, hidden), x.dtype)
    return sequence, h[None]


RECURRENT: dict[str, Operator] = {"GRU": _gru, "LSTM": _lstm}
