"""Rollouts, their errors and long runs: hand-computed numbers, one against many, planted truth."""

import numpy as np
import pytest
from made_calibration import made_calibration
from planted_logs import planted_log

from trueup.calibrate.actuator.fits import excerpts
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import error_of, roll, score_rung
from trueup.calibrate.actuator.trials import judged_run, long_run
from trueup.calibrate.uncertainty.scores import error_blocks
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg
from trueup.world.replay.replay import Replay, ReplayCfg, replay

ROBOT = load_robot("go2")
SIM = SimCfg(physics_hz=200.0, model=ModelCfg(base="fixed"))
PD = Actuator(rung=rung_named("pd"))
CALIBRATED = made_calibration(ROBOT, ("armature", "damping", "friction", "encoder_bias", "delay"))
PACE = Actuator(rung=rung_named("pace"), params=CALIBRATED)


def planted_by(actuator: Actuator, **options):
    truth = {} if actuator.params is None else _values(actuator.params)
    return planted_log(ROBOT, truth, **options)


def _values(params):
    out = {}
    for entry in params.estimates:
        values = out.setdefault(entry.parameter.name, np.zeros(12))
        values[[ROBOT.spec.joint_names.index(name) for name in entry.parameter.of]] = entry.value
    return out


def made_replay(error, dt=0.1) -> Replay:
    error = np.asarray(error, float)
    n, length, _ = error.shape
    return Replay(
        start=np.zeros(n, np.intp),
        time=dt * np.arange(length),
        joint_names=("a", "b")[: error.shape[2]],
        joint_pos=error,
        joint_vel=error,
        measured_pos=np.zeros_like(error),
        diverged=np.zeros(n, bool),
    )


def test_the_error_is_the_mean_over_joints_of_root_mean_squares():
    error = np.zeros((2, 21, 2))
    error[0, 1:, 0], error[1, 1:, 0], error[:, 1:, 1] = 3.0, 4.0, 1.0
    found = error_of([made_replay(error)], None)
    np.testing.assert_allclose(found.joints, [np.sqrt(12.5), 1.0])
    assert found.mean == pytest.approx((np.sqrt(12.5) + 1.0) / 2)
    assert found.se > 0


def test_samples_of_logs_of_different_lengths_count_alike():
    short, long = np.full((1, 11, 1), 2.0), np.full((1, 31, 1), 1.0)
    found = error_of([made_replay(short), made_replay(long)], None)
    assert found.mean == pytest.approx(np.sqrt((10 * 4.0 + 30 * 1.0) / 40))
    assert len(error_blocks([made_replay(short), made_replay(long)])) == 4  # seconds


def test_a_simulation_that_blew_up_is_ten_radians_off():
    error = np.full((1, 11, 1), np.nan)
    assert error_of([made_replay(error)], None).mean == pytest.approx(10.0)


@pytest.mark.medium
def test_logs_side_by_side_are_each_as_alone():
    logs = [planted_by(PACE, seconds=2.0 + k, seed=k) for k in range(2)]
    together = roll(ROBOT, logs, PACE, SIM)
    for log, found in zip(logs, together, strict=True):
        alone = roll(ROBOT, [log], PACE, SIM)[0]
        np.testing.assert_array_equal(alone.joint_pos, found.joint_pos)
        assert len(found.time) == len(log)


@pytest.mark.medium
def test_a_whole_rollout_is_what_replay_gives():
    log = planted_by(PACE, seconds=2.0)
    ours = roll(ROBOT, [log], PACE, SIM)[0].joint_pos
    plain = replay(ROBOT, log, ReplayCfg(sim=SIM), prepare=CALIBRATED.apply).joint_pos
    np.testing.assert_array_equal(ours, plain)


@pytest.mark.medium
def test_the_true_model_predicts_at_every_horizon_and_a_wrong_one_does_not():
    train, held = planted_by(PACE, seconds=4.0), planted_by(PACE, seconds=4.0, seed=5)
    right, wrong = (score_rung(ROBOT, model, [train], [held], ["motion"], SIM) for model in (PACE, PD))
    assert [error.seconds for error in right.held] == [pytest.approx(0.005), 0.1, 1.0, None]
    assert right.whole.mean < 1e-3  # noise of 0.3 mrad and steps of 0.2
    assert wrong.whole.mean > 10 * right.whole.mean
    assert all(a.mean < b.mean for a, b in zip(right.held[1:], wrong.held[1:], strict=True))


def test_the_same_passage_twice_is_no_drift_and_a_growing_one_runs_away():
    time = np.arange(4000) / 100.0
    command = np.sin(2 * np.pi * time / 10.0)[:, None]
    steady = judged_run(command + 0.01, command, 500, 1000, 100.0, robot_reach=0.01)
    assert steady.bounded
    assert steady.drift < 1e-9
    away = judged_run(command + 0.05 * time[:, None], command, 500, 1000, 100.0, robot_reach=0.01)
    assert not away.bounded
    assert away.drift == pytest.approx(0.05 * 30.0)


def test_a_model_may_be_as_far_from_late_commands_as_the_robot_was():
    time = np.arange(12_000) / 100.0
    lag = np.where((time % 60.0 > 25.0) & (time % 60.0 < 35.0), 0.6, 0.01)[:, None]  # violent steps after 25 s
    assert judged_run(lag, 0.0 * lag, 3000, 6000, 100.0, robot_reach=0.5).bounded
    far = judged_run(lag, 0.0 * lag, 3000, 6000, 100.0, robot_reach=0.1)
    assert not far.bounded
    assert far.reach == pytest.approx(0.6)


@pytest.mark.medium
def test_a_servo_stays_bounded_over_a_minute():
    found = long_run(ROBOT, planted_by(PACE, seconds=3.0), PACE, SIM, 60.0)
    assert found.bounded
    assert found.seconds >= 60.0
    assert found.drift < 1e-3


def test_excerpts_come_from_all_logs_and_short_data_stays_whole():
    logs = [planted_log(ROBOT, {}, seconds=12.0, seed=k, noise=0.0) for k in range(3)]
    assert all(a is b for a, b in zip(excerpts(logs, 40), logs, strict=True))
    few = excerpts(logs, 3)
    assert [len(part) for part in few] == [1100, 1100, 1100]
    assert {float(part["target_pos"][0, 0]) for part in few} <= {
        float(log["target_pos"][k, 0]) for log in logs for k in (0, 1100)
    }
