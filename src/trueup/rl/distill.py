"""Distillation: students learn from teachers who know the hidden factors, on the student's own states (DAgger).

latent   RMA's second phase (arXiv 2107.04034): the teacher acts on [obs, z] with z = mu(e); the student estimates z
         from the last steps of (observation, action), and the teacher's actor acts on the estimate.
         Loss |z - z_hat|^2.
action   The student is a policy of its own on the same history and imitates the teacher's mean action.
"""

from __future__ import annotations

import numpy as np
import torch

from trueup.core.errors import TrueupError
from trueup.policy.net import NetWiring, PolicyNet, read_layers, read_net
from trueup.policy.reading import History
from trueup.policy.runner import PolicyRunner
from trueup.rl.env import Env, Floats, State, part
from trueup.rl.learner import Learner
from trueup.rl.nets.mlp import Mlp, mlp_shapes
from trueup.rl.nets.parameters import Adam, Parameters
from trueup.rl.settings import DistillCfg


class Distiller(Learner):
    """A student in its environment; the teacher is any policy without memory, for latents one of kind `privileged`."""

    cfg: DistillCfg

    def __init__(self, env: Env, cfg: DistillCfg, seed: int, teacher: PolicyNet) -> None:
        super().__init__(env, seed)
        torch.set_num_threads(1)
        if cfg.kind == "latent" and teacher.spec.kind != "privileged":
            raise TrueupError("this teacher has no latent to estimate: train it with --latent 8")
        if teacher.spec.steps:
            raise TrueupError("this teacher is a student itself: name the run of its teacher")
        self.cfg, self.teacher, self.normalizers = cfg, PolicyRunner(teacher), {}
        self.batch = -(-cfg.steps * env.nenv // cfg.minibatches)
        self.past = History(env.nenv, cfg.history, env.nactor + env.naction)
        width = cfg.history * (env.nactor + env.naction)
        nout = len(teacher.encoder[-1][1]) if cfg.kind == "latent" else env.naction
        sizes = (width, *cfg.hidden, nout)
        self.parameters = Parameters(mlp_shapes("student", sizes))
        self.student = Mlp(self.parameters, "student", sizes, max(self.batch, env.nenv))
        self.student.initialize(torch.Generator().manual_seed(seed), last_gain=0.1)
        self.adams = {"student": Adam(self.parameters)}
        size = cfg.steps * env.nenv
        self._inputs, self._targets = torch.empty(size, width), torch.empty(size, nout)
        self.last_action: Floats = np.zeros((env.nenv, env.naction), np.float32)

    def iterate(self) -> dict[str, float]:
        """Act as the student, label with the teacher, update the student."""
        self.stepper.begin()
        for t in range(self.cfg.steps):
            self.last_action = self._act(t)
            ended = self.stepper.step(self.last_action).ended
            self.past.frames[ended] = 0.0
            self.last_action[ended] = 0.0
        loss = self._update(self.draw())
        self.iteration += 1
        return self.stepper.metrics() | {"distill_loss": loss}

    def policy(self) -> PolicyNet:
        """The student; one that estimates the latent goes with its teacher's actor."""
        teacher, cfg = self.teacher.net, self.cfg
        student = read_layers(self.parameters.arrays(), "student")
        latent = cfg.kind == "latent"
        return PolicyNet(
            spec=NetWiring(kind=cfg.kind, steps=cfg.history, squash=teacher.spec.squash if latent else 0.0),
            actor=teacher.actor if latent else student,
            encoder=student if latent else (),
            normalizer=teacher.normalizer,
        )

    def _act(self, t: int) -> Floats:
        obs, rows = self.stepper.obs, slice(t * self.env.nenv, (t + 1) * self.env.nenv)
        x = self.teacher.net.normalizer(obs.actor)
        self._inputs[rows] = torch.from_numpy(self.past.push(np.concatenate([x, self.last_action], axis=1)))
        out = self.student.forward(self._inputs[rows]).numpy().copy()
        if self.cfg.kind == "latent":
            self._targets[rows] = torch.from_numpy(self.teacher.latent(obs.privileged))
            return self.teacher.act_on_latent(x, out)
        self._targets[rows] = torch.from_numpy(self.teacher.act(obs.actor, obs.privileged))
        return out

    def _update(self, rng: np.random.Generator) -> float:
        losses = []
        for _ in range(self.cfg.epochs):
            order = torch.from_numpy(rng.permutation(len(self._inputs)))
            for rows in torch.split(order, self.batch):
                error = self.student.forward(self._inputs[rows]) - self._targets[rows]
                losses.append(float(error.square().mean()))
                self.student.backward(error.mul_(2.0 / error.numel()))
                self.descend("student", self.cfg.learning_rate, max_norm=1.0)
        return float(np.mean(losses))

    # --- checkpoints: the teacher goes with the student ---
    def state(self) -> State:
        teacher = {f"teacher/{name}": values for name, values in self.teacher.net.arrays().items()}
        return super().state() | teacher | {"past": self.past.frames, "last_action": self.last_action}

    def restore(self, state: State) -> None:
        super().restore(state)
        self.teacher = PolicyRunner(read_net(self.teacher.net.spec, part(state, "teacher/")))
        self.past.frames[:] = state["past"]
        self.last_action = np.array(state["last_action"], np.float32)
