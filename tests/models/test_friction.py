"""Friction M1 to M6: numbers by hand, how the models nest, and a joint that sticks under its budget."""

import math

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.models.friction import (
    LAWS,
    FrictionParams,
    friction_law,
    stribeck,
)
from trueup.models.values import FloatArray

ALL: tuple[str, ...] = ("M1", "M2", "M3", "M4", "M5", "M6")
PARAMS = FrictionParams(
    kv=0.1,
    kc=0.3,
    kcs=0.2,
    dqs=0.5,
    alpha=2.0,
    kl=0.05,
    kls=0.04,
    km=0.06,
    ke=0.02,
    kms=0.03,
    kes=0.01,
    kmq=0.004,
    keq=0.007,
)


def changed(**values: float) -> FrictionParams:
    return FrictionParams(**{**vars(PARAMS), **values})


def random_states(rows: int = 37) -> FloatArray:
    scales = np.array([1.0, 4.0, 4.0])
    states: FloatArray = np.random.default_rng(3).normal(size=(3, rows, 12)) * scales[:, None, None]
    return states


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("M1", 0.3),
        ("M2", 0.3 + math.exp(-1.0) * 0.2),
        ("M3", 0.3 + 0.05 * 5.0),
        ("M4", 0.3 + 0.05 * 5.0 + math.exp(-1.0) * (0.2 + 0.04 * 5.0)),
        ("M5", 0.3 + (0.06 * 3.0 + 0.02 * 2.0) + math.exp(-1.0) * (0.2 + 0.03 * 3.0 + 0.01 * 2.0)),
        ("M6", 0.3 + (0.06 * 3 + 0.02 * 2) + math.exp(-1) * (0.2 + 0.03 * 3 + 0.01 * 2 + 0.007 * 4.0)),
    ],
)
def test_dry_part_matches_numbers_by_hand(model: str, expected: float) -> None:
    """Motor 3 N m against a load of -2 N m, at the Stribeck velocity, where s = 1/e."""
    budget = friction_law(model).budget(PARAMS, -0.5, 3.0, -2.0)
    assert budget.dry == pytest.approx(expected, rel=1e-14)
    assert budget.viscous == 0.1
    assert budget.torque(-0.5) == pytest.approx(expected + 0.05, rel=1e-14)


@pytest.mark.parametrize(
    ("tau_m", "tau_e", "quadratic"),
    [
        (3.0, -2.0, 0.007 * 4.0),  # the motor drives the load
        (-2.0, 3.0, 0.004 * 4.0),  # the load drives the motor
        (2.0, -2.0, 0.004 * 4.0),  # a tie counts as the load driving
        (3.0, 2.0, 0.0),  # both push the same way
        (3.0, 0.0, 0.0),
    ],
)
def test_quadratic_term_takes_the_weaker_of_two_opposing_torques(tau_m: float, tau_e: float, quadratic: float) -> None:
    with_term = friction_law("M6").budget(PARAMS, 0.0, tau_m, tau_e).dry
    without = friction_law("M5").budget(PARAMS, 0.0, tau_m, tau_e).dry
    assert with_term - without == pytest.approx(quadratic, abs=1e-15)


@pytest.mark.parametrize(
    ("larger", "values", "smaller"),
    [
        ("M2", {"kcs": 0.0}, "M1"),
        ("M3", {"kl": 0.0}, "M1"),
        ("M4", {"kl": 0.0, "kls": 0.0}, "M2"),
        ("M4", {"kcs": 0.0, "kls": 0.0}, "M3"),
        ("M5", {"km": 0.05, "ke": 0.05, "kms": 0.04, "kes": 0.04}, "M4"),
        ("M6", {"kmq": 0.0, "keq": 0.0}, "M5"),
    ],
)
def test_larger_model_contains_the_smaller(larger: str, values: dict[str, float], smaller: str) -> None:
    params, (dq, tau_m, tau_e) = changed(**values), random_states()
    np.testing.assert_allclose(
        friction_law(larger).budget(params, dq, tau_m, tau_e).torque(dq),
        friction_law(smaller).budget(params, dq, tau_m, tau_e).torque(dq),
        rtol=1e-14,
    )


@pytest.mark.parametrize("model", ALL)
def test_model_reads_exactly_the_coefficients_listed_for_it(model: str) -> None:
    dq, tau_m, tau_e = random_states()
    before = friction_law(model).budget(PARAMS, dq, tau_m, tau_e).torque(dq)
    for name, value in vars(PARAMS).items():
        after = friction_law(model).budget(changed(**{name: 1.5 * value}), dq, tau_m, tau_e).torque(dq)
        assert np.any(after != before) == (name in ("kv", "kc", *LAWS[model].coefficients)), name


