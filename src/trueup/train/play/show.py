"""Films of a policy: an episode's positions, rendered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.runner import Policy
from trueup.rl.env import Obs
from trueup.tasks.env import TaskEnv
from trueup.view.camera import CameraCfg, turned
from trueup.view.draw import HEIGHT, WIDTH
from trueup.view.film import film, visual_model


def episode_qpos(
    env: TaskEnv, policy: Policy, seconds: float, command: Sequence[float] | None = None
) -> NDArray[np.float64]:
    """Positions (T, nq) of row 0, from the start of an episode; ends where the episode ends.

    command  to ask for throughout, in the columns of the goal's sliders; None: as the task draws them
    """
    if command is not None and len(command) != len(env.goal.sliders):
        takes = ", ".join(slider.name for slider in env.goal.sliders) or "no command"
        raise TrueupError(f"task {env.task.name!r} takes {takes}, found {len(command)} numbers")
    obs: Obs = env.reset()
    if command is not None:
        env.goal.hold(np.asarray(command, np.float64))
    frames = [env.sim.qpos[0].copy()]
    for _ in range(round(seconds / env.control_dt)):
        step = env.step(np.ascontiguousarray(policy(obs), np.float32))
        if 0 in step.ended:
            break
        obs = step.obs
        frames.append(env.sim.qpos[0].copy())
    return np.array(frames)


def facing(env: TaskEnv, camera: CameraCfg, qpos: NDArray[np.float64]) -> CameraCfg:
    """The camera turned with the robot: its azimuth counts from where a free base faces at `qpos` (nq,)."""
    at = env.sim.base_qpos + 3
    return turned(camera, qpos[at : at + 4]) if env.sim.free_base else camera


def film_policy(
    env: TaskEnv,
    policy: Policy,
    path: Path,
    *,
    seconds: float = 5.0,
    width: int = WIDTH,
    height: int = HEIGHT,
    camera: CameraCfg | None = None,
    command: Sequence[float] | None = None,
    progress: Callable[[float], None] | None = None,
) -> Path:
    """Film row 0 of an environment of one simulation, in real time; the camera follows it."""
    qpos = episode_qpos(env, policy, seconds, command)
    return film(
        visual_model(env.sim.scene, env.sim.cfg.model),
        qpos,
        path,
        sample_hz=1.0 / env.control_dt,
        width=width,
        height=height,
        camera=facing(env, camera or CameraCfg(), qpos[0]),
        progress=progress,
    )
