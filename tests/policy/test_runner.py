"""Inference against a forward pass written out with loops; memory, episodes, statistics and damaged weights."""

import itertools
import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from safetensors.numpy import load, save

from trueup.core.errors import TrueupError
from trueup.core.layers import forward
from trueup.policy.action import ActionSpec
from trueup.policy.mlp import MlpPolicy, PolicySpec, load_policy
from trueup.policy.net import NetWiring, PolicyNet, read_layers, read_net
from trueup.policy.normalizer import Normalizer
from trueup.policy.observation import ObservationSpec, Term
from trueup.policy.runner import PolicyRunner

SPEC = PolicySpec(
    task="toy",
    robot="toy",
    control_hz=50.0,
    kp=(1.0, 1.0),
    kd=(0.1, 0.1),
    observation=ObservationSpec(
        joint_names=("a", "b"), default_pose=(0.0, 0.0), terms=(Term("joint_pos"),), ncommand=0, naction=2
    ),
    action=ActionSpec(joint_names=("a", "b"), default_pose=(0.0, 0.0), controlled_joints=("a", "b"), scale=(1.0, 1.0)),
)


def layers(*sizes):
    rng, pairs = np.random.default_rng(sizes), itertools.pairwise(sizes)
    return tuple(
        (rng.normal(0.0, n**-0.5, (m, n)).astype(np.float32), rng.normal(0.0, 0.5, m).astype(np.float32))
        for n, m in pairs
    )


def drawn(*shape):
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def by_hand(net, x):
    """One row through the layers, number by number."""
    for k, (weight, bias) in enumerate(net):
        x = [
            float(b) + sum(float(w) * v for w, v in zip(row, x, strict=True))
            for row, b in zip(weight, bias, strict=True)
        ]
        x = [v if v > 0 or k == len(net) - 1 else math.expm1(v) for v in x]
    return x


def normalizer(mean=(1.0, -1.0), std=(1.99, 0.49)):
    out = Normalizer(len(mean))
    out.mean, out.var, out.count = np.array(mean), np.array(std) ** 2, 10.0
    return out


def plain(squash=0.0):
    return PolicyNet(spec=NetWiring(squash=squash), actor=layers(2, 4, 3, 2), normalizer=normalizer())


def student(kind, steps=3):
    past = steps * (2 + 2)
    encoder, actor = (layers(past, 5, 2), layers(2 + 2, 4, 2)) if kind == "latent" else ((), layers(past, 4, 2))
    return PolicyNet(spec=NetWiring(kind=kind, steps=steps), actor=actor, encoder=encoder, normalizer=normalizer())


