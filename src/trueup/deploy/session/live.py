"""LivePage: publishes a run's state to live pages, and passes on their emergency stop."""

from __future__ import annotations

import math

from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.telemetry import Telemetry
from trueup.hardware.driver import Command, Driver, RobotState
from trueup.robot.load import Robot


class LivePage:
    """Publishes a session's state to live pages; never blocks."""

    def __init__(self, robot: Robot, driver: Driver | None = None) -> None:
        self._telemetry, self._driver = Telemetry.open(robot), driver
        self.address, self.token = self._telemetry.address, self._telemetry.token

    @property
    def stop_requested(self) -> bool:
        return self._telemetry.stop_requested

    def show(self, time_s: float, state: RobotState, command: Command, goal: AskedGoal, phase: str) -> None:
        """Publish one control step."""
        status = getattr(self._driver, "status", None)
        margins = {name: _room(one.value, one.limit) for name, one in getattr(status, "margins", {}).items()}
        trip = getattr(self._driver, "trip", None)
        reason = "" if trip is None else str(trip.reason)
        self._telemetry.publish(time_s, state, command, goal.as_dict(), margins, (phase,), trip=reason)

    def close(self) -> None:
        self._telemetry.close()


def _room(value: float, limit: float) -> float:
    """Remaining margin: 1 far from the limit, 0 at it."""
    return 1.0 - value / limit if math.isfinite(value) and limit > 0.0 else 1.0
