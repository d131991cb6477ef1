"""Learned rungs in the ladder: torque where it is measured, nets that are scored, kept and read again."""

from dataclasses import replace

import numpy as np
import pytest
from made_nets import made_net
from planted_logs import draw_truth, planted_log

from trueup.calibrate.actuator import fits
from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.folder import read_actuator
from trueup.calibrate.actuator.ladder import run_ladder
from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import roll
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg

ROBOT = load_robot("pendulum")
SIM = SimCfg(physics_hz=200.0, model=ModelCfg(base="fixed"))
TRUTH = draw_truth(ROBOT, 3) | {"delay": np.zeros(1)}
CFG = LadderCfg(rungs="pd,fir,uan", long_s=(5.0,), physics_hz=200.0, check=False)


def planted(seed: int):
    """With the torque of a servo that has three quarters of its gain."""
    log = planted_log(ROBOT, TRUTH, seconds=8.0, seed=seed, size=0.4)
    before = np.maximum(np.arange(len(log)) - 1, 0)
    spec = ROBOT.spec
    torque = 0.75 * spec.kp * (log["target_pos"][before] - log["joint_pos"]) - spec.kd * log["joint_vel"]
    return replace(log, signals={**log.signals, "joint_torque": torque})


@pytest.fixture(scope="module")
def climbed(tmp_path_factory):
    """The linear filter is really fitted; in place of the unsupervised net stands one with random weights."""
    folder, real = tmp_path_factory.mktemp("ladder"), fits.train_net
    weak = made_net("pendulum", taps=tuple(range(20)), limit=(0.05,), dt_s=0.005)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fits, "train_net", lambda rung, *job: weak if rung.name == "uan" else real(rung, *job))
        return folder, run_ladder(ROBOT, [planted(1)], CFG, holdout=[planted(9)], folder=folder)


@pytest.mark.medium
def test_a_filter_learns_torque_that_ideal_pd_gets_wrong(climbed):
    by = {r.rung: r.scores for r in climbed[1].file.rungs}
    assert by["fir"].torque < 0.5 * by["pd"].torque
    assert by["uan"].torque is None  # it stands for more than the motor


@pytest.mark.medium
def test_nets_are_scored_like_every_other_rung_and_bounded(climbed):
    result = next(r for r in climbed[1].file.rungs if r.rung == "uan")
    assert [error.seconds for error in result.scores.held] == [pytest.approx(0.005), 0.1, 1.0, None]
    assert result.bounded
    assert result.count > 500


@pytest.mark.medium
def test_a_net_that_was_read_again_moves_alike(climbed):
    folder, ladder = climbed
    again = read_actuator(folder / "rungs" / "uan")
    log = planted(9)
    first, second = (roll(ROBOT, [log], model, SIM)[0].joint_pos for model in (ladder.actuators["uan"], again))
    np.testing.assert_array_equal(first, second)


@pytest.mark.medium
def test_a_window_of_a_net_knows_the_past_of_its_own_log_only():
    net = Actuator(rung=rung_named("uan"), net=made_net("pendulum", taps=tuple(range(20)), dt_s=0.005))
    one, two = planted(1).window(0, 400), planted(2).window(300, 900)
    together = roll(ROBOT, [one, two], net, SIM, horizon_s=0.1)
    alone = roll(ROBOT, [two], net, SIM, horizon_s=0.1, most=200)
    np.testing.assert_allclose(together[1].joint_pos, alone[0].joint_pos, atol=1e-9)
