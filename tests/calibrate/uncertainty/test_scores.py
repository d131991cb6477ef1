"""Scores of replays and their bootstrap by hand; alarms that come before any number of a calibration."""

import msgspec
import numpy as np
import pytest
from made_calibration import made_calibration

from trueup.calibrate.uncertainty.scores import alarms, bootstrap, error_blocks, recorded_drivers
from trueup.robot.load import load_robot
from trueup.world.fitted.calibration import Calibration, FitScore, Predictive
from trueup.world.replay.replay import Replay

ROBOT = load_robot("pendulum")


def raised_by(result):
    return tuple(alarms(result))


def changed(**fields: object) -> Calibration:
    return msgspec.structs.replace(made_calibration(ROBOT, ("armature", "damping")), **fields)


def score(mean: float) -> FitScore:
    return FitScore(open_loop=[mean], window=[mean], open_loop_mean=mean, window_mean=mean, spread=(mean, mean))


def check(median: float, q95: float) -> Predictive:
    return Predictive(
        draws=40, median_ratio=median, q95_ratio=q95, estimate_error=1e-3, spread=(0.0, 1.0), covered=True
    )


def logs(*drivers: str | None) -> dict[str, object]:
    return {"logs": [{"meta": {} if name is None else {"driver": name}} for name in drivers]}


def test_a_sound_result_raises_no_alarm():
    assert raised_by(changed(predictive=check(1.1, 1.5))) == ()


def test_a_model_that_is_worse_on_held_out_data_is_an_alarm_with_both_numbers():
    (alarm,) = raised_by(changed(holdout_nominal=score(0.010), holdout_calibrated=score(0.012)))
    assert "12.00 against 10.00 mrad" in alarm


def test_a_fit_in_which_nothing_is_visible_learned_nothing():
    blind = made_calibration(ROBOT, ("armature", "damping"), deviation={"armature": 1.0, "damping": 1.0})
    (alarm,) = raised_by(blind)
    assert "learned nothing" in alarm
    half = made_calibration(ROBOT, ("armature", "damping"), deviation={"armature": 1.0})
    assert raised_by(half) == ()


@pytest.mark.parametrize(("median", "q95", "raised"), [(1.31, 1.5, 1), (1.2, 2.1, 1), (1.3, 2.0, 0)])
def test_a_posterior_that_is_too_wide_to_train_in_is_an_alarm(median: float, q95: float, raised: int):
    assert len(raised_by(changed(predictive=check(median, q95)))) == raised


def test_logs_of_two_robots_are_an_alarm_and_two_addresses_of_one_twin_are_not():
    two = changed(provenance=logs("twin:pace?seed=1", "twin:pace?seed=2"))
    assert any("different robots" in alarm for alarm in raised_by(two))
    one = changed(provenance=logs("twin:pace?seed=1", "twin:pace?seed=1&lockstep=1", None))
    assert len([name for name in recorded_drivers(one) if name is not None]) == 1
    assert None in recorded_drivers(one)
    assert raised_by(one) == ()


def test_provenance_of_strangers_does_not_break_the_alarms():
    for content in ({}, {"logs": 3}, {"logs": [1, {"meta": []}, {"meta": {"driver": 7}}]}):
        assert raised_by(changed(provenance=content)) == ()


def replayed(error: np.ndarray) -> Replay:
    """One window whose positions are wrong by `error` (L, njoint) after its start; 10 samples a second."""
    position = np.concatenate([np.zeros((1, error.shape[1])), error])[None]
    return Replay(
        start=np.zeros(1, np.intp),
        time=np.arange(position.shape[1]) / 10.0,
        joint_names=tuple("ab"[: error.shape[1]]),
        joint_pos=position,
        joint_vel=np.zeros_like(position),
        measured_pos=np.zeros_like(position),
        diverged=np.zeros(1, bool),
    )


def test_blocks_are_seconds_and_a_bootstrap_of_equal_blocks_has_no_spread():
    error = np.repeat([[1.0, 2.0], [3.0, 0.0]], 10, axis=0)
    blocks = error_blocks([replayed(error)])
    np.testing.assert_allclose(blocks, [[1.0, 4.0], [9.0, 0.0]])
    draws = bootstrap(np.tile([[4.0, 9.0]], (6, 1)), 50)
    np.testing.assert_allclose(draws, np.tile([2.0, 3.0], (50, 1)))


def test_a_bootstrap_spreads_as_its_blocks_do():
    squares = np.random.default_rng(0).uniform(0.5, 1.5, (400, 1))
    draws = bootstrap(squares, 500)
    expected = squares.std() / np.sqrt(len(squares)) / 2.0  # of the root, near one
    assert draws.std() == pytest.approx(expected, rel=0.15)
