"""Runs without faults: walking under changing commands behind the guard, in lock-step and in real time."""

from __future__ import annotations

import os
import resource
import time
from collections import deque
from typing import Any

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.deploy.control.controller import Controller
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.deploy import _command_margin
from trueup.deploy.ladder.records import RUNG_CFGS
from trueup.deploy.session.session import DeploySession, DeploySessionCfg
from trueup.hardware.driver import Command, RobotState
from trueup.hardware.guard.body import tilt_of
from trueup.hardware.guard.cfg import GuardCfg
from trueup.hardware.guard.driver import GuardDriver
from trueup.policy.bundle.bundle import PolicyBundle
from trueup.robot.load import Robot, load_robot

FALLEN_RAD = 0.7


def full_guard(bundle: PolicyBundle) -> GuardCfg:
    """As `trueup deploy` sets it on the rung "full"."""
    spec = load_robot(bundle.passport.robot.name).spec
    controller = Controller(bundle, spec.joint_names)
    return GuardCfg(
        torque_fraction=RUNG_CFGS["full"].torque,
        max_step_rad=float(min(controller.target_step.max(), 1e3)),
        command_margin_rad=_command_margin(controller, spec),
    )


class Wander:
    """An operator who asks for something else every one to four seconds, standing still now and then.

    It looks on as the session's `controls` and `live`: `tilt` is the body's lean in the newest state, rad.
    """

    def __init__(self, seed: int, control_hz: float) -> None:
        self._random, self._hz, self._left = np.random.default_rng(seed), control_hz, 0
        self.stop_requested, self.tilt = False, 0.0
        self.use: deque[tuple[float, ...]] = deque(maxlen=6)  # time, page faults, switches, CPU time of the last ticks

    def poll(self, goal: AskedGoal) -> str:
        self.use.append((time.monotonic(), *_use()))
        self._left -= 1
        if self._left <= 0:
            self._left = int(self._hz * self._random.uniform(1.0, 4.0))
            goal.rest()
            if self._random.random() > 0.2:
                for k, (low, high) in enumerate(zip(goal.low, goal.high, strict=True)):
                    goal._values[k] = self._random.uniform(low, high)
        return ""

    def show(self, time_s: float, state: RobotState, command: Command, goal: AskedGoal, phase: str) -> None:
        if state.imu_quat is not None:
            self.tilt = tilt_of(state.imu_quat)

    def close(self) -> None:
        return


def walk(
    bundle: PolicyBundle,
    robot: Robot,
    reference: str,
    guard: GuardCfg,
    *,
    seconds: float,
    seed: int,
    command_hz: float | None = None,
    lockstep: bool = False,
    late: list[float] | None = None,
) -> dict[str, Any]:
    """Walk for a while; a trip is false unless the robot falls, or sags too far for the policy to start at all.

    late   gets the lateness of every step, s
    """
    controller = Controller(bundle, robot.spec.joint_names)
    operator = Wander(seed, controller.control_hz)
    began = time.monotonic()
    driver = GuardDriver(
        reference, robot, guard, command_hz=command_hz, control_hz=controller.control_hz, lockstep=lockstep or None
    )
    with driver:
        while driver.realtime and driver.poll().not_ready:
            driver.read()
        goal, how = AskedGoal(controller.passport.goal), DeploySessionCfg(seconds=seconds)
        session = DeploySession(controller, driver, goal, how, controls=[operator], live=operator)
        outcome = session.run()
    if outcome.ended == "interrupted":
        raise KeyboardInterrupt  # nothing was measured
    if late is not None:
        late += session._figures._late
    trip_s = driver.trip.time_s if driver.trip is not None else None
    summary = driver.summary
    tap, latency = (summary.tap, summary.status.latency) if summary is not None else ({}, {})
    tripped = outcome.ended == "tripped"
    has_fallen = operator.tilt > FALLEN_RAD
    return {
        "robot_s": outcome.seconds,
        "wall_s": round(time.monotonic() - began, 1),
        "tripped": tripped,
        "trip_s": trip_s if tripped else None,
        "last_use": [*operator.use, (time.monotonic(), *_use())] if tripped else [],
        "fell": bool(tripped and has_fallen),
        "refused": outcome.guard == "start pose",
        "false_trip": bool(tripped and not has_fallen and outcome.guard != "start pose"),
        "guard": outcome.guard,
        "reason": outcome.reason,
        "tilt": round(operator.tilt, 3),
        "misses": outcome.misses,
        "late_ms": [round(value, 3) for value in outcome.late_ms],
        "step_ms": [round(value, 3) for value in outcome.step_ms],
        "missed_points": outcome.loop.missed if outcome.loop is not None else 0,
        "loop_s": round(outcome.loop.seconds, 4) if outcome.loop is not None else 0.0,
        "ticks": outcome.loop.ticks if outcome.loop is not None else 0,
        "guard_latency_ms": {name: round(value, 3) for name, value in latency.items()},
        "clips": dict(summary.status.clips) if summary is not None else {},
        "tap": dict(tap),
        "load_average": round(os.getloadavg()[0], 1),
    }


def _use() -> tuple[float, ...]:
    """Of this process: page faults with and without a disk, switches forced and not, CPU time in s."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_majflt, used.ru_minflt, used.ru_nivcsw, used.ru_nvcsw, time.process_time()


def drift_ms(row: dict[str, Any], control_hz: float) -> float:
    """How far the last tick of a run was from its place on the absolute schedule."""
    points: FloatArray = np.array([row["ticks"] + row["missed_points"]])
    return float(1e3 * (row["loop_s"] - (points[0] - 1) / control_hz))
