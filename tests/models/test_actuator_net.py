"""Actuator nets: equations by hand, files, and the fast form against the plain one."""

import json

import numpy as np
import pytest
from made_nets import made_net

from trueup.core.errors import TrueupError
from trueup.models.actuator_file import JSON_FILE, WEIGHTS_FILE, load_actuator, save_actuator
from trueup.models.actuator_net import ActuatorNet, NetSpec
from trueup.models.net_forward import NetForward


def one_joint(layers, *, taps=(0,), signals=("pos_error",), **more) -> ActuatorNet:
    spec = NetSpec(
        robot="r", joint_names=("j",), kind="torque", signals=signals, taps=taps, dt_s=0.01, groups=((0,),), **more
    )
    shape = (1, len(signals))
    return ActuatorNet(
        spec=spec,
        layers=(tuple((np.array(w, float), np.array(b, float)) for w, b in layers),),
        mean=np.full(shape, 0.5),
        std=np.full(shape, 2.0),
        scale=np.array([3.0]),
        context=np.zeros((1, 0)),
        low=-np.ones(shape),
        high=np.ones(shape),
    )


def test_elu_softsign_and_saturation_by_hand():
    layers = [([[2.0], [-2.0]], [0.5, 0.0]), ([[1.0, 10.0]], [0.25])]
    x = np.array([[[1.5]]])  # one joint, one signal, one tap; normalised 0.5
    # hidden: 1.5 and -1.0
    assert one_joint(layers)(x)[0] == pytest.approx(3 * (1.5 + 10 * (np.exp(-1.0) - 1) + 0.25))
    soft = one_joint(layers, activation="softsign")
    assert soft(x)[0] == pytest.approx(3 * (1.5 / 2.5 - 10 * 0.5 + 0.25))
    capped = one_joint(layers, limit=(4.0,))
    assert capped(x)[0] == pytest.approx(4 * np.tanh(one_joint(layers)(x)[0] / 4))


def test_a_net_without_hidden_layers_is_a_filter():
    fir = one_joint([([[1.0, -2.0, 4.0]], [0.0])], taps=(0, 1, 3))
    inputs = np.array([[6.5, 4.5, 0.5], [4.5, 2.5, 0.5]])[:, None, None]  # normalised 3, 2, 0 and 2, 1, 0
    np.testing.assert_allclose(fir(inputs)[:, 0], 3 * np.array([3.0 - 4.0, 2.0 - 2.0]), atol=1e-6)


@pytest.mark.parametrize("hidden", [(), (7,), (16, 16)])
@pytest.mark.parametrize("activation", ["elu", "softsign"])
@pytest.mark.parametrize("taps", [(0, 1, 2, 3), (0, 2, 4)])
def test_the_fast_form_is_the_plain_one(hidden, activation, taps):
    net = made_net(hidden=hidden, activation=activation, taps=taps)
    nsim, steps, rng = 5, 11, np.random.default_rng(1)
    signals = rng.normal(0, 0.3, (steps, 2, nsim, 12)).astype(np.float32)
    fast, out = NetForward(net, nsim), np.empty((nsim, 12))
    for signal in signals:
        fast.push(signal)
    fast.torque(out)
    newest_first = signals[::-1][list(taps)]  # (tap, signal, nsim, joint)
    plain = net(newest_first.transpose(2, 3, 1, 0).astype(float))
    np.testing.assert_allclose(out, plain, rtol=1e-4, atol=1e-5)


def test_a_simulation_is_the_same_alone_or_among_many_and_on_any_threads():
    net, rng = made_net(hidden=(32, 32)), np.random.default_rng(2)
    signals = rng.normal(0, 0.3, (9, 2, 300, 12)).astype(np.float32)
    results = {}
    for name, nsim, threads in (("many", 300, 1), ("threads", 300, 3), ("few", 7, 1)):
        fast, out = NetForward(net, nsim, threads), np.empty((nsim, 12))
        for signal in signals:
            fast.push(np.ascontiguousarray(signal[:, 20 : 20 + nsim] if nsim < 300 else signal))
        fast.torque(out)
        results[name] = out
    assert (results["many"] == results["threads"]).all()
    assert (results["many"][20:27] == results["few"]).all()


@pytest.mark.parametrize("width", [128, 16, 8, 1])
def test_narrower_products_give_the_same_torques(width, monkeypatch):
    net, rng = made_net(hidden=(32, 32)), np.random.default_rng(3)
    signals, out = rng.normal(0, 0.3, (6, 2, 50, 12)).astype(np.float32), np.empty((50, 12))
    monkeypatch.setattr("trueup.models.net_forward.product_width", lambda shapes: width)
    fast = NetForward(net, 50)
    for signal in signals:
        fast.push(signal)
    fast.torque(out)
    newest_first = signals[::-1][: net.spec.depth]
    plain = net(newest_first[list(net.spec.taps)].transpose(2, 3, 1, 0).astype(float))
    np.testing.assert_allclose(out, plain, rtol=1e-4, atol=1e-5)


def test_a_net_comes_back_from_its_folder(tmp_path):
    net = made_net()
    save_actuator(net, tmp_path)
    back = load_actuator(tmp_path)
    assert back.spec == net.spec
    x = np.random.default_rng(0).normal(size=(4, 12, 2, 4))
    assert (back(x) == net(x)).all()


def test_a_broken_folder_is_named(tmp_path):
    with pytest.raises(TrueupError, match="no actuator net here: it is empty"):
        load_actuator(tmp_path)
    save_actuator(made_net(), tmp_path)
    weights = (tmp_path / WEIGHTS_FILE).read_bytes()
    (tmp_path / WEIGHTS_FILE).write_bytes(weights[: len(weights) // 2])
    with pytest.raises(TrueupError, match=WEIGHTS_FILE):
        load_actuator(tmp_path)
    (tmp_path / WEIGHTS_FILE).write_bytes(weights)
    content = json.loads((tmp_path / JSON_FILE).read_text())
    content["taps"] = [0, 1]
    (tmp_path / JSON_FILE).write_text(json.dumps(content))
    with pytest.raises(TrueupError, match="do not fit"):
        load_actuator(tmp_path)


def test_joints_in_no_group_or_in_two_are_refused():
    with pytest.raises(ValueError, match="exactly one group"):
        made_net(groups=((0, 1), (1, 2)))


def test_weights_that_are_not_finite_are_refused():
    with pytest.raises(TrueupError, match="not finite"):
        one_joint([([[np.nan]], [0.0])])


def test_other_weights_can_be_loaded_into_a_running_form():
    one, other = made_net(seed=1), made_net(seed=2)
    rng = np.random.default_rng(0)
    loaded, fresh = NetForward(one, 4), NetForward(other, 4)
    loaded.load(other)
    for _ in range(6):
        signals = rng.normal(0, 0.3, (2, 4, 12)).astype(np.float32)
        loaded.push(signals)
        fresh.push(signals)
    outs = np.empty((2, 4, 12))
    loaded.torque(outs[0])
    fresh.torque(outs[1])
    assert (outs[0] == outs[1]).all()
    np.testing.assert_array_equal(loaded.read(0), signals)
