"""Files of networks: what they hold, and everything that is refused before anything is run."""

import io
import time

import numpy as np
import onnx
import pytest
from made_bundles import make_net
from onnx import TensorProto, helper, numpy_helper

from trueup.core.errors import TrueupError
from trueup.policy.graph.allowed import ALLOWED
from trueup.policy.graph.onnx_file import parse_onnx, read_onnx
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.graph.run import NumpySession

FLOAT = TensorProto.FLOAT


def model(nodes, constants=(), *, opset=17, outputs=(("y", ["n", 2]),), inputs=(("x", ["n", 2]),), **more):
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in outputs],
        list(constants),
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **more)
    made.ir_version = 9
    return made


def parse(made):
    return parse_onnx(made.SerializeToString(), "net.onnx")


RELU = [helper.make_node("Relu", ["x"], ["y"])]


def test_nodes_constants_ports_and_metadata_are_as_the_reference_wrote_them():
    weight = np.arange(4, dtype=np.float32).reshape(2, 2)
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"], transB=1, alpha=0.5),
        helper.make_node("Concat", ["h", "h"], ["y"], axis=-1),
    ]
    made = model(nodes, [numpy_helper.from_array(weight, "w")], outputs=[("y", ["n", 4])])
    helper.set_model_props(made, {"joint_names": "a,b"})
    graph = parse(made)
    assert [node.op for node in graph.nodes] == ["Gemm", "Concat"]
    assert graph.nodes[0].attributes == {"transB": 1, "alpha": 0.5}
    assert graph.nodes[1].attributes == {"axis": -1}
    np.testing.assert_array_equal(graph.constants["w"], weight)
    assert (graph.inputs[0].name, graph.inputs[0].shape) == ("x", (None, 2))
    assert graph.outputs[0].shape == (None, 4)
    assert (graph.opset, graph.metadata) == (17, {"joint_names": "a,b"})


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.bool_])
@pytest.mark.parametrize("raw", [True, False])
def test_constants_of_every_kind_come_back(dtype, raw):
    values = np.array([[0, 1, 1], [1, 0, 0]], dtype)
    kind = helper.np_dtype_to_tensor_dtype(values.dtype)
    data = values.tobytes() if raw else values.ravel().tolist()
    tensor = helper.make_tensor("c", kind, values.shape, data, raw=raw)
    found = parse(model(RELU, [tensor])).constants["c"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


def test_constants_that_old_files_list_as_inputs_are_none():
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    constant = numpy_helper.from_array(np.ones(2, np.float32), "w")
    assert [port.name for port in parse(model(nodes, [constant], inputs=[("x", ["n", 2]), ("w", [2])])).inputs] == ["x"]


def loop():
    body = model(RELU).graph
    return helper.make_node("Loop", ["", "", "x"], ["y"], body=body)


@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        ([helper.make_node("Conv", ["x", "x"], ["y"])], "operator 'Conv', which a policy may not have"),
        ([loop()], "graph of its own"),
        ([helper.make_node("Relu", ["x"], ["y"], domain="com.microsoft")], "domain 'com.microsoft'"),
        ([helper.make_node("Relu", ["z"], ["y"])], "uses 'z' before anything gives it"),
        ([*RELU, helper.make_node("Elu", ["x"], ["y"])], "gives 'y' twice"),
        ([helper.make_node("Relu", ["x"], ["q"])], "nothing gives its output 'y'"),
        ([helper.make_node("Relu", ["x"], ["y"], name=str(k)) for k in range(1)] * 2001, "at most 2000"),
    ],
)
def test_graphs_that_a_policy_may_not_have_are_refused_by_name(nodes, named):
    with pytest.raises(TrueupError, match=named):
        parse(model(nodes))


@pytest.mark.parametrize("opset", [7, 24])
def test_operator_sets_outside_the_range_are_refused(opset):
    with pytest.raises(TrueupError, match=f"operator set {opset}"):
        parse(model(RELU, opset=opset))


def test_functions_and_sparse_constants_are_refused():
    function = helper.make_function("own", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], [])
    with pytest.raises(TrueupError, match="functions of its own"):
        parse(model(RELU, functions=[function]))
    made = model(RELU)
    made.graph.sparse_initializer.add()
    with pytest.raises(TrueupError, match="sparse"):
        parse(made)


def test_constants_that_are_not_finite_or_lie_about_their_size_are_refused():
    bad = numpy_helper.from_array(np.array([1.0, np.nan], np.float32), "c")
    with pytest.raises(TrueupError, match="not finite in 'c'"):
        parse(model(RELU, [bad]))
    huge = numpy_helper.from_array(np.ones(2, np.float32), "c")
    del huge.dims[:]
    huge.dims.extend([1 << 40, 1 << 20])
    with pytest.raises(TrueupError, match="2 numbers for the shape"):
        parse(model(RELU, [huge]))
    half = numpy_helper.from_array(np.ones(2, np.float16), "c")
    with pytest.raises(TrueupError, match="type 10"):
        parse(model(RELU, [half]))


def test_the_same_constant_twice_is_refused():
    one = numpy_helper.from_array(np.ones(2, np.float32), "c")
    with pytest.raises(TrueupError, match="'c' twice"):
        parse(model(RELU, [one, one]))


def test_flipped_bits_end_in_a_network_or_a_refusal_and_nothing_else():
    rng, whole = np.random.default_rng(0), policy_onnx(make_net())
    start = time.monotonic()
    for _ in range(300):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), rng.integers(1, 6)):
            data[place] ^= 1 << int(rng.integers(8))
        try:
            graph = parse_onnx(bytes(data), "net.onnx")
            feed = {"obs": np.zeros((1, 36), np.float32)}
            with np.errstate(all="ignore"):
                NumpySession(graph, "net.onnx").run([port.name for port in graph.outputs], feed)
        except TrueupError:
            pass
    assert time.monotonic() - start < 60.0


def test_cut_files_are_refused():
    whole = policy_onnx(make_net())
    for length in range(0, len(whole), 211):
        with pytest.raises(TrueupError):
            parse_onnx(whole[:length], "net.onnx")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "net.onnx"
    with path.open("wb") as file:
        file.truncate(64_000_001)
    with pytest.raises(TrueupError, match="at most 64000000 bytes"):
        read_onnx(path)


def test_every_operator_of_the_list_exists_in_onnx():
    assert set(ALLOWED) <= {schema.name for schema in onnx.defs.get_all_schemas()}


def test_our_files_pass_the_reference_checker():
    for kind in ("plain", "latent", "action"):
        onnx.checker.check_model(onnx.load(io.BytesIO(policy_onnx(make_net(kind, squash=1.5)))), full_check=True)
