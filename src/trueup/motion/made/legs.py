"""Legs: joint angles that put the feet of a robot where a plan wants them, for all rows at once.

Damped Newton steps on every leg alone: dq = J' (J J' + d I)^-1 e, with the geometric Jacobian of its chain.
"""

from __future__ import annotations

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.bodies import BodyMotion, BodyTree, complete
from trueup.motion.motion import Motion
from trueup.motion.rotations import conjugate, cross, multiply, rotate, rotation_vector

_STEPS, _DAMPING, _TOLERANCE_M, _LARGEST_RAD = 30, 1e-6, 0.003, 0.2


class Legs:
    """The legs of a robot: chains from its feet to its base; `flat` feet also keep their orientation."""

    def __init__(self, tree: BodyTree, *, flat: bool) -> None:
        self.tree, self.flat = tree, flat
        self._chains = [self._chain(body) for body, _, _ in tree.feet]
        spec = tree.robot.spec
        self._low, self._high = spec.position_low, spec.position_high

    def _chain(self, body: int) -> list[int]:
        """Bodies with joints from the base to a foot."""
        chain = []
        while body > 0:
            if self.tree.joint[body] >= 0:
                chain.append(body)
            body = int(self.tree.parent[body])
        return chain[::-1]

    def motion(self, name: str, rate_hz: float, root: tuple[FloatArray, FloatArray], joints: FloatArray) -> Motion:
        """A made motion of this robot, with its bodies and contacts."""
        spec = self.tree.robot.spec
        made = Motion(
            rate_hz=rate_hz,
            root_pos=root[0],
            root_quat=root[1],
            joint_names=spec.joint_names,
            joint_pos=joints,
            source=f"made:{name}",
        )
        return complete(made, self.tree.robot, self.tree)

    def feet(self, bodies: BodyMotion) -> tuple[FloatArray, FloatArray]:
        """Positions (T, nfoot, 3) and orientations (T, nfoot, 4): of the body if flat, else of the ball it ends in."""
        at = [self._foot(bodies, k) for k in range(len(self._chains))]
        return np.stack([pos for pos, _ in at], axis=1), np.stack([quat for _, quat in at], axis=1)

    def _foot(self, bodies: BodyMotion, k: int) -> tuple[FloatArray, FloatArray]:
        body, local, _ = self.tree.feet[k]
        pos, quat = np.asarray(bodies.pos[:, body], float), np.asarray(bodies.quat[:, body], float)
        if not self.flat:
            pos = pos + rotate(quat, np.broadcast_to(local[0], pos.shape))
        return pos, quat

    def reach(
        self,
        root: tuple[FloatArray, FloatArray],
        joints: FloatArray,
        pos: FloatArray,
        quat: FloatArray,
        *,
        exactly: bool = True,
    ) -> FloatArray:
        """Joint angles (T, njoint) with every foot at its place, or as near as it gets; `exactly`: else raises."""
        out = joints.copy()
        worst = np.inf
        for _ in range(_STEPS):
            bodies = self.tree.place(*root, out)
            worst = 0.0
            for k, chain in enumerate(self._chains):
                error = self._error(bodies, k, pos[:, k], quat[:, k])
                worst = max(worst, float(np.linalg.norm(error, axis=1).max()))  # a milliradian counts as a millimetre
                columns = self.tree.joint[chain]
                turn = np.clip(self._step(bodies, k, chain, error), -_LARGEST_RAD, _LARGEST_RAD)
                out[:, columns] = np.clip(out[:, columns] + turn, self._low[columns], self._high[columns])
            if worst < 1e-5:
                break
        if exactly and worst > _TOLERANCE_M:
            raise TrueupError(
                f"the legs of {self.tree.robot.spec.name!r} cannot follow this plan: a foot stays {worst * 1e3:.0f} mm "
                "away; make steps shorter or the crouch less deep"
            )
        return out

    def _error(self, bodies: BodyMotion, k: int, pos: FloatArray, quat: FloatArray) -> FloatArray:
        at, turned = self._foot(bodies, k)
        if not self.flat:
            return pos - at
        return np.concatenate([pos - at, rotation_vector(multiply(quat, conjugate(turned)))], axis=1)

    def _step(self, bodies: BodyMotion, k: int, chain: list[int], error: FloatArray) -> FloatArray:
        at, _ = self._foot(bodies, k)
        turns = np.asarray(bodies.quat[:, chain], float)
        axes = rotate(turns, np.broadcast_to(self.tree.axis[chain], (len(at), len(chain), 3)))
        arms = cross(axes, at[:, None] - bodies.pos[:, chain])
        jacobian = np.concatenate([arms, axes], axis=2) if self.flat else arms  # (T, joints, 6 or 3)
        square = np.einsum("tji,tjk->tik", jacobian, jacobian) + _DAMPING * np.eye(jacobian.shape[2])
        return np.einsum("tji,ti->tj", jacobian, np.linalg.solve(square, error[..., None])[..., 0])
