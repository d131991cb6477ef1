"""Inverse kinematics over time with mink: targets in, joints out, inside limits of position and speed, off itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.motion.retarget.mesh import InteractionTask, around
from trueup.motion.retarget.points import NEEDED, SIDES, Thing
from trueup.motion.retarget.shape import BodyTargets, Shape
from trueup.robot.model import FLOOR, ModelCfg, build_spec, compile_spec, joint_index

if TYPE_CHECKING:
    from collections.abc import Sequence

_FIRST, _FIRST_DT = 150, 0.002  # steps of the first row, so short that limbs do not leap through others
_MORE, _OVERLAP_M = 8, 0.0005
_APART_M, _SEEN_M, _OUT_M = (
    0.005,
    0.08,
    0.002,
)  # distance of bodies kept, from where seen; way out of a collision, a step
# cost of a metre and of a radian off the target
_COSTS = {
    "pelvis": (3.0, 0.5),
    "torso": (0.0, 0.7),
    "ankle": (20.0, 3.0),
    "knee": (0.5, 0.0),
    "shoulder": (1.0, 0.0),
    "elbow": (1.5, 0.0),
    "wrist": (2.0, 0.0),
}
_MESH_COST, _MESH_ROTATION, _MESH_DAMPING = 6.0, 0.1, 0.3


@dataclass(frozen=True, kw_only=True)
class IkCfg:
    """How it is solved: `steps` of every row; what it keeps to.

    mesh  keep the interaction mesh of body, things and ground in place of each limb's own target
    """

    steps: int = 2
    limits: bool = True
    collisions: bool = True
    mesh: bool = False


class Ik:
    """The robot's model with things around it, and the tasks that pull its parts to their targets."""

    def __init__(self, shape: Shape, things: Sequence[Thing], rate_hz: float, cfg: IkCfg) -> None:
        self._mink = _mink()
        self.shape, self.cfg, self._dt = shape, cfg, 1.0 / rate_hz
        robot = shape.tree.robot
        spec = build_spec(robot, ModelCfg(base="free", collisions="full", floor=False))
        for one in things:
            body = spec.worldbody.add_body(name=f"thing/{one.name}", mocap=True)
            body.add_geom(name=f"thing/{one.name}", type=mujoco.mjtGeom.mjGEOM_BOX, size=one.size)
        self.model = compile_spec(spec, robot)
        self.index = joint_index(self.model, robot)
        self._configuration = self._mink.Configuration(self.model)
        self._things = things
        self._tasks = self._make_tasks()
        self._mesh: InteractionTask | None = None
        if cfg.mesh:
            bodies = [self.model.body(shape.bodies[role]).id for role in NEEDED]
            self._mesh = InteractionTask(self.model, bodies, _MESH_COST)
        posture = self._mink.PostureTask(self.model, cost=self._posture_cost())
        posture.set_target(self._default())
        self._regular = [posture, self._mink.DampingTask(self.model, cost=_MESH_DAMPING if cfg.mesh else 0.02)]
        self.pairs = self._pairs()

    def solve(self, targets: BodyTargets) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Root positions (T, 3), quaternions (T, 4) and joints (T, njoint)."""
        rows, found = len(targets.source), self._configuration
        q = self._default()
        q[:3], q[3:7] = targets.pos["pelvis"][0], targets.quat["pelvis"][0]
        found.update(q)
        self._place(targets, 0)
        out, limits = np.empty((rows, self.model.nq)), self._limits()
        for _ in range(_FIRST):
            self._step(limits, _FIRST_DT)
        for row in range(rows):
            self._place(targets, row)
            for _ in range(self.cfg.steps):
                self._step(limits, self._dt / self.cfg.steps)
            if self.cfg.limits and self.cfg.collisions:
                self._come_out(limits)
            out[row] = found.q
        return out[:, :3], out[:, 3:7], out[:, self.index.qpos]

    def colliding(self, root_pos: FloatArray, root_quat: FloatArray, joints: FloatArray) -> FloatArray:
        """How deep the robot is in itself or in things in every row, m, (T,); 0: not at all."""
        data, out = self._configuration.data, np.zeros(len(root_pos))
        for row in range(len(root_pos)):
            data.qpos[:3], data.qpos[3:7], data.qpos[self.index.qpos] = root_pos[row], root_quat[row], joints[row]
            self._place_things(row)
            mujoco.mj_kinematics(self.model, data)
            out[row] = self._depth()
        return out

    def _depth(self) -> float:
        """Deepest overlap of two geoms as they are, m."""
        model, data = self.model, self._configuration.data
        return max(
            0.0, -min((mujoco.mj_geomDistance(model, data, a, b, _APART_M, None) for a, b in self.pairs), default=0)
        )

    def _come_out(self, limits: list[Any]) -> None:
        """Small further steps while limbs overlap, which a long step let happen."""
        for _ in range(_MORE):
            if self._depth() < _OVERLAP_M:
                return
            self._step(limits, self._dt / (2 * _MORE))

    # --- inside ---
    def _step(self, limits: list[Any], dt: float) -> None:
        mink, found = self._mink, self._configuration
        tasks = [*self._tasks.values(), *self._regular, *([] if self._mesh is None else [self._mesh])]
        try:
            velocity = mink.solve_ik(found, tasks, dt, solver="daqp", limits=limits, damping=1e-6)
        except mink.NoSolutionFound:  # limits that contradict each other: as near as without collisions
            velocity = mink.solve_ik(found, tasks, dt, solver="daqp", limits=limits[:1], damping=1e-3)
        found.integrate_inplace(velocity, dt)

    def _place(self, targets: BodyTargets, row: int) -> None:
        for name, task in self._tasks.items():
            pos = targets.pos.get(name, np.zeros((row + 1, 3)))[row]
            quat = targets.quat[name][row] if name in targets.quat else np.array([1.0, 0, 0, 0])
            task.set_target(self._mink.SE3(wxyz_xyz=np.concatenate([quat, pos])))
        self._place_things(row)
        if self._mesh is not None:
            source = np.array([targets.source.of(role)[row] for role in NEEDED])
            self._mesh.set_target(source, around(targets.source, row))

    def _place_things(self, row: int) -> None:
        data = self._configuration.data
        for k, one in enumerate(self._things):
            data.mocap_pos[k], data.mocap_quat[k] = one.pos[row], one.quat[row]

    def _make_tasks(self) -> dict[str, Any]:
        bodies = self.shape.bodies | {"pelvis": self.shape.pelvis, "torso": self.shape.torso}
        out = {}
        for name, body in bodies.items():
            limb = name.rpartition("_")[2]
            if limb == "hip" or (self.cfg.mesh and limb in ("knee", "shoulder", "elbow", "wrist")):
                continue
            place, turn = _COSTS[limb]
            if self.cfg.mesh and limb in ("pelvis", "torso"):
                place, turn = 0.0, _MESH_ROTATION
            elif self.cfg.mesh:
                place, turn = 4.0 * place, 4.0 * turn
            out[name] = self._mink.FrameTask(body, "body", position_cost=place, orientation_cost=turn)
        return out

    def _posture_cost(self) -> FloatArray:
        cost: FloatArray = np.full(self.model.nv, 0.02)
        cost[:6] = 0.0
        return cost

    def _default(self) -> FloatArray:
        q = np.array(self.model.qpos0, np.float64)
        q[self.index.qpos] = self.shape.tree.robot.spec.default_pose
        return q

    def _limits(self) -> list[Any]:
        if not self.cfg.limits:
            return []
        mink, spec = self._mink, self.shape.tree.robot.spec
        fastest = {name: float(v) for name, v in zip(spec.joint_names, spec.velocity_limit, strict=True)}
        out = [mink.ConfigurationLimit(self.model), mink.VelocityLimit(self.model, fastest)]
        if self.cfg.collisions and self.pairs:
            near = mink.CollisionAvoidanceLimit(
                self.model,
                [([a], [b]) for a, b in self.pairs],
                minimum_distance_from_collisions=_APART_M,
                collision_detection_distance=_SEEN_M,
                bound_relaxation=-_OUT_M,
            )
            out.append(_Near(near))
        return out

    def _pairs(self) -> list[tuple[int, int]]:
        """Geoms that may touch: those of the spec among themselves, and each with things; not those that do at rest."""
        model, data = self.model, mujoco.MjData(self.model)
        data.qpos[:] = self._default()
        mujoco.mj_kinematics(model, data)
        own = [model.geom(name).id for name in self.shape.tree.robot.spec.contact_geoms if name != FLOOR]
        things = [model.geom(f"thing/{one.name}").id for one in self._things]
        feet = {model.body(self.shape.bodies[f"{side}_ankle"]).id for side in SIDES}
        out = [(a, b) for k, a in enumerate(own) for b in own[k + 1 :] if self._apart(data, a, b)]
        return out + [(a, b) for a in own for b in things if model.geom_bodyid[a] not in feet]

    def _apart(self, data: mujoco.MjData, a: int, b: int) -> bool:
        """Not of one body nor of neighbours, and not touching at rest."""
        model = self.model
        bodies = [int(model.body_weldid[model.geom_bodyid[k]]) for k in (a, b)]
        above = [int(model.body_weldid[model.body_parentid[body]]) for body in bodies]
        if bodies[0] == bodies[1] or bodies[0] == above[1] or bodies[1] == above[0]:
            return False
        return bool(mujoco.mj_geomDistance(model, data, a, b, 2 * _APART_M, None) > _APART_M)


class _Near:
    """Collision limits of the pairs that are near: a quadratic program is slow with rows that say nothing."""

    def __init__(self, limit: Any) -> None:
        self._limit = limit

    def compute_qp_inequalities(self, configuration: Any, dt: float) -> Any:
        from mink.limits import Constraint

        whole = self._limit.compute_qp_inequalities(configuration, 1.0)  # bounds on the displacement, as G has it
        near: NDArray[np.bool_] = np.isfinite(whole.h)
        return Constraint(G=whole.G[near], h=whole.h[near]) if near.any() else Constraint()


def _mink() -> Any:
    try:
        import daqp  # noqa: F401
        import mink
    except ImportError as error:
        raise TrueupError(f"retargeting needs {error.name}: `pip install 'trueup[motion]'` brings it") from None
    return mink