def test_number_of_coefficients_is_the_published_one() -> None:
    assert [2 + len(LAWS[model].coefficients) for model in ALL] == [2, 5, 3, 7, 9, 11]


def test_stribeck_share_is_one_at_rest_and_gone_at_speed() -> None:
    np.testing.assert_allclose(stribeck(PARAMS, np.array([0.0, 0.5, -0.5])), [1.0, math.exp(-1), math.exp(-1)])
    assert stribeck(PARAMS, 50.0) == 0.0


def test_budget_is_even_in_the_sign_of_motion_and_torques() -> None:
    dq, tau_m, tau_e = random_states()
    for model in ALL:
        forward = friction_law(model).budget(PARAMS, dq, tau_m, tau_e)
        backward = friction_law(model).budget(PARAMS, -dq, -tau_m, -tau_e)
        np.testing.assert_array_equal(forward.dry, backward.dry)


@pytest.mark.parametrize("model", ALL)
def test_one_row_equals_row_k_of_many(model: str) -> None:
    dq, tau_m, tau_e = random_states(rows=129)
    together = friction_law(model).budget(PARAMS, dq, tau_m, tau_e)
    assert together.dry.shape == together.viscous.shape == (129, 12)
    for k in (0, 64, 128):
        alone = friction_law(model).budget(PARAMS, dq[k : k + 1], tau_m[k : k + 1], tau_e[k : k + 1])
        np.testing.assert_array_equal(alone.dry, together.dry[k : k + 1])


def test_coefficients_may_differ_by_row_and_joint() -> None:
    kc = np.random.default_rng(0).uniform(size=(5, 3))
    budget = friction_law("M1").budget(FrictionParams(kv=np.array([0.1, 0.2, 0.3]), kc=kc), 0.0, 0.0, 0.0)
    np.testing.assert_array_equal(budget.dry, kc)
    np.testing.assert_array_equal(budget.viscous[4], [0.1, 0.2, 0.3])


def simulate_joint(model: str, tau_m: float, dq: float, steps: int = 500) -> FloatArray:
    """Return the velocities of a joint of 0.01 kg m^2 under constant motor torque and friction."""
    inertia, dt, velocities = 0.01, 0.002, np.empty(steps)
    for t in range(steps):
        fm = friction_law(model).budget(PARAMS, dq, tau_m, 0.0).torque(dq)
        friction = np.clip(-(inertia / dt * dq + tau_m), -fm, fm)
        dq = dq + dt * float(tau_m + friction) / inertia
        velocities[t] = dq
    return velocities


@pytest.mark.parametrize("model", ALL)
def test_joint_at_rest_sticks_below_its_budget_and_slips_above(model: str) -> None:
    def rest_budget(tau: float) -> float:
        return float(friction_law(model).budget(PARAMS, 0.0, tau, 0.0).dry)

    held = 0.95 * rest_budget(0.0)
    assert held < rest_budget(held)
    assert np.all(simulate_joint(model, held, dq=0.0) == 0.0)
    free = 2.0 * rest_budget(0.0)
    assert free > rest_budget(free)
    assert simulate_joint(model, free, dq=0.0)[-1] > 1.0


@pytest.mark.parametrize("model", ALL)
def test_moving_joint_without_torque_stops_and_never_turns_back(model: str) -> None:
    velocities = simulate_joint(model, 0.0, dq=5.0)
    assert np.all(velocities >= -1e-15)
    assert np.all(np.diff(velocities) <= 1e-15)
    assert abs(velocities[-1]) <= 1e-15


def test_slipping_joint_reaches_the_speed_where_viscous_and_dry_friction_balance_the_motor() -> None:
    velocities = simulate_joint("M1", 0.5, dq=0.0, steps=2000)
    assert velocities[-1] == pytest.approx((0.5 - 0.3) / 0.1, rel=1e-6)


def test_unknown_model_is_answered_with_the_nearest() -> None:
    with pytest.raises(TrueupError, match="no friction model 'M7'"):
        friction_law("M7").budget(PARAMS, 0.0, 0.0, 0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(vars(PARAMS)))
def test_negative_or_nan_coefficient_is_named(name: str) -> None:
    for bad in (-0.1, math.nan):
        with pytest.raises(TrueupError, match=f"^{name}: {name} must be"):
            FrictionParams(**{name: bad})


@pytest.mark.parametrize("name", ["dqs", "alpha"])
def test_stribeck_velocity_and_curvature_of_zero_are_refused(name: str) -> None:
    with pytest.raises(TrueupError, match=name):
        FrictionParams(**{name: 0.0})
