"""The plant in process: against the simulator that fits run, and its pieces against the equations of `models`."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from trueup.hardware.twin_cfg import TwinCfg
from trueup.models.delay import DelayLine
from trueup.models.friction import FrictionParams, friction_law
from trueup.robot.load import load_robot, zoo_names
from trueup.robot.model import ModelCfg
from trueup.twin.firmware import Twin
from trueup.twin.physics.friction import Hysteresis, StribeckFriction
from trueup.twin.physics.physics import CommandLine, EngineViews
from trueup.twin.truth.truth import FrictionTruth, TransmissionTruth
from trueup.world.actuators.engine import ActuatorCfg
from trueup.world.batch import BatchSim, SimCfg


def excite(robot: str, twin: Twin, sim: BatchSim, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The same commands to both; positions as read of both."""
    spec = load_robot(robot).spec
    rng = np.random.default_rng(0)
    phase = rng.uniform(0, 6, spec.njoint)
    seen, simulated = [], []
    for k in range(steps):
        goal = spec.default_pose + 0.15 * np.sin(2 * np.pi * (1.0 + 0.2 * np.arange(spec.njoint)) * k / 200 + phase)
        goal = np.clip(goal, spec.position_low, spec.position_high)
        twin.command(np.stack([goal, 0 * goal, spec.kp, spec.kd, 0 * goal]))
        twin.period()
        sim.step(goal[None])
        seen.append(twin.state().joint_pos)
        simulated.append(sim.joint_pos[0] + sim.encoder_bias[0])
    return np.array(seen), np.array(simulated)


def simulator(robot: str, twin: Twin) -> BatchSim:
    cfg = SimCfg(
        control_hz=200.0,
        physics_hz=twin.physics_hz,
        model=ModelCfg(base="fixed"),
        actuator=ActuatorCfg(kind="pd", inputs="servo"),
    )
    return BatchSim(load_robot(robot), cfg)


@pytest.mark.parametrize("robot", zoo_names())
def test_an_ideal_twin_is_the_simulator(robot: str) -> None:
    twin = Twin(load_robot(robot), TwinCfg(preset="ideal"))
    seen, simulated = excite(robot, twin, simulator(robot, twin), 100)
    assert np.abs(seen - simulated).max() < 1e-9


def test_a_pace_twin_is_the_simulator_with_its_parameters_up_to_noise() -> None:
    twin = Twin(load_robot("go2"), TwinCfg(preset="pace", seed=4))
    sim, truth = simulator("go2", twin), twin.truth
    for name in ("armature", "damping", "friction", "encoder_bias"):
        sim.params.set(name, getattr(truth.joint, name)[None])
    sim.params.set("delay", truth.delay_s)
    sim.reset()
    seen, simulated = excite("go2", twin, sim, 200)
    error = seen - simulated
    assert np.abs(error).max() < 6 * 0.0005  # the preset's encoder noise
    assert error.std() == pytest.approx(0.0005, rel=0.05)


@pytest.mark.parametrize("preset", ["ideal", "pace", "payload", "mild", "worn"])
@pytest.mark.parametrize("robot", ["go2", "so101"])  # with and without a torque-speed line in its spec
def test_a_servo_obeys_the_gains_of_each_command(robot: str, preset: str) -> None:
    twin = Twin(load_robot(robot), TwinCfg(preset=preset, seed=4))
    spec, zero = twin.robot.spec, np.zeros(twin.robot.spec.njoint)
    torques = []
    for gain in (0.0, 0.5, 1.0):
        for _ in range(20):
            twin.command(np.stack([spec.default_pose, zero, gain * spec.kp, zero, zero]))
            twin.period()
        torques.append(np.abs(twin.plant.force).sum())
    assert torques[0] < 1e-9  # no gains: no torque, and the joints sag
    assert torques[1] > 0.01


def test_a_command_line_without_jitter_delays_as_the_delay_line_of_models() -> None:
    rng = np.random.default_rng(2)
    for delay_s in (0.0, 0.003, 0.0047, 0.0121):
        line = CommandLine(delay_s / 1e-3, 0.0, rng)
        reference = DelayLine(1, 5, dt_s=1e-3, max_delay_s=0.02, delay_s=delay_s)
        start = np.zeros((5, 1))
        line.cut(start)
        now, step = start, 0
        for _ in range(20):
            rows = rng.normal(size=(5, 1))
            line.push(rows, float(step))
            expected = reference.step(rows.T, 4)[0]
            for k in range(4):
                change = line.at(step)
                now = now if change is None else change
                assert np.allclose(now[:, 0], expected[k], atol=1e-9)
                step += 1


def test_a_command_never_overtakes_the_one_before() -> None:
    line = CommandLine(2.0, 10.0, np.random.default_rng(0))
    line.cut(np.zeros((5, 1)))
    seen: list[float] = []
    for step in range(200):
        if step < 180:
            line.push(np.full((5, 1), float(step + 1)), float(step))
        change = line.at(step)
        seen.append(seen[-1] if change is None and seen else 0.0 if change is None else float(change[0, 0]))
    assert np.all(np.diff(seen) >= 0)
    assert seen[-1] == 180.0


def test_quiet_steps_end_where_the_next_command_falls_due() -> None:
    line = CommandLine(7.25, 0.0, np.random.default_rng(0))
    line.cut(np.zeros((5, 1)))
    line.push(np.ones((5, 1)), 0.0)
    assert line.at(0) is None
    assert line.quiet_steps(0) == 7
    mean = line.at(7)
    assert mean is not None
    assert mean[0, 0] == pytest.approx(0.75)
    assert line.quiet_steps(7) == 1
    after = line.at(8)
    assert after is not None
    assert after[0, 0] == 1.0
    assert line.quiet_steps(8) > 10**6


