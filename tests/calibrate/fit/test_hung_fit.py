"""Robots on a stand and hobby servos: stops begin where they were met, sets build what they need, planted truth."""

import msgspec
import numpy as np
import pytest
from planted_logs import RATE, draw_truth, planted_log

from trueup.calibrate.config import FitCfg, WindowCfg
from trueup.calibrate.data.windows import cut_windows
from trueup.calibrate.fit.fit import Fitter
from trueup.calibrate.fit.problem import Problem, step_notes
from trueup.calibrate.fit.residuals import Shooting, as_delivered, fit_sim_cfg
from trueup.calibrate.parameters import make_parameters, near_stops, parameter_names, parameters_for
from trueup.calibrate.rules import HUNG, SETS
from trueup.calibrate.uncertainty.assess import assess
from trueup.data.log import Log
from trueup.robot.load import load_robot
from trueup.world.batch import BatchSim
from trueup.world.parameters.able_to_set import friction_model

GO2, PENDULUM = load_robot("go2"), load_robot("pendulum")


def with_signal(log: Log, **signals: np.ndarray) -> Log:
    return Log(time=log.time, joint_names=log.joint_names, signals={**log.signals, **signals})


@pytest.mark.parametrize(
    ("name", "tie"), [(name, "side") for name in sorted(SETS)] + [("hung", "none"), ("friction:M6", "all")]
)
def test_every_set_builds_its_simulation_and_moves_it(name, tie):
    names = parameter_names(name)
    cfg = fit_sim_cfg(GO2, RATE, names, free_base=name == "contact")
    parameters = parameters_for(GO2, cfg, names, tie=tie, bodies=("FL_calf", "FR_calf"))
    labels = [entry.label for entry in parameters]
    assert len(set(labels)) == len(labels)
    for entry in parameters:
        low, high = entry.x_bounds
        assert low < -0.2 < 0.2 < high, entry.label
        msgspec.json.decode(msgspec.json.encode(entry), type=type(entry))


def test_the_friction_model_is_the_simplest_with_all_coefficients():
    assert friction_model(parameter_names("pace")) is None
    assert friction_model(parameter_names("friction:M1")) is None
    for model in ("M2", "M3", "M4", "M5", "M6"):
        assert friction_model(parameter_names(f"friction:{model}")) == model
    assert friction_model(["friction_kl", "friction_kcs"]) == "M4"


def test_a_fit_on_a_stand_is_compared_with_the_robot_as_delivered():
    cfg = fit_sim_cfg(GO2, RATE, HUNG)
    assert cfg.model.base == "mount"
    assert as_delivered(cfg).model.base == "fixed"


def test_stops_begin_where_the_joint_was_held_and_others_are_left_out():
    log = planted_log(GO2, {}, seconds=2.0)
    pos, target = log["joint_pos"].copy(), log["target_pos"].copy()
    pos[:, 2] = np.minimum(pos[:, 2] + 0.6, -0.95)  # FL calf meets something before its limit of -0.84
    target[:, 2] += 1.2
    windows = cut_windows(GO2, [with_signal(log, joint_pos=pos, target_pos=target)], WindowCfg(window_s=0.5))
    sim = BatchSim(GO2, fit_sim_cfg(GO2, RATE, ("stop_high", "stop_low")))
    kept = near_stops(make_parameters(sim, ("stop_low", "stop_high", "stop_stiffness")), windows)
    assert [entry.label for entry in kept] == ["stop_high FL_calf_joint", "stop_stiffness FL_calf_joint"]
    assert kept[0].prior == pytest.approx(-1.15, abs=0.02)


def test_a_gain_that_would_always_saturate_is_named_and_nothing_is_masked():
    log = planted_log(GO2, {}, seconds=2.0)
    gain = np.full_like(log["joint_pos"], 20.0)
    gain[:, 4] = 2e4
    windows = cut_windows(GO2, [with_signal(log, target_kp=gain)], WindowCfg(window_s=0.5))
    assert "FR_thigh_joint" in windows.notes[0]
    assert windows.compared[..., 4].sum() == windows.compared[..., 0].sum() > 0


