"""What keeps a residual net from making real data worse: motions no disturbance is in, searches, a race, a stand."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from made_calibration import made_calibration
from residual_logs import residual_log

from trueup.calibrate.actuator.model import Actuator
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.nets.net_design import blank_net, settings_of, stand_of
from trueup.calibrate.nets.net_learner import NetLearner
from trueup.calibrate.nets.uan.regress import Race, RegressCfg, RegressTrainer, missing_torque
from trueup.calibrate.nets.uan.rollout import Rollouts
from trueup.calibrate.nets.uan.uan import UanCfg, make_tracks, make_trainer, make_uan_problem, train_uan
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import SimCfg

SMALL = UanCfg(hidden=(16, 16), context=0, windows=8, window_s=0.6, warm_up_s=0.1, friction=1.0)
PENDULUM = load_robot("pendulum")


def trained(way: str, log, **settings) -> RegressTrainer:
    cfg = replace(SMALL, regress=RegressCfg(ways=(way,), **settings))
    tracks = make_tracks(PENDULUM, [log])
    problem = make_uan_problem(PENDULUM, tracks, None, cfg)
    trainer = make_trainer(problem, cfg)
    while not trainer.done:
        trainer.iterate()
    return trainer


@pytest.mark.medium
def test_the_missing_torque_makes_the_simulator_follow_the_log():
    cfg = UanCfg(hidden=(8,), context=0, windows=2)
    tracks = make_tracks(PENDULUM, [residual_log(PENDULUM, seed=0, seconds=6.0)])
    made = make_uan_problem(PENDULUM, tracks, None, cfg)
    net = blank_net(made.blank.spec, (8,), 0, scale=np.ones(1))
    whole = Rollouts(PENDULUM, tracks, net, 1, len(tracks.target) - 2, 1000.0)
    before = missing_torque(whole, net, np.array([0]), 0)
    found = missing_torque(whole, net, np.array([0]), 4)
    hidden = found.torque[0][100:-100, 0]
    error, speed = found.inputs[0][100:-100, 0, 0, 0], -found.inputs[0][100:-100, 0, 1, 0]
    limit = PENDULUM.spec.torque_limit[0]
    truth = limit * (-0.02 * np.tanh(speed / 0.1) + 0.01 * np.tanh(20 * error))
    assert np.sqrt((before.before.error**2).mean()) > 1e-3
    assert np.sqrt(((hidden - truth) ** 2).mean()) < 0.5 * np.sqrt((truth**2).mean())


@pytest.mark.medium
def test_pushes_from_outside_fool_the_corrected_motion_and_not_the_simulated_one():
    """Nothing but pushes is lacking: a net fed back on answers to pushes does harm, one on commands little."""
    log = residual_log(PENDULUM, seed=1, hidden=0.0, push=0.08)
    one = {"rounds": 1, "steps": 600, "corrections": (3, 1), "shares": (1.0,)}
    corrected, simulated = (trained(way, log, **one) for way in ("corrected", "simulated"))
    assert corrected.best_error > 1.2 * corrected.base_error
    assert simulated.best_error < 1.1 * simulated.base_error


@pytest.mark.medium
def test_a_step_that_goes_too_far_is_cut_and_no_progress_ends_the_training():
    log = residual_log(PENDULUM, seed=1, hidden=0.0, push=0.08)
    one = {"rounds": 4, "steps": 300, "corrections": (2, 1)}
    whole, cut = (trained("corrected", log, shares=shares, **one) for shares in ((1.0,), (1.0, 0.5, 0.25)))
    assert cut.best_error < whole.best_error
    assert cut.progress == 1.0
    assert cut.done


def test_a_silent_copy_keeps_the_features_and_gives_no_torque():
    tracks = make_tracks(PENDULUM, [residual_log(PENDULUM, seed=1, seconds=4.0)])
    blank = make_uan_problem(PENDULUM, tracks, None, SMALL).blank
    learner = NetLearner(blank, seed=0, last_gain=1.0)
    flat = learner.parameters.flat.numpy().copy()
    net, silent = learner.actuator(flat), learner.actuator(learner.silent(flat))
    x = np.random.default_rng(0).normal(size=(5, 1, 2, 20))
    assert np.abs(net(x)).min() > 0
    np.testing.assert_array_equal(silent(x), 0.0)
    np.testing.assert_array_equal(silent.layers[0][0][0], net.layers[0][0][0])
    np.testing.assert_array_equal(learner.parameters.flat.numpy(), flat)


class Runner(SimpleNamespace):
    """A trainer of three rounds whose errors are known."""

    best_error, round, first_share = np.inf, 0, 1 / 3

    @property
    def progress(self) -> float:
        return self.round / 3

    @property
    def done(self) -> bool:
        return self.round == 3

    def iterate(self) -> None:
        self.best_error, self.round = self.errors[self.round], self.round + 1


def test_every_way_has_one_round_and_the_leader_goes_on():
    slow, fast = Runner(errors=[3.0, 0.1, 0.1]), Runner(errors=[2.0, 1.5, 1.0])
    race, shares = Race([slow, fast]), []
    while not race.done:
        race.iterate()
        shares.append(race.progress)
    assert (slow.round, fast.round) == (1, 3)
    assert race.leader is fast
    assert shares == pytest.approx([0.25, 0.5, 0.75, 1.0])


def test_a_race_is_resumed_runner_by_runner():
    log = residual_log(PENDULUM, seed=1, seconds=6.0)
    cfg = replace(SMALL, friction=0.5, regress=RegressCfg(rounds=2, steps=200, corrections=(1, 1)))
    ways = [replace(cfg, regress=replace(cfg.regress, ways=(way,))) for way in ("corrected", "simulated")]
    tracks = make_tracks(PENDULUM, [log])

    def made() -> Race:
        return Race([make_trainer(make_uan_problem(PENDULUM, tracks, None, one), one) for one in ways])

    race, again = made(), made()
    for _ in range(3):  # the first is done, the second in the middle of its round
        race.iterate()
    again.restore(race.state())
    while not race.done:
        race.iterate()
        again.iterate()
    x = np.random.default_rng(0).normal(size=(5, 1, 2, 20))
    np.testing.assert_allclose(again.result()(x), race.result()(x), atol=1e-5)


# --- a robot on a stand that gives way ---
def test_a_stand_is_in_the_replays_and_not_in_the_net():
    robot = load_robot("go2")
    base = made_calibration(robot, ("armature", "tilt", "mount_stiffness"))
    assert {one.name for one in stand_of(base)} == {"tilt", "mount_stiffness"}
    assert {one.name for one in settings_of(base)} == {"armature"}
    assert stand_of(made_calibration(robot, ("armature", "tilt"))) == ()
    log = residual_log(robot, seed=1, seconds=4.0)
    net = train_uan(robot, [log], base, replace(SMALL, regress=RegressCfg(rounds=1, steps=4, corrections=(1, 1))))
    assert {one.name for one in net.spec.settings} == {"armature"}
    actuator = Actuator(rung=rung_named("uan"), params=base, net=net)
    sim = actuator.simulation(robot, SimCfg(model=ModelCfg(base="fixed")))
    nominal = sim.params.get("mount_stiffness").copy()
    actuator.apply(sim)
    values = np.array([one.value for one in stand_of(base) if one.name == "mount_stiffness"])
    np.testing.assert_allclose(sim.params.get("mount_stiffness")[0], values * nominal[0])
    assert actuator.count == sum(part.size for group in net.layers for layer in group for part in layer)
