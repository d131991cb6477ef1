"""Inertia by log-Cholesky: every vector is a possible body, zero is the nominal one, slopes are finite."""

import numpy as np
import pytest

from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.parameters.inertia import check_inertia, from_shape, matrix, second_moment, to_shape

NOMINAL = np.array([0.03, 0.09, 0.1, 0.004, -0.006, 0.002])


def test_any_vector_gives_a_physical_body():
    shapes = np.random.default_rng(0).normal(0, 2.0, (2000, 6))
    six = from_shape(shapes, NOMINAL)
    check_inertia(six[:, None], ("body",))
    sigma, com, mass = second_moment(six), np.array([0.1, -0.2, 0.05]), 1.3
    pseudo = np.zeros((len(six), 4, 4))
    pseudo[:, :3, :3] = sigma + mass * np.outer(com, com)
    pseudo[:, :3, 3] = pseudo[:, 3, :3] = mass * com
    pseudo[:, 3, 3] = mass
    assert (np.linalg.eigvalsh(pseudo) > 0).all()


def test_zero_is_the_nominal_inertia_and_the_inverse_returns_the_vector():
    np.testing.assert_allclose(from_shape(np.zeros(6), NOMINAL), NOMINAL, rtol=1e-12)
    shapes = np.random.default_rng(1).normal(0, 0.5, (50, 6))
    np.testing.assert_allclose(to_shape(from_shape(shapes, NOMINAL), NOMINAL), shapes, atol=1e-9)


def test_slopes_are_finite_and_independent():
    step, at = 1e-6, np.random.default_rng(2).normal(0, 0.5, 6)
    columns = [
        (from_shape(at + step * e, NOMINAL) - from_shape(at - step * e, NOMINAL)) / (2 * step) for e in np.eye(6)
    ]
    assert np.isfinite(columns).all()
    assert np.linalg.cond(np.array(columns)) < 1e4


def test_a_flat_body_is_given_a_little_thickness():
    flat = np.array([1.0, 1.0, 2.0, 0.0, 0.0, 0.0])  # a disc
    six = from_shape(np.full(6, 0.3), flat)
    assert (np.linalg.eigvalsh(matrix(six)) > 0).all()


def test_shape_and_mass_act_together_in_the_engine():
    sim = BatchSim(load_robot("go2"), SimCfg(nsim=2))
    before = sim.params.get("inertia")
    shape = np.array([0.2, -0.1, 0.3, 0.1, 0.0, -0.2])
    sim.params.set("inertia_shape", shape, of="FL_thigh")
    sim.params.set("mass_scale", 1.5, of="FL_thigh")
    body = sim.params.body_names.index("FL_thigh")
    np.testing.assert_allclose(sim.params.get("inertia_shape")[0, body], shape, atol=1e-7)
    np.testing.assert_allclose(
        sim.params.get("inertia")[0, body], 1.5 * from_shape(shape, before[0, body]), rtol=1e-6, atol=1e-12
    )


@pytest.mark.parametrize("name", ["inertia_shape"])
def test_it_can_be_set_again_without_piling_up(name):
    sim = BatchSim(load_robot("go2"), SimCfg(nsim=1))
    for _ in range(2):
        sim.params.set(name, [0.1] * 6, of="FL_calf")
    at = sim.params.body_names.index("FL_calf")
    np.testing.assert_allclose(sim.params.get(name)[0, at], 0.1, atol=1e-6)
