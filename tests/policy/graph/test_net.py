"""GraphNet: rows together or one by one, hidden states by their names."""

import numpy as np
import pytest
from made_policies import save_graph, save_linear
from onnx import TensorProto, helper, numpy_helper

from trueup.core.errors import TrueupError
from trueup.policy.graph.net import GraphNet
from trueup.policy.graph.onnx_file import read_onnx

FLOAT = TensorProto.FLOAT
WEIGHT = np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.0]])


class Counted:
    """A session that counts how often it is asked."""

    def __init__(self, session):
        self.session, self.runs = session, 0

    def run(self, outputs, feed):
        self.runs += 1
        return self.session.run(outputs, feed)


def opened(path, nrow=1):
    return GraphNet(read_onnx(path), path, nrow)


def counted(net):
    net._session = Counted(net._session)
    return net


@pytest.mark.parametrize("batch", ["n", 1])
def test_a_batch_that_is_fixed_on_paper_only_is_run_at_once(tmp_path, batch):
    net = counted(opened(save_linear(tmp_path / "net.onnx", WEIGHT, batch=batch)))
    found = net(np.array([[1, 2, 3], [4, 5, 6]], np.float32))
    np.testing.assert_allclose(found, [[2.5, 4.0], [7.0, 10.0]])
    assert net._session.runs == 1


def mean_over_rows(path, op):
    """actions = obs minus its mean over all rows, or a shape of one row: neither may be run together."""
    nodes = {
        "mean": [
            helper.make_node("ReduceMean", ["obs"], ["m"], axes=[0]),
            helper.make_node("Sub", ["obs", "m"], ["actions"]),
        ],
        "shape": [helper.make_node("Reshape", ["obs", "one"], ["actions"])],
    }[op]
    return save_graph(
        path,
        helper.make_graph(
            nodes,
            "net",
            [helper.make_tensor_value_info("obs", FLOAT, ["n", 2])],
            [helper.make_tensor_value_info("actions", FLOAT, ["n", 2])],
            [numpy_helper.from_array(np.array([1, 2]), "one")],
        ),
    )


@pytest.mark.parametrize(("op", "expected"), [("mean", [[0, 0], [0, 0]]), ("shape", [[1, 2], [3, 4]])])
def test_rows_that_would_disturb_each_other_are_run_one_by_one(tmp_path, op, expected):
    net = counted(opened(mean_over_rows(tmp_path / "net.onnx", op)))
    np.testing.assert_array_equal(net(np.array([[1, 2], [3, 4]], np.float32)), expected)
    assert net._session.runs == 2


def carries(path, source, result, shape, out=None):
    """A state that is added to the observations and grows by one."""
    nodes = [helper.make_node("Add", ["obs", source], ["actions"]), helper.make_node("Add", [source, "one"], [result])]
    ports = [helper.make_tensor_value_info(name, FLOAT, size) for name, size in (("obs", ["n", 2]), (source, shape))]
    results = [("actions", ["n", 2]), (result, out or shape)]
    constant = numpy_helper.from_array(np.ones((1, 2) if out is None else (3, 2), np.float32), "one")
    outputs = [helper.make_tensor_value_info(name, FLOAT, size) for name, size in results]
    return save_graph(path, helper.make_graph(nodes, "net", ports, outputs, [constant]))


@pytest.mark.parametrize(
    ("source", "result"),
    [("h_in", "h_out"), ("past_in", "past_out"), ("prev_h", "next_h"), ("h", "new_h"), ("in_h", "h")],
)
def test_hidden_states_are_paired_by_their_names(tmp_path, source, result):
    net = opened(carries(tmp_path / "net.onnx", source, result, ["n", 2]), 2)
    nothing = np.zeros((2, 2), np.float32)
    assert [net(nothing)[0, 0] for _ in range(3)] == [0.0, 1.0, 2.0]
    net.restart(np.array([0]))
    np.testing.assert_array_equal(net(nothing), [[0, 0], [3, 3]])


def test_a_state_that_comes_out_in_another_shape_is_refused(tmp_path):
    with pytest.raises(TrueupError, match="'h_out' has another shape than 'h_in'"):
        opened(carries(tmp_path / "net.onnx", "h_in", "h_out", [1, 2], out=[3, 2]))


@pytest.mark.parametrize(("shape", "named"), [([2, 3], "found float32 \\[2, 3\\]"), (["n", 3, 1], "batch, columns")])
def test_observations_of_other_shapes_are_refused(tmp_path, shape, named):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["obs"], ["actions"])],
        "net",
        [helper.make_tensor_value_info("obs", FLOAT, shape)],
        [helper.make_tensor_value_info("actions", FLOAT, shape)],
    )
    with pytest.raises(TrueupError, match=named):
        opened(save_graph(tmp_path / "net.onnx", graph))
