"""Parameters of the second engine by name: shapes, effects that can be computed by hand, refusals."""

import math

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.engines.conformance.contact_cases import BLOCK
from trueup.world.engines.physx_params import HONOURED
from trueup.world.engines.sapien_sim import SapienSim
from trueup.world.parameters.table import PARAMETERS

pytest.importorskip("sapien", reason="the second engine is not installed (extra physx)")

ARM, LENGTH, G = 0.5, 0.15, 9.81  # the pendulum's load, kg and m


@pytest.fixture
def level():
    """Two pendulums held level, stiffly."""
    sim = SapienSim(load_robot("pendulum"), SimCfg(nsim=2, threads=1))
    for name, value in {"kp": 500.0, "kd": 3.0, "friction": 0.0}.items():
        sim.params.set(name, value)

    def torque():
        sim.reset(qpos=np.full((2, 1), 0.5 * math.pi))
        for _ in range(150):
            sim.step(0.5 * math.pi)
        return np.abs(sim.joint_torque[:, 0])

    return sim, torque


def test_names_shapes_and_values_are_those_of_the_first_engine():
    robot = load_robot("go2")
    one, other = (kind(robot, SimCfg(nsim=2, threads=1)) for kind in (BatchSim, SapienSim))
    for name in HONOURED:
        np.testing.assert_allclose(other.params.get(name), one.params.get(name), rtol=1e-9, atol=1e-12, err_msg=name)
    assert other.params.names_of("joint") == robot.spec.joint_names
    assert other.params.names_of("body") == one.params.names_of("body")


def test_rows_joints_and_bodies_are_set_by_name():
    sim = SapienSim(load_robot("go2"), SimCfg(nsim=3, threads=1))
    sim.params.set("kp", 33.0, of="FR_calf_joint", ids=np.array([1]))
    values = sim.params.get("kp")
    assert values[1, 5] == 33.0
    assert (np.delete(values.ravel(), 12 + 5) == 20.0).all()
    sim.params.set("mass_scale", [[2.0], [1.0], [0.5]], of="base")
    assert sim.params.get("mass_scale")[:, 0].tolist() == [2.0, 1.0, 0.5]
    assert sim.physx.rows[0].links[1].mass == pytest.approx(2 * 6.921, rel=1e-6)
    assert sim.params.get("inertia")[2, 0, 0] == pytest.approx(0.5 * 0.02448)


def test_a_heavier_load_needs_more_torque(level):
    sim, torque = level
    sim.params.set("mass_scale", [[1.0], [2.0]], of="load")
    np.testing.assert_allclose(torque(), np.array([1.0, 2.0]) * ARM * LENGTH * G, rtol=2e-3)


def test_a_centre_of_mass_that_is_moved_needs_more_torque(level):
    sim, torque = level
    sim.params.set("com_offset", [[[0.0, 0.0, 0.0]], [[0.0, 0.0, -0.03]]], of="load")
    np.testing.assert_allclose(torque(), ARM * np.array([LENGTH, LENGTH + 0.03]) * G, rtol=2e-3)


def test_inertia_is_that_of_the_first_engine_by_tensor_and_by_shape():
    robot = load_robot("go2")
    one, other = (kind(robot, SimCfg(nsim=2, threads=1)) for kind in (BatchSim, SapienSim))
    shape = np.random.default_rng(0).normal(scale=0.1, size=(2, 1, 6))
    for sim in (one, other):
        sim.params.set("mass_scale", [[1.2], [0.8]], of="FL_thigh")
        sim.params.set("inertia_shape", shape, of="FL_thigh")
    for name in ("inertia", "inertia_shape", "mass_scale"):
        np.testing.assert_allclose(other.params.get(name), one.params.get(name), rtol=1e-6, atol=1e-9)
    link = other.physx.rows[0].links[other.model.body("FL_thigh").id]
    moments = one.batch.expand("body_inertia")[0, other.model.body("FL_thigh").id]
    np.testing.assert_allclose(np.sort(link.inertia), np.sort(moments), rtol=1e-5)
    with pytest.raises(TrueupError, match="not physical"):
        other.params.set("inertia", [1.0, 0.1, 0.1, 0.0, 0.0, 0.0], of="FL_thigh")


def test_a_limit_that_changes_while_running_acts_at_once(level):
    sim, torque = level
    assert torque()[0] == pytest.approx(ARM * LENGTH * G, rel=2e-3)
    sim.params.set("torque_limit", 0.2)
    sim.step(0.5 * math.pi)
    for _ in range(100):
        sim.step(0.5 * math.pi)
    assert (np.abs(sim.joint_torque) <= 0.2 + 1e-9).all()
    assert (sim.joint_pos < 1.0).all()  # the load pulls it down


def test_gravity_and_tilt_are_each_rows_own(level):
    sim, torque = level
    sim.params.set("gravity", [[0.0, 0.0, -9.81], [0.0, 0.0, -1.62]])
    np.testing.assert_allclose(torque(), ARM * LENGTH * np.array([9.81, 1.62]), rtol=2e-3)
    sim.params.set("tilt", (0.0, 0.5))
    np.testing.assert_allclose(sim.params.get("tilt"), [[0.0, 0.5]] * 2)
    np.testing.assert_allclose(sim.params.get("gravity")[0], 9.81 * np.array([math.sin(0.5), 0.0, -math.cos(0.5)]))
    np.testing.assert_allclose(torque(), ARM * LENGTH * np.array([9.81, 1.62]) * math.cos(0.5), rtol=2e-3)


def test_a_spring_and_an_offset_pull(level):
    sim, torque = level
    sim.params.set("gravity", (0.0, 0.0, 0.0))
    sim.params.set("torque_offset", [[0.3], [0.0]])
    sim.params.set("stiffness", [[0.0], [0.2]])  # towards 0
    np.testing.assert_allclose(torque(), [0.3, 0.2 * 0.5 * math.pi], rtol=2e-3)


def test_stops_are_met_where_they_were_set():
    sim = SapienSim(load_robot("pendulum"), SimCfg(nsim=2, threads=1))
    sim.params.set("stop_high", [[0.2], [0.5]])
    sim.reset()
    for _ in range(100):
        sim.step(1.0)
    np.testing.assert_allclose(sim.joint_pos[:, 0], [0.2, 0.5], atol=5e-3)
    with pytest.raises(TrueupError, match="stop_low must stay below stop_high"):
        sim.params.set("stop_low", 0.4)


def test_what_it_cannot_honour_is_refused_by_name():
    sim = SapienSim(load_robot(BLOCK), SimCfg(threads=1))
    for name in set(PARAMETERS) - set(HONOURED):
        with pytest.raises(TrueupError, match=f"cannot honour parameter '{name}'"):
            sim.params.get(name)
    for name, value, of, text in (
        ("armatur", 0.1, None, "no parameter 'armatur' (did you mean 'armature'"),
        ("kp", -1.0, None, "must be at least 0"),
        ("kp", np.nan, None, "must be finite"),
        ("kp", np.zeros((5, 7)), None, "broadcasts to"),
        ("kp", 1.0, "weel", "no joint 'weel' (did you mean 'wheel'"),
        ("contact_friction", 0.5, "block", "belongs to the whole robot"),
        ("no_load_speed", 5.0, None, "needs ActuatorCfg"),
    ):
        with pytest.raises(TrueupError, match=text.replace("(", r"\(")):
            sim.params.set(name, value, of=of)
