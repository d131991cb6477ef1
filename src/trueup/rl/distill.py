"""Students that learn from teachers who know the hidden factors, on the student's own states (DAgger).

latent   RMA's second phase (arXiv 2107.04034): the teacher acts on [obs, z] with z = mu(e); the student estimates z
         from the last steps of (observation, action), and the teacher's policy acts on the estimate.
         Loss |z - z_hat|^2.
action   The student is a policy of its own on the same history and imitates the teacher's mean action.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueup.policy.normalizer import Normalizer
from trueup.policy.trace import Trace
from trueup.rl.collect import Seen, check_finite, part
from trueup.rl.env import Env, Floats, Obs, State
from trueup.rl.nets.mlp import Mlp, mlp_shapes
from trueup.rl.nets.networks import Actor
from trueup.rl.nets.parameters import Adam, Parameters
from trueup.rl.settings import NetCfg


@dataclass(frozen=True, kw_only=True)
class DistillCfg:
    """Settings of a distillation; `history` in control steps."""

    kind: Literal["latent", "action"] = "latent"
    history: int = 50
    hidden: tuple[int, ...] = (128, 64)
    steps: int = 8
    epochs: int = 1
    minibatches: int = 4
    rate: float = 5e-4


class Distiller:
    """A student in its environment; `teacher_state` is the state of the Ppo that trained the teacher."""

    def __init__(self, env: Env, net: NetCfg, teacher_state: State, cfg: DistillCfg, seed: int = 0) -> None:
        torch.set_num_threads(1)
        self.env, self.cfg, self.seed, self.iteration, self.steps = env, cfg, seed, 0, cfg.steps
        self.batch = -(-cfg.steps * env.nenv // cfg.minibatches)
        rows = max(self.batch, env.nenv)
        self.teacher = Actor(env.nactor, env.nprivileged, env.naction, net, rows)
        self.normalizer, self.privileged_normalizer = Normalizer(env.nactor), Normalizer(env.nprivileged)
        self._load_teacher(teacher_state)
        self.trace = Trace(env.nenv, cfg.history, env.nactor + env.naction)
        nout = net.latent if cfg.kind == "latent" else env.naction
        sizes = (self.trace.width, *cfg.hidden, nout)
        self.parameters = Parameters(mlp_shapes("student", sizes))
        self.student = Mlp(self.parameters, "student", sizes, rows)
        self.student.initialize(torch.Generator().manual_seed(seed), last_gain=0.1)
        self.adam = Adam(self.parameters)
        size = cfg.steps * env.nenv
        self._inputs, self._targets = torch.empty(size, self.trace.width), torch.empty(size, nout)
        self._actions: Floats = np.zeros((cfg.steps, env.nenv, env.naction), np.float32)
        self.obs: Obs = env.reset()
        self.last_action: Floats = np.zeros((env.nenv, env.naction), np.float32)

    @property
    def steps_done(self) -> int:
        """Control steps of all copies together."""
        return self.iteration * self.cfg.steps * self.env.nenv

    def actions(self, t: int) -> Floats:
        """What was done at step `t` of this iteration."""
        return self._actions[t].copy()

    def iterate(self) -> dict[str, float]:
        """Act as the student, ask the teacher, learn."""
        sums: dict[str, float] = {}
        for t in range(self.cfg.steps):
            action = self._act(t)
            check_finite("the student's action", action, t)
            step = self.env.step(action.copy())
            check_finite("the reward", step.reward, t)
            check_finite("the actor's observation", step.obs.actor, t)
            self.obs, self.last_action = step.obs, action
            self.trace.restart(step.ended)
            self.last_action[step.ended] = 0.0
            for name, value in (*step.metrics.items(), ("reward", float(step.reward.mean()))):
                sums[name] = sums.get(name, 0.0) + value
        loss = self._learn(np.random.default_rng([self.seed, self.iteration]))
        self.iteration += 1
        return {name: value / self.cfg.steps for name, value in sums.items()} | {"distill_loss": loss}

    def _act(self, t: int) -> Floats:
        cut = slice(t * self.env.nenv, (t + 1) * self.env.nenv)
        obs = torch.tensor(self.normalizer(self.obs.actor))
        self._inputs[cut] = torch.from_numpy(self.trace.push(obs.numpy(), self.last_action))
        privileged = torch.tensor(self.privileged_normalizer(self.obs.privileged))
        if self.cfg.kind == "latent":
            assert self.teacher.encoder is not None
            self._targets[cut] = self.teacher.encoder.forward(privileged)
            action = self.teacher.forward_latent(obs, self.student.forward(self._inputs[cut]))
        else:
            self._targets[cut] = self.teacher.forward(obs, privileged)
            action = self.student.forward(self._inputs[cut])
        self._actions[t] = action.numpy()
        return self._actions[t].copy()

    def _learn(self, rng: np.random.Generator) -> float:
        losses = []
        for _ in range(self.cfg.epochs):
            order = torch.from_numpy(rng.permutation(len(self._inputs)))
            for rows in torch.split(order, self.batch):
                error = self.student.forward(self._inputs[rows]) - self._targets[rows]
                losses.append(float(error.square().mean()))
                self.student.backward(error.mul_(2.0 / error.numel()))
                self.parameters.clip_gradient(1.0)
                self.adam.step(self.cfg.rate)
        return float(np.mean(losses))

    # --- checkpoints: the teacher goes with the student ---
    def state(self) -> State:
        out: State = {f"env/{name}": value for name, value in self.env.state().items()}
        out |= {f"obs/{name}": getattr(self.obs, name) for name in ("actor", "critic", "privileged")}
        out |= {f"actor/{name}": view.numpy() for name, view in self.teacher.parameters.view.items()}
        out |= {f"normalizer/actor/{k}": v for k, v in self.normalizer.state().items()}
        out |= {f"normalizer/privileged/{k}": v for k, v in self.privileged_normalizer.state().items()}
        out |= {f"student/{name}": view.numpy() for name, view in self.parameters.view.items()}
        out |= {
            "trace": self.trace.frames,
            "student_acts": np.array(self.cfg.kind == "action"),
            "last_action": self.last_action,
            "student_adam/mean": self.adam.mean.numpy(),
            "student_adam/square": self.adam.square.numpy(),
            "student_adam/steps": np.array(self.adam.steps),
            "learner/iteration": np.array(self.iteration),
        }
        return out

    def restore(self, state: State) -> None:
        """Continue from `state`."""
        self.env.restore(part(state, "env/"))
        self.obs = Seen(**part(state, "obs/"))  # type: ignore[arg-type]
        self._load_teacher(state)
        _fill(self.parameters.view, part(state, "student/"))
        self.trace.frames[:] = state["trace"]
        self.last_action = np.array(state["last_action"], np.float32)
        self.adam.mean.copy_(torch.from_numpy(state["student_adam/mean"]))
        self.adam.square.copy_(torch.from_numpy(state["student_adam/square"]))
        self.adam.steps, self.iteration = int(state["student_adam/steps"]), int(state["learner/iteration"])

    def _load_teacher(self, state: State) -> None:
        mean = part(state, "average/") or part(state, "actor/")
        _fill(self.teacher.parameters.view, mean)
        self.normalizer.restore(part(state, "normalizer/actor/"))  # type: ignore[arg-type]
        self.privileged_normalizer.restore(part(state, "normalizer/privileged/"))  # type: ignore[arg-type]

    def close(self) -> None:
        """Nothing to end."""


def _fill(views: dict[str, Tensor], arrays: dict[str, NDArray[np.generic]]) -> None:
    for name, view in views.items():
        view.copy_(torch.from_numpy(arrays[name]))
