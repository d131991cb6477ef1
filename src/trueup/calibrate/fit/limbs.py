"""Which joints feel which: limbs on a held base move each for itself, so one rollout can carry a change in each.

This is the column grouping of Curtis, Powell and Reid for sparse Jacobians, read off the kinematic tree instead of a
sparsity pattern: a go2 in the air has four limbs, and 48 of its 49 columns share 12 rollouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trueup.world.batch import BatchSim
from trueup.world.fitted.fit_parameter import FitParameter
from trueup.world.parameters.params import PARAMETERS


@dataclass(frozen=True, kw_only=True)
class Colouring:
    """Columns of a Jacobian in groups that share a rollout.

    groups  parameter numbers of each group
    reach   (nparameter, njoint) bool: joints whose motion a parameter can change
    limb    (njoint,) limb of each joint, from 0
    owner   (nparameter,) limb that alone feels a parameter; -1: several do
    """

    groups: tuple[tuple[int, ...], ...]
    reach: NDArray[np.bool_]
    limb: NDArray[np.intp]
    owner: NDArray[np.intp]


def colour(sim: BatchSim, parameters: Sequence[FitParameter]) -> Colouring:
    """Group parameters whose reaches do not meet, first fit in order."""
    limb_of_joint, limb_of_body = _limbs(sim)
    reach = np.zeros((len(parameters), len(limb_of_joint)), bool)
    for k, entry in enumerate(parameters):
        if PARAMETERS[entry.name].scope == "robot":
            reach[k] = True
            continue
        joint = PARAMETERS[entry.name].scope == "joint"
        names = sim.robot.spec.joint_names if joint else sim.params.body_names
        limbs = limb_of_joint if joint else limb_of_body
        touched = {int(limbs[names.index(name)]) for name in entry.of}
        reach[k] = np.isin(limb_of_joint, list(touched))
    groups: list[list[int]] = []
    taken: list[NDArray[np.bool_]] = []
    for k in range(len(parameters)):
        for group, used in zip(groups, taken, strict=True):
            if not (used & reach[k]).any():
                group.append(k)
                used |= reach[k]
                break
        else:
            groups.append([k])
            taken.append(reach[k].copy())
    limb = np.unique(limb_of_joint, return_inverse=True)[1].astype(np.intp)
    owner = np.array([_owner(row, limb) for row in reach], np.intp)
    return Colouring(groups=tuple(tuple(group) for group in groups), reach=reach, limb=limb, owner=owner)


def _owner(reach: NDArray[np.bool_], limb: NDArray[np.intp]) -> int:
    """The one limb that is reached; a parameter that nothing feels goes with limb 0."""
    touched = np.unique(limb[reach])
    return -1 if len(touched) > 1 else int(touched[0]) if len(touched) else 0


def _limbs(sim: BatchSim) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Limb number of every joint and of every body with mass; one limb for all unless they are truly independent."""
    model = sim.model
    bodies = np.array([model.body(name).id for name in sim.params.body_names])
    joint_bodies = model.jnt_bodyid[sim.index.joint_id]
    if sim.free_base or sim.cfg.model.base == "mount" or model.neq or model.ntendon or _may_touch(sim):
        return np.zeros(len(joint_bodies), np.intp), np.zeros(len(bodies), np.intp)
    # dof_treeid numbers the kinematic trees that hang on the world; a body without dofs above it moves nothing
    tree = np.array([_tree(sim, body) for body in range(model.nbody)])
    return tree[joint_bodies].astype(np.intp), tree[bodies].astype(np.intp)


def _tree(sim: BatchSim, body: int) -> int:
    """The topmost moving body above `body`, -1 if nothing above it moves."""
    top = -1
    while body != 0:
        if sim.model.body_dofnum[body]:
            top = body
        body = int(sim.model.body_parentid[body])
    return top


def _may_touch(sim: BatchSim) -> bool:
    """Whether any two shapes may meet: one that accepts and one that offers contact."""
    model = sim.model
    offers, accepts = np.bitwise_or.reduce(model.geom_contype), np.bitwise_or.reduce(model.geom_conaffinity)
    return bool(offers & accepts) if model.ngeom else False
