"""For users of Stable-Baselines3: the same environments behind its VecEnv.

    from stable_baselines3 import PPO
    PPO("MlpPolicy", Sb3Env(make_env(load_task("go2-velocity")))).learn(1_000_000)

Its policies see one observation: the actor's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from trueup.rl.env import Env, Floats


class Sb3Env(VecEnv):
    """An Env behind Stable-Baselines3's interface; final observations and time-outs are in the infos."""

    def __init__(self, env: Env, action_limit: float = 10.0) -> None:
        self.env, self.render_mode = env, None
        seen = spaces.Box(-np.inf, np.inf, (env.nactor,), np.float32)
        done = spaces.Box(-action_limit, action_limit, (env.naction,), np.float32)
        super().__init__(env.nenv, seen, done)
        self._action: Floats = np.zeros((env.nenv, env.naction), np.float32)

    def reset(self) -> Floats:
        return self.env.reset().actor.copy()

    def step_async(self, actions: NDArray[np.floating[Any]]) -> None:
        self._action = np.array(actions, np.float32, order="C")

    def step_wait(self) -> tuple[Floats, Floats, NDArray[np.bool_], list[dict[str, Any]]]:
        step = self.env.step(self._action)
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for k, row in enumerate(step.ended):
            infos[row] = {
                "terminal_observation": step.last.actor[k].copy(),
                "TimeLimit.truncated": bool(step.truncated[row] and not step.terminated[row]),
            }
        if infos:
            infos[0]["metrics"] = step.metrics
        return step.obs.actor.copy(), step.reward.copy(), step.terminated | step.truncated, infos

    def close(self) -> None:
        """Nothing to release."""

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        return [getattr(self, attr_name)] * len(self._indices(indices))

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: int | Iterable[int] | None = None, **kwargs: Any
    ) -> list[Any]:
        raise NotImplementedError(f"copies are stepped together and have no {method_name!r} of their own")

    def env_is_wrapped(self, wrapper_class: type[Any], indices: int | Iterable[int] | None = None) -> list[bool]:
        return [False] * len(self._indices(indices))

    def _indices(self, indices: int | Iterable[int] | None) -> list[int]:
        found: list[int] = list(self._get_indices(indices))
        return found
