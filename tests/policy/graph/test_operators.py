"""Every operator against ONNX Runtime on random numbers, in the operator sets where it changed; and its limits."""

from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from trueup.core.errors import TrueupError
from trueup.policy.graph.allowed import ALLOWED
from trueup.policy.graph.onnx_file import parse_onnx
from trueup.policy.graph.run import NumpySession

RNG = np.random.default_rng(5)
X = RNG.normal(0, 2, (3, 4)).astype(np.float32)
Y = RNG.normal(0, 2, (3, 4)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)
CUBE = RNG.normal(size=(2, 3, 4)).astype(np.float32)
TRUE = X > 0


def ints(*values):
    return np.array(values, np.int64)


CASES = [
    ("Abs", [X], {}),
    ("Add", [X, Y[0]], {}),
    ("And", [TRUE, Y > 0], {}),
    ("Cos", [X], {}),
    ("Div", [X, POSITIVE], {}),
    ("Div", [ints(7, -7, 9), ints(2, 2, 3)], {}),
    ("Elu", [X], {"alpha": 0.7}),
    ("Equal", [ints(1, 2, 3), ints(1, 5, 3)], {}),
    ("Erf", [X], {}),
    ("Exp", [X], {}),
    ("Floor", [X], {}),
    ("Gemm", [X, Y, Y[0, :3]], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    ("Gemm", [X, Y], {"transA": 1}),
    ("Greater", [X, Y], {}),
    ("HardSigmoid", [X], {"alpha": 0.3, "beta": 0.4}),
    ("LayerNormalization", [CUBE, Y[0], X[0]], {"axis": -1, "epsilon": 1e-4}),
    ("LayerNormalization", [CUBE, Y], {"axis": 1}),
    ("LeakyRelu", [X], {"alpha": 0.2}),
    ("Less", [X, Y], {}),
    ("Log", [POSITIVE], {}),
    ("MatMul", [CUBE, Y.T], {}),
    ("MatMul", [X, Y[0]], {}),
    ("Max", [X, Y, X + 1], {}),
    ("Min", [X, Y], {}),
    ("Mul", [X, np.float32(2.0)], {}),
    ("Neg", [X], {}),
    ("Not", [TRUE], {}),
    ("Or", [TRUE, Y > 0], {}),
    ("PRelu", [X, Y[0]], {}),
    ("Pow", [POSITIVE, np.float32(1.7)], {}),
    ("Reciprocal", [POSITIVE], {}),
    ("ReduceL2", [CUBE], {"axes": [1], "keepdims": 0}),
    ("ReduceMax", [CUBE], {"axes": [-1]}),
    ("ReduceMean", [CUBE], {"axes": [0, 2]}),
    ("ReduceMin", [CUBE], {"keepdims": 0}),
    ("ReduceSum", [CUBE, ints(1)], {"keepdims": 0}),
    ("ReduceSum", [CUBE], {"noop_with_empty_axes": 1}),
    ("Relu", [X], {}),
    ("Selu", [X], {}),
    ("Sigmoid", [10 * X], {}),
    ("Sin", [X], {}),
    ("Softmax", [CUBE], {"axis": 1}),
    ("Softplus", [X], {}),
    ("Softsign", [X], {}),
    ("Sqrt", [POSITIVE], {}),
    ("Sub", [X, Y], {}),
    ("Tanh", [X], {}),
    ("Where", [TRUE, X, Y], {}),
    ("Cast", [X], {"to": TensorProto.INT64}),
    ("Clip", [X, np.float32(-1.0), np.float32(0.5)], {}),
    ("Clip", [X, None, np.float32(0.5)], {}),
    ("Concat", [X, Y, X], {"axis": -1}),
    ("ConstantOfShape", [ints(2, 3)], {"value": numpy_helper.from_array(np.array([7], np.int64))}),
    ("Dropout", [X], {}),
    ("Expand", [X[:, :1], ints(2, 3, 4)], {}),
    ("Flatten", [CUBE], {"axis": 2}),
    ("Gather", [CUBE, ints(2, 0)], {"axis": 1}),
    ("Gather", [CUBE, np.array(-1)], {"axis": 2}),
    ("Identity", [X], {}),
    ("Reshape", [CUBE, ints(0, -1)], {}),
    ("Shape", [CUBE], {"start": 1}),
    ("Slice", [CUBE, ints(1), ints(3), ints(2)], {}),
    ("Slice", [CUBE, ints(-1, 2), ints(np.iinfo(np.int64).min, 0), ints(1, 2), ints(-1, -1)], {}),
    ("Split", [CUBE, ints(1, 3)], {"axis": 2}),
    ("Split", [CUBE], {"axis": 2}),
    ("Squeeze", [CUBE[:, :1], ints(1)], {}),
    ("Transpose", [CUBE], {"perm": [2, 0, 1]}),
    ("Transpose", [CUBE], {}),
    ("Unsqueeze", [X, ints(0, 3)], {}),
]
EARLIER = [
    (9, "Clip", [X], {"min": -1.0, "max": 0.5}),
    (9, "Slice", [CUBE], {"starts": [1], "ends": [3], "axes": [2]}),
    (11, "Squeeze", [CUBE[:, :1]], {"axes": [1]}),
    (11, "Unsqueeze", [X], {"axes": [0]}),
    (11, "Split", [CUBE], {"axis": 2, "split": [1, 3]}),
    (11, "ReduceSum", [CUBE], {"axes": [1]}),
    (11, "Softmax", [X], {"axis": 1}),
    (18, "ReduceMean", [CUBE, ints(1)], {"keepdims": 0}),
    (18, "ReduceL2", [CUBE, ints(-1)], {}),
]


def build(op, inputs, attributes, opset):
    """A file with one operator, whose inputs are all fed."""
    names = [f"i{k}" if values is not None else "" for k, values in enumerate(inputs)]
    outputs = ["o0", "o1"] if op == "Split" else ["o0"]
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.asarray(values).dtype), np.shape(values))
        for name, values in zip(names, inputs, strict=True)
        if name
    ]
    given = [helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = helper.make_graph([helper.make_node(op, names, outputs, **attributes)], "one", ports, given)
    for info, kind in zip(graph.output, [*kinds(op, inputs, attributes)] * 2, strict=False):
        info.type.tensor_type.elem_type = kind
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 8
    feed = {name: np.asarray(values) for name, values in zip(names, inputs, strict=True) if name}
    return model.SerializeToString(), feed, outputs


def kinds(op, inputs, attributes):
    if op in ("Equal", "Greater", "Less", "And", "Or", "Not"):
        return [TensorProto.BOOL]
    if op in ("Shape", "ConstantOfShape") or "to" in attributes:
        return [TensorProto.INT64]
    values = inputs[1] if op == "Where" else inputs[0]
    return [helper.np_dtype_to_tensor_dtype(np.asarray(values).dtype)]


def compare(op, inputs, attributes, opset):
    data, feed, outputs = build(op, inputs, attributes, opset)
    expected = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(outputs, feed)
    found = NumpySession(parse_onnx(data, "one.onnx"), "one.onnx").run(outputs, feed)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.dtype == theirs.dtype
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES, ids=[case[0] for case in CASES])
def test_an_operator_computes_what_onnx_runtime_does(op, inputs, attributes):
    compare(op, inputs, attributes, 17)


