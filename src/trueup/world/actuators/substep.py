"""Substep models: actuator models between physics steps that the engine cannot express."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.models.friction import friction_law
from trueup.models.friction_law import FrictionCoefficients

if TYPE_CHECKING:
    from trueup.world.batch import BatchSim


class SubstepState(NamedTuple):
    """Inputs of a servo before a physics step, each (nsim, njoint).

    joint_pos   as the encoder reports it
    target_pos  command in force, after its delay
    torque      servo torque of the physics step before
    """

    joint_pos: FloatArray
    joint_vel: FloatArray
    target_pos: FloatArray
    torque: FloatArray


class SubstepModel:
    """An actuator model called before every physics step of the whole batch; a model overrides what it needs.

    gear_friction  the friction model in it, if any
    holds          physics steps for which a torque stays: `step` is called at the first of them only
    """

    gear_friction: GearFriction | None = None
    holds: int = 1

    def start(self, sim: BatchSim) -> None:
        """Called once, after the batch has set its parameters."""

    def reset(self, sim: BatchSim, ids: NDArray[np.intp] | None) -> None:
        """Forget the past of simulations `ids` (None: all)."""

    def step(self, sim: BatchSim, state: SubstepState) -> FloatArray | None:
        """Return torque (nsim, njoint) to add to the servo's before its limits, or None."""
        raise NotImplementedError

    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Arrays that change while stepping, live: written into when a batch is restored."""
        return {}

    def restored(self, sim: BatchSim) -> None:
        """Called after `memory` has been restored from a checkpoint."""


class GearFriction(SubstepModel):
    """A friction law in the batch: the budget of each step becomes the engine's dry friction and damping.

    MuJoCo's friction constraint holds the joint while the torque needed to stop it stays within `dof_frictionloss`:
    that is the clip(tau_stop, -budget, budget) of `models.friction`, solved together with contacts and limits.
    """

    def __init__(self, law: str, params: FrictionCoefficients | None = None) -> None:
        """Without `params` the robot's own damping and dry friction are kv and kc, the rest zero."""
        self.law, self._given = friction_law(law), params
        self.coefficients = params or self.law.params()
        self.gear_friction = self

    def start(self, sim: BatchSim) -> None:
        """Take the robot's own friction, unless coefficients were given; called once by the batch."""
        if self._given is None:
            dof = sim.index.dof
            damping, dry = (sim.batch.expand(name)[:, dof].copy() for name in ("dof_damping", "dof_frictionloss"))
            self.coefficients = self.law.params(kv=damping, kc=dry)

    def has(self, name: str) -> bool:
        """Whether a parameter of a simulation is a coefficient of this law."""
        return hasattr(self.coefficients, _COEFFICIENT.get(name, name[9:]))

    def get(self, name: str, shape: tuple[int, int]) -> FloatArray:
        """A coefficient by the name it has among a simulation's parameters, (nsim, njoint)."""
        return np.array(np.broadcast_to(getattr(self.coefficients, _COEFFICIENT.get(name, name[9:])), shape))

    def set(self, name: str, values: FloatArray) -> None:
        """Set a coefficient (nsim, njoint)."""
        self.coefficients = replace(self.coefficients, **{_COEFFICIENT.get(name, name[9:]): values})

    def reset(self, sim: BatchSim, ids: NDArray[np.intp] | None) -> None:
        """Write the budget of the present state."""
        self._write(sim, sim.joint_vel, sim.joint_torque)

    def step(self, sim: BatchSim, state: SubstepState) -> None:
        """Write this step's budget; adds no torque."""
        self._write(sim, state.joint_vel, state.torque)

    def _write(self, sim: BatchSim, joint_vel: FloatArray, motor: FloatArray) -> None:
        budget = self.law.budget(self.coefficients, joint_vel, motor, external_torque(sim))
        dof = sim.index.dof
        sim.batch.expand("dof_frictionloss")[:, dof] = budget.dry
        sim.batch.expand("dof_damping")[:, dof] = budget.viscous


def external_torque(sim: BatchSim) -> FloatArray:
    """Torque on each joint from everything but motor and friction: gravity, Coriolis, contacts and limits.

    The engine reports dry friction and contacts as one sum; where contacts or limits act, the friction in it is taken
    at its bound, opposed to the motion, and nothing at rest.
    """
    dof = sim.index.dof
    bias = sim.batch.bind("qfrc_bias")[:, dof]
    constraint = sim.batch.bind("qfrc_constraint")[:, dof]
    loss = sim.batch.expand("dof_frictionloss")[:, dof]
    dry = -loss * np.tanh(sim.joint_vel / _STOP_SPEED)
    others = sim.batch.bind("nefc")[:, None] > sim.batch.bind("nf")[:, None]
    external: FloatArray = np.where(others, constraint - dry, 0.0) - bias
    return external


_COEFFICIENT = {"damping": "kv", "friction": "kc"}  # the others: friction_kl -> kl
_STOP_SPEED = 1e-3  # rad/s, below which a joint counts as at rest
