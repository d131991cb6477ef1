"""LSTM and GRU as PyTorch exports them, step by step against PyTorch and ONNX Runtime."""

import io

import numpy as np
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from trueup.core.errors import TrueupError
from trueup.policy.foreign.onnx_net import open_session
from trueup.policy.graph.net import GraphNet
from trueup.policy.graph.onnx_file import parse_onnx
from trueup.policy.graph.run import NumpySession


class Recurrent(torch.nn.Module):
    """A memory of two layers and a linear map, with its states as inputs and outputs."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.rnn = getattr(torch.nn, kind)(5, 7, num_layers=2)
        self.out = torch.nn.Linear(7, 3)

    def forward(self, obs, h_in, c_in=None):
        states = (h_in, c_in) if self.kind == "LSTM" else h_in
        y, after = self.rnn(obs[None], states)
        after = after if self.kind == "LSTM" else (after,)
        return (self.out(y[0]), *after)


def exported(kind):
    torch.manual_seed(2)
    net, state = Recurrent(kind).eval(), torch.zeros(2, 1, 7)
    names = ["h", "c"] if kind == "LSTM" else ["h"]
    axes = {f"{name}_{end}": {1: "batch"} for name in names for end in ("in", "out")}
    buffer = io.BytesIO()
    torch.onnx.export(
        net,
        (torch.zeros(1, 5), *[state] * len(names)),
        buffer,
        input_names=["obs", *(f"{name}_in" for name in names)],
        output_names=["actions", *(f"{name}_out" for name in names)],
        dynamic_axes={"obs": {0: "batch"}, "actions": {0: "batch"}, **axes},
        opset_version=17,
        dynamo=False,
    )
    return net, buffer.getvalue(), len(names)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_a_memory_of_two_layers_goes_on_as_in_torch_and_begins_again_after_a_restart(kind):
    net, data, count = exported(kind)
    graph = parse_onnx(data, "net.onnx")
    mine, theirs = GraphNet(graph, "net.onnx", 4), GraphNet(graph, "net.onnx", 4, open_session(data, "net.onnx"))
    states = [torch.zeros(2, 4, 7) for _ in range(count)]
    rng = np.random.default_rng(0)
    assert mine.has_memory
    for step in range(8):
        obs = rng.normal(size=(4, 5)).astype(np.float32)
        if step == 5:
            for one in (mine, theirs):
                one.restart(np.array([1, 3]))
            for state in states:
                state[:, [1, 3]] = 0.0
        with torch.no_grad():
            expected, *states = net(torch.from_numpy(obs), *states)
        np.testing.assert_allclose(mine(obs), expected.numpy(), atol=1e-6)
        np.testing.assert_allclose(theirs(obs), expected.numpy(), atol=1e-6)


def cell(op, gates, **attributes):
    """One cell of two numbers on three inputs, with everything that may be left out left out."""
    rng = np.random.default_rng(1)
    weights = {"W": (1, gates * 2, 3), "R": (1, gates * 2, 2)}
    nodes = [helper.make_node(op, ["x", "W", "R"], ["y"], hidden_size=2, **attributes)]
    graph = helper.make_graph(
        nodes,
        "cell",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["t", "n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["t", 1, "n", 2])],
        [numpy_helper.from_array(rng.normal(size=s).astype(np.float32), name) for name, s in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


@pytest.mark.parametrize(
    ("op", "gates", "attributes"),
    [("LSTM", 4, {}), ("GRU", 3, {"linear_before_reset": 0}), ("GRU", 3, {"linear_before_reset": 1})],
)
def test_a_sequence_from_nothing_is_what_onnx_runtime_computes(op, gates, attributes):
    data, x = cell(op, gates, **attributes), np.random.default_rng(3).normal(size=(6, 2, 3)).astype(np.float32)
    (expected,) = open_session(data, "cell.onnx").run(["y"], {"x": x})
    (found,) = NumpySession(parse_onnx(data, "cell.onnx"), "cell.onnx").run(["y"], {"x": x})
    assert found.shape == (6, 1, 2, 2)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "named"),
    [({"direction": "reverse"}, "another direction"), ({"clip": 1.0}, "clip"), ({"layout": 1}, "layout")],
)
def test_memories_of_other_kinds_are_refused(attributes, named):
    data = cell("LSTM", 4, **attributes)
    with pytest.raises(TrueupError, match=named):
        NumpySession(parse_onnx(data, "cell.onnx"), "cell.onnx").run(["y"], {"x": np.zeros((1, 1, 3), np.float32)})


def test_weights_of_another_width_are_refused():
    data = cell("GRU", 4)
    with pytest.raises(TrueupError, match="do not fit"):
        NumpySession(parse_onnx(data, "cell.onnx"), "cell.onnx").run(["y"], {"x": np.zeros((1, 1, 3), np.float32)})
