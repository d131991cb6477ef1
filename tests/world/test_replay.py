"""Replay: a log made by the simulator replays exactly; windows start from what was measured."""

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.data.log import Log
from trueup.data.resample import resample
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.replay.replay import ReplayCfg, replay, replay_logs

TRUTH = {"armature": 0.02, "damping": 0.4, "friction": 0.1, "delay": 0.0073, "encoder_bias": 0.03}


def prepare(sim: BatchSim) -> None:
    for name, value in TRUTH.items():
        sim.params.set(name, value)


def simulated_log(seconds: float = 3.0, rate: float = 200.0, gains: float = 1.0) -> Log:
    """A robot in the air with planted parameters, driven by a multisine, as its encoders see it."""
    robot = load_robot("go2")
    sim = BatchSim(robot, SimCfg(control_hz=rate, physics_hz=rate * 2, model=ModelCfg(base="fixed")))
    prepare(sim)
    sim.params.set("kp", robot.spec.kp * gains)
    sim.reset()
    time = np.arange(round(seconds * rate)) / rate
    target = robot.spec.default_pose + 0.2 * np.sin(2 * np.pi * (1 + 0.2 * np.arange(12)) * time[:, None])
    sim.prime_delay(np.tile(target[0], (1, 20, 1)))  # the first target was in force before the log began
    rows = []
    for t in range(len(time)):
        seen = sim.observe()
        rows.append((seen.joint_pos[0].copy(), seen.joint_vel[0].copy()))
        sim.step(target[t])
    signals = {
        "joint_pos": np.array([r[0] for r in rows]),
        "joint_vel": np.array([r[1] for r in rows]),
        "target_pos": target,
    }
    if gains != 1.0:
        signals["target_kp"] = np.tile(robot.spec.kp * gains, (len(time), 1))
    return Log(time=time + 100.0, joint_names=robot.spec.joint_names, signals=signals)


def exact(window_s=None, **more) -> ReplayCfg:
    """Windows start in the samples themselves: these logs have no noise."""
    sim = SimCfg(physics_hz=400.0, model=ModelCfg(base="fixed"))
    return ReplayCfg(window_s=window_s, start="measured", sim=sim, **more)


def test_open_loop_replay_with_the_true_parameters_is_exact():
    result = replay(load_robot("go2"), simulated_log(), exact(), prepare=prepare)
    assert result.rmse.max() < 1e-9
    wrong = replay(load_robot("go2"), simulated_log(), exact())
    assert wrong.rmse.min() > 1e-3


def test_windows_start_from_measured_states_with_commands_under_way():
    log = simulated_log()
    result = replay(load_robot("go2"), log, exact(0.25), prepare=prepare)
    assert len(result.start) == 11
    # after the first window the true velocity is known exactly and past commands are on their way
    assert result.rmse.max() < 1e-9
    np.testing.assert_array_equal(result.joint_pos[:, 0], log["joint_pos"][result.start])


def test_gains_in_the_log_are_used():
    log = simulated_log(gains=2.0)
    assert replay(load_robot("go2"), log, exact(), prepare=prepare).rmse.max() < 1e-9
    ignored = Log(
        time=log.time, joint_names=log.joint_names, signals={k: v for k, v in log.signals.items() if k != "target_kp"}
    )
    assert replay(load_robot("go2"), ignored, exact(), prepare=prepare).rmse.max() > 1e-3


def test_joint_order_of_the_log_does_not_matter():
    log = simulated_log()
    shuffled = log.with_joint_order(tuple(reversed(log.joint_names)))
    a, b = (replay(load_robot("go2"), x, exact(), prepare=prepare) for x in (log, shuffled))
    np.testing.assert_array_equal(a.joint_pos, b.joint_pos)


def test_a_log_on_another_clock_replays_after_resampling():
    log = simulated_log()
    jitter = np.random.default_rng(0).uniform(-0.4, 0.4, len(log)) / 200
    jitter[[0, -1]] = 0
    uneven = Log(time=log.time + jitter, joint_names=log.joint_names, signals=log.signals)
    with pytest.raises(TrueupError, match="resample"):
        replay(load_robot("go2"), uneven)
    assert replay(load_robot("go2"), resample(uneven, 200.0), exact(), prepare=prepare).rmse.max() < 0.02


def test_resampling_holds_commands_and_interpolates_measurements():
    log = Log(
        time=np.array([0.0, 1.0, 2.0]),
        joint_names=("a",),
        signals={"joint_pos": np.array([[0.0], [1.0], [4.0]]), "target_pos": np.array([[5.0], [6.0], [7.0]])},
    )
    out = resample(log, 2.0)
    np.testing.assert_allclose(out["joint_pos"][:, 0], [0, 0.5, 1, 2.5, 4])
    np.testing.assert_array_equal(out["target_pos"][:, 0], [5, 5, 6, 6, 7])


