"""Export: the calibrated robot opens again with the estimates in it, and every loss is declared."""

import msgspec
import numpy as np
import pytest

from trueup.calibrate.export import export_robot
from trueup.calibrate.parameters import make_parameters
from trueup.calibrate.result import Calibration, Effort, Estimate, Misfit
from trueup.calibrate.score import Score
from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.sim.batch import BatchSim, SimCfg

ROBOT = load_robot("go2")
CFG = SimCfg(model=ModelCfg(base="fixed"))
NAMES = ("armature", "friction", "delay", "kp", "torque_limit", "mass_scale", "com_offset")


@pytest.fixture(scope="module")
def result() -> Calibration:
    """A calibration with every parameter 0.3 prior widths off its prior."""
    parameters = make_parameters(BatchSim(ROBOT, CFG), NAMES, bodies=("FL_calf",))
    estimates = tuple(
        Estimate(
            parameter=entry,
            value=float(entry.to_value(np.array(0.3))),
            standard_error=0.0,
            interval=(0.0, 0.0),
            verdict="identified",
            ratio=0.1,
            partner="",
            correlation=0.0,
            on_bound=False,
            advice="",
        )
        for entry in parameters
    )
    count, zero = len(estimates), [0.0] * 12
    empty = Score(open_loop=zero, window=zero, open_loop_mean=0.0, window_mean=0.0, spread=(0.0, 0.0))
    return Calibration(
        schema=1,
        robot="go2",
        joint_names=ROBOT.spec.joint_names,
        estimates=estimates,
        x=[0.3] * count,
        covariance=(0.01 * np.eye(count)).tolist(),
        misfit=Misfit(noise=[1.0], left=[1.0], memory_s=[0.0]),
        effort=Effort(seconds=0, rollouts=0, simulated_s=0, iterations=0, converged=True, interrupted=False),
        fit_nominal=empty,
        fit_calibrated=empty,
        holdout_nominal=None,
        holdout_calibrated=None,
        provenance={},
    )


def test_the_exported_robot_equals_the_calibrated_simulation_but_for_the_declared_losses(result, tmp_path):
    export = export_robot(ROBOT, result, tmp_path / "robot")
    assert export.losses
    assert all(loss.startswith("delay") for loss in export.losses)
    calibrated = BatchSim(ROBOT, CFG)
    result.apply(calibrated)
    written = BatchSim(load_robot(export.folder), CFG)
    for name in ("armature", "friction", "damping", "kp", "torque_limit", "inertia"):
        np.testing.assert_allclose(
            written.params.get(name), calibrated.params.get(name), rtol=1e-6, atol=1e-12
        )
    for field in ("body_mass", "body_ipos"):
        mine, theirs = written.batch.expand(field), calibrated.batch.expand(field)
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def test_a_folder_that_holds_something_is_left_alone(result, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(TrueupError, match="not empty"):
        export_robot(ROBOT, result, tmp_path)


def test_a_result_of_other_joints_is_refused(result):
    other = msgspec.structs.replace(result, joint_names=("a", "b"))
    with pytest.raises(TrueupError, match="other joints"):
        other.apply(BatchSim(ROBOT, CFG))
