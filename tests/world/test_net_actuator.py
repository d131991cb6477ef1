"""Learned servos inside the batch: what they see, limits after them, checkpoints, the guard."""

from dataclasses import replace
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from made_nets import made_net

from trueup.core.errors import TrueupError
from trueup.models.actuator_net import ActuatorNet, Setting
from trueup.robot.load import load_robot
from trueup.robot.model import ModelCfg
from trueup.world.actuators.engine import ActuatorCfg
from trueup.world.actuators.net_actuator import NetActuator, with_net
from trueup.world.batch import BatchSim, SimCfg

HELD = SimCfg(control_hz=50.0, physics_hz=200.0, model=ModelCfg(base="fixed"), actuator=ActuatorCfg(kind="pd"))


def pd_net(kp: float, kd: float) -> ActuatorNet:
    """A linear net that is a PD servo of the go2."""
    net = made_net(hidden=(), taps=(0,), signals=("pos_error", "vel"), ncontext=0, kind="torque", limit=())
    weight = (np.array([[kp, -kd]]), np.zeros(1))
    shape = net.mean.shape
    return replace(
        net,
        layers=((weight,), (weight,)),
        mean=np.zeros(shape),
        std=np.ones(shape),
        scale=np.ones(12),
        low=np.full(shape, -50.0),
        high=np.full(shape, 50.0),
    )


def go2(net: ActuatorNet | None, nsim: int = 3, **more) -> BatchSim:
    actuator = more.pop("actuator", None) or (None if net is None else NetActuator(net))
    return BatchSim(load_robot("go2"), replace(HELD, nsim=nsim, **more), actuator)


def wave(sim: BatchSim, steps: int, size: float = 0.2) -> np.ndarray:
    time = sim.control_dt * np.arange(steps)[:, None, None]
    rows, joints = np.arange(sim.nsim)[:, None], np.arange(12)
    return sim.robot.spec.default_pose + size * np.sin(2 * np.pi * time * (0.5 + 0.1 * joints) + rows)


def run(sim: BatchSim, targets: np.ndarray) -> np.ndarray:
    out = []
    for target in targets:
        sim.step(target)
        out.append(sim.joint_pos.copy())
    return np.array(out)


def test_a_net_that_is_a_pd_servo_moves_like_one():
    plain, net = go2(None, physics_hz=1000.0), go2(pd_net(20.0, 0.5), physics_hz=1000.0)
    net.substep_model.every = net.substep_model.holds = 1  # at every physics step, as the engine's servo
    for sim in (plain, net):
        sim.params.set("delay", 0.007)
        sim.params.set("encoder_bias", np.linspace(-0.02, 0.02, 12))
        sim.reset()
    targets = wave(plain, 50)
    expected, got = run(plain, targets), run(net, targets)
    assert np.ptp(expected, axis=0).max() > 0.2
    np.testing.assert_allclose(got, expected, atol=2e-3)  # the engine's kd acts implicitly


def test_torque_limits_act_after_the_net():
    sim = go2(pd_net(20_000.0, 0.0))
    sim.params.set("torque_limit", 3.0)
    sim.reset()
    sim.step(sim.joint_pos + 1.0)
    np.testing.assert_allclose(sim.joint_torque, 3.0)


def test_the_net_is_asked_at_its_own_rate_and_held_between():
    sim = go2(made_net(), physics_hz=1000.0)
    sim.substep_model.holds = 1  # comes back to Python at every physics step
    torques = []
    inner = sim.substep_model.step
    sim.substep_model.step = lambda *given: torques.append(inner(*given).copy()) or torques[-1]
    run(sim, wave(sim, 2))
    changed = [bool((a != b).any()) for a, b in pairwise(torques)]
    assert np.flatnonzero(changed).tolist() == [4, 9, 14, 19, 24, 29, 34]


def test_steps_in_which_the_torque_is_held_are_made_in_one_call():
    alike = [go2(made_net(), physics_hz=1000.0) for _ in range(2)]
    assert alike[0].substep_model.holds == 5
    alike[1].substep_model.holds = 1
    results = []
    for sim in alike:
        sim.params.set("delay", 0.0073)
        sim.reset()
        results.append(run(sim, wave(sim, 20)))
    np.testing.assert_array_equal(*results)


def test_a_physics_step_that_does_not_fit_is_refused():
    with pytest.raises(TrueupError, match="physics rate of 200 Hz"):
        go2(made_net(), control_hz=50.0, physics_hz=150.0)


