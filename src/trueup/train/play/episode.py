"""One episode of a policy, step by step: commands and measured values, foot contacts, actions."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.documents import read_npz
from trueup.core.errors import TrueupError
from trueup.core.files import write_atomic
from trueup.policy.runner import Policy
from trueup.tasks.env import TaskEnv
from trueup.tasks.sensing.frame import Frame

Floats = NDArray[np.float32]
EPISODE_FILE = "episode.npz"
_NAMES, _ARRAYS = ("names", "feet"), ("asked", "measured", "contact", "action")


@dataclass(frozen=True, kw_only=True)
class Episode:
    """Row 0 until its episode ends, T control steps of `dt` seconds.

    names            of the goal's columns, with their units
    asked, measured  (T, columns); no columns where the goal does not measure them
    feet, contact    (T, nfoot): whether each touches the ground; no columns for a robot without feet
    action           (T, naction) of the policy
    """

    dt: float
    names: tuple[str, ...]
    asked: Floats
    measured: Floats
    feet: tuple[str, ...]
    contact: NDArray[np.bool_]
    action: Floats

    @property
    def time(self) -> NDArray[np.floating]:
        """In seconds, (T,)."""
        return self.dt * np.arange(1, len(self.action) + 1)

    def duty(self) -> NDArray[np.float64]:
        """Share of the time that each foot is on the ground, (nfoot,)."""
        return self.contact.mean(axis=0, dtype=np.float64)

    def phase(self) -> list[float | None]:
        """Touchdown of each foot after that of the first, as a share of its stride in [0, 1); None without strides.

        The mean is circular, so that phases about 0 and 1 do not average to a half.
        """
        down = [np.flatnonzero(self.contact[1:, k] & ~self.contact[:-1, k]) for k in range(len(self.feet))]
        out: list[float | None] = []
        for touches in down:
            stride = np.searchsorted(down[0], touches, side="right") - 1
            inside = (stride >= 0) & (stride < len(down[0]) - 1)
            if not inside.any():
                out.append(None)
                continue
            start, end = down[0][stride[inside]], down[0][stride[inside] + 1]
            mean = np.exp(2j * np.pi * (touches[inside] - start) / (end - start)).mean()
            out.append(float(np.round(np.angle(mean) / (2 * np.pi), 9) % 1.0))
        return out

    def action_change(self) -> NDArray[np.float64]:
        """Root mean square over the actions of the change from each control step to the next, (T - 1,)."""
        return np.sqrt(np.square(np.diff(self.action.astype(np.float64), axis=0)).mean(axis=1))

    def save(self, path: Path) -> Path:
        """Write the arrays and names as .npz."""
        parts: dict[str, Any] = {name: np.array(getattr(self, name), dtype=np.str_) for name in _NAMES}
        parts |= {name: getattr(self, name) for name in _ARRAYS}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, dt=np.float64(self.dt), **parts)
        return write_atomic(path, buffer.getvalue())


def load_episode(path: Path) -> Episode:
    """Read what `save` wrote."""
    found = read_npz(path, "recorded episode")
    try:
        names, feet = (tuple(str(word) for word in found[name].tolist()) for name in _NAMES)
        arrays = {name: found[name] for name in _ARRAYS}
        return Episode(dt=float(found["dt"]), names=names, feet=feet, **arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise TrueupError(f"is not a recorded episode: {error}", file=path) from None


def record_episode(env: TaskEnv, policy: Policy, seconds: float) -> Episode:
    """Run a policy in an environment of one simulation until its episode ends, at most for `seconds`."""
    commanded, measured, contact, actions = [], [], [], []
    feet = tuple(env.robot.spec.feet) if env.sim.free_base else ()
    names = tuple(slider.name for slider in env.goal.sliders)

    def watch(frame: Frame) -> None:
        came = env.goal.measured(frame)
        commanded.append(env.goal.values[0, : len(names)].copy())
        measured.append(np.zeros(0, np.float32) if came is None else came[0].copy())
        contact.append(frame.foot_contact[0].copy() if feet else np.zeros(0, bool))

    obs = env.reset()
    policy.restart(np.arange(env.nenv))
    env.watch = watch
    try:
        for _ in range(round(seconds / env.control_dt)):
            action = np.ascontiguousarray(policy(obs), np.float32)
            step = env.step(action)
            actions.append(action[0].copy())
            if 0 in step.ended:
                break
            obs = step.obs
    finally:
        env.watch = None
    return Episode(
        dt=env.control_dt,
        names=names,
        asked=np.array(commanded, np.float32),
        measured=np.array(measured, np.float32),
        feet=feet,
        contact=np.array(contact, bool),
        action=np.array(actions, np.float32),
    )
