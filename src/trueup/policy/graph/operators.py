"""ONNX operators in NumPy, one function each: those in public policies of legged robots and arms.

A function takes (budget, node, inputs) and returns the outputs in order; inputs that are left out are None. Sizes are
counted in the budget before anything is allocated, so that a hostile file cannot ask for all memory or time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from trueup.policy.graph.onnx_file import GraphNode


Array = NDArray[Any]
Inputs = Sequence[Array | None]


class WorkBudget:
    """Limits of one run: elements of one array, and multiplications; ValueError beyond. They grow with the rows."""

    def __init__(self, rows: int, opset: int) -> None:
        self.opset = opset
        self._elements = 10_000_000 + 100_000 * rows
        self._work = 50_000_000 * max(rows, 1)

    def take(self, shape: Sequence[int], work: int = 1) -> None:
        """Count an array of this shape against the budget, with `work` multiplications per element."""
        size = math.prod(shape)
        self._work -= size * max(work, 1)
        if size > self._elements or self._work < 0:
            raise ValueError(f"an array of shape {tuple(shape)} or the work for it is beyond what a policy may use")


Operator = Callable[[WorkBudget, "GraphNode", Inputs], tuple[Array, ...]]
_SMALL = np.float32(0.0)


def _elementwise(function: Callable[..., Any]) -> Operator:
    def run(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
        given = [need(values) for values in inputs]
        shape = np.broadcast_shapes(*(values.shape for values in given))
        budget.take(shape)
        kind = given[-1].dtype  # of Where, the first is a condition
        out = np.asarray(function(*given))
        return (out if out.dtype.kind == "b" or kind.kind == "b" else out.astype(kind, copy=False),)

    return run


def _many(function: Callable[..., Any]) -> Operator:
    """An operator on any number of arrays, two at a time."""
    pair = _elementwise(function)

    def run(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
        out = need(inputs[0])
        for values in inputs[1:]:
            (out,) = pair(budget, node, (out, values))
        return (out,)

    return run


def _with(default: dict[str, float], function: Callable[..., Any]) -> Operator:
    """An element by element operator with attributes that are numbers."""

    def run(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
        x = need(inputs[0])
        budget.take(x.shape)
        options = [np.asarray(node.attributes.get(name, value), x.dtype) for name, value in default.items()]
        return (np.asarray(function(x, *options)).astype(x.dtype, copy=False),)

    return run


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    out: Array = 0.5 * (np.tanh(0.5 * x) + 1.0)
    return out


def _elu(x: Array, alpha: Array) -> Array:
    out: Array = np.where(x > 0, x, alpha * (np.exp(np.minimum(x, 0)) - 1))
    return out


def _selu(x: Array, alpha: Array, gamma: Array) -> Array:
    return gamma * _elu(x, alpha)


def _divide(a: Array, b: Array) -> Array:
    with np.errstate(all="ignore"):
        out: Array = np.trunc(a / b).astype(a.dtype) if a.dtype.kind == "i" else a / b
    return out


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Without warnings: numbers that are not finite are detected in the action."""

    def run(*values: Array) -> Array:
        with np.errstate(all="ignore"):
            out: Array = function(*values)
        return out

    return run


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _clip(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x = need(inputs[0])
    budget.take(x.shape)
    low, high = (option(node, inputs, k, name) for k, name in ((1, "min"), (2, "max")))
    if low is None and high is None:
        return (x,)
    return (np.clip(x, low, high).astype(x.dtype, copy=False),)


def option(node: GraphNode, inputs: Inputs, k: int, name: str) -> Any:
    """An input of newer operator sets that was an attribute before; None where it is left out."""
    given = inputs[k] if len(inputs) > k else None
    return node.attributes.get(name) if given is None else given


# --- products ---
def matmul(budget: WorkBudget, a: Array, b: Array) -> Array:
    """a @ b, counted first."""
    if a.ndim < 1 or b.ndim < 1:
        raise ValueError("a product needs rows and columns")
    rows = a.shape[:-1] if a.ndim > 1 else ()
    columns = b.shape[-1:] if b.ndim > 1 else ()
    stacked = np.broadcast_shapes(rows[:-1], b.shape[:-2])
    budget.take((*stacked, *rows[-1:], *columns), a.shape[-1])
    out: Array = a @ b
    return out


def _gemm(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    a, b = need(inputs[0]), need(inputs[1])
    a = a.T if node.attributes.get("transA", 0) else a
    b = b.T if node.attributes.get("transB", 0) else b
    out = matmul(budget, a, b)
    alpha, beta = (np.asarray(node.attributes.get(name, 1.0), a.dtype) for name in ("alpha", "beta"))
    out = out if alpha == 1 else alpha * out
    if len(inputs) > 2 and inputs[2] is not None:
        out = out + (inputs[2] if beta == 1 else beta * inputs[2])
    return (out,)


# --- reductions ---
def _reduction(function: Callable[..., Any], axes_input_since: int) -> Operator:
    def run(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
        x = need(inputs[0])
        budget.take(x.shape)
        given = option(node, inputs, 1, "axes") if budget.opset >= axes_input_since else node.attributes.get("axes")
        axes = None if given is None or np.size(given) == 0 else tuple(int(k) for k in np.ravel(given))
        if axes is None and node.attributes.get("noop_with_empty_axes", 0):
            return (x,)
        keep = bool(node.attributes.get("keepdims", 1))
        return (np.asarray(function(x, axis=axes, keepdims=keep)).astype(x.dtype, copy=False),)

    return run


def _norm(x: Array, axis: Any, keepdims: bool) -> Array:
    out: Array = np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    return out


def _softmax(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x = need(inputs[0])
    budget.take(x.shape)
    axis = whole(node, "axis", -1 if budget.opset >= 13 else 1)
    if budget.opset < 13 and axis % x.ndim != x.ndim - 1:
        raise ValueError("Softmax over several axes is not understood")
    shifted = np.exp(x - x.max(axis=axis, keepdims=True))
    return ((shifted / shifted.sum(axis=axis, keepdims=True)).astype(x.dtype, copy=False),)


def _layer_norm(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x, scale = need(inputs[0]), need(inputs[1])
    budget.take(np.broadcast_shapes(x.shape, scale.shape))
    axis = whole(node, "axis", -1) % x.ndim
    axes = tuple(range(axis, x.ndim))
    centred = x - x.mean(axis=axes, keepdims=True)
    variance = (centred * centred).mean(axis=axes, keepdims=True)
    out = centred / np.sqrt(variance + np.float32(_decimal(node, "epsilon", 1e-5))) * scale
    out = out if len(inputs) < 3 or inputs[2] is None else out + inputs[2]
    if len(node.outputs) > 1:
        raise ValueError("LayerNormalization with further outputs is not understood")
    return (out.astype(x.dtype, copy=False),)


def need(values: Array | None) -> Array:
    if values is None:
        raise ValueError("an input is missing")
    return values


def whole(node: GraphNode, name: str, default: int) -> int:
    value = node.attributes.get(name, default)
    if not isinstance(value, int):
        raise ValueError(f"{name} must be a whole number")
    return value


def _decimal(node: GraphNode, name: str, default: float) -> float:
    value = node.attributes.get(name, default)
    if not isinstance(value, (int, float)):
        raise ValueError(f"{name} must be a number")
    return float(value)


MATHS: dict[str, Operator] = {
    "Abs": _elementwise(np.abs),
    "Add": _elementwise(_quiet(np.add)),
    "And": _elementwise(np.logical_and),
    "Clip": _clip,
    "Cos": _elementwise(_quiet(np.cos)),
    "Div": _elementwise(_divide),
    "Elu": _with({"alpha": 1.0}, _elu),
    "Equal": _elementwise(np.equal),
    "Erf": _elementwise(_erf),
    "Exp": _elementwise(_quiet(np.exp)),
    "Floor": _elementwise(np.floor),
    "Gemm": _gemm,
    "Greater": _elementwise(np.greater),
    "HardSigmoid": _with({"alpha": 0.2, "beta": 0.5}, lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1)),
    "LayerNormalization": _layer_norm,
    "LeakyRelu": _with({"alpha": 0.01}, lambda x, alpha: np.where(x >= 0, x, alpha * x)),
    "Less": _elementwise(np.less),
    "Log": _elementwise(_quiet(np.log)),
    "MatMul": lambda budget, node, inputs: (matmul(budget, need(inputs[0]), need(inputs[1])),),
    "Max": _many(np.maximum),
    "Min": _many(np.minimum),
    "Mul": _elementwise(_quiet(np.multiply)),
    "Neg": _elementwise(np.negative),
    "Not": _elementwise(np.logical_not),
    "Or": _elementwise(np.logical_or),
    "PRelu": _elementwise(lambda x, slope: np.where(x >= 0, x, slope * x)),
    "Pow": _elementwise(_quiet(np.power)),
    "Reciprocal": _elementwise(_quiet(np.reciprocal)),
    "ReduceL2": _reduction(_norm, 18),
    "ReduceMax": _reduction(np.max, 18),
    "ReduceMean": _reduction(np.mean, 18),
    "ReduceMin": _reduction(np.min, 18),
    "ReduceSum": _reduction(np.sum, 13),
    "Relu": _elementwise(lambda x: np.maximum(x, 0)),
    "Selu": _with({"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}, _selu),
    "Sigmoid": _elementwise(sigmoid),
    "Sin": _elementwise(_quiet(np.sin)),
    "Softmax": _softmax,
    "Softplus": _elementwise(lambda x: np.logaddexp(x, _SMALL)),
    "Softsign": _elementwise(lambda x: x / (1 + np.abs(x))),
    "Sqrt": _elementwise(_quiet(np.sqrt)),
    "Sub": _elementwise(_quiet(np.subtract)),
    "Tanh": _elementwise(np.tanh),
    "Where": _elementwise(np.where),
}