@pytest.mark.parametrize(("opset", "op", "inputs", "attributes"), EARLIER, ids=[f"{c[1]}{c[0]}" for c in EARLIER])
def test_operators_that_changed_compute_as_their_set_says(opset, op, inputs, attributes):
    compare(op, inputs, attributes, opset)


def test_every_allowed_operator_is_compared():
    elsewhere = {"Constant", "LSTM", "GRU"}  # below, and in test_recurrent
    assert {case[0] for case in CASES} | elsewhere == set(ALLOWED)


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({"value_float": 1.5}, np.float32(1.5)),
        ({"value_ints": [1, 2]}, ints(1, 2)),
        ({"value_floats": [1.5, 2.5]}, np.array([1.5, 2.5], np.float32)),
        ({"value_int": 3}, np.array(3)),
    ],
)
def test_constants_may_be_written_in_several_ways(attribute, expected):
    data, feed, outputs = constant(attribute)
    (found,) = NumpySession(parse_onnx(data, "c.onnx"), "c.onnx").run(outputs, feed)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def constant(attribute):
    node = helper.make_node("Constant", [], ["o0"], **attribute)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    graph = helper.make_graph([node], "c", [x], [helper.make_empty_tensor_value_info("o0")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    return model.SerializeToString(), {"x": np.zeros(1, np.float32)}, ["o0"]


ROW, COLUMN = np.zeros((1, 40_000), np.float32), np.zeros((40_000, 1), np.float32)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Expand", [X, ints(100_000, 100_000, 3, 4)], {}),
        ("ConstantOfShape", [ints(1 << 20, 1 << 20)], {}),
        ("Add", [ROW, COLUMN], {}),
        ("MatMul", [COLUMN, ROW], {}),
        ("Gather", [ROW, np.zeros(40_000, np.int64)], {}),
        ("Concat", [ROW] * 1000, {}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_would_take_all_memory_is_refused_before_it_is_made(op, inputs, attributes):
    data, feed, outputs = build(op, inputs, attributes, 17)
    graph = parse_onnx(data, "one.onnx")
    graph = replace(graph, inputs=graph.inputs[:0], constants=feed)  # a file brings them itself, whatever is fed
    with pytest.raises(TrueupError, match="beyond what a policy may use") as refused:
        NumpySession(graph, "one.onnx").run(outputs, {})
    assert refused.value.place == f"{op} -> o0"


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("MatMul", [X, X], {}),
        ("Gather", [X, ints(9)], {}),
        ("Reshape", [X, ints(5, 5)], {}),
        ("Concat", [X, CUBE], {"axis": 0}),
        ("Split", [CUBE, ints(3, 3)], {"axis": 2}),
        ("Unsqueeze", [X], {}),
        ("Transpose", [X], {"perm": [0, 1, 2]}),
        ("Slice", [X, ints(0), ints(1), ints(7)], {}),
        ("Softmax", [X], {"axis": 5}),
        ("Cast", [X], {"to": TensorProto.STRING}),
        ("Add", [X], {}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_shapes_that_do_not_fit_are_refused_with_the_operator(op, inputs, attributes):
    data, feed, outputs = build(op, inputs, attributes, 17)
    with pytest.raises(TrueupError, match="one.onnx") as refused:
        NumpySession(parse_onnx(data, "one.onnx"), "one.onnx").run(outputs, feed)
    assert refused.value.place is not None
    assert op in refused.value.place
