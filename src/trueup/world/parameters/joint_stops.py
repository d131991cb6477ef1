"""Joint stops as springs with dampers, in the units of the joint.

MuJoCo's limit asks for the acceleration -b v - d k r of a joint that is r inside its stop and yields by
R = (1 - d) w / d per torque, w the joint's inverse inertia (`dof_invweight0`) and d its impedance: it is a spring of
stiffness d k / R and a damper of b / R (see "Solver parameters" of its documentation). Here w is the nominal model's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim

FloatArray = NDArray[np.float64]


def get_stop(sim: BatchSim, name: str) -> FloatArray:
    """Stiffness (`stop_stiffness`) or damping (`stop_damping`) of every joint's stops, (nsim, njoint)."""
    solref = sim.batch.expand("jnt_solref")[:, sim.index.joint_id]
    full = _full_impedance(sim)
    time, ratio = solref[..., 0], solref[..., 1]
    direct = time <= 0
    safe = np.where(direct, 1.0, time)
    if name == "stop_stiffness":
        wanted = np.where(direct, -time / full, 1.0 / (full * (safe * np.where(direct, 1.0, ratio)) ** 2))
    else:
        wanted = np.where(direct, -ratio / full, 2.0 / (full * safe))
    return wanted * _strength(sim)


def set_stop(sim: BatchSim, name: str, values: FloatArray) -> None:
    """Write one of the two for all joints (nsim, njoint); the other stays."""
    numbers = {key: get_stop(sim, key) for key in ("stop_stiffness", "stop_damping")} | {name: values}
    full, strength = _full_impedance(sim), _strength(sim)
    solref = sim.batch.expand("jnt_solref")
    solref[:, sim.index.joint_id, 0] = -numbers["stop_stiffness"] / strength * full
    solref[:, sim.index.joint_id, 1] = -numbers["stop_damping"] / strength * full


def _full_impedance(sim: BatchSim) -> FloatArray:
    full: FloatArray = sim.model.jnt_solimp[sim.index.joint_id, 1]
    return full


def _strength(sim: BatchSim) -> FloatArray:
    """(njoint,) torque per asked acceleration, 1 / R."""
    full = _full_impedance(sim)
    strength: FloatArray = full / ((1.0 - full) * sim.model.dof_invweight0[sim.index.dof])
    return strength