@pytest.mark.parametrize("power", [1.0, 1.35, 2.0])
def test_stribeck_friction_is_m4_of_models(power: float) -> None:
    rng = np.random.default_rng(1)
    n = 6
    velocity, out, load = rng.normal(size=n), np.zeros(n), rng.normal(size=n)
    coulomb = rng.uniform(0.1, 1, n)
    truth = FrictionTruth(
        kind="stribeck",
        stiction=rng.uniform(0, 1, n),
        stribeck_vel=rng.uniform(0.1, 1, n),
        stribeck_power=np.full(n, power),
        load=rng.uniform(0, 0.2, n),
        load_rest=rng.uniform(0, 0.2, n),
        bristle_stiffness=np.zeros(n),
        bristle_damping=np.zeros(n),
    )
    StribeckFriction(truth, coulomb, velocity, out, lambda out: np.copyto(out, load))()
    params = FrictionParams(
        kc=coulomb, kcs=truth.stiction, dqs=truth.stribeck_vel, alpha=power, kl=truth.load, kls=truth.load_rest
    )
    assert np.allclose(out, friction_law("M4").budget(params, velocity, load, np.zeros(n)).dry, rtol=1e-12)


def test_the_dahl_loop_encloses_its_area() -> None:
    n, dt, depth, turn = 1, 1e-4, 0.02, 0.003
    truth = TransmissionTruth(
        stiffness=np.ones(n),
        hardening=np.zeros(n),
        damping=np.zeros(n),
        hysteresis=np.full(n, 0.7),
        hysteresis_rad=np.full(n, turn),
        backlash=np.zeros(n),
    )
    rate, motor, link = np.zeros(n), np.zeros(n), np.zeros(n)
    element = Hysteresis(truth, rate, motor, link, dt)
    work = 0.0
    for k in range(20000):  # two cycles of a second
        rate[0] = depth * 2 * np.pi * np.cos(2 * np.pi * k * dt)
        motor[:] = 0.0
        element()
        assert motor[0] == -link[0]
        work += link[0] * rate[0] * dt if k >= 10000 else 0.0
    assert work == pytest.approx(4 * 0.7 * (depth - turn), rel=0.02)


def test_views_serve_joints_that_do_not_lie_side_by_side() -> None:
    views, engine = EngineViews(), np.arange(10.0)
    scattered, contiguous = np.array([7, 2, 4]), np.array([3, 4, 5])
    copy, view = views.read(engine, scattered), views.read(engine, contiguous)
    target = views.write(engine, scattered)
    engine[:] = engine + 1
    views.gather()
    assert copy.tolist() == [8.0, 3.0, 5.0]
    assert view.tolist() == [4.0, 5.0, 6.0]
    target[:] = (70.0, 20.0, 40.0)
    views.scatter()
    assert engine[[7, 2, 4]].tolist() == [70.0, 20.0, 40.0]


def test_stiff_draws_are_lowered_and_the_truth_says_so() -> None:
    twin = Twin(load_robot("z1"), TwinCfg(preset="harmonic", seed=0))
    assert any("stiffness drawn" in note for note in twin.truth.notes)
    assert twin.truth.transmission is not None
    assert np.allclose(twin.plant.model.tendon_stiffness, twin.truth.transmission.stiffness)


def test_dry_friction_is_solved_to_the_end_on_every_robot() -> None:
    """More work of the engine's solver must not change how a twin moves."""
    for name in ("go2", "so101", "z1"):
        robot = load_robot(name)
        plain, thorough = (Twin(robot, TwinCfg(preset="worn", seed=3)) for _ in range(2))
        options = thorough.plant.model.opt
        options.iterations, options.ls_iterations = 500, 500
        pose, zero = robot.spec.default_pose, np.zeros(robot.spec.njoint)
        for k in range(80):
            target = pose + 0.1 * np.sin(0.05 * k + np.arange(robot.spec.njoint))
            for twin in (plain, thorough):
                twin.command(np.stack([target, zero, robot.spec.kp, robot.spec.kd, zero]))
                twin.period()
        assert np.abs(plain.plant.position - thorough.plant.position).max() < 1e-6, name


@pytest.mark.parametrize("preset", ["mild", "worn"])
@pytest.mark.parametrize("name", ["go2", "z1"])
def test_friction_and_play_in_the_air_are_solved_to_the_end(name: str, preset: str) -> None:
    robot = load_robot(name)
    paths = []
    for solver in (None, mujoco.mjtSolver.mjSOL_NEWTON.value):
        twin = Twin(robot, TwinCfg(preset=preset, seed=3))
        if solver is not None:
            twin.plant.model.opt.solver, twin.plant.model.opt.tolerance = solver, 1e-12
        path = []
        for k in range(100):
            rows = np.zeros((5, robot.spec.njoint))
            rows[0] = robot.spec.default_pose + 0.3 * np.sin(0.06 * k + np.arange(robot.spec.njoint))
            rows[2], rows[3] = robot.spec.kp, robot.spec.kd
            twin.command(rows)
            twin.period()
            path.append(twin.plant.position.copy())
        paths.append(np.array(path))
    np.testing.assert_allclose(paths[0], paths[1], rtol=0, atol=1e-5)
