"""What a policy looks like: an episode's positions, and a film of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.rl.env import Obs
from trueup.robot.model import ModelCfg, build_spec, compile_spec
from trueup.sim.film import dress, film
from trueup.tasks.env import TaskEnv
from trueup.train.frozen import Policy


def episode_qpos(env: TaskEnv, policy: Policy, seconds: float) -> NDArray[np.float64]:
    """Positions (T, nq) of row 0, from the start of an episode; ends where the episode ends."""
    obs: Obs = env.reset()
    frames = [env.sim.qpos[0].copy()]
    for _ in range(round(seconds / env.control_dt)):
        step = env.step(np.ascontiguousarray(policy(obs), np.float32))
        if 0 in step.ended:
            break
        obs = step.obs
        frames.append(env.sim.qpos[0].copy())
    return np.array(frames)


def visual_model(env: TaskEnv) -> mujoco.MjModel:
    """The robot of an environment on its ground, made to be looked at."""
    spec = build_spec(env.robot, ModelCfg(visual=True, floor=True))
    if env.climb is not None:
        env.climb.terrain.add_to(spec)
    dress(spec)
    return compile_spec(spec, env.robot)


def film_policy(
    env: TaskEnv,
    policy: Policy,
    path: Path,
    *,
    seconds: float = 5.0,
    width: int = 480,
    height: int = 360,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Film row 0 of an environment of one simulation, in real time."""
    qpos = episode_qpos(env, policy, seconds)
    return film(
        visual_model(env),
        qpos,
        path,
        sample_hz=1.0 / env.control_dt,
        width=width,
        height=height,
        progress=progress,
    )
