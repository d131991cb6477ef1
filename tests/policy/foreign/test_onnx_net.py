"""Networks of others: batches, fixed batches, hidden states, files that are not taken."""

import numpy as np
import onnx
import pytest
from made_policies import save_graph, save_linear
from onnx import TensorProto, helper

from trueup.core.errors import TrueupError
from trueup.policy.foreign.onnx_net import OnnxNet

WEIGHT = np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.0]])
OBS = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
ACTIONS = [[2.5, 4.0], [7.0, 10.0]]


@pytest.mark.parametrize("batch", ["batch", 1])
def test_many_rows_are_run_whatever_batch_the_file_declares(tmp_path, batch):
    net = OnnxNet(save_linear(tmp_path / "net.onnx", WEIGHT, batch=batch), 2)
    assert (net.nobs, net.naction) == (3, 2)
    found = net(OBS)
    np.testing.assert_allclose(found, ACTIONS)
    assert found.dtype == np.float32


def counting_net(path, *, batch, result="h_out", shape=None):
    """actions = obs + h; h_out = h + 1."""
    shape = shape or [1, batch, 2]
    nodes = [
        helper.make_node("Constant", [], ["one"], value=helper.make_tensor("v", TensorProto.FLOAT, [], [1.0])),
        helper.make_node("Constant", [], ["axis"], value=helper.make_tensor("w", TensorProto.INT64, [1], [0])),
        helper.make_node("Add", ["h_in", "one"], [result]),
        helper.make_node("Squeeze", ["h_in", "axis"], ["flat"]),
        helper.make_node("Add", ["obs", "flat"], ["actions"]),
    ]
    floats = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "counting",
        [
            helper.make_tensor_value_info("obs", floats, [batch, 2]),
            helper.make_tensor_value_info("h_in", floats, shape),
        ],
        [
            helper.make_tensor_value_info("actions", floats, [batch, 2]),
            helper.make_tensor_value_info(result, floats, shape),
        ],
    )
    return save_graph(path, graph)


@pytest.mark.parametrize("batch", ["n", 1])
def test_a_hidden_state_begins_at_zero_in_every_episode(tmp_path, batch):
    net = OnnxNet(counting_net(tmp_path / "net.onnx", batch=batch), 3)
    nothing = np.zeros((3, 2), np.float32)
    assert net(nothing)[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert net(nothing)[:, 0].tolist() == [1.0, 1.0, 1.0]
    net.restart(np.array([1]))
    assert net(nothing)[:, 1].tolist() == [2.0, 0.0, 2.0]
    with pytest.raises(TrueupError, match=r"takes \(3, 2\)"):
        net(nothing[:1])


def test_an_input_that_is_no_hidden_state_is_named(tmp_path):
    with pytest.raises(TrueupError, match="'h_in'.*neither the observation nor a hidden state.*depth"):
        OnnxNet(counting_net(tmp_path / "net.onnx", batch="n", result="depth"), 1)


def test_weights_in_another_file_are_refused(tmp_path):
    model = onnx.load(save_linear(tmp_path / "net.onnx", WEIGHT))
    onnx.save(model, tmp_path / "outside.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    with pytest.raises(TrueupError, match="another file"):
        OnnxNet(tmp_path / "outside.onnx")


def test_what_is_no_network_is_refused(tmp_path):
    path = tmp_path / "net.onnx"
    with pytest.raises(TrueupError, match="no such file"):
        OnnxNet(path)
    for data in (b"", b"not a network", save_linear(path, WEIGHT).read_bytes()[:60]):
        path.write_bytes(data)
        with pytest.raises(TrueupError, match="ONNX|no input"):
            OnnxNet(path)


def test_a_wrong_width_and_actions_that_are_not_finite_are_refused(tmp_path):
    net = OnnxNet(save_linear(tmp_path / "net.onnx", WEIGHT), 2)
    with pytest.raises(TrueupError, match=r"\(n, 3\).*found \(2, 2\)"):
        net(OBS[:, :2])
    with pytest.raises(TrueupError, match="not finite"):
        net(np.full((2, 3), np.nan, np.float32))


def lstm_net(path, weights):
    """actions = h' of one LSTM cell on (1, batch, 2) states h and c."""
    floats, names = TensorProto.FLOAT, ("W", "R", "B")
    nodes = [
        helper.make_node("Constant", [], ["axis"], value=helper.make_tensor("v", TensorProto.INT64, [1], [0])),
        helper.make_node("Unsqueeze", ["obs", "axis"], ["sequence"]),
        helper.make_node(
            "LSTM", ["sequence", *names, "", "h_in", "c_in"], ["", "h_out", "c_out"], hidden_size=2, name="lstm"
        ),
        helper.make_node("Squeeze", ["h_out", "axis"], ["actions"]),
    ]
    state, flat = [1, "n", 2], ["n", 2]
    graph = helper.make_graph(
        nodes,
        "lstm",
        [helper.make_tensor_value_info("obs", floats, ["n", 3])]
        + [helper.make_tensor_value_info(name, floats, state) for name in ("h_in", "c_in")],
        [helper.make_tensor_value_info("actions", floats, flat)]
        + [helper.make_tensor_value_info(name, floats, state) for name in ("h_out", "c_out")],
        [onnx.numpy_helper.from_array(values, name) for name, values in zip(names, weights, strict=True)],
    )
    return save_graph(path, graph)


def test_an_lstm_carries_both_states_as_its_equations_say(tmp_path):
    rng = np.random.default_rng(3)
    weights = [rng.normal(size=shape).astype(np.float32) for shape in ((1, 8, 3), (1, 8, 2), (1, 16))]
    net, (w, r, b) = OnnxNet(lstm_net(tmp_path / "net.onnx", weights), 2), (part[0] for part in weights)
    h, c = np.zeros((2, 2)), np.zeros((2, 2))
    for k, obs in enumerate(rng.normal(size=(4, 2, 3)).astype(np.float32)):
        if k == 2:
            net.restart(np.array([0]))
            h[0] = c[0] = 0.0
        gates = obs @ w.T + h @ r.T + b[:8] + b[8:]
        i, o, f = (1.0 / (1.0 + np.exp(-gates[:, 2 * g : 2 * g + 2])) for g in range(3))  # ONNX orders i, o, f, c
        c = f * c + i * np.tanh(gates[:, 6:])
        h = o * np.tanh(c)
        np.testing.assert_allclose(net(obs), h, rtol=1e-4, atol=1e-5)
