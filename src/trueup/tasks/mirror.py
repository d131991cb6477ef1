"""Mirror: left-right symmetry as index and sign arrays, for learners that use it.

A reflection in the plane y = 0 exchanges left and right limbs. Vectors change the sign of y; rates and turns, which are
pseudo-vectors, the signs of x and z; a joint about y keeps its angle, one about x or z changes sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.observation import ObservationSpec
from trueup.sim.batch import BatchSim

_VECTOR, _PSEUDO = (1, -1, 1), (-1, 1, -1)
_SIGNS = {
    "gyro": _PSEUDO,
    "gravity": _VECTOR,
    "command": (1, -1, -1),  # forward, sideways, turn
    "base_vel": _VECTOR,
    "base_spin": _PSEUDO,
    "base_height": (1,),
    "body_contact": (1,),
    "com_offset": _VECTOR,
    "tilt": (-1, 1),  # about x, about y
}
_JOINT = {"joint_pos", "joint_vel", "action", "last_action", "joint_torque", "encoder_bias"}
_FOOT = {"foot_contact", "foot_height", "air_time", "swing_peak", "duty"}


class Mirror(NamedTuple):
    """mirrored = values[:, index] * sign, for actor and critic observations and for actions."""

    actor_index: NDArray[np.intp]
    actor_sign: NDArray[np.float32]
    critic_index: NDArray[np.intp]
    critic_sign: NDArray[np.float32]
    action_index: NDArray[np.intp]
    action_sign: NDArray[np.float32]


class _Half(NamedTuple):
    """A reflection of one signal: which column, with which sign."""

    columns: NDArray[np.intp]
    sign: NDArray[np.float32]


def make_mirror(
    sim: BatchSim,
    spec: ObservationSpec,
    critic: Sequence[str],
    factors: Sequence[tuple[str, int]],
    grid: tuple[int, int] = (0, 0),
) -> Mirror:
    """The mirror of a legged robot whose limbs are named ?L_ and ?R_.

    critic   fields of the frame behind the actor's observation; factors: names and widths of hidden factors after them
    grid     rows (along x) and columns (along y) of the height samples
    """
    joints = _joints(sim)
    feet = _Half(_swapped(sim.robot.spec.feet), np.ones(len(sim.robot.spec.feet), np.float32))

    def part(name: str, width: int) -> _Half:
        if name in _JOINT:
            return joints
        if name in _FOOT:
            return feet
        if name == "heights":
            index = np.arange(width).reshape(grid)[:, ::-1].ravel()
            return _Half(index, np.ones(width, np.float32))
        if (
            width == sim.robot.spec.njoint and name != "posterior"
        ):  # a positive number of each joint, such as its strength
            return _Half(joints.columns, np.ones(width, np.float32))
        signs = _SIGNS.get(name, (1,) * width)
        return _Half(np.arange(width), np.array(signs, np.float32))

    frame = [part(term.signal, spec.width(term.signal)) for term in spec.terms]
    actor = _join(frame * spec.history)
    behind = [part(name, _width(name, sim, grid)) for name in critic]
    whole = _join([actor, *behind, *(part(name, width) for name, width in factors)])
    return Mirror(*actor, *whole, *joints)


def _join(parts: Sequence[_Half]) -> _Half:
    starts = np.cumsum([0, *(len(half.columns) for half in parts)])
    index = np.concatenate([half.columns + start for half, start in zip(parts, starts[:-1], strict=True)])
    return _Half(index.astype(np.intp), np.concatenate([half.sign for half in parts]))


def _joints(sim: BatchSim) -> _Half:
    axes = sim.model.jnt_axis[sim.index.joint_id]
    sign = np.where(np.abs(axes[:, 1]) > 0.5, 1.0, -1.0).astype(np.float32)
    return _Half(_swapped(sim.robot.spec.joint_names), sign)


def _swapped(names: Sequence[str]) -> NDArray[np.intp]:
    """For each name the place of its counterpart on the other side."""
    other = {name: name[0] + {"L": "R", "R": "L"}.get(name[1], name[1]) + name[2:] for name in names}
    for name, counterpart in other.items():
        if counterpart not in names:
            raise TrueupError(f"no mirror for {name!r}: there is no {counterpart!r}")
    return np.array([list(names).index(other[name]) for name in names], np.intp)


def _width(name: str, sim: BatchSim, grid: tuple[int, int]) -> int:
    if name in _JOINT:
        return sim.robot.spec.njoint
    if name in _FOOT:
        return len(sim.robot.spec.feet)
    return grid[0] * grid[1] if name == "heights" else len(_SIGNS[name])