def test_velocities_that_read_high_are_brought_to_the_derivative():
    log = planted_log(GO2, {}, seconds=3.0)
    plain = cut_windows(GO2, [log], WindowCfg(window_s=0.5))
    high = cut_windows(GO2, [with_signal(log, joint_vel=1.15 * log["joint_vel"])], WindowCfg(window_s=0.5))
    ratio = (high.measured * plain.measured)[..., 12:].sum() / (plain.measured**2)[..., 12:].sum()
    assert ratio == pytest.approx(1.0, abs=0.03)


def test_whole_logs_of_different_lengths_are_one_rollout_each():
    log = planted_log(GO2, {}, seconds=3.0)
    windows = cut_windows(GO2, [log, log.window(0, 400)], WindowCfg(window_s=np.inf, warm_up_s=0.1))
    assert windows.count == 2
    assert windows.compared[0, :, 0].sum() == 599 - 20
    assert windows.compared[1, :, 0].sum() == 399 - 20


@pytest.mark.medium
def test_planted_stribeck_and_load_friction_come_back():
    truth = {"damping": 0.05, "friction": 0.1, "friction_kcs": 0.15, "friction_kl": 0.12}
    log = gear_log(truth)
    names = ("damping", "friction", "friction_kcs", "friction_kl")
    windows = cut_windows(PENDULUM, [log], WindowCfg(window_s=1.0, warm_up_s=0.2))
    cfg = fit_sim_cfg(PENDULUM, windows.rate_hz, names)
    shooting = Shooting(PENDULUM, windows, parameters_for(PENDULUM, cfg, names, tie="none", bodies=()), cfg)
    solution = Fitter(Problem(fine=shooting), FitCfg(iterations=15)).run()
    for estimate in assess(shooting, solution).estimates:
        true = truth[estimate.parameter.name]
        assert abs(estimate.value - true) < max(3 * estimate.standard_error, 0.1 * true), estimate


def gear_log(truth: dict[str, float]) -> Log:
    time = np.arange(1600) / RATE
    target = 0.8 * np.sin(2 * np.pi * 0.4 * time) + 0.3 * np.sin(2 * np.pi * 1.3 * time + 1)
    sim = BatchSim(PENDULUM, fit_sim_cfg(PENDULUM, RATE, ("friction_kl", "friction_kcs")))
    for name, value in truth.items():
        sim.params.set(name, value)
    sim.reset()
    pos, vel = np.empty((1600, 1)), np.empty((1600, 1))
    for t in range(1600):
        pos[t], vel[t] = sim.joint_pos[0], sim.joint_vel[0]
        sim.step(target[t])
    rng = np.random.default_rng(0)
    signals = {"joint_pos": pos + 2e-4 * rng.standard_normal(pos.shape), "target_pos": target[:, None]}
    return Log(time=time, joint_names=PENDULUM.spec.joint_names, signals=signals)


def test_a_coarse_step_is_told_with_its_size_and_a_fine_one_is_silent():
    names = ("armature", "damping")
    truth = draw_truth(GO2, 3)
    log = planted_log(GO2, truth, seconds=3.0, physics_hz=1000.0)
    windows = cut_windows(GO2, [log], WindowCfg(window_s=0.5, warm_up_s=0.1))
    told = []
    for rate in (200.0, 1600.0):
        cfg = fit_sim_cfg(GO2, windows.rate_hz, names, physics_hz=rate)
        shooting = Shooting(GO2, windows, parameters_for(GO2, cfg, names, tie="none", bodies=()), cfg)
        x, deviation = np.zeros(24), np.full(24, 0.03)
        at = shooting.residuals(x[None])[0]
        told.append(step_notes(shooting, x, at, shooting.jacobian(x, at), deviation))
    assert "physics at 200 Hz" in told[0][0]
    assert any(name in told[0][0] for name in names)
    assert told[1] == ()
