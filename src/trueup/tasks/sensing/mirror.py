"""Mirror: left-right symmetry as index and sign arrays, for learners that use it.

A reflection in the plane y = 0 exchanges left and right limbs. Vectors change the sign of y; rates and turns, which are
pseudo-vectors, the signs of x and z; a joint about y keeps its angle, one about x or z changes sign. Counterparts are
found by their places in the default pose, not by names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.observation import ObservationSpec
from trueup.rl.env import Mirror
from trueup.tasks.goals.goal import Goal
from trueup.tasks.sensing.sense import Sense
from trueup.tasks.sensing.signals import MirrorRule
from trueup.world.batch import BatchSim

_VECTOR, _PSEUDO = (1, -1, 1), (-1, 1, -1)
# observations that the policy computes itself, what the frame follows over time, and hidden factors
_RULES: dict[str, MirrorRule] = {
    "joint_pos": "joints",
    "joint_vel": "joints",
    "gyro": "pseudovector",
    "gravity": "vector",
    "action": "actions",
    "last_action": "actions",
    "encoder_bias": "joints",
    "com_offset": "vector",
    **dict.fromkeys(("touchdown", "air_time", "swing_peak", "duty"), "feet"),
}
_TILT = (-1, 1)  # about x, about y
_PARALLEL, _CLOSE, _UNEVEN_RAD = 0.99, 0.03, 0.02


class _Half(NamedTuple):
    """A reflection of one signal: which column, with which sign."""

    columns: NDArray[np.intp]
    sign: NDArray[np.float32]


def make_mirror(
    sense: Sense,
    spec: ObservationSpec,
    goal: Goal,
    critic: Sequence[str],
    factors: Sequence[tuple[str, int]],
    moved: Sequence[str],
) -> Mirror:
    """The mirror of a robot: limbs are paired by where they are in the default pose.

    critic   signals behind the actor's observation; factors: names and widths of hidden factors after them
    moved    joints that actions move, in their order
    """
    sim = sense.sim
    joints, feet = pair_limbs(sim)
    halves = {"joints": joints, "feet": feet, "actions": _some(joints, sim.robot.spec.joint_names, moved)}

    def part(name: str, width: int) -> _Half:
        rule = sense.signals[name].mirror if name in sense.signals else _RULES.get(name, "same")
        if rule in halves:
            return halves[rule]
        if rule == "grid":
            index = np.arange(width).reshape(sense.ground.grid)[:, ::-1].ravel()
            return _Half(index, np.ones(width, np.float32))
        signs = {"vector": _VECTOR, "pseudovector": _PSEUDO}.get(rule, (1,) * width)
        signs = {"command": goal.mirror, "tilt": _TILT}.get(name, signs)
        return _Half(np.arange(width), np.array(signs, np.float32))

    def factor(name: str, width: int) -> _Half:
        """A positive number of each joint, such as its strength, changes place with its counterpart."""
        if width == sim.robot.spec.njoint and name not in ("posterior", *_RULES):
            return _Half(joints.columns, np.ones(width, np.float32))
        return part(name, width)

    actor = _join([part(term.signal, spec.width(term.signal)) for term in spec.terms] * spec.history)
    behind = [part(name, sense.width(name)) for name in critic]
    whole = _join([actor, *behind, *(factor(name, width) for name, width in factors)])
    return Mirror(*actor, *whole, *halves["actions"])


def pair_limbs(sim: BatchSim) -> tuple[_Half, _Half]:
    """Reflections of joints and feet; an error names the limb that has no counterpart."""
    data = _stand(sim)
    return _joints(sim, data), _feet(sim, data)


def _join(parts: Sequence[_Half]) -> _Half:
    starts = np.cumsum([0, *(len(half.columns) for half in parts)])
    index = np.concatenate([half.columns + start for half, start in zip(parts, starts[:-1], strict=True)])
    return _Half(index.astype(np.intp), np.concatenate([half.sign for half in parts]))


def _stand(sim: BatchSim) -> mujoco.MjData:
    """The default pose with the base upright at the origin of the plane of reflection."""
    data = mujoco.MjData(sim.model)
    data.qpos[:] = sim.default_qpos
    data.qpos[sim.base_qpos : sim.base_qpos + 2] = 0.0
    mujoco.mj_kinematics(sim.model, data)
    return data


def _joints(sim: BatchSim, data: mujoco.MjData) -> _Half:
    """A joint's counterpart is at the mirrored place; axes are pseudo-vectors, so the sign is that of a . P b."""
    spec, ids = sim.robot.spec, sim.index.joint_id
    places, axes = data.xanchor[ids], data.xaxis[ids]
    along = axes @ (axes * _PSEUDO).T  # (njoint, njoint) cosines between axes and mirrored axes
    apart = _apart(places) + np.where(np.abs(along) > _PARALLEL, 0.0, np.inf)
    index = _paired(apart, spec.joint_names, _size(places))
    sign = np.sign(along[np.arange(len(ids)), index]).astype(np.float32)
    uneven = np.abs(spec.default_pose - sign * spec.default_pose[index])
    if uneven.max(initial=0.0) > _UNEVEN_RAD:
        k = int(np.argmax(uneven))
        raise TrueupError(
            f"no mirror: the default pose of {spec.joint_names[k]!r} ({spec.default_pose[k]:.3f} rad) is not that of "
            f"{spec.joint_names[index[k]]!r} ({spec.default_pose[index[k]]:.3f} rad) mirrored; make them so, or set "
            "symmetric=False"
        )
    return _Half(index, sign)


def _some(joints: _Half, names: Sequence[str], chosen: Sequence[str]) -> _Half:
    """The reflection among some of the joints, which must hold both of each pair."""
    at = [names.index(name) for name in chosen]
    other = [names[joints.columns[k]] for k in at]
    alone = [name for name, mate in zip(chosen, other, strict=True) if mate not in chosen]
    if alone:
        raise TrueupError(f"no mirror: actions move {alone[0]!r} but not its counterpart; set symmetric=False")
    return _Half(np.array([list(chosen).index(mate) for mate in other], np.intp), joints.sign[at])


def _feet(sim: BatchSim, data: mujoco.MjData) -> _Half:
    names = sim.robot.spec.feet
    places = np.array([data.geom_xpos[sim.model.geom(name).id] for name in names]).reshape(-1, 3)
    index = _paired(_apart(places), names, _size(places)) if names else np.zeros(0, np.intp)
    return _Half(index, np.ones(len(names), np.float32))


def _size(places: NDArray[np.float64]) -> float:
    """Diagonal of the box around places (n, 3)."""
    return float(np.linalg.norm(np.ptp(places, axis=0)))


def _apart(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances (n, n) of places from mirrored places."""
    out: NDArray[np.float64] = np.linalg.norm(places[:, None] - places * _VECTOR, axis=2)
    return out


def _paired(apart: NDArray[np.float64], names: Sequence[str], size: float) -> NDArray[np.intp]:
    """For each name the place of its counterpart, within a few percent of the robot's size."""
    index = apart.argmin(axis=1)
    alone = [name for k, name in enumerate(names) if apart[k, index[k]] > _CLOSE * size or int(index[index[k]]) != k]
    if alone:
        raise TrueupError(
            f"no mirror for {alone[0]!r}: nothing like it is at the mirrored place in the default pose; "
            "correct the pose or the model, or set symmetric=False"
        )
    return index.astype(np.intp)
