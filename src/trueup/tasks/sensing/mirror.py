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
from numpy.typing import ArrayLike, NDArray

from trueup.core.errors import TrueupError
from trueup.policy.observation import ObservationSpec
from trueup.rl.env import Mirror
from trueup.tasks.goals.goal import Goal
from trueup.tasks.sensing.frame import Sense
from trueup.tasks.sensing.signals import MirrorRule
from trueup.world.engines.simulation import Simulation

_VECTOR, _PSEUDO = (1, -1, 1), (-1, 1, -1)
_COLUMNS = (1, -1, -1, 1, 1, -1)  # of P R P: x and y axes row by row
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
_CLOCK = (-1, -1)  # half a period: one leg does then what the other does now
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

    if goal.bodies is not None:
        mates = _paired(goal.bodies, [f"body {k}" for k in range(len(goal.bodies))])
        columns = (3 * mates[:, None] + np.arange(3)).ravel()
        halves["bodies"] = _Half(columns, np.tile(np.array(_VECTOR, np.float32), len(mates)))

    def part(name: str, width: int) -> _Half:
        if name == "command" and goal.mirror_parts:
            return _join([by_rule(rule, "", count) for rule, count in goal.mirror_parts])
        return by_rule(sense.signals[name].mirror if name in sense.signals else _RULES.get(name, "same"), name, width)

    def by_rule(rule: MirrorRule, name: str, width: int) -> _Half:
        if rule in halves:
            return halves[rule]
        if rule == "grid":
            index = np.arange(width).reshape(sense.ground.grid)[:, ::-1].ravel()
            return _Half(index, np.ones(width, np.float32))
        signs = {"vector": _VECTOR, "pseudovector": _PSEUDO, "turn": _COLUMNS}.get(rule, (1,) * width)
        signs = {"command": goal.mirror, "tilt": _TILT, "clock": _CLOCK}.get(name, signs)
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


def _join(parts: Sequence[_Half]) -> _Half:
    starts = np.cumsum([0, *(len(half.columns) for half in parts)])
    index = np.concatenate([half.columns + start for half, start in zip(parts, starts[:-1], strict=True)])
    return _Half(index.astype(np.intp), np.concatenate([half.sign for half in parts]))


def _some(joints: _Half, names: Sequence[str], chosen: Sequence[str]) -> _Half:
    """The reflection among some of the joints, which must hold both of each pair."""
    at = [names.index(name) for name in chosen]
    other = [names[joints.columns[k]] for k in at]
    alone = [name for name, mate in zip(chosen, other, strict=True) if mate not in chosen]
    if alone:
        raise TrueupError(f"no mirror: actions move {alone[0]!r} but not its counterpart; set symmetric=False")
    return _Half(np.array([list(chosen).index(mate) for mate in other], np.intp), joints.sign[at])


def pair_limbs(sim: Simulation) -> tuple[_Half, _Half]:
    """Reflections of joints and feet in the default pose; an error names the limb that has no counterpart.

    A joint's counterpart is at the mirrored place; axes are pseudo-vectors, so the sign is that of a . P b.
    """
    spec, ids, names = sim.robot.spec, sim.index.joint_id, sim.robot.spec.joint_names
    data = mujoco.MjData(sim.model)
    data.qpos[:] = sim.default_qpos
    data.qpos[sim.base_qpos : sim.base_qpos + 2] = 0.0  # upright in the plane of reflection
    mujoco.mj_kinematics(sim.model, data)
    along = data.xaxis[ids] @ (data.xaxis[ids] * _PSEUDO).T  # (njoint, njoint) cosines of axes and mirrored axes
    index = _paired(data.xanchor[ids], names, np.abs(along) > _PARALLEL)
    sign = np.sign(along[np.arange(len(ids)), index]).astype(np.float32)
    uneven = np.abs(spec.default_pose - sign * spec.default_pose[index])
    if uneven.max(initial=0.0) > _UNEVEN_RAD:
        k = int(np.argmax(uneven))
        raise TrueupError(
            f"no mirror: the default pose of {names[k]!r} ({spec.default_pose[k]:.3f} rad) is not that of "
            f"{names[index[k]]!r} ({spec.default_pose[index[k]]:.3f} rad) mirrored; correct it, or set symmetric=False"
        )
    feet = np.array([data.geom_xpos[sim.model.geom(name).id] for name in spec.feet]).reshape(-1, 3)
    return _Half(index, sign), _Half(_paired(feet, spec.feet), np.ones(len(feet), np.float32))


def _paired(places: NDArray[np.float64], names: Sequence[str], alike: ArrayLike = True) -> NDArray[np.intp]:
    """For each place (n, 3) that of its counterpart, within a few percent of the robot's size; where `alike` (n, n)."""
    if not len(places):
        return np.zeros(0, np.intp)
    apart = np.linalg.norm(places[:, None] - places * _VECTOR, axis=2)  # from mirrored places
    apart = np.where(alike, apart, np.inf)
    index, close = apart.argmin(axis=1), _CLOSE * np.linalg.norm(np.ptp(places, axis=0))
    alone = [name for k, name in enumerate(names) if apart[k, index[k]] > close or index[index[k]] != k]
    if alone:
        raise TrueupError(
            f"no mirror for {alone[0]!r}: nothing like it is at the mirrored place in the default pose; "
            "correct the pose or the model, or set symmetric=False"
        )
    return index
