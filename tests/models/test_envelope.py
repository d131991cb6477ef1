"""The torque-speed envelope and the power limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trueup.core.errors import TrueupError
from trueup.models.envelope import Envelope, limit_torque, torque_range


def test_range_matches_numbers_by_hand() -> None:
    low, high = torque_range(Envelope(torque_max=20.0, speed_max=30.0), np.array([0.0, 15.0, -15.0, 30.0, 45.0, -45.0]))
    np.testing.assert_allclose(high, [20.0, 10.0, 20.0, 0.0, 0.0, 20.0])
    np.testing.assert_allclose(low, [-20.0, -20.0, -10.0, -20.0, -20.0, 0.0])


def test_no_torque_along_the_motion_at_no_load_speed_but_full_braking() -> None:
    envelope = Envelope(torque_max=20.0, speed_max=30.0)
    assert limit_torque(envelope, 5.0, 30.0) == 0.0
    assert limit_torque(envelope, -50.0, 30.0) == -20.0


def test_power_limit_binds_above_the_speed_where_it_meets_the_torque_limit() -> None:
    envelope = Envelope(torque_max=10.0, power_max=40.0)
    tau = limit_torque(envelope, np.full(4, 99.0), np.array([0.0, 2.0, 8.0, -16.0]))
    np.testing.assert_allclose(tau, [10.0, 10.0, 5.0, 2.5])


def test_limits_left_out_do_nothing() -> None:
    tau = np.array([-1e9, 0.3, 1e9])
    np.testing.assert_array_equal(limit_torque(Envelope(torque_max=np.inf), tau, np.array([3.0, 0.0, -5.0])), tau)


def test_zero_power_stops_a_moving_joint_only() -> None:
    envelope = Envelope(torque_max=10.0, power_max=0.0)
    np.testing.assert_array_equal(limit_torque(envelope, np.array([3.0, 3.0]), np.array([0.0, 1e-3])), [3.0, 0.0])


@given(
    tau=st.floats(-1e6, 1e6),
    dq=st.floats(-1e3, 1e3),
    torque_max=st.floats(0.1, 100.0),
    speed_max=st.floats(0.1, 100.0),
    power_max=st.floats(0.0, 1e4),
)
def test_limited_torque_is_inside_all_limits_and_limiting_twice_changes_nothing(
    tau: float, dq: float, torque_max: float, speed_max: float, power_max: float
) -> None:
    envelope = Envelope(torque_max=torque_max, speed_max=speed_max, power_max=power_max)
    once = limit_torque(envelope, tau, dq)
    assert abs(once) <= torque_max
    assert abs(once) * abs(dq) <= power_max * (1.0 + 1e-15) + 1e-300
    assert once * tau >= 0.0
    assert limit_torque(envelope, once, dq) == once


def test_per_joint_limits_broadcast_and_one_row_equals_row_k_of_many() -> None:
    rng = np.random.default_rng(1)
    tau, dq = 30.0 * rng.normal(size=(2, 37, 12))
    envelope = Envelope(torque_max=rng.uniform(5, 20, 12), speed_max=rng.uniform(10, 30, 12), power_max=60.0)
    together = limit_torque(envelope, tau, dq)
    assert together.shape == (37, 12)
    np.testing.assert_array_equal(limit_torque(envelope, tau[9:10], dq[9:10]), together[9:10])


@pytest.mark.parametrize("name", ["torque_max", "speed_max", "power_max"])
def test_negative_or_nan_limit_is_named(name: str) -> None:
    for bad in (-1.0, np.nan):
        with pytest.raises(TrueupError, match=name):
            Envelope(**{"torque_max": 1.0, name: bad})
