"""Draws from a calibration: everything that was fitted, with its correlations, in place of the task's ranges."""

import msgspec
import numpy as np
import pytest
from made_params import made_params, one

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Predictive, Ratio, read_calibration, write_calibration
from trueup.world.fitted.posterior import Fitted, sim_for_fit
from trueup.world.randomization.randomize import Draw, Randomizer

GO2 = load_robot("go2")
JOINTS = GO2.spec.joint_names
COVARIANCE = [[0.04, 0.03, 0.0], [0.03, 0.04, 0.0], [0.0, 0.0, 1.0]]


def make(nsim: int, robot: str = "go2", cfg: SimCfg | None = None, **more) -> BatchSim:
    cfg = cfg or SimCfg()
    return BatchSim(load_robot(robot), SimCfg(**(vars(cfg) | {"nsim": nsim, "threads": 1} | more)))


def three():
    """Damping of a joint and kp of all, correlated, and a friction that the data did not show."""
    estimates = [
        one("damping", JOINTS[:1], "bounded", 3.0),
        one("kp", JOINTS, "identified", 0.9, mode="times"),
        one("friction", JOINTS[1:2], "not visible", 0.7),
    ]
    return made_params(JOINTS, estimates, [1.0, 0.0, 0.5], COVARIANCE)


def test_everything_fitted_is_drawn_with_the_mean_and_the_covariance_of_the_fit() -> None:
    sim = make(4000)
    Randomizer(sim, {}, Fitted(three(), sim)).apply()
    drawn = np.stack(
        [sim.params.get("damping")[:, 0], sim.params.get("kp")[:, 3] / GO2.spec.kp[3], sim.params.get("friction")[:, 1]]
    )
    np.testing.assert_allclose(drawn.mean(axis=1), [3.1, 0.9, 0.75], atol=0.005)
    np.testing.assert_allclose(np.cov(drawn), 0.01 * np.array(COVARIANCE), atol=4e-4)
    assert np.ptp(sim.params.get("kp") / GO2.spec.kp, axis=1).max() < 1e-12


def test_a_range_acts_on_what_the_fit_left_out_only() -> None:
    sim = make(300)
    ranges = {
        "damping": Draw(operation="scale", low=0.5, high=0.6),
        "kp": Draw(operation="scale", low=5.0, high=6.0),
        "motor_strength": Draw(operation="scale", low=2.0, high=3.0),
    }
    nominal = {name: sim.params.get(name)[0] for name in ("damping", "torque_limit")}
    Randomizer(sim, ranges, Fitted(three(), sim)).apply()
    damping, kp = sim.params.get("damping"), sim.params.get("kp") / GO2.spec.kp
    assert abs(damping[:, 0].mean() - 3.1) < 0.01
    assert (damping[:, 1:] <= 0.6 * nominal["damping"][1:] + 1e-12).all()
    assert kp.max() < 1.1
    assert (sim.params.get("torque_limit") >= 2.0 * nominal["torque_limit"]).all()


def test_a_fitted_bounce_is_not_overwritten_by_a_range_of_restitution() -> None:
    sim = make(20)
    fit = made_params(JOINTS, [one("contact_dampratio", (), "weak", 0.8)], [0.0], np.array([[1e-8]]))
    Randomizer(sim, {"restitution": Draw(operation="set", low=0.4, high=0.5)}, Fitted(fit, sim)).apply()
    np.testing.assert_allclose(sim.params.get("contact_dampratio"), 0.8, atol=1e-3)


def test_fitted_masses_bring_their_inertia_and_have_the_payload_in_them() -> None:
    body = [one("mass_scale", ("base",), "weak", 1.2), one("inertia_shape", ("base",), "weak", 0.3, axis=0)]
    fit = made_params(JOINTS, body, [0.0, 0.0], 1e-12 * np.eye(2))
    sim, plain = make(3), make(3)
    at, nominal = sim.params.body_names.index("base"), sim.params.get("inertia")[0]
    Randomizer(sim, {}, Fitted(fit, sim)).apply()
    plain.params.set("mass_scale", 1.2, of="base")
    plain.params.set("inertia_shape", [0.3, 0, 0, 0, 0, 0], of="base")
    np.testing.assert_allclose(sim.params.get("mass_scale"), plain.params.get("mass_scale"), atol=1e-6)
    np.testing.assert_allclose(sim.params.get("inertia"), plain.params.get("inertia"), rtol=1e-5, atol=1e-9)
    assert not np.allclose(sim.params.get("inertia")[0, at], 1.2 * nominal[at], rtol=0.02)
    loaded = make(3)
    Randomizer(loaded, {"payload": Draw(operation="set", low=2, high=2)}, Fitted(fit, loaded)).apply()
    np.testing.assert_allclose(loaded.params.get("mass_scale")[:, at], 1.2, atol=1e-6)


def test_rows_do_not_depend_on_the_size_of_the_batch() -> None:
    few, many = make(3), make(40)
    for sim in (few, many):
        Randomizer(sim, {}, Fitted(three(), sim)).apply()
    for name in ("damping", "kp", "friction"):
        np.testing.assert_array_equal(few.params.get(name), many.params.get(name)[:3])


