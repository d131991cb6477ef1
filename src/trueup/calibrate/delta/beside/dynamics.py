"""Delta dynamics: a net that predicts what the next state lacks, added after every step (a baseline of ASAP).

    s' = f(s, a) + net(s, a),   s: joints, their speeds, gravity, spin and velocity of the base in its own frame

It may do what no motor can: it moves the base itself. Fitted to one step from recorded states, it is then run through
states of its own making.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import torch

from trueup.calibrate.delta.problem import DeltaProblem
from trueup.calibrate.delta.shooting import Rows
from trueup.core.arrays import FloatArray
from trueup.core.layers import Layer, forward
from trueup.motion.rotations import conjugate, rotate
from trueup.policy.reading import gravity_in_body
from trueup.world.batch import BatchSim
from trueup.world.replay.playback import begin, joint_seen

HIDDEN = (256, 256)
_STEPS, _BATCH, _RATE, _KEPT = 1500, 512, 1e-3, 10
_MOST = 6000


class DeltaDynamics:
    """A net of (state, target) to the difference of the next state: qvel-sized displacement and velocity."""

    def __init__(self, problem: DeltaProblem) -> None:
        self.shooting = problem.shooting
        starts = problem.starts(1, windows=_MOST)
        x, y = self._pairs(starts)
        self.mean, self.std = x.mean(axis=0), x.std(axis=0) + 1e-3
        self.low, self.high = x.min(axis=0), x.max(axis=0)
        self.scale = y.std(axis=0) + 1e-9
        self.layers = _fitted((x - self.mean) / self.std, y / self.scale, problem.cfg.seed)

    def __call__(self, x: FloatArray) -> FloatArray:
        """(n, 2 nv): displacement and change of velocity; inputs are held at the edge of the data."""
        seen = (np.clip(x, self.low, self.high) - self.mean) / self.std
        return forward(self.layers, seen.astype(np.float32)).astype(np.float64) * self.scale

    def run(self, starts: Rows, steps: int) -> dict[str, FloatArray]:
        """Play the commands from rows `starts`; as `DeltaShooting.run`."""
        return self._played(starts, steps, corrected=True)

    def _pairs(self, starts: Rows) -> tuple[FloatArray, FloatArray]:
        """Inputs at the starts, and recorded minus simulated state after one step."""
        shooting, tracks = self.shooting, self.shooting.tracks
        out = self._played(starts, 1, corrected=False)
        sim, after = self._sim, starts + 1
        qpos, qvel = np.array(out["qpos"][:, 0]), np.array(out["qvel"][:, 0])
        qpos[:, sim.index.qpos], qvel[:, sim.index.dof] = tracks.pos[after], tracks.vel[after]
        if sim.free_base and tracks.base_pos is not None and tracks.base_vel is not None:
            qpos[:, sim.base_qpos : sim.base_qpos + 7] = tracks.base_pos[after]
            qvel[:, sim.base_dof : sim.base_dof + 6] = tracks.base_vel[after]
        apart = _apart(sim, out["qpos"][:, 0], qpos)
        target = shooting.tracks.target[starts]
        y = np.concatenate([apart, qvel - out["qvel"][:, 0]], axis=1)
        return self._features(self._first, target), self._turned(y, out["qpos"][:, 0], into_world=False)

    def _played(self, starts: Rows, steps: int, *, corrected: bool) -> dict[str, FloatArray]:
        shooting = self.shooting
        recorded = shooting.tracks.recorded(starts, steps, past=shooting.past)
        sim = self._sim = shooting.ready(recorded)
        begin(sim, recorded)
        self._first = np.array(sim.qpos), np.array(sim.qvel)
        qpos, qvel = [], []
        for t in range(steps):
            before = np.array(sim.qpos), np.array(sim.qvel)
            sim.step(recorded.target[:, t])
            if corrected:
                self._correct(sim, self(self._features(before, recorded.target[:, t])))
            qpos.append(np.array(sim.qpos))
            qvel.append(np.array(sim.qvel))
        out = {"qpos": np.stack(qpos, axis=1), "qvel": np.stack(qvel, axis=1)}
        return {"joint_pos": joint_seen(sim, out["qpos"]), **out}

    def _correct(self, sim: BatchSim, change: FloatArray) -> None:
        change, nv = self._turned(change, np.array(sim.qpos), into_world=True), sim.model.nv
        for row, at in enumerate(np.array(sim.qpos)):
            mujoco.mj_integratePos(sim.model, at, change[row, :nv], 1.0)
            sim.qpos[row] = at
        sim.qvel[:] += change[:, nv:]
        sim.motion.forget()

    def _features(self, state: tuple[FloatArray, FloatArray], target: FloatArray) -> FloatArray:
        sim, (qpos, qvel) = self._sim, state
        joints = qpos[:, sim.index.qpos]
        parts = [joints, qvel[:, sim.index.dof], target - joints]
        if sim.free_base:
            at, dof = sim.base_qpos, sim.base_dof
            quat = qpos[:, at + 3 : at + 7]
            parts += [gravity_in_body(quat), qvel[:, dof + 3 : dof + 6]]
            parts += [rotate(conjugate(quat), qvel[:, dof : dof + 3])]
        return np.concatenate(parts, axis=1)

    def _turned(self, y: FloatArray, qpos: FloatArray, *, into_world: bool) -> FloatArray:
        """Linear parts of the base turned into the world's frame, or out of it; MuJoCo's spin is in the base's own."""
        sim, out = self._sim, y.copy()
        if sim.free_base:
            quat = qpos[:, sim.base_qpos + 3 : sim.base_qpos + 7]
            turn = quat if into_world else conjugate(quat)
            for first in (sim.base_dof, sim.model.nv + sim.base_dof):
                out[:, first : first + 3] = rotate(turn, y[:, first : first + 3])
        return out


def _apart(sim: BatchSim, here: FloatArray, there: FloatArray) -> FloatArray:
    """Displacements (n, nv) from one qpos to another."""
    out = np.empty((len(here), sim.model.nv))
    for row, (a, b) in enumerate(zip(here, there, strict=True)):
        mujoco.mj_differentiatePos(sim.model, out[row], 1.0, a, b)
    return out


def _fitted(x: FloatArray, y: FloatArray, seed: int) -> Sequence[Layer]:
    """An MLP by Adam with weight decay; the weights that a tenth of the pairs likes best."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        first, second = HIDDEN
        model = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], first), torch.nn.ELU(), torch.nn.Linear(first, second), torch.nn.ELU(),
            torch.nn.Linear(second, y.shape[1]),
        )  # fmt: skip
    seen, wanted = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.astype(np.float32))
    order = torch.randperm(len(x), generator=generator)
    kept, rest = order[: len(x) // _KEPT], order[len(x) // _KEPT :]
    adam = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.02)
    best, state = float("inf"), {k: v.clone() for k, v in model.state_dict().items()}
    for step in range(_STEPS + 1):
        if step % 50 == 0:
            with torch.no_grad():
                now = float(((model(seen[kept]) - wanted[kept]) ** 2).mean())
            if now < best:
                best, state = now, {k: v.clone() for k, v in model.state_dict().items()}
        rows = rest[torch.randint(len(rest), (min(_BATCH, len(rest)),), generator=generator)]
        adam.zero_grad()
        ((model(seen[rows]) - wanted[rows]) ** 2).mean().backward()
        adam.step()
    model.load_state_dict(state)
    lines = [one for one in model if isinstance(one, torch.nn.Linear)]
    return [(one.weight.detach().numpy().copy(), one.bias.detach().numpy().copy()) for one in lines]
