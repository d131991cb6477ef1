"""ONNX operators that move, cut and join arrays without computing, in NumPy."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from trueup.policy.graph.operators import Array, Inputs, Operator, WorkBudget, need, option, whole

if TYPE_CHECKING:
    from trueup.policy.graph.onnx_file import GraphNode

_CAST = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 11: np.float64}


def _constant(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    for name, kind in (("value", None), ("value_float", np.float32), ("value_int", np.int64)):
        if name in node.attributes:
            return (np.asarray(node.attributes[name], kind),)
    for name, many in (("value_floats", np.float32), ("value_ints", np.int64)):
        if name in node.attributes:
            return (np.asarray(node.attributes[name], many),)
    raise ValueError("a constant without numbers")


def _constant_of_shape(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    shape = _integers(inputs[0])
    budget.take(shape)
    value = np.ravel(np.asarray(node.attributes.get("value", np.zeros(1, np.float32))))
    return (np.full(shape, value[0], value.dtype),)


def _concat(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    parts = [need(values) for values in inputs]
    budget.take((sum(part.size for part in parts),))
    return (np.concatenate(parts, axis=whole(node, "axis", 0)),)


def _gather(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x, places = need(inputs[0]), need(inputs[1])
    axis = whole(node, "axis", 0)
    budget.take((places.size, max(x.size // max(x.shape[axis], 1), 1)))
    return (np.asarray(np.take(x, places, axis=axis)),)


def _slice(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x = need(inputs[0])
    given = [option(node, inputs, k, name) for k, name in ((1, "starts"), (2, "ends"), (3, "axes"), (4, "steps"))]
    starts, ends = _integers(given[0]), _integers(given[1])
    axes = list(range(len(starts))) if given[2] is None else _integers(given[2])
    steps = [1] * len(starts) if given[3] is None else _integers(given[3])
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ValueError("starts, ends, axes and steps differ in number")
    cut = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # ONNX writes "to the very beginning" as the smallest number
        stop = None if step < 0 and end < -x.shape[axis] else end
        cut[axis] = slice(start, stop, step)
    return (x[tuple(cut)],)


def _split(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x, axis, count = need(inputs[0]), whole(node, "axis", 0), len(node.outputs)
    sizes = option(node, inputs, 1, "split")
    if sizes is None:
        each = -(-x.shape[axis] // count)
        sizes = [min(each, x.shape[axis] - k * each) for k in range(count)]
    ends = np.cumsum([0, *_integers(sizes)])
    if len(ends) != count + 1 or ends[-1] != x.shape[axis] or (np.diff(ends) < 0).any():
        raise ValueError(f"a split of {x.shape[axis]} into {list(np.diff(ends))}")
    return tuple(np.take(x, range(a, b), axis=axis) for a, b in pairwise(ends.tolist()))


def _reshape(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x, sizes = need(inputs[0]), _integers(inputs[1])
    if not node.attributes.get("allowzero", 0):
        sizes = [x.shape[k] if size == 0 else size for k, size in enumerate(sizes)]
    return (x.reshape(sizes),)


def _flatten(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x, axis = need(inputs[0]), whole(node, "axis", 1)
    axis = axis % x.ndim if axis < 0 else axis
    return (x.reshape(math.prod(x.shape[:axis]), -1),)


def _squeeze(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    axes = option(node, inputs, 1, "axes")
    return (np.squeeze(need(inputs[0]), None if axes is None else tuple(_integers(axes))),)


def _unsqueeze(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    return (np.expand_dims(need(inputs[0]), tuple(_integers(option(node, inputs, 1, "axes")))),)


def _transpose(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    order = node.attributes.get("perm")
    return (np.transpose(need(inputs[0]), None if order is None else _integers(order)),)


def _expand(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    x = need(inputs[0])
    shape = np.broadcast_shapes(x.shape, tuple(_integers(inputs[1])))
    budget.take(shape)
    return (np.broadcast_to(x, shape),)


def _shape(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    sizes = need(inputs[0]).shape
    return (np.array(sizes[whole(node, "start", 0) : whole(node, "end", len(sizes))], np.int64),)


def _cast(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    kind = whole(node, "to", 0)
    if kind not in _CAST:
        raise ValueError(f"numbers of type {kind} are not understood")
    return (need(inputs[0]).astype(_CAST[kind]),)


def _identity(budget: WorkBudget, node: GraphNode, inputs: Inputs) -> tuple[Array, ...]:
    return (need(inputs[0]),)


def _integers(values: object) -> list[int]:
    if values is None:
        raise ValueError("whole numbers are missing")
    return [int(value) for value in np.ravel(np.asarray(values))]


SHAPES: dict[str, Operator] = {
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Dropout": _identity,  # of a policy that no longer learns
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Identity": _identity,
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
