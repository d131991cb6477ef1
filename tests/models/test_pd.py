"""The PD servo: numbers by hand, the sign of the encoder bias, rows that do not know each other."""

import numpy as np
import pytest

from trueup.models.pd import pd_torque


def test_torque_matches_numbers_by_hand() -> None:
    tau = pd_torque(1.0, 0.25, 2.0, kp=40.0, kd=1.5, dq_target=1.0, tau_ff=0.5, bias=0.05)
    assert tau == pytest.approx(40.0 * 0.70 - 1.5 + 0.5)


def test_torque_is_clipped_on_both_sides() -> None:
    tau = pd_torque(np.array([1.0, -1.0, 0.1]), 0.0, 0.0, kp=100.0, kd=0.0, torque_limit=np.array([20.0, 30.0, 20.0]))
    np.testing.assert_array_equal(tau, [20.0, -30.0, 10.0])


def test_biased_encoder_holds_the_joint_below_its_target() -> None:
    assert pd_torque(0.5, 0.5 - 0.02, 0.0, kp=60.0, kd=2.0, bias=0.02) == pytest.approx(0.0, abs=1e-12)
    assert pd_torque(0.5, 0.5, 0.0, kp=60.0, kd=2.0, bias=0.02) < 0.0


def test_nan_comes_out_where_it_went_in() -> None:
    tau = pd_torque(np.array([0.1, 0.1]), np.array([np.nan, 0.0]), 0.0, kp=1.0, kd=1.0, torque_limit=5.0)
    np.testing.assert_array_equal(np.isnan(tau), [True, False])


def test_one_row_equals_row_k_of_many() -> None:
    rng = np.random.default_rng(0)
    target, q, dq, kp, bias = rng.normal(size=(5, 37, 12))
    limit = np.full(12, 3.0)
    together = pd_torque(target, q, dq, kp=kp, kd=0.7, bias=bias, torque_limit=limit)
    for k in (0, 17, 36):
        row = slice(k, k + 1)
        alone = pd_torque(target[row], q[row], dq[row], kp=kp[row], kd=0.7, bias=bias[row], torque_limit=limit)
        np.testing.assert_array_equal(alone, together[row])
