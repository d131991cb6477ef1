"""Residual nets learned from positions alone: they find a planted torque, stop and resume, and stay bounded."""

from dataclasses import replace

import numpy as np
import pytest
from made_calibration import made_calibration
from residual_logs import RATE, residual_log

from trueup.calibrate.nets.uan.regress import RegressCfg
from trueup.calibrate.nets.uan.rl import PUBLISHED
from trueup.calibrate.nets.uan.uan import UanCfg, make_tracks, train_uan, uan_spec
from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.models.actuator_net import ActuatorNet
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.net_actuator import NetActuator, with_net
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.replay.replay import ReplayCfg, replay

SMALL = UanCfg(hidden=(16, 16), context=0, windows=8, window_s=0.6, warm_up_s=0.1)
PENDULUM = load_robot("pendulum")


@pytest.fixture(scope="module")
def logs() -> list[Log]:
    return [residual_log(PENDULUM, seed=seed) for seed in range(3)]


def error(robot: Robot, log: Log, net: ActuatorNet | None) -> float:
    """Whole-rollout error, mrad."""
    cfg = SimCfg(physics_hz=1000.0, model=ModelCfg(base="fixed"))
    if net is None:
        return 1e3 * float(replay(robot, log, ReplayCfg(sim=cfg)).rmse.mean())
    actuator = NetActuator(net)
    cfg = with_net(cfg, net)
    result = replay(robot, log, ReplayCfg(sim=cfg), prepare=actuator.prepare, substep_model=actuator)
    return 1e3 * float(result.rmse.mean())


@pytest.mark.medium
def test_inversion_finds_a_planted_torque_and_it_holds_on_another_motion(logs):
    net = train_uan(PENDULUM, logs[:2], None, SMALL)
    assert error(PENDULUM, logs[2], net) < 0.3 * error(PENDULUM, logs[2], None)
    assert net.spec.kind == "residual"


@pytest.mark.medium
def test_where_the_base_is_right_the_net_is_one_of_zeros_on_the_whole_base():
    log = residual_log(PENDULUM, seed=1, hidden=0.0)
    base = made_calibration(PENDULUM, ("friction",))
    tracks = make_tracks(PENDULUM, [log])
    cfg = replace(SMALL, regress=RegressCfg(rounds=1, steps=20, corrections=(1, 1)))
    whole, part = (uan_spec(PENDULUM, tracks, base, replace(cfg, friction=f)).settings[0] for f in (1.0, 0.5))
    assert part.value == pytest.approx(0.5 * whole.value)
    net = train_uan(PENDULUM, [log], None, cfg)
    assert not any(np.any(weight) for layer in net.layers[0] for weight in layer)


def test_the_published_form_sees_errors_and_the_others_torque():
    assert UanCfg(method="rl").sees == ("pos_error", "vel_error")
    assert replace(UanCfg(method="rl"), method="inverse").sees == ("servo_torque", "vel_error")


@pytest.mark.medium
def test_reinforcement_runs_and_its_net_does_what_its_policy_did(logs):
    cfg = replace(SMALL, method="rl", rl=replace(PUBLISHED, steps=24), iterations=3)
    shares = []
    net = train_uan(PENDULUM, logs[:2], None, cfg, shares.append)
    assert shares == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert net.spec.taps[0] == 1  # it acts from outside: what it saw is a step old
    assert np.isfinite(error(PENDULUM, logs[2], net))


def test_a_stopped_training_goes_on_to_the_same_net(logs, tmp_path):
    cfg = replace(SMALL, regress=RegressCfg(rounds=2, steps=400, corrections=(1, 1)))
    whole = train_uan(PENDULUM, logs[:1], None, cfg)

    def stop(share: float) -> None:
        if share > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_uan(PENDULUM, logs[:1], None, cfg, stop, folder=tmp_path)
    again = train_uan(PENDULUM, logs[:1], None, cfg, folder=tmp_path, resume=True)
    x = np.random.default_rng(0).normal(size=(5, 1, 2, 20))
    np.testing.assert_array_equal(again(x), whole(x))
    assert not list(tmp_path.iterdir())


def test_the_state_of_another_training_is_refused(logs, tmp_path):
    cfg = replace(SMALL, regress=RegressCfg(rounds=1, steps=20, corrections=(1, 1)))

    def stop(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_uan(PENDULUM, logs[:1], None, cfg, stop, folder=tmp_path)
    with pytest.raises(TrueupError, match="another training"):
        train_uan(PENDULUM, logs[:1], None, replace(cfg, seed=5), folder=tmp_path, resume=True)


def test_logs_that_are_too_short_are_refused(logs):
    with pytest.raises(TrueupError, match="long enough"):
        train_uan(PENDULUM, [logs[0].window(0, round(0.5 * RATE))], None, SMALL)


@pytest.mark.medium
def test_five_minutes_of_wild_commands_stay_bounded(logs):
    """The residual saturates below a fraction of the torque limit, and the motion stays near its commands."""
    net = train_uan(PENDULUM, logs[:1], None, replace(SMALL, regress=RegressCfg(rounds=1, steps=200)))
    sim = BatchSim(PENDULUM, with_net(SimCfg(nsim=4, control_hz=50.0, physics_hz=200.0), net), NetActuator(net))
    limit = np.array(net.spec.limit)
    rng, most = np.random.default_rng(0), 0.0
    target = np.zeros((4, 1))
    for t in range(300 * 50):
        if t % 25 == 0:
            target = rng.uniform(-1.5, 1.5, (4, 1))
        sim.step(target)
        most = max(most, float(np.abs(sim.substep_model._torque / limit).max()))
    assert most <= 1.0
    assert np.isfinite(sim.qpos).all()
    assert np.abs(sim.joint_pos - target).max() < 1.0
    assert sim.substep_model.guard.warning is not None  # commands far outside what it was fitted on
