"""Logs of a simulated robot whose parameters are known."""

import numpy as np

from trueup.data.log import Log
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg

RATE = 200.0


def draw_truth(robot: Robot, seed: int) -> dict[str, np.ndarray]:
    rng, n = np.random.default_rng(seed), robot.spec.njoint
    return {
        "armature": rng.uniform(0.006, 0.025, n),
        "damping": rng.uniform(0.1, 2.0, n),
        "friction": rng.uniform(0.05, 0.5, n),
        "encoder_bias": rng.uniform(-0.04, 0.04, n),
        "delay": np.full(n, rng.uniform(0.003, 0.015)),
    }


def planted_log(
    robot: Robot,
    truth: dict[str, np.ndarray],
    *,
    seconds: float = 8.0,
    seed: int = 0,
    noise: float = 3e-4,
    quantum: float = 2e-4,
    still: tuple[int, ...] = (),
    size: float = 0.15,
    physics_hz: float = RATE,
) -> Log:
    """Multisine on all joints but the `still` ones, as noisy quantised encoders see it."""
    rng, spec = np.random.default_rng(seed + 1000), robot.spec
    time = np.arange(round(seconds * RATE)) / RATE
    tones = np.array([0.15, 0.4, 0.9, 1.7, 3.1, 5.3, 8.0])
    target = np.tile(spec.default_pose, (len(time), 1))
    for j in range(spec.njoint):
        phase, tone = rng.uniform(0, 2 * np.pi, len(tones)), tones * rng.uniform(0.9, 1.1, len(tones))
        wave = (size / np.sqrt(1 + tones) * np.sin(2 * np.pi * tone * time[:, None] + phase)).sum(axis=1)
        target[:, j] += 0.0 if j in still else wave
    sim = BatchSim(robot, SimCfg(control_hz=RATE, physics_hz=physics_hz, model=ModelCfg(base="fixed")))
    for name, values in truth.items():
        sim.params.set(name, values)
    sim.reset()
    for _ in range(300):  # droop under gravity before the log begins
        sim.step(target[0])
    pos, vel = np.empty_like(target), np.empty_like(target)
    for t in range(len(time)):
        pos[t], vel[t] = sim.joint_pos[0] + sim.encoder_bias[0], sim.joint_vel[0]
        sim.step(target[t])
    if noise:
        pos = np.round((pos + noise * rng.standard_normal(pos.shape)) / quantum) * quantum
        vel = vel + 0.01 * rng.standard_normal(vel.shape)
    signals = {"joint_pos": pos, "joint_vel": vel, "target_pos": target}
    return Log(time=time, joint_names=spec.joint_names, signals=signals)


def contact_log(robot: Robot, truth: dict[str, float], *, seconds: float = 4.0, seed: int = 0) -> Log:
    """A free robot that hops and slides on the ground, with odometry; physics at the log's rate."""
    rng, spec = np.random.default_rng(seed), robot.spec
    time = np.arange(round(seconds * RATE)) / RATE
    sim = BatchSim(robot, SimCfg(control_hz=RATE, physics_hz=RATE))
    for name, value in truth.items():
        sim.params.set(name, value)
    qpos = sim.default_qpos[None].copy()
    qpos[:, 2] += 0.05
    sim.reset(qpos=qpos)
    target = np.tile(spec.default_pose, (len(time), 1))
    squat = 0.45 * np.sin(2 * np.pi * 2.3 * time) * (time > 0.5)
    swing = 0.3 * np.sin(2 * np.pi * 1.7 * time)
    for leg in range(4):
        target[:, 3 * leg] += swing * (1, 1, -1, -1)[leg]
        target[:, 3 * leg + 1] += 0.5 * squat
        target[:, 3 * leg + 2] -= squat
    rows = []
    for t in range(len(time)):
        base, turn = sim.qpos[0, :7], sim.qvel[0, :6]
        rows.append(np.concatenate([sim.joint_pos[0], sim.joint_vel[0], base, turn]))
        sim.step(target[t])
    seen = np.array(rows)
    seen += rng.standard_normal(seen.shape) * np.repeat([3e-4, 0.01, 3e-4, 3e-4, 3e-3, 3e-3], [12, 12, 3, 4, 3, 3])
    seen[:, 27:31] /= np.linalg.norm(seen[:, 27:31], axis=1, keepdims=True)
    names = {"joint_pos": (0, 12), "joint_vel": (12, 24), "base_pos": (24, 27), "base_quat": (27, 31)}
    names |= {"base_vel": (31, 34), "imu_gyro": (34, 37)}
    signals = {name: seen[:, a:b].copy() for name, (a, b) in names.items()} | {"target_pos": target}
    return Log(time=time, joint_names=spec.joint_names, signals=signals)
