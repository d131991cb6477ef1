"""Networks and optimiser against torch's own."""

import pytest
import torch

from trueup.rl.nets.mlp import Mlp, mlp_shapes
from trueup.rl.nets.networks import Actor
from trueup.rl.nets.parameters import Adam, Average, Parameters
from trueup.rl.settings import NetCfg

SIZES = (5, 16, 8, 3)


def _both(rows=32):
    parameters = Parameters(mlp_shapes("net", SIZES))
    net = Mlp(parameters, "net", SIZES, rows)
    net.initialize(torch.Generator().manual_seed(0))
    reference = torch.nn.Sequential(
        torch.nn.Linear(5, 16), torch.nn.ELU(), torch.nn.Linear(16, 8), torch.nn.ELU(), torch.nn.Linear(8, 3)
    )
    for k, layer in enumerate(reference[::2]):
        layer.weight.data.copy_(net.weight[k])
        layer.bias.data.copy_(net.bias[k])
    return parameters, net, reference


@pytest.mark.parametrize("rows", [1, 20, 32])
def test_forward_and_backward_agree_with_autograd(rows):
    parameters, net, reference = _both()
    torch.manual_seed(1)
    x, grad = torch.randn(rows, 5, requires_grad=True), torch.randn(rows, 3)
    out = reference(x)
    out.backward(grad)
    torch.testing.assert_close(net.forward(x.detach()), out.detach())
    grad_input = net.backward(grad, to_input=True)
    torch.testing.assert_close(grad_input, x.grad)
    for k, layer in enumerate(reference[::2]):
        torch.testing.assert_close(parameters.grad_view[f"net/{k}/weight"], layer.weight.grad)
        torch.testing.assert_close(parameters.grad_view[f"net/{k}/bias"], layer.bias.grad)


def test_gradient_of_the_encoder_flows_through_the_actor():
    actor = Actor(4, 3, 2, NetCfg(actor=(8,), latent=2, encoder=(6,)), rows=10)
    actor.initialize(torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    actor.net.weight[-1].normal_()
    obs, privileged, grad = torch.randn(10, 4), torch.randn(10, 3), torch.randn(10, 2)
    views = {name: view.clone().requires_grad_() for name, view in actor.parameters.view.items()}

    def layer(x, name):
        return x @ views[f"{name}/weight"].T + views[f"{name}/bias"]

    elu = torch.nn.functional.elu
    latent = layer(elu(layer(privileged, "encoder/0")), "encoder/1")
    mean = layer(elu(layer(torch.cat([obs, latent], 1), "actor/0")), "actor/1")
    mean.backward(grad)
    torch.testing.assert_close(actor.forward(obs, privileged), mean.detach())
    actor.backward(grad, torch.zeros(2))
    for name in ("encoder/0/weight", "encoder/1/bias", "actor/0/weight"):
        torch.testing.assert_close(actor.parameters.grad_view[name], views[name].grad)


def test_adam_agrees_with_torch():
    parameters, _, _ = _both()
    reference = parameters.flat.clone().requires_grad_()
    ours, theirs = Adam(parameters), torch.optim.Adam([reference], lr=1e-2)
    torch.manual_seed(0)
    for _ in range(20):
        parameters.grad.normal_()
        reference.grad = parameters.grad.clone()
        ours.step(1e-2)
        theirs.step()
    torch.testing.assert_close(parameters.flat, reference.detach(), rtol=1e-5, atol=1e-6)


def test_long_gradients_are_shortened_and_short_ones_kept():
    parameters = Parameters({"a": (2,)})
    parameters.grad_view["a"].copy_(torch.tensor([3.0, 4.0]))
    assert parameters.clip_gradient(1.0) == pytest.approx(5.0)
    torch.testing.assert_close(parameters.grad_view["a"], torch.tensor([0.6, 0.8]))
    assert parameters.clip_gradient(2.0) == pytest.approx(1.0)


def test_tensors_start_at_multiples_of_64_bytes():
    parameters = Parameters({"a": (3,), "b": (5, 5), "c": (1,)})
    assert all(view.data_ptr() % 64 == parameters.flat.data_ptr() % 64 for view in parameters.view.values())


def test_the_average_grows_with_the_training_up_to_its_span():
    parameters = Parameters({"x": (1,)})
    average, seen = Average(parameters, span=2), []
    for k in range(1, 123):
        parameters.view["x"].fill_(float(k))
        average.update()
        seen.append(float(average.view["x"]))
    assert seen[:39] == [float(k) for k in range(1, 40)]  # the newest alone
    assert seen[39:42] == [39.5, 40.25, 41.125]  # (39 + 40) / 2, (39.5 + 41) / 2, (40.25 + 42) / 2
    assert seen[-1] == pytest.approx(121.0)  # two in the mean still: one behind on a steady way
