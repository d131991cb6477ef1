"""Our policies as ONNX: what the runner of training does, step by step, in NumPy and in ONNX Runtime."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from made_bundles import OBSERVATION, make_bundle, make_net

from trueup.core.errors import TrueupError
from trueup.policy.foreign.onnx_net import open_session
from trueup.policy.graph.net import GraphNet, GraphPolicy
from trueup.policy.graph.onnx_file import parse_onnx
from trueup.policy.graph.policy_onnx import policy_onnx, read_normalizer_of
from trueup.policy.net import NetWiring
from trueup.policy.runner import PolicyRunner


@pytest.mark.parametrize("kind", ["plain", "latent", "action"])
@pytest.mark.parametrize("squash", [0.0, 1.5])
def test_a_policy_acts_as_its_runner_with_memory_and_restarts(kind, squash):
    net = make_net(kind, squash=squash)
    data = policy_onnx(net)
    graph = parse_onnx(data, "policy.onnx")
    runner, mine = PolicyRunner(net, 3), GraphPolicy(GraphNet(graph, "policy.onnx", 3))
    theirs = GraphPolicy(GraphNet(graph, "policy.onnx", 3, open_session(data, "policy.onnx")))
    rng = np.random.default_rng(1)
    for step in range(10):
        obs = rng.normal(0, 3, (3, OBSERVATION.nactor)).astype(np.float32)
        if step == 6:
            for one in (runner, mine, theirs):
                one.restart(np.array([0, 2]))
        expected = runner.act(obs)
        np.testing.assert_allclose(mine.act(obs), expected, atol=1e-6)
        np.testing.assert_allclose(theirs.act(obs), expected, atol=1e-6)


def test_the_operator_set_is_fixed_and_the_batch_open():
    graph = parse_onnx(policy_onnx(make_net("latent")), "policy.onnx")
    assert graph.opset == 17
    assert [(port.name, port.shape[0]) for port in graph.inputs] == [
        ("obs", None),
        ("past_in", None),
        ("last_in", None),
    ]
    assert [port.name for port in graph.outputs] == ["actions", "past_out", "last_out"]
    assert {node.op for node in graph.nodes} == {"Sub", "Mul", "Clip", "Slice", "Concat", "Gemm", "Elu", "Identity"}


def test_the_normaliser_can_be_read_from_the_file():
    net = make_net()
    found = read_normalizer_of(parse_onnx(policy_onnx(net), "policy.onnx"))
    assert found is not None
    np.testing.assert_allclose(found[0], net.normalizer.mean, rtol=1e-6)
    np.testing.assert_allclose(found[1], np.sqrt(net.normalizer.var), rtol=1e-5)


def test_the_same_policy_gives_the_same_bytes():
    assert policy_onnx(make_net("action")) == policy_onnx(make_net("action"))


def test_a_policy_that_needs_hidden_factors_is_not_exported():
    net = replace(make_net(), spec=NetWiring(kind="privileged"))
    with pytest.raises(TrueupError, match="hidden factors"):
        policy_onnx(net)


def test_a_bundle_opens_and_runs_where_only_numpy_and_msgspec_are_installed(tmp_path):
    make_bundle(tmp_path / "toy.bundle", "latent")
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('onnx', 'onnxruntime', 'torch', 'mujoco', 'yaml', 'safetensors', 'scipy'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import numpy as np\n"
        "from trueup.policy.bundle.bundle import load_bundle\n"
        f"bundle = load_bundle({str(tmp_path / 'toy.bundle')!r})\n"
        "print(bundle.runner(2).act(np.zeros((2, 36), np.float32)).shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "(2, 3)\n", done.stderr
