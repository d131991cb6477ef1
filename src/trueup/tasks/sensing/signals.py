"""Signals: named quantities of all environments after a control step.

A signal has a unit, a reader and a rule for the exchange of left and right. Rewards, terminations, metrics and the
critic read signals as attributes of the `Frame`, observations name them; what nobody reads is not computed. A signal
is one function here with the decorator `signal`, or an entry of `Task.signals` in the task's own file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import Ids
from trueup.core.errors import TrueupError
from trueup.policy.chain import Chain
from trueup.policy.signal_facts import unit_of

if TYPE_CHECKING:
    from trueup.tasks.sensing.frame import Sense

Float32 = NDArray[np.float32]
Rows = Ids | None
Values = NDArray[Any]
# how a signal changes when left and right are exchanged: not at all; y of a vector; x and z of a rate or turn; joints
# or feet with their counterparts; samples on a grid from left to right; two columns of a rotation, row by row; vectors
# of the bodies that a goal compares
MirrorRule = Literal["same", "vector", "pseudovector", "joints", "actions", "feet", "grid", "turn", "bodies"]


Reader = Callable[["Sense", Rows], Values]


@dataclass(frozen=True)
class Signal:
    """`read(sense, ids)` gives (n, ...) of rows `ids` (None: all), float32 or bool."""

    read: Reader
    unit: str = "1"
    mirror: MirrorRule = "same"


SIGNALS: dict[str, Signal] = {}


def signal(unit: str, mirror: MirrorRule = "same") -> Callable[[Reader], Reader]:
    """Make a function the reader of the signal of its name."""

    def register(read: Reader) -> Reader:
        SIGNALS[read.__name__] = Signal(read, unit, mirror)
        return read

    return register


# --- joints ---
@signal(unit_of("joint_pos"), "joints")
def joint_pos(sense: Sense, ids: Rows) -> Values:
    return sense.sim.motion.of(ids).joint_pos.astype(np.float32)


@signal(unit_of("joint_vel"), "joints")
def joint_vel(sense: Sense, ids: Rows) -> Values:
    return sense.sim.motion.of(ids).joint_vel.astype(np.float32)


@signal("N m", "joints")
def joint_torque(sense: Sense, ids: Rows) -> Values:
    """Servo torque of the last physics step."""
    return sense.sim.joint_torque[_rows(ids)].astype(np.float32)


# --- a floating base ---
@signal("m/s", "vector")
def base_vel(sense: Sense, ids: Rows) -> Values:
    """In the base frame."""
    pose, velocity = sense.base(ids)
    return rotate_back(pose[3:], velocity[:3])


@signal("rad/s", "pseudovector")
def base_spin(sense: Sense, ids: Rows) -> Values:
    """In the base frame."""
    return np.ascontiguousarray(sense.base(ids)[1][3:].T)


@signal(unit_of("gravity"), "vector")
def gravity(sense: Sense, ids: Rows) -> Values:
    """Unit vector that points down, in the base frame."""
    sense.base(ids)
    return sense.sim.motion.of(ids).gravity.astype(np.float32)


@signal("m")
def base_height(sense: Sense, ids: Rows) -> Values:
    """Above the ground below the base, (n,)."""
    pose, _ = sense.base(ids)
    out: Float32 = pose[2] - sense.ground.below(pose[0], pose[1])
    return out


@signal("m", "grid")
def heights(sense: Sense, ids: Rows) -> Values:
    """Ground around the base relative to the ground below it, (n, k)."""
    pose, _ = sense.base(ids)
    return sense.ground.around(pose[:2], tuple(pose[3:]), sense.ground.below(pose[0], pose[1]))


# --- feet and trunk ---
@signal("1", "feet")
def foot_contact(sense: Sense, ids: Rows) -> Values:
    """Whether each foot touches something."""
    return sense.sim.feet.contact(_rows(ids))


@signal("1")
def body_contact(sense: Sense, ids: Rows) -> Values:
    """Whether the trunk touches something, (n,)."""
    return sense.sim.feet.trunk_contact(_rows(ids))


@signal("m", "feet")
def foot_height(sense: Sense, ids: Rows) -> Values:
    """Of the sole above the ground."""
    x, y, z = sense.sim.feet.position(_rows(ids))
    return (z - sense.sim.feet.sole).astype(np.float32) - sense.ground.below(x, y)


@signal("m/s")
def foot_vel(sense: Sense, ids: Rows) -> Values:
    """In the world frame, (n, nfoot, 3)."""
    return sense.sim.feet.velocity(_rows(ids))


# --- tools ---
@signal(unit_of("tool_error"))
def tool_error(sense: Sense, ids: Rows) -> Values:
    """Command pose minus tool pose in the base frame: position, rotation vector, (n, 6)."""
    return _chain(sense).tool_error(joint_pos(sense, ids), sense.frame.command[_rows(ids)]).astype(np.float32)


@signal("m")
def tool_pos(sense: Sense, ids: Rows) -> Values:
    """Of the tool in the base frame, (n, 3)."""
    return _chain(sense).tool_pose(joint_pos(sense, ids))[0].astype(np.float32)


# --- objects ---
def object_signals(name: str) -> dict[str, Signal]:
    """`NAME_pos` (n, 3) m, `NAME_quat` (n, 4) and `NAME_vel` (n, 3) m/s of an object of the scene, world frame."""

    def pose(sense: Sense, ids: Rows) -> Values:
        return sense.sim.object_pose(name)[_rows(ids)].astype(np.float32)

    def velocity(sense: Sense, ids: Rows) -> Values:
        return sense.sim.object_vel(name)[_rows(ids), :3].astype(np.float32)

    return {
        f"{name}_pos": Signal(lambda sense, ids: pose(sense, ids)[:, :3], "m", "vector"),
        f"{name}_quat": Signal(lambda sense, ids: pose(sense, ids)[:, 3:], "1"),
        f"{name}_vel": Signal(velocity, "m/s", "vector"),
    }


def rotate_back(quat: Float32, vectors: Float32) -> Float32:
    """World vectors (3, n) in the body frame of quaternions (4, n), as (n, 3): v - w t + q x t with t = 2 q x v."""
    w, x, y, z = quat
    a, b, c = vectors
    tx, ty, tz = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    out = np.empty((len(x), 3), np.float32)
    out[:, 0] = a - w * tx + (y * tz - z * ty)
    out[:, 1] = b - w * ty + (z * tx - x * tz)
    out[:, 2] = c - w * tz + (x * ty - y * tx)
    return out


def _chain(sense: Sense) -> Chain:
    if sense.chain is None:
        raise TrueupError("signals of the tool need a goal that knows the arm's chain")
    return sense.chain


def _rows(ids: Rows) -> slice | Ids:
    return slice(None) if ids is None else ids