def test_the_stand_stays_out_by_name_and_the_rest_is_handed_on() -> None:
    estimates = [
        one("tilt", (), "identified", 0.1, axis=0),
        one("mount_stiffness", (), "identified", 1.0, axis=0, mode="times"),
        one("damping", JOINTS[:1], "weak", 1.0),
    ]
    fit = made_params(JOINTS, estimates, [0.0] * 3, np.eye(3))
    fitted = Fitted(fit, make(2))
    assert [one.estimate.parameter.name for one in fitted.left_out] == ["tilt", "mount_stiffness"]
    assert {one.reason for one in fitted.left_out} == {"belongs to the stand"}
    assert fitted.names == ("damping",)
    on_stand = Fitted(fit, make(1, cfg=SimCfg(model=ModelCfg(base="mount"))))
    assert on_stand.names == ("tilt", "mount_stiffness", "damping")


def test_an_encoder_bias_that_is_not_identified_is_left_to_the_tasks_range() -> None:
    estimates = [
        one("encoder_bias", JOINTS[:1], "weak", 0.1),
        one("encoder_bias", JOINTS[1:2], "identified", 0.02),
        one("damping", JOINTS[:1], "weak", 1.0),
    ]
    sim = make(200)
    fitted = Fitted(made_params(JOINTS, estimates, [0.0] * 3, 1e-6 * np.eye(3)), sim)
    (left,) = fitted.left_out
    assert left.estimate.parameter.of == JOINTS[:1]
    assert "not identified" in left.reason
    Randomizer(sim, {"encoder_bias": Draw(operation="set", low=-0.05, high=0.05)}, fitted).apply()
    bias = sim.params.get("encoder_bias")
    assert 0.04 < np.abs(bias[:, 0]).max() <= 0.05
    np.testing.assert_allclose(bias[:, 1], 0.02, atol=1e-3)


def test_friction_and_motor_models_are_used_where_the_simulation_has_them() -> None:
    names = ("friction_kcs", "no_load_speed", "damping")
    estimates = [one(name, JOINTS[:1], "weak", 1.0) for name in names]
    fit = made_params(JOINTS, estimates, [0.0] * 3, 1e-6 * np.eye(3))
    plain = make(2)
    reasons = {one.estimate.parameter.name: one.reason for one in Fitted(fit, plain).left_out}
    assert reasons == {"friction_kcs": "the simulation has no such friction model"} | (
        {} if GO2.spec.has_envelope else {"no_load_speed": "the simulation has no motor envelope"}
    )
    able = make(2, cfg=sim_for_fit(SimCfg(), fit))
    fitted = Fitted(fit, able)
    assert fitted.left_out == ()
    Randomizer(able, {}, fitted).apply()
    np.testing.assert_allclose(able.params.get("friction_kcs")[:, 0], 1.0, atol=0.01)


def test_without_the_posterior_every_row_has_the_estimate() -> None:
    sim = make(5)
    fitted = Fitted(three(), sim, posterior=False)
    randomizer = Randomizer(sim, {}, fitted)
    randomizer.apply()
    np.testing.assert_array_equal(sim.params.get("damping")[:, 0], np.full(5, 3.1))
    assert randomizer.factors.shape == (5, 0)


def test_a_factor_multiplies_the_robots_own_gain_and_not_what_a_learned_actuator_has_set() -> None:
    fit = made_params(JOINTS, [one("kp", JOINTS, "weak", 1.5, mode="times")], [0.0], np.array([[1e-12]]))
    sim = make(2)
    sim.params.set("kp", 1.5 * GO2.spec.kp)
    Randomizer(sim, {}, Fitted(fit, sim)).apply()
    np.testing.assert_allclose(sim.params.get("kp"), np.tile(1.5 * GO2.spec.kp, (2, 1)), rtol=1e-5)


def test_training_reads_the_very_object_that_calibration_wrote(tmp_path) -> None:
    ratio = Ratio(
        label="kp / armature",
        members=("kp", "armature"),
        value=2.0,
        standard_error=0.1,
        interval=(1.8, 2.2),
        unit="1/s^2",
        verdict="identified",
    )
    check = Predictive(
        draws=64, median_ratio=1.1, q95_ratio=1.5, estimate_error=0.01, spread=(0.009, 0.02), covered=True
    )
    fit = msgspec.structs.replace(three(), alarms=("worse than nominal",), ratios=(ratio,), predictive=check)
    write_calibration(fit, tmp_path)
    assert read_calibration(tmp_path) == fit
    assert Fitted(read_calibration(tmp_path), make(1)).estimates == fit.estimates


def test_a_file_of_the_old_schema_is_refused_in_one_line(tmp_path) -> None:
    (tmp_path / "params.json").write_text('{"schema": 1, "robot": "go2"}')
    with pytest.raises(TrueupError, match="schema 1.*reads schema 2: make it again") as caught:
        read_calibration(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_calibration_of_another_robot_is_refused() -> None:
    with pytest.raises(TrueupError, match="other joints"):
        Fitted(three(), make(1, "pendulum"))


def test_a_fit_with_nothing_for_this_simulation_is_refused_by_name() -> None:
    fit = made_params(JOINTS, [one("mount_damping", (), "identified", 1.0, axis=0)], [0.0], np.eye(1))
    with pytest.raises(TrueupError, match=r"no parameter that acts.*mount_damping"):
        Fitted(fit, make(1))
