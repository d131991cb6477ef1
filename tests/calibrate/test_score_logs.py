"""A saved fit on new logs: errors by hand, whose physics and base are used, what is refused."""

import msgspec
import numpy as np
import pytest
from made_calibration import made_calibration
from planted_logs import planted_log

from trueup.calibrate.score_logs import JointErrors, ModelScore, joint_errors, score_logs, sim_of
from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot
from trueup.world.replay.replay import Replay

ROBOT = load_robot("pendulum")
FIT = made_calibration(ROBOT, ("damping", "friction"))


def replayed(*errors: float, diverged: bool = False) -> Replay:
    """One window of one joint that is wrong by `errors` after its start."""
    position = np.array([0.0, *errors])[None, :, None]
    return Replay(
        start=np.zeros(1, np.intp),
        time=np.arange(position.shape[1]) / 10.0,
        joint_names=("joint",),
        joint_pos=position,
        joint_vel=np.zeros_like(position),
        measured_pos=np.zeros_like(position),
        diverged=np.array([diverged]),
    )


def test_errors_are_over_all_samples_of_all_logs():
    found = joint_errors([replayed(1.0, -1.0), replayed(3.0, 5.0)])
    assert found.rmse == pytest.approx([np.sqrt((1 + 1 + 9 + 25) / 4)])
    assert found.mae == pytest.approx([2.5])
    assert JointErrors([1.0, 3.0], [0.5, 1.5]).rmse_mean == 2.0
    assert JointErrors([1.0, 3.0], [0.5, 1.5]).mae_mean == 1.0


def test_windows_are_those_of_all_logs_and_none_where_all_are_too_short():
    score = ModelScore([replayed(1.0), replayed(2.0, diverged=True)], [[replayed(3.0)], []])
    assert score.windows.rmse == pytest.approx([3.0])
    assert score.diverged == 1
    assert ModelScore([replayed(1.0)], [[]]).windows is None


def test_the_physics_and_the_base_are_those_of_the_fit():
    made = msgspec.structs.replace(FIT, provenance={"physics_hz": 400, "config": {"base": "free"}})
    assert sim_of(ROBOT, made).physics_hz == 400.0
    assert sim_of(ROBOT, made).model.base == "free"
    for strange in ({}, {"physics_hz": "fast", "config": [1]}):
        sim = sim_of(ROBOT, msgspec.structs.replace(FIT, provenance=strange))
        assert (sim.physics_hz, sim.model.base) == (ROBOT.spec.physics_hz, "fixed")
    with pytest.raises(TrueupError, match="of 'pendulum' with other joints than 'so101'"):
        sim_of(load_robot("so101"), FIT)


def test_a_fit_that_made_the_log_predicts_it_and_the_nominal_one_is_worse():
    truth = {one.parameter.name: np.array([one.value]) for one in FIT.estimates}
    log = planted_log(ROBOT, truth, seconds=2.0, noise=0.0, physics_hz=1000.0)
    fit = msgspec.structs.replace(FIT, provenance={"physics_hz": 1000.0})
    scores = score_logs(ROBOT, [log], fit)
    assert scores.calibrated.open_loop.rmse_mean < 0.1 * scores.nominal.open_loop.rmse_mean
    assert not scores.worse
    wrong = msgspec.structs.replace(
        fit, estimates=tuple(msgspec.structs.replace(one, value=2.0) for one in FIT.estimates)
    )
    assert score_logs(ROBOT, [log], wrong).worse
    assert score_logs(ROBOT, [log]).calibrated is None


def test_no_log_is_refused():
    with pytest.raises(TrueupError, match="no log was given to score on"):
        score_logs(ROBOT, [], FIT)
