"""Sense: the simulation as signals see it, and the frame that holds them.

Feet and trunk are watched by sensors that the engine evaluates itself; their values belong to the state before the last
physics step, as all derived quantities of a step do.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError
from trueup.policy.chain import Chain
from trueup.tasks.sensing.feet import Feet
from trueup.tasks.sensing.frame import Frame
from trueup.tasks.sensing.signals import SIGNALS, Signal
from trueup.tasks.terrain import Ground
from trueup.world.batch import BatchSim
from trueup.world.motion import Motion

Float32 = NDArray[np.float32]
Ids = NDArray[np.intp]


class Sense:
    """Reads one BatchSim into one Frame; `memory` holds what must survive a checkpoint."""

    def __init__(
        self,
        sim: BatchSim,
        ground: Ground,
        naction: int,
        ncommand: int,
        chain: Chain | None = None,
        signals: Mapping[str, Signal] | None = None,
    ) -> None:
        self.sim, self.ground, self.chain = sim, ground, chain
        self.signals = SIGNALS | dict(signals or {})
        spec, nenv = sim.robot.spec, sim.nsim
        self.feet = Feet(sim)
        self.frame = frame = Frame(nenv, self.signals, self)
        frame.dt = sim.control_dt
        frame.joint_low = spec.position_low.astype(np.float32)
        frame.joint_high = spec.position_high.astype(np.float32)
        frame.torque_limit = spec.torque_limit.astype(np.float32)
        frame.default_pose = spec.default_pose.astype(np.float32)
        frame.action, frame.last_action = (np.zeros((nenv, naction), np.float32) for _ in range(2))
        frame.command = frame.asked = np.zeros((nenv, ncommand), np.float32)
        frame.command_age = np.zeros(nenv, np.float32)
        self.feet.give(frame)

    @property
    def memory(self) -> dict[str, NDArray[np.generic]]:
        """Live arrays for a checkpoint."""
        return {"action": self.frame.action, "last_action": self.frame.last_action} | self.feet.memory

    def act(self, action: Float32) -> None:
        """Remember the action that is carried out now."""
        np.copyto(self.frame.last_action, self.frame.action)
        np.copyto(self.frame.action, action)

    def read(self, command: Float32) -> Frame:
        """Bring the frame up to date after a control step."""
        self.frame.forget()
        self.frame.command = command
        self.feet.follow(self.frame)
        return self.frame

    def reset(self, ids: Ids, command: Float32) -> None:
        """Begin episodes of rows `ids`, whose simulations have been reset: no past, and the state as it is now."""
        self.frame.command[ids] = command[ids]
        self.frame.action[ids] = 0.0
        self.frame.last_action[ids] = 0.0
        self.feet.reset(ids)
        self.frame.refresh(ids)

    def width(self, name: str) -> int:
        """Columns of a signal in an observation."""
        values = getattr(self.frame, name)
        return int(values.size // self.sim.nsim)

    # --- for readers of signals ---
    def motion(self, ids: Ids | None) -> Motion:
        """Joints and base of rows `ids` (None: all)."""
        return self.sim.motion.of(ids)

    def base(self, ids: Ids | None) -> tuple[Float32, Float32]:
        """Pose (7, n) and velocity (6, n) of the floating base."""
        motion = self.sim.motion.of(ids)
        if motion.base_pose is None or motion.base_vel is None:
            raise TrueupError(
                f"this task reads the motion of a floating base, which robot {self.sim.robot.spec.name!r} has not"
            )
        pose = np.ascontiguousarray(motion.base_pose.T, np.float32)
        return pose, np.ascontiguousarray(motion.base_vel.T, np.float32)
