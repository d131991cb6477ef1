"""Frame: the state of all environments after a control step, as rewards and terminations see it; Sense fills it.

Feet and trunk are watched by sensors that the engine evaluates itself; their values belong to the state before the last
physics step, as all derived quantities of a step do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray, Ids
from trueup.core.errors import TrueupError, did_you_mean
from trueup.policy.chain import Chain
from trueup.tasks.sensing.feet import Feet
from trueup.tasks.sensing.signals import SIGNALS, Float32, Signal
from trueup.tasks.terrain import Ground
from trueup.world.engines.simulation import Simulation

__all__ = ["Bool", "Float32", "Frame", "Sense"]
Bool = NDArray[np.bool_]


class Frame:
    """Signals as attributes, (nenv, ...) each: computed when they are first read in a step. Beside them:

    dt             control step, s
    joint_low, joint_high, torque_limit, default_pose   (njoint,) of the robot
    action, last_action   (nenv, naction) now and one step before
    command        (nenv, ncommand) as the policy sees it: eased, if the goal says so
    asked          (nenv, ncommand) as it was given
    command_age    (nenv,) s since the command was given
    phase          (nenv,) share of the clock's period that had passed when the action was chosen
    touchdown      (nenv, nfoot) bool: the foot first touched in this step
    air_time       (nenv, nfoot) s since the foot left the ground; at touchdown the length of the step just ended
    swing_peak     (nenv, nfoot) highest sole since the foot left the ground, m; readable until the step after touchdown
    duty           (nenv, nfoot) share of the last second or so in which the foot touched
    """

    dt: float
    joint_low: Float32
    joint_high: Float32
    torque_limit: Float32
    default_pose: Float32
    action: Float32
    last_action: Float32
    command: Float32
    asked: Float32
    command_age: Float32
    phase: FloatArray
    touchdown: Bool
    air_time: Float32
    swing_peak: Float32
    duty: Float32

    def __init__(self, nenv: int, signals: Mapping[str, Signal], sense: Any) -> None:
        self.nenv = nenv
        self._signals, self._sense = signals, sense
        self._computed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        """Compute a signal; from then on it is an ordinary attribute, until `forget`."""
        if name.startswith("_") or name not in self._signals:
            raise AttributeError(f"no signal {name!r}{did_you_mean(name, self.__dict__.get('_signals', {}))}")
        try:
            values = self._signals[name].read(self._sense, None)
        except AttributeError as error:  # would be taken for a missing signal
            raise TrueupError(f"signal {name!r} cannot be read: {error}") from error
        self._computed.append(name)
        self.__dict__[name] = values
        return values

    def forget(self) -> None:
        """The state has changed: compute signals anew when they are read."""
        for name in self._computed:
            del self.__dict__[name]
        self._computed.clear()

    def refresh(self, ids: NDArray[np.intp]) -> None:
        """The state of rows `ids` has changed: bring those rows of what was computed up to date."""
        for name in self._computed:
            self.__dict__[name][ids] = self._signals[name].read(self._sense, ids)


class Sense:
    """Reads one simulation into one Frame; `memory` holds what must survive a checkpoint."""

    def __init__(
        self,
        sim: Simulation,
        ground: Ground,
        naction: int,
        ncommand: int,
        chain: Chain | None = None,
        signals: Mapping[str, Signal] | None = None,
    ) -> None:
        self.sim, self.ground, self.chain = sim, ground, chain
        self.goal: Any = None  # of the task, for signals that compare with it
        self.signals = SIGNALS | dict(signals or {})
        spec, nenv = sim.robot.spec, sim.nsim
        self.frame = frame = Frame(nenv, self.signals, self)
        self.feet = Feet(sim, frame)
        frame.dt = sim.control_dt
        limits = (spec.position_low, spec.position_high, spec.torque_limit, spec.default_pose)
        frame.joint_low, frame.joint_high, frame.torque_limit, frame.default_pose = (
            values.astype(np.float32) for values in limits
        )
        frame.action, frame.last_action = (np.zeros((nenv, naction), np.float32) for _ in range(2))
        frame.command = frame.asked = np.zeros((nenv, ncommand), np.float32)
        frame.command_age = np.zeros(nenv, np.float32)
        frame.phase = np.zeros(nenv)

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
        self.frame.action[ids] = self.frame.last_action[ids] = 0.0
        self.feet.reset(ids)
        self.frame.refresh(ids)

    def width(self, name: str) -> int:
        """Columns of a signal in an observation."""
        values = getattr(self.frame, name)
        return int(values.size // self.sim.nsim)

    def base(self, ids: Ids | None) -> tuple[Float32, Float32]:
        """Pose (7, n) and velocity (6, n) of the floating base."""
        motion = self.sim.motion.of(ids)
        if motion.base_pose is None or motion.base_vel is None:
            raise TrueupError(
                f"this task reads the motion of a floating base, which robot {self.sim.robot.spec.name!r} has not"
            )
        pose = np.ascontiguousarray(motion.base_pose.T, np.float32)
        return pose, np.ascontiguousarray(motion.base_vel.T, np.float32)