def test_rows_do_not_depend_on_the_batch_and_a_checkpoint_goes_on_bit_for_bit():
    many, few = go2(made_net(hidden=(32, 32)), 70), go2(made_net(hidden=(32, 32)), 2)
    targets = wave(many, 24)
    alone = run(few, targets[:, :2])
    first = run(many, targets[:10])
    kept = many.state()
    rest = run(many, targets[10:])
    np.testing.assert_array_equal(np.concatenate([first, rest])[:, :2], alone)
    again = go2(made_net(hidden=(32, 32)), 70)
    again.restore(kept)
    np.testing.assert_array_equal(run(again, targets[10:]), rest)


def test_a_reset_row_forgets_its_past():
    sim, fresh = go2(made_net()), go2(made_net())
    run(sim, wave(sim, 10))
    sim.reset(np.array([1]))
    targets = wave(sim, 10)
    np.testing.assert_array_equal(run(sim, targets)[:, 1], run(fresh, targets)[:, 1])


def test_a_silenced_servo_stays_silent_when_gains_are_set_anew():
    sim = go2(pd_net(0.0, 0.0))
    sim.params.set("kp", 25.0)
    sim.reset()
    run(sim, wave(sim, 3))
    np.testing.assert_array_equal(sim.joint_torque, 0.0)


def test_the_guard_names_what_lay_outside():
    sim = go2(made_net())
    sim.params.set("damping", 2.0)  # joints that lag behind
    assert sim.substep_model.guard.warning is None
    targets = wave(sim, 30, 0.02)
    targets[:, :, 4] += 0.5  # fitted on errors up to 0.2
    run(sim, targets)
    guard = sim.substep_model.guard
    assert guard.worst > 0.5
    assert "RL_hip" not in str(guard)
    assert sim.robot.spec.joint_names[4] in str(guard.warning)


def test_a_residual_stays_what_it_was_at_the_edge_of_its_range():
    torques = []
    for error in (0.1, 0.2, 0.5, 3.0):  # fitted on errors up to 0.2
        sim = go2(made_net(taps=(0,)), 1, control_hz=200.0)
        sim.params.set("delay", 0.0)
        sim.step(sim.joint_pos + error)
        torques.append(sim.substep_model._torque[0].copy())
    assert np.abs(torques[1] - torques[0]).min() > 0.0
    np.testing.assert_allclose(torques[2:], [torques[1]] * 2, rtol=1e-5)


def test_parameters_that_the_net_was_fitted_with_are_set():
    net = made_net()
    names = net.spec.joint_names
    settings = (
        Setting(name="armature", of=(names[0],), value=0.02),
        Setting(name="delay", of=names, value=0.004),
        Setting(name="kp", of=(names[2], names[3]), value=0.5, mode="times"),
        Setting(name="tilt", of=(), value=0.1, axis=1),
    )
    net = replace(net, spec=msgspec.structs.replace(net.spec, settings=settings, friction="M2"))
    actuator = NetActuator(net)
    sim = BatchSim(load_robot("go2"), with_net(replace(HELD, nsim=2), net), actuator)
    before = sim.params.get("armature")
    actuator.prepare(sim)
    after = sim.params.get("armature")
    assert after[0, 0] == 0.02
    assert (after[:, 1:] == before[:, 1:]).all()
    assert (sim.delay == 0.004).all()
    np.testing.assert_allclose(sim.params.get("kp")[0, :4], [20.0, 20.0, 10.0, 10.0])
    assert sim.params.get("tilt")[0] == pytest.approx([0.0, 0.1])
    assert sim.gear_friction is not None
    run(sim, wave(sim, 3))
    assert np.isfinite(sim.qpos).all()


def test_history_can_be_given():
    sim, net = go2(made_net()), made_net()
    rng = np.random.default_rng(0)
    target, position, velocity = rng.uniform(-0.1, 0.1, (3, 3, 4, 12))
    sim.substep_model.prime(sim, target, position, velocity)
    got = np.empty((3, 12))
    sim.substep_model.forward.torque(got)
    seen = np.stack([target - position, -velocity], axis=-1)[:, ::-1]  # (nsim, tap, joint, signal)
    np.testing.assert_allclose(got, net(seen.transpose(0, 2, 3, 1)), rtol=1e-4, atol=1e-5)