def test_layers_are_matrix_products_with_elu_between_and_none_at_the_end():
    net, x = layers(3, 4, 2), drawn(5, 3)
    np.testing.assert_allclose(forward(net, x), [by_hand(net, row) for row in x.tolist()], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("squash", [0.0, 0.7])
def test_a_plain_policy_normalises_and_squashes(squash):
    net = plain(squash)
    # std + 0.01 is 2 and 0.5: (5 - 1)/2 and (0 + 1)/0.5
    out = by_hand(net.actor, [2.0, 2.0])
    expected = [squash * math.tanh(v) for v in out] if squash else out
    np.testing.assert_allclose(PolicyRunner(net).act(np.array([[5.0, 0.0]], np.float32)), [expected], rtol=1e-5)


def test_normalised_values_are_clipped_at_ten_standard_deviations():
    found = normalizer()(np.array([[1000.0, -1000.0], [1.0, -1.25]], np.float32))
    np.testing.assert_allclose(found, [[10.0, -10.0], [0.0, -0.5]], rtol=1e-5)


def test_before_any_update_nothing_is_moved_and_the_first_update_replaces_the_start():
    fresh = Normalizer(1)
    np.testing.assert_allclose(fresh(np.array([[1.01]], np.float32)), [[1.0]], rtol=1e-5)
    fresh.update(np.array([[2.0], [4.0]]))
    assert (fresh.mean.tolist(), fresh.var.tolist(), fresh.count) == ([3.0], [1.0], 2.0)


@pytest.mark.parametrize("kind", ["latent", "action"])
def test_a_student_acts_on_its_past_of_observations_and_last_actions(kind):
    net = student(kind)
    runner, past, last = PolicyRunner(net), [0.0] * 12, [0.0, 0.0]
    for obs in drawn(5, 2):
        x = [(float(obs[0]) - 1.0) / 2.0, (float(obs[1]) + 1.0) / 0.5]
        past = [*past[4:], *x, *last]
        last = by_hand(net.actor, [*x, *by_hand(net.encoder, past)] if kind == "latent" else past)
        np.testing.assert_allclose(runner.act(obs[None]), [last], rtol=2e-4, atol=1e-5)


def test_a_teacher_encodes_the_hidden_factors():
    hidden = normalizer((2.0,), (0.99,))
    net = PolicyNet(
        spec=NetWiring(kind="privileged"), actor=layers(2 + 3, 2), encoder=layers(1, 3), normalizer=normalizer(),
        privileged_normalizer=hidden,
    )  # fmt: skip
    expected = by_hand(net.actor, [2.0, 2.0, *by_hand(net.encoder, [5.0 - 2.0])])
    found = PolicyRunner(net).act(np.array([[5.0, 0.0]], np.float32), np.array([[5.0]], np.float32))
    np.testing.assert_allclose(found, [expected], rtol=1e-5)


def test_a_new_episode_forgets_the_past_of_its_row_alone():
    net, obs = student("action"), drawn(2, 2)
    runner = PolicyRunner(net, 2)
    first, second = runner.act(obs), runner.act(obs)
    runner.restart(np.array([0]))
    third = runner.act(obs)
    np.testing.assert_allclose(third[0], first[0], rtol=1e-5)
    assert np.abs(third[1] - first[1]).max() > 1e-3
    assert np.abs(second - first).max() > 1e-3


def test_named_arrays_are_the_whole_policy():
    net = student("latent")
    back = read_net(net.spec, net.arrays())
    obs = drawn(1, 2)
    np.testing.assert_allclose(PolicyRunner(back).act(obs), PolicyRunner(net).act(obs), rtol=1e-6)
    assert read_layers(net.arrays(), "nothing") == ()
    with pytest.raises(KeyError, match="normalizer/var"):
        read_net(net.spec, {name: values for name, values in net.arrays().items() if name != "normalizer/var"})


def test_a_student_s_past_must_fit_its_weights():
    MlpPolicy(SPEC, student("latent"))
    with pytest.raises(TrueupError, match="do not fit"):
        MlpPolicy(SPEC, replace(student("latent"), spec=NetWiring(kind="latent", steps=4)))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("normalizer/count", np.zeros(0)),
        ("normalizer/mean", np.array([0.0, np.nan])),
        ("normalizer/mean", np.zeros((2, 2))),
        ("normalizer/mean", np.array(1.0)),
        ("normalizer/var", np.ones(3)),
        ("normalizer/var", np.array([1.0, -1.0])),
        ("actor/0/bias", np.zeros((4, 1), np.float32)),
        ("actor/0/weight", np.zeros(8, np.float32)),
        ("actor/1/weight", np.full((3, 4), np.inf, np.float32)),
        ("actor/2/weight", np.zeros((3, 3), np.float32)),
    ],
)
def test_weights_that_would_not_run_are_refused_with_their_file(tmp_path, name, values):
    MlpPolicy(SPEC, plain()).save(tmp_path)
    file = tmp_path / "policy.safetensors"
    file.write_bytes(save(load(file.read_bytes()) | {name: values}))
    with pytest.raises(TrueupError, match=r"policy\.safetensors"):
        load_policy(tmp_path)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"schema": 1}, "schema 1 is not known"),
        ({"control_hz": 0.0}, "control"),
        ({"kp": [1.0]}, "kp"),
        ({"owner": "me"}, "owner"),
        ({"net": {"kind": "transformer"}}, "kind"),
    ],
)
def test_a_spec_that_does_not_fit_is_refused_with_its_file(tmp_path, changes, named):
    MlpPolicy(SPEC, plain()).save(tmp_path)
    file = tmp_path / "policy.json"
    file.write_bytes(msgspec.json.encode(msgspec.json.decode(file.read_bytes()) | changes))
    with pytest.raises(TrueupError, match=rf"policy\.json.*{named}"):
        load_policy(tmp_path)
