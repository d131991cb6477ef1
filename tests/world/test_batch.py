"""The batch against plain MuJoCo, against itself, and against hand-computed physics."""

import mujoco
import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.robot.load import load_robot, zoo_names
from trueup.robot.model import ModelCfg
from trueup.world.actuators.engine import ActuatorCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.drop import default_ranges
from trueup.world.randomization.randomize import Randomizer
from trueup.world.sensors import SensorCfg

NOISE = SensorCfg(joint_pos_rad=0.01, joint_vel_rad_s=0.5, gyro_rad_s=0.1, gravity=0.02, latency_s=(0.0, 0.03))


def randomised(name: str, **cfg) -> BatchSim:
    sim = BatchSim(load_robot(name), SimCfg(sensors=NOISE, **cfg))
    Randomizer(sim, default_ranges(sim)).apply()
    sim.reset()
    return sim


def run(sim: BatchSim, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Drive every row by a target that depends on its row; return true states and observations."""
    spec = sim.robot.spec
    rows = np.arange(sim.cfg.first_row, sim.cfg.first_row + sim.nsim)[:, None]
    states, seen = [], []
    for t in range(steps):
        sim.step(spec.default_pose + 0.2 * np.sin(0.1 * t + rows + np.arange(spec.njoint)))
        reading = sim.observe()
        parts = [reading.joint_pos, reading.joint_vel, reading.gyro, reading.gravity]
        states.append(sim.batch.state.copy())
        seen.append(np.concatenate([part for part in parts if part is not None], axis=1))
    return np.array(states), np.array(seen)


@pytest.mark.parametrize("name", zoo_names())
def test_batch_of_one_equals_row_k_of_many(name):
    states, seen = run(randomised(name, nsim=33, seed=5), 40)
    for k in (0, 17, 32):
        alone_states, alone_seen = run(randomised(name, nsim=1, seed=5, first_row=k), 40)
        np.testing.assert_array_equal(alone_states[:, 0], states[:, k])
        np.testing.assert_array_equal(alone_seen[:, 0], seen[:, k])


def test_one_thread_equals_two_and_seeds_decide():
    one = run(randomised("go2", nsim=32, seed=1, threads=1), 60)
    two = run(randomised("go2", nsim=32, seed=1, threads=2), 60)
    other = run(randomised("go2", nsim=32, seed=2, threads=2), 60)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one[0], other[0])


def test_resetting_some_rows_leaves_the_others_alone():
    kept, cut = randomised("go2", nsim=8, seed=3), randomised("go2", nsim=8, seed=3)
    run(kept, 10)
    run(cut, 10)
    cut.reset(np.array([2, 5]))
    a, b = run(kept, 10)[0][-1], run(cut, 10)[0][-1]
    same = [0, 1, 3, 4, 6, 7]
    np.testing.assert_array_equal(a[same], b[same])
    assert not np.array_equal(a[2], b[2])


def test_a_reset_row_is_as_the_engine_resets_it():
    sim = BatchSim(load_robot("go2"), SimCfg(nsim=3, threads=1))
    for _ in range(5):
        sim.step(sim.robot.spec.default_pose + 0.1)
    sim.reset(np.array([1]))
    data = mujoco.MjData(sim.model)
    data.qpos[:] = sim.default_qpos
    mujoco.mj_forward(sim.model, data)
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    expected = np.empty(mujoco.mj_stateSize(sim.model, kind))
    mujoco.mj_getState(sim.model, data, expected, kind)
    np.testing.assert_array_equal(sim.batch.state[1], expected)


def test_state_restores_bit_for_bit():
    sim = randomised("go2", nsim=6, seed=9)
    run(sim, 15)
    saved = sim.state()
    first = run(sim, 15)
    resumed = randomised("go2", nsim=6, seed=9)
    run(resumed, 3)
    resumed.restore(saved)
    for a, b in zip(first, run(resumed, 15), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", zoo_names())
def test_stepping_equals_plain_mujoco(name):
    robot = load_robot(name)
    sim = BatchSim(robot, SimCfg(nsim=3))
    sim.params.set("delay", 0.0)
    model, data = sim.batch.get_model(1), sim.batch.get_data(1)
    targets = robot.spec.default_pose + 0.1 * np.sin(np.arange(30)[:, None] * 0.3 + np.arange(robot.spec.njoint))
    for target in targets:
        sim.step(target)
        data.ctrl[:] = target
        for _ in range(sim.substeps):
            mujoco.mj_step(model, data)
    np.testing.assert_array_equal(sim.qpos[1], data.qpos)
    np.testing.assert_array_equal(sim.qvel[1], data.qvel)


def in_air(**cfg) -> BatchSim:
    return BatchSim(load_robot("go2"), SimCfg(model=ModelCfg(base="fixed"), **cfg))


def test_rollout_equals_stepping():
    rng = np.random.default_rng(0)
    stepped, rolled = in_air(nsim=4), in_air(nsim=4)
    for sim in (stepped, rolled):
        sim.params.set("delay", np.array([[0.0], [0.0033], [0.005], [0.0171]]))
        sim.params.set("encoder_bias", rng.normal(0, 0.02, 12))
        rng = np.random.default_rng(0)
        sim.reset()
    targets = stepped.robot.spec.default_pose + rng.normal(0, 0.2, (4, 25, 12))
    out = rolled.rollout(targets)
    for t in range(25):
        stepped.step(targets[:, t])
        np.testing.assert_array_equal(out["qpos"][:, t], stepped.qpos)


def test_a_whole_step_of_delay_shifts_the_response_by_that_step():
    sim = in_air(nsim=2)
    sim.params.set("delay", np.array([[0.0], [sim.control_dt]]))
    sim.params.set("gravity", [0.0, 0.0, 0.0])  # nothing moves before the step
    sim.reset()
    still = sim.joint_pos[0].copy()
    history = []
    for t in range(30):
        sim.step(still + (0.3 if t >= 5 else 0.0))
        history.append(sim.joint_pos.copy())
    moves = np.array(history)
    np.testing.assert_allclose(moves[1:, 1], moves[:-1, 0], atol=1e-6)  # solver tolerance: warm starts differ
    assert np.abs(moves[5, 0] - still).max() > 0.01


def test_the_response_is_continuous_in_the_delay():
    delays = np.linspace(0.0, 0.02, 81)
    sim = in_air(nsim=len(delays))
    sim.params.set("delay", delays[:, None])
    sim.reset()
    for t in range(10):
        sim.step(sim.robot.spec.default_pose + 0.3 * (t % 3))
    jumps = np.abs(np.diff(sim.joint_pos, axis=0)).max(axis=1)
    assert jumps.max() < 3 * np.median(jumps)
    assert jumps.min() > 0


def test_encoder_bias_moves_the_joint_the_other_way():
    sim = in_air(nsim=2)
    sim.params.set("encoder_bias", np.array([[0.0], [0.1]]))
    sim.params.set("gravity", [0.0, 0.0, 0.0])
    sim.params.set("friction", 0.0)
    sim.reset()
    for _ in range(200):
        sim.step(sim.robot.spec.default_pose)
    np.testing.assert_allclose(sim.joint_pos[1], sim.robot.spec.default_pose - 0.1, atol=1e-4)
    np.testing.assert_allclose(sim.observe().joint_pos[1], sim.robot.spec.default_pose, atol=1e-4)


@pytest.mark.parametrize("kind", ["pd", "dcmotor"])
def test_servo_torque_is_the_hand_computed_one(kind):
    robot = load_robot("go2")
    spec = robot.spec
    cfg = SimCfg(nsim=3, model=ModelCfg(base="fixed"), actuator=ActuatorCfg(kind=kind), control_hz=200)
    sim = BatchSim(robot, cfg)
    sim.params.set("delay", 0.0)
    rng = np.random.default_rng(1)
    qpos = sim.default_qpos + rng.normal(0, 0.1, (3, 12))
    qvel = rng.normal(0, 8.0, (3, 12))
    sim.reset(qpos=qpos, qvel=qvel)
    targets = qpos + rng.normal(0, 1.0, (3, 12))
    sim.step(targets)  # one physics step: the torque reported is that at the start state
    wanted = spec.kp * (targets - qpos) - spec.kd * qvel
    if kind == "dcmotor":  # between the torque-speed lines of full voltage, either way
        stall, back_emf = spec.stall_torque, spec.stall_torque * qvel / spec.velocity_limit
        wanted = np.clip(wanted, -stall - back_emf, stall - back_emf)
    wanted = np.clip(wanted, -spec.torque_limit, spec.torque_limit)
    np.testing.assert_allclose(sim.joint_torque, wanted, rtol=1e-9, atol=1e-9)


def test_delay_and_torque_speed_line_of_the_spec_reach_the_simulation():
    """Full torque up to the knee speed, then a straight line to zero; commands late by the robot's own delay."""
    robot = load_robot("go2")
    sim = in_air(nsim=4, control_hz=200.0)
    assert sim.cfg.actuator.kind == "dcmotor"
    np.testing.assert_allclose(sim.delay, robot.spec.delay_s)
    sim.params.set("delay", 0.0)
    knee = np.array([joint.knee_speed for joint in robot.spec.joints])
    top, limit = robot.spec.velocity_limit, robot.spec.torque_limit
    speeds = np.stack([0.5 * knee, knee, 0.5 * (knee + top), top])
    qpos = np.repeat(sim.default_qpos[None], 4, axis=0)
    sim.reset(qpos=qpos, qvel=speeds)
    sim.step(qpos + 100.0)
    np.testing.assert_allclose(sim.joint_torque, limit * np.array([1.0, 1.0, 0.5, 0.0])[:, None], atol=1e-6)


def test_velocity_and_torque_commands_need_the_servo_inputs():
    with pytest.raises(TrueupError, match="servo"):
        in_air(nsim=1).step(np.zeros(12), torque=np.ones(12))
    sim = in_air(nsim=1, actuator=ActuatorCfg(inputs="servo"), control_hz=200.0)
    start = sim.joint_pos.copy()
    sim.step(start, target_vel=np.full(12, 2.0), torque=np.full(12, 0.5))
    np.testing.assert_allclose(sim.joint_torque[0], 0.5 + 2.0 * sim.robot.spec.kd, rtol=1e-12)


def test_divergence_is_reported_for_its_row_only(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    sim = BatchSim(load_robot("go2"), SimCfg(nsim=3))
    qvel = np.zeros((3, 18))
    qvel[1, 8] = 1e9
    sim.reset(qvel=qvel)
    for _ in range(5):
        sim.step(sim.robot.spec.default_pose)
    assert list(sim.diverged) == [False, True, False]
    sim.reset(np.array([1]))
    assert not sim.diverged.any()
    assert list(tmp_path.iterdir()) == []  # the engine's own log file
    assert capfd.readouterr().err == ""


def test_wrong_shapes_and_rates_say_what_was_expected():
    with pytest.raises(TrueupError, match=r"broadcast to \(1, 12\).*found \(11,\)"):
        in_air(nsim=1).step(np.zeros(11))
    with pytest.raises(TrueupError, match="whole multiple"):
        in_air(nsim=1, control_hz=60.0, physics_hz=200.0)
    with pytest.raises(TrueupError, match="nsim"):
        SimCfg(nsim=0)
