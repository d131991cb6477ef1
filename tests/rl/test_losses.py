"""Losses by hand, and their derivatives against autograd."""

import math

import pytest
import torch

from trueup.rl.losses import adapted_rate, divergence, entropy, log_prob, policy_loss, value_loss


def test_log_prob_and_entropy_agree_with_torch():
    torch.manual_seed(0)
    mean, action, log_std = torch.randn(5, 3), torch.randn(5, 3), torch.randn(3) * 0.3
    normal = torch.distributions.Normal(mean, log_std.exp())
    torch.testing.assert_close(log_prob(action, mean, log_std), normal.log_prob(action).sum(1))
    assert entropy(log_std) == pytest.approx(float(normal.entropy()[0].sum()), rel=1e-6)


def test_divergence_agrees_with_torch_and_is_zero_for_the_same_policy():
    torch.manual_seed(0)
    old, new, a, b = torch.randn(6, 3), torch.randn(6, 3), torch.randn(3) * 0.2, torch.randn(3) * 0.2
    normal = torch.distributions.Normal
    expected = torch.distributions.kl_divergence(normal(old, a.exp()), normal(new, b.exp())).sum(1).mean()
    assert divergence(old, a, new, b) == pytest.approx(float(expected), rel=1e-5)
    assert divergence(old, a, old, a) == 0.0


def test_ratio_above_the_clip_by_hand():
    # sigma 1, action 1, mean 0 -> log p = -0.5 - log(2 pi)/2; an old log p lower by log 2 makes the ratio 2
    log_p = -0.5 - 0.5 * math.log(2 * math.pi)
    old = torch.tensor([log_p - math.log(2.0)])
    action, mean, log_std = torch.ones(1, 1), torch.zeros(1, 1), torch.zeros(1)
    gain, grad, _, clipped = policy_loss(action, torch.tensor([3.0]), old, mean, log_std, clip=0.2, entropy_weight=0.0)
    assert gain == pytest.approx(-1.2 * 3.0)  # advantage positive: clipped, no derivative
    assert grad.item() == 0.0
    assert clipped == 1.0
    loss, grad, _, clipped = policy_loss(action, torch.tensor([-3.0]), old, mean, log_std, clip=0.2, entropy_weight=0.0)
    assert loss == pytest.approx(2.0 * 3.0)  # negative: the worse of both counts
    assert grad.item() == pytest.approx(6.0)  # dL/dm = -A r (a - m)/sigma^2
    assert clipped == 0.0


def test_policy_derivatives_agree_with_autograd():
    torch.manual_seed(1)
    action, advantage, old = torch.randn(64, 3), torch.randn(64), torch.randn(64) * 0.3 - 4
    mean, log_std = torch.randn(64, 3, requires_grad=True), (torch.randn(3) * 0.2).requires_grad_()
    normal = torch.distributions.Normal(mean, log_std.exp())
    ratio = (normal.log_prob(action).sum(1) - old).exp()
    expected = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
    expected = expected - 0.01 * normal.entropy().sum(1).mean()
    expected.backward()
    loss, grad_mean, grad_log_std, _ = policy_loss(
        action, advantage, old, mean.detach(), log_std.detach(), clip=0.2, entropy_weight=0.01
    )
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(grad_mean, mean.grad, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(grad_log_std, log_std.grad, rtol=1e-4, atol=1e-6)


def test_value_loss_by_hand():
    # v 1.0, old 0.0, return 2.0, clip 0.2: free error -1, bounded error 0.2 - 2 = -1.8 -> 3.24, flat in v
    loss, grad = value_loss(torch.tensor([1.0]), torch.tensor([0.0]), torch.tensor([2.0]), 0.2)
    assert loss == pytest.approx(3.24)
    assert grad.item() == 0.0


def test_value_derivative_agrees_with_autograd():
    torch.manual_seed(2)
    value, old, returns = torch.randn(100, requires_grad=True), torch.randn(100), torch.randn(100)
    bound = old + (value - old).clamp(-0.2, 0.2)
    expected = torch.maximum((value - returns) ** 2, (bound - returns) ** 2).mean()
    expected.backward()
    loss, grad = value_loss(value.detach(), old, returns, 0.2)
    assert loss == pytest.approx(expected.item(), rel=1e-6)
    torch.testing.assert_close(grad, value.grad)


@pytest.mark.parametrize(
    ("kl", "expected"), [(0.021, 1e-3 / 1.5), (0.02, 1e-3), (0.01, 1e-3), (0.005, 1e-3), (0.004, 1.5e-3), (0.0, 1e-3)]
)
def test_the_step_follows_the_divergence(kl, expected):
    assert adapted_rate(1e-3, kl, 0.01) == pytest.approx(expected)


def test_the_step_stays_within_bounds():
    assert adapted_rate(1.2e-5, 1.0, 0.01) == 1e-5
    assert adapted_rate(9e-3, 1e-4, 0.01) == 1e-2
