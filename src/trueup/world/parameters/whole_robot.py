"""Parameters of the whole robot: contacts, gravity and the tilt of what holds it, the stand it hangs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.robot.model import MOUNT_JOINTS

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]
_SOLREF = {"contact_timeconst": 0, "contact_dampratio": 1}


class WholeRobot:
    """Reads and writes the parameters with scope "robot" of one batch."""

    def __init__(self, sim: BatchSim) -> None:
        self._sim, self._expand = sim, sim.batch.expand
        model, self._contacts = sim.model, contact_geoms(sim)
        ids = [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name) for name in MOUNT_JOINTS]
        self._mount = np.array([] if -1 in ids else ids, np.intp)

    def get(self, name: str) -> FloatArray:
        """Return (nsim, ...) values."""
        expand = self._expand
        if name == "contact_friction":
            return expand("geom_friction")[:, self._contacts, 0].max(axis=1)
        if name in _SOLREF:
            return expand("geom_solref")[:, self._contacts, _SOLREF[name]].max(axis=1)
        if name in ("mount_stiffness", "mount_damping"):
            return self._mount_field(name)[:, self._need_mount(name)].copy()
        gravity: FloatArray = expand("opt.gravity").reshape(self._sim.nsim, 3).copy()
        return gravity if name == "gravity" else tilt_of(gravity)

    def set(self, name: str, values: FloatArray, rows: NDArray[np.intp]) -> None:
        """Write the rows of one parameter."""
        expand, contacts = self._expand, np.ix_(rows, self._contacts)
        if name == "contact_friction":
            expand("geom_friction")[..., 0][contacts] = values[:, None]
        elif name in _SOLREF:
            expand("geom_solref")[..., _SOLREF[name]][contacts] = values[:, None]
        elif name in ("mount_stiffness", "mount_damping"):
            self._mount_field(name)[np.ix_(rows, self._need_mount(name))] = values
        else:
            gravity = expand("opt.gravity").reshape(-1, 3)
            if name == "tilt":
                values = np.linalg.norm(gravity[rows], axis=1, keepdims=True) * down(values)
            gravity[rows] = values

    def _mount_field(self, name: str) -> FloatArray:
        field: FloatArray = self._expand("jnt_stiffness" if name == "mount_stiffness" else "dof_damping")
        return field

    def _need_mount(self, name: str) -> NDArray[np.intp]:
        if not len(self._mount):
            raise TrueupError(f'parameter {name!r} needs a base on a stand: ModelCfg(base="mount")', place=name)
        if name == "mount_stiffness":
            return self._mount
        dof: NDArray[np.intp] = self._sim.model.jnt_dofadr[self._mount].astype(np.intp)
        return dof


def contact_geoms(sim: BatchSim) -> NDArray[np.intp]:
    """Geoms of robots and ground that can touch something; objects have parameters of their own."""
    touching = np.flatnonzero((sim.model.geom_contype | sim.model.geom_conaffinity) != 0)
    return np.setdiff1d(touching, [sim.model.geom(one.name).id for one in sim.scene.objects]).astype(np.intp)


def down(tilt: FloatArray) -> FloatArray:
    """Gravity's direction (..., 3) in a base turned by roll, then pitch, (..., 2)."""
    roll, pitch = tilt[..., 0], tilt[..., 1]
    return np.stack([np.sin(pitch), -np.sin(roll) * np.cos(pitch), -np.cos(roll) * np.cos(pitch)], axis=-1)


def tilt_of(gravity: FloatArray) -> FloatArray:
    """Roll and pitch (..., 2) of a base in which gravity points so (..., 3)."""
    size = np.maximum(np.linalg.norm(gravity, axis=-1), 1e-12)
    pitch = np.arcsin(np.clip(gravity[..., 0] / size, -1.0, 1.0))
    return np.stack([np.arctan2(-gravity[..., 1], -gravity[..., 2]), pitch], axis=-1)


def start_at(sim: BatchSim, qpos: FloatArray, qvel: FloatArray) -> None:
    """Reset into states (nsim, nq) and (nsim, nv); a stand begins where its springs carry the robot's weight."""
    force = sim.batch.bind("qfrc_bias")  # before the reset that computes it
    sim.reset(qpos=qpos, qvel=qvel)
    if sim.cfg.model.base != "mount":
        return
    model = sim.model
    ids = np.array([model.joint(name).id for name in MOUNT_JOINTS])
    load = force[:, model.jnt_dofadr[ids]]
    sag = -load / sim.batch.expand("jnt_stiffness")[:, ids]
    qpos = qpos.copy()
    qpos[:, model.jnt_qposadr[ids]] = np.clip(sag, -_MOST_SAG, _MOST_SAG)
    sim.reset(qpos=qpos, qvel=qvel)


_MOST_SAG = 0.3  # rad or m: more is no stand
