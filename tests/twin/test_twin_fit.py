"""Twins of a calibrated robot."""

from pathlib import Path

import numpy as np
import pytest
from made_calibration import made_calibration

from trueup.core.errors import TrueupError
from trueup.hardware.drivers.open import open_driver, same_twin, twin_options
from trueup.hardware.twin_cfg import TwinCfg
from trueup.robot.load import load_robot
from trueup.twin.firmware import Twin
from trueup.world.fitted.calibration import write_calibration

GO2 = load_robot("go2")


def fit(folder: Path, names: tuple[str, ...], **more) -> str:
    write_calibration(made_calibration(GO2, names, **more), folder)
    return str(folder)


def test_a_twin_of_a_fit_has_the_fitted_numbers_and_other_seeds_other_draws(tmp_path: Path) -> None:
    names = ("armature", "damping", "friction", "delay", "torque_limit", "friction_kcs", "mass_scale", "kp")
    made = made_calibration(GO2, names, bodies=("FL_calf",), x=0.5)
    params = str(write_calibration(made, tmp_path))
    first, same, other = (Twin(GO2, TwinCfg(preset="ideal", seed=seed, params=params)) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.truth.joint.damping, same.truth.joint.damping)
    assert not np.allclose(first.truth.joint.damping, other.truth.joint.damping)
    drawn = made.sample(np.random.default_rng([3, 3]), 1)[0]
    by_name = [entry.name for entry in made.parameters]
    of = {name: drawn[[n == name for n in by_name]] for name in names}
    np.testing.assert_allclose(first.truth.joint.armature, of["armature"])
    np.testing.assert_allclose(first.truth.delay_s, of["delay"][0])
    assert first.truth.motor is not None
    np.testing.assert_allclose(first.truth.motor.torque_limit, of["torque_limit"] * GO2.spec.torque_limit)
    assert first.truth.friction is not None
    np.testing.assert_allclose(first.truth.friction.stiction, of["friction_kcs"])
    assert first.truth.body is not None
    at = first.truth.body.names.index("FL_calf")
    np.testing.assert_allclose(first.truth.body.mass_scale[at], of["mass_scale"][0])
    assert "of the fit, without a place in a twin: kp" in first.truth.notes


def test_a_twin_of_a_fit_has_a_name_of_its_own_and_keeps_the_presets_other_effects(tmp_path: Path) -> None:
    twin = Twin(GO2, TwinCfg(preset="harmonic", seed=1, params=fit(tmp_path, ("damping",))))
    assert twin.name.startswith("go2-harmonic-fit")
    assert twin.truth.transmission is not None
    twin.command(np.zeros((5, 12)))


def test_the_reference_of_a_twin_names_its_fit() -> None:
    options = twin_options("ideal?seed=3&params=my/fit")
    assert options.params == "my/fit"
    assert same_twin("twin:ideal?seed=3&params=my/fit&lockstep=1") == "twin:ideal?seed=3&params=my/fit"
    assert same_twin("twin:ideal?seed=3") == "twin:ideal?seed=3"


def test_a_fit_of_another_robot_is_refused(tmp_path: Path) -> None:
    params = fit(tmp_path, ("damping",))
    with pytest.raises(TrueupError, match="other joints"):
        Twin(load_robot("pendulum"), TwinCfg(preset="ideal", params=params))


def test_a_driver_starts_the_twin_of_a_fit_and_a_wrong_file_is_an_error(tmp_path: Path) -> None:
    params = fit(tmp_path / "fit", ("damping",), x=1.0)
    with open_driver(f"twin:ideal?seed=3&lockstep=1&params={params}", GO2) as driver:
        assert driver.name.startswith("go2-ideal-fit")
        assert np.isfinite(driver.read().joint_pos).all()
    with pytest.raises(TrueupError, match="no calibration here"):
        open_driver(f"twin:ideal?params={tmp_path / 'nothing'}", GO2).connect()
