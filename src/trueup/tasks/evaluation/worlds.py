"""World: rows of robots that can be reset, commanded and read, whatever they are made of.

Batched physics (`SimWorld`) and a robot or twin behind its driver (`DriverWorld`) are Worlds, so that one evaluation
loop (`evaluate`) runs a policy on all of them. `reading` is what a policy may see. `frame` has the signals that this
world knows, for the task's terminations and metrics: a simulation knows all, a robot those that it measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.hardware.driver import Command, Driver, RobotState
from trueup.policy.reading import Reading, gravity_in_body
from trueup.robot.spec import RobotSpec
from trueup.tasks.sensing.frame import Frame, Sense
from trueup.tasks.sensing.signals import SIGNALS, Rows, Signal, Values
from trueup.world.engines.simulation import Simulation

State = Mapping[str, NDArray[np.generic]]
Follow = Callable[[FloatArray, FloatArray], Mapping[str, NDArray[np.floating]]]  # of IMU quaternions and joints


class World(Protocol):
    """Joints in the order of `robot`; targets (nrow, njoint) are joint positions, held for one control step."""

    robot: RobotSpec
    nrow: int
    control_dt: float

    @property
    def frame(self) -> Frame: ...
    def reset(self) -> None: ...
    def step(self, targets: NDArray[np.floating]) -> None: ...
    def reading(self) -> Reading: ...
    def save(self) -> State:
        """The whole state; a TrueupError where a world cannot give it."""
        ...

    def restore(self, state: State) -> None: ...


class SimWorld:
    """N simulations; rows that fall stay where they are until the next reset.

    others  signals that the policy sees beside a robot's own sensors: a map of heights, an object's pose
    """

    def __init__(self, sim: Simulation, sense: Sense, others: Sequence[str] = ()) -> None:
        self.robot, self.nrow, self.control_dt = sim.robot.spec, sim.nsim, sim.control_dt
        self._sim, self._sense, self._others = sim, sense, tuple(others)
        self.reset()

    @property
    def frame(self) -> Frame:
        return self._sense.frame

    def reset(self) -> None:
        self._sim.reset()
        self._sense.reset(np.arange(self.nrow), self.frame.command)

    def step(self, targets: NDArray[np.floating]) -> None:
        self._sim.step(targets)
        self._sense.read(self.frame.command)

    def reading(self) -> Reading:
        others = {name: getattr(self.frame, name).reshape(self.nrow, -1) for name in self._others}
        return replace(self._sim.sensors.peek(None), others=others)

    def save(self) -> State:
        return self._sim.state()

    def restore(self, state: State) -> None:
        self._sim.restore(state)
        self.frame.forget()


class DriverWorld:
    """Robots or twins behind their drivers, one row each, under the gains of a policy.

    A driver in lock-step lets time pass with each command; a real-time one must be called in time by the caller's loop.
    `follow` is the goal of a policy that is told of a motion: it computes the terms from encoders and IMU. `writes` is
    how often a driver is written to in a control step: its rate over the policy's.
    """

    def __init__(
        self,
        robot: RobotSpec,
        drivers: Sequence[Driver],
        kp: FloatArray,
        kd: FloatArray,
        control_dt: float,
        *,
        follow: Follow | None = None,
        writes: int = 1,
    ) -> None:
        self.robot, self.nrow, self.control_dt = robot, len(drivers), control_dt
        self._follow, self._writes = follow, writes
        self._drivers, self._kp, self._kd = drivers, kp, kd
        self.frame = Frame(self.nrow, MEASURED, self)
        self.frame.dt = control_dt
        self.states: list[RobotState] = []
        self.reset()

    def reset(self) -> None:
        """Read the robots' present state: a driver cannot put a robot into a start state."""
        self.states = [driver.read() for driver in self._drivers]
        self.frame.forget()

    def step(self, targets: NDArray[np.floating]) -> None:
        zero = np.zeros(self.robot.njoint)
        for _ in range(self._writes):
            for driver, row in zip(self._drivers, np.asarray(targets, np.float64), strict=True):
                driver.write(Command(target_pos=row, target_vel=zero, kp=self._kp, kd=self._kd, torque=zero))
            self.reset()

    def reading(self) -> Reading:
        has_imu = all(state.imu_quat is not None for state in self.states)
        return Reading(
            joint_pos=self.stacked("joint_pos"),
            joint_vel=self.stacked("joint_vel"),
            gyro=self.stacked("imu_gyro") if has_imu else None,
            gravity=gravity_in_body(self.stacked("imu_quat")) if has_imu else None,
            others={} if self._follow is None else self._follow(self.stacked("imu_quat"), self.stacked("joint_pos")),
        )

    def save(self) -> State:
        raise TrueupError("the state of a robot behind its driver cannot be saved: only simulations can")

    def restore(self, state: State) -> None:
        raise TrueupError("a robot behind its driver cannot be put into a saved state: only simulations can")

    def stacked(self, name: str) -> FloatArray:
        """One field of every robot's report, (nrow, ...)."""
        return np.stack([np.asarray(getattr(state, name), np.float64) for state in self.states])


def _measured(name: str, field: str) -> Signal:
    def read(world: DriverWorld, ids: Rows) -> Values:
        values = world.stacked(field)
        if field == "imu_quat":
            values = gravity_in_body(values)
        return values[slice(None) if ids is None else ids].astype(np.float32)

    return Signal(read, SIGNALS[name].unit, SIGNALS[name].mirror)  # type: ignore[arg-type]


# signals that a robot reports, and the field of its report where that has another name
_FIELDS = {"joint_pos": "", "joint_vel": "", "joint_torque": "", "gravity": "imu_quat", "base_spin": "imu_gyro"}
MEASURED = {name: _measured(name, field or name) for name, field in _FIELDS.items()}
