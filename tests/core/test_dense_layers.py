"""The forward pass of dense layers, by hand."""

import numpy as np
import pytest

from trueup.core.layers import forward

# h = f([x0 + x1, x0 - 2]), y = 2 h0 + h1 + 0.5
LAYERS = (
    (np.array([[1, 1], [1, 0]], np.float32), np.array([0, -2], np.float32)),
    (np.array([[2, 1]], np.float32), np.array([0.5], np.float32)),
)


@pytest.mark.parametrize(
    ("activation", "expected"),
    [("elu", 2 * 4.0 + (np.exp(-1.0) - 1.0) + 0.5), ("softsign", 2 * 4.0 / 5.0 - 1.0 / 2.0 + 0.5)],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_two_layers_by_hand_in_the_precision_of_their_input(activation, expected, kind):
    y = forward(LAYERS, np.array([[[1.0, 3.0]]], kind), activation)
    assert y.shape == (1, 1, 1)
    assert y.dtype == kind
    assert y[0, 0, 0] == pytest.approx(expected, rel=1e-6 if kind == np.float32 else 1e-14)


def test_one_layer_is_linear():
    x = np.array([[1.0, 2.0], [-5.0, 3.0]])
    np.testing.assert_allclose(forward(LAYERS[1:], x), 2 * x[:, :1] + x[:, 1:] + 0.5, rtol=1e-15)
