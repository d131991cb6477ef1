"""Rung shadow: the policy runs on live states while another program commands the robot; nothing is sent.

The controller gets the live states at the control rate and computes its targets. Where the driver can tell
what another commander sends (`observe`), both are compared; the difference is small where the other runs the same
policy, and large where the two policies differ. Where no other program commands, only the policy's own observations
and targets are checked.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.core.stop import stop_on_signal
from trueup.deploy.control.controller import Controller, ControlStep, PolicyError
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.control.monitors import MonitorCfg, Monitors
from trueup.deploy.session.outcome import Ended, RunFigures, RunOutcome
from trueup.deploy.session.recording import PHASES, RowWriter, state_columns
from trueup.deploy.session.undisturbed import undisturbed
from trueup.hardware.driver import Command, Driver, RobotState
from trueup.hardware.drivers.open import SCHEMES, open_driver, twin_options
from trueup.hardware.drivers.twin_listener import TwinListener
from trueup.hardware.loop import LoopReport, run_ticks
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec

_POLICY = PHASES.index("policy")


@dataclass(frozen=True, kw_only=True)
class Shadowed:
    """Result of the shadow rung.

    compared    steps in which another command was in force
    agreement   RMS difference of targets, rad, over those steps; per joint in `by_joint`
    correlation of the two targets' changes over time, all joints together; NaN where nothing moves
    plausible   share of steps whose targets lie within the robot's position limits
    """

    outcome: RunOutcome
    compared: int
    agreement: float
    by_joint: dict[str, float]
    correlation: float
    plausible: float


def listening_driver(reference: str, robot: Robot, control_hz: float) -> Driver:
    """The driver's listening variant where there is one; else the driver itself, to which nothing is written."""
    if reference.startswith("twin@"):
        host, _, port = reference.removeprefix("twin@").partition("?")[0].rpartition(":")
        if not host or not port.isdecimal():
            raise TrueupError(f"the address of a twin is HOST:PORT, found {reference!r}")
        return TwinListener(robot, (host, int(port)))
    scheme = reference.partition(":")[0]
    if scheme in SCHEMES and "listen=" not in reference:
        module, function = SCHEMES[scheme].split(":")
        if "listen" in inspect.signature(getattr(import_module(module), function)).parameters:
            reference += ("&" if "?" in reference else "?") + "listen=1"
    in_steps = reference.startswith("twin:") and twin_options(reference.removeprefix("twin:")).lockstep
    return open_driver(reference, robot, command_hz=control_hz if in_steps else max(control_hz, 200.0))


def observe(driver: Driver) -> tuple[RobotState, Command | None]:
    """The newest state and the command of another program; None where the driver cannot tell."""
    look: Callable[[], Any] | None = getattr(driver, "observe", None)
    if look is None:
        return driver.read(), None
    found = look()
    return found if isinstance(found, tuple) else (driver.read(), found)


def shadow(
    controller: Controller,
    driver: Driver,
    robot: Robot,
    goal: AskedGoal,
    seconds: float,
    writer: RowWriter | None = None,
) -> Shadowed:
    """Run the policy on live states for `seconds`; the driver must be connected, and nothing is written to it."""
    controller.restart(controller.default_pose)
    run = _Shadow(controller, driver, robot.spec, goal, max(1, round(seconds * controller.control_hz)), writer)
    with stop_on_signal() as stop, undisturbed(realtime=driver.realtime):
        loop = run_ticks(run.tick, stop, run.dt if driver.realtime else 0.0)
    return run.result(loop, interrupted=stop.is_set())


@dataclass
class _Shadow:
    _controller: Controller
    _driver: Driver
    _spec: RobotSpec
    _goal: AskedGoal
    _most: int
    _writer: RowWriter | None

    def __post_init__(self) -> None:
        self.dt = 1.0 / self._controller.control_hz
        self._monitors = Monitors(self._controller.passport, MonitorCfg(trip=False))
        self._figures, self._start_s, self._last = RunFigures(), time.perf_counter(), -1
        self._ours: list[FloatArray] = []
        self._theirs: list[FloatArray] = []
        self._inside = 0
        self._ended: tuple[Ended, str, str] | None = None

    def tick(self, k: int) -> bool:
        began = time.perf_counter()
        self._start_s = began if k == 0 else self._start_s
        late = max(0.0, began - self._start_s - k * self.dt) if self._driver.realtime else 0.0
        missed, self._last = k > self._last + 1 or late > self.dt, k
        try:
            state, other = observe(self._driver)
            step = self._controller.step(state, self._goal.values)
        except PolicyError as error:
            self._ended = ("tripped", "policy", str(error))
            return False
        except TrueupError as error:
            self._ended = ("tripped", "driver", str(error))
            return False
        watched = self._monitors.watch(step, missed=missed)
        took = time.perf_counter() - began
        self._figures.add(state, step.target, watched, late_s=late, step_s=took, missed=missed)
        self._inside += bool(
            np.all((step.target >= self._spec.position_low) & (step.target <= self._spec.position_high))
        )
        if other is not None and np.isfinite(other.target_pos).all():
            self._ours.append(step.target)
            self._theirs.append(np.asarray(other.target_pos, np.float64))
        self._keep(k, state, other, step, late, took)
        return k + 1 < self._most

    def result(self, loop: LoopReport, *, interrupted: bool) -> Shadowed:
        ended = self._ended or (("interrupted", "", "ended by a signal") if interrupted else ("done", "", ""))
        ours, theirs = np.array(self._ours), np.array(self._theirs)
        away = ours - theirs
        by_joint = np.sqrt(np.mean(away**2, axis=0)) if len(away) else np.full(self._spec.njoint, np.nan)
        return Shadowed(
            outcome=self._figures.outcome(*ended, dt=self.dt, loop=loop),
            compared=len(away),
            agreement=float(np.sqrt(np.mean(away**2))) if len(away) else float("nan"),
            by_joint=dict(zip(self._spec.joint_names, by_joint.tolist(), strict=True)),
            correlation=_correlation(ours, theirs),
            plausible=self._inside / max(self._figures.steps, 1),
        )

    def _keep(
        self, k: int, state: RobotState, other: Command | None, step: ControlStep, late: float, took: float
    ) -> None:
        if self._writer is None:
            return
        columns = state_columns(state) | step._asdict()
        columns |= {"tick": k, "phase": _POLICY, "restart": k == 0, "late_s": late, "step_s": took, "flags": 0}
        columns |= {"asked": self._goal.values, "wall_s": time.perf_counter() - self._start_s}
        if other is not None:
            columns |= {"sent_pos": other.target_pos, "sent_kp": other.kp, "sent_kd": other.kd}
        self._writer.add(**columns)


def _correlation(ours: FloatArray, theirs: FloatArray) -> float:
    """Of how both targets deviate from their means over time."""
    if len(ours) < 3:
        return float("nan")
    a, b = ((part - part.mean(axis=0)).ravel() for part in (ours, theirs))
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 1e-9 else float("nan")