def test_bad_logs_are_refused_in_words():
    log = simulated_log(0.5)
    holes = dict(log.signals)
    holes["joint_pos"] = holes["joint_pos"].copy()
    holes["joint_pos"][7, 3] = np.nan
    with pytest.raises(TrueupError, match="not finite"):
        replay(load_robot("go2"), Log(time=log.time, joint_names=log.joint_names, signals=holes))
    with pytest.raises(TrueupError, match="do not fit"):
        replay(load_robot("go2"), log, exact(5.0))
    with pytest.raises(TrueupError, match="has no 'target_pos'"):
        replay(
            load_robot("go2"), Log(time=log.time, joint_names=log.joint_names, signals={"joint_pos": log["joint_pos"]})
        )
    with pytest.raises(TrueupError, match="no joint 'FL_hip_joint'"):
        replay(load_robot("go2"), Log(time=log.time, joint_names=tuple("abcdefghijkl"), signals=log.signals))


def stepped_log(factors: tuple[float, ...], seconds: float = 3.0, rate: float = 200.0) -> Log:
    """A robot whose gains are multiplied by factors, one after the other; a factor of 0: torque off."""
    robot = load_robot("go2")
    sim = BatchSim(robot, SimCfg(control_hz=rate, physics_hz=rate * 2, model=ModelCfg(base="fixed")))
    prepare(sim)
    sim.reset()
    time = np.arange(round(seconds * rate)) / rate
    target = robot.spec.default_pose + 0.2 * np.sin(2 * np.pi * (1 + 0.2 * np.arange(12)) * time[:, None])
    sim.prime_delay(np.tile(target[0], (1, 20, 1)))
    factor = np.array(factors)[np.arange(len(time)) * len(factors) // len(time)]
    out = {name: np.empty_like(target) for name in ("joint_pos", "joint_vel", "target_kp", "target_kd")}
    for t in range(len(time)):
        out["joint_pos"][t], out["joint_vel"][t] = sim.joint_pos[0] + sim.encoder_bias[0], sim.joint_vel[0]
        out["target_kp"][t], out["target_kd"][t] = factor[t] * robot.spec.kp, factor[t] * robot.spec.kd
        sim.params.set("kp", out["target_kp"][t])
        sim.params.set("kd", out["target_kd"][t])
        sim.step(target[t])
    return Log(time=time, joint_names=robot.spec.joint_names, signals={**out, "target_pos": target})


@pytest.mark.parametrize("factors", [(1.0, 2.0, 0.7), (1.0, 0.0, 1.5), (0.0, 1.0), tuple(np.linspace(1, 2, 60))])
def test_replay_follows_gains_that_change_and_servos_that_are_off(factors):
    log = stepped_log(factors)
    for cfg in (exact(), exact(0.25)):
        assert replay(load_robot("go2"), log, cfg, prepare=prepare).rmse.max() < 1e-9
    wrong = dict(log.signals, target_kp=np.repeat(log["target_kp"].max(axis=0)[None], len(log), axis=0))
    held = Log(time=log.time, joint_names=log.joint_names, signals=wrong)
    assert replay(load_robot("go2"), held, exact(), prepare=prepare).rmse.max() > 1e-3


def test_factors_on_gains_stay_in_force_when_gains_change():
    log = stepped_log((1.0, 0.0, 2.0))
    scaled = {name: 0.8 * log[name] if name == "target_kp" else log[name] for name in log.signals}
    told_less = Log(time=log.time, joint_names=log.joint_names, signals=scaled)

    def stronger(sim: BatchSim) -> None:
        prepare(sim)
        sim.params.set("kp", sim.params.get("kp") / 0.8)

    assert replay(load_robot("go2"), told_less, exact(), prepare=stronger).rmse.max() < 1e-9


def test_logs_of_several_rates_and_lengths_replay_together_as_alone():
    robot, long = load_robot("go2"), simulated_log()
    logs = [long, simulated_log(1.0), resample(long, 100.0)]
    together = replay_logs(robot, logs, exact(), prepare=prepare)
    for log, found in zip(logs, together, strict=True):
        alone = replay(robot, log, exact(), prepare=prepare)
        np.testing.assert_array_equal(alone.joint_pos, found.joint_pos)
        assert found.joint_pos.shape == (1, len(log), 12)


def test_a_smoothed_start_is_better_than_a_noisy_sample():
    log, rng = simulated_log(), np.random.default_rng(0)
    noisy = dict(log.signals, joint_pos=log["joint_pos"] + 2e-3 * rng.standard_normal(log["joint_pos"].shape))
    noisy["joint_vel"] = log["joint_vel"] + 0.2 * rng.standard_normal(log["joint_vel"].shape)
    seen = Log(time=log.time, joint_names=log.joint_names, signals=noisy)
    robot = load_robot("go2")
    smoothed, measured = (
        replay(robot, seen, ReplayCfg(window_s=0.1, start=start, sim=exact().sim), prepare=prepare)
        for start in ("smoothed", "measured")
    )
    assert smoothed.rmse.mean() < 0.8 * measured.rmse.mean()
