"""Frame: the state of all environments after a control step, as rewards and terminations see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueup.core.errors import TrueupError, did_you_mean
from trueup.tasks.sensing.signals import Signal

Float32 = NDArray[np.float32]
Bool = NDArray[np.bool_]


class Frame:
    """Signals as attributes, (nenv, ...) each: computed when they are first read in a step. Beside them:

    dt             control step, s
    joint_low, joint_high, torque_limit, default_pose   (njoint,) of the robot
    action, last_action   (nenv, naction) now and one step before
    command        (nenv, ncommand) as the policy sees it: eased, if the goal says so
    asked          (nenv, ncommand) as it was given
    command_age    (nenv,) s since the command was given
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
