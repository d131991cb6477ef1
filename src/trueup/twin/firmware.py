"""Firmware of a twin: accepts or refuses commands, has a watchdog, reports states, counts."""

from __future__ import annotations

import math
from dataclasses import asdict

import msgspec
import numpy as np

from trueup.core.arrays import FloatArray, sha256_of
from trueup.hardware.driver import RobotState
from trueup.hardware.twin_cfg import TwinCfg
from trueup.hardware.wire import StateReport, TapCounts
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec
from trueup.twin.physics.physics import Plant
from trueup.twin.physics.plant_model import build_plant
from trueup.twin.readings import SensorReadings
from trueup.twin.truth.preset import preset_label, read_preset
from trueup.twin.truth.truth import Truth
from trueup.world.fitted.calibration import read_calibration

_PLAUSIBLE = 1e6  # no target, gain or torque of a robot is beyond this
_LIMIT_SLACK = 1e-6  # rounding of a target on its limit


class Twin:
    """A twin that is commanded in process; `server` puts it behind a socket."""

    def __init__(self, robot: Robot, cfg: TwinCfg) -> None:
        self.robot, self.cfg = robot, cfg
        preset, label = read_preset(cfg.preset), preset_label(cfg.preset)
        fit = None if cfg.params is None else read_calibration(cfg.params)
        if fit is not None:  # tells twins of different fits apart
            label += f"-fit{sha256_of([msgspec.json.encode((fit.x, fit.covariance, fit.parameters))])[:6]}"
        self.name = f"{robot.spec.name}-{label}-{cfg.seed}"
        self.substeps = math.ceil(preset.physics_hz / cfg.command_hz - 1e-9)
        self.physics_hz = self.substeps * cfg.command_hz
        model = build_plant(
            robot, preset, seed=cfg.seed, label=label, base=cfg.base, physics_dt=1.0 / self.physics_hz, fit=fit
        )
        jitter, noise = (np.random.default_rng([cfg.seed % 2**64, stream]) for stream in (1, 2))
        self.plant = Plant(model, robot.spec, jitter)
        self._readings = SensorReadings(self.plant, noise, robot.spec.imu, held=cfg.base == "fixed")
        self._spec = robot.spec
        self._low, self._high = _command_limits(robot.spec)
        self._timeout = math.ceil(cfg.command_timeout_s * self.physics_hz - 1e-9)
        self._deadline: int | None = None  # physics step at which damping sets in
        self._counts = dict.fromkeys(asdict(TapCounts()), 0)
        self._sequence = 0

    @property
    def truth(self) -> Truth:
        """The hidden truth, for the seal alone."""
        return self.plant.truth

    @property
    def time_s(self) -> float:
        """The robot's clock."""
        return self.plant.step_count * self.plant.dt

    def count(self, name: str) -> None:
        """Add one to a counter of the tap."""
        self._counts[name] += 1

    def tap(self) -> TapCounts:
        """Return the counts at the motors."""
        return TapCounts(**{**self._counts, "diverged": self.plant.diverged})

    def command(self, rows: FloatArray, ahead_steps: float = 0.0) -> bool:
        """Take a command (5, njoint) that arrives `ahead_steps` physics steps from now; False when it is refused."""
        counts = self._counts
        counts["commands"] += 1
        if rows.shape != self._low.shape:
            counts["malformed"] += 1
            return False
        if np.count_nonzero((rows >= self._low) & (rows <= self._high)) < rows.size:  # a NaN is not within limits
            fault = self._fault(rows)
            counts[fault] += 1
            if fault != "beyond_limits":
                return False
            rows = rows.copy()
            rows[4] = np.clip(rows[4], -self._spec.torque_limit, self._spec.torque_limit)
        counts["accepted"] += 1
        arrival = self.plant.step_count + ahead_steps
        self.plant.push(rows, arrival)
        self._deadline = math.floor(arrival) + self._timeout
        return True

    def _fault(self, rows: FloatArray) -> str:
        """Return the counter of a command's first violation; None without one."""
        if not (np.abs(rows) <= _PLAUSIBLE).all():  # false for NaN
            return "nonfinite"
        return "negative_gain" if (rows[2:4] < 0.0).any() else "beyond_limits"

    def damp(self) -> None:
        """Drop all commands and damp, as the watchdog does."""
        damping = np.zeros((5, self._spec.njoint))
        damping[3] = self._spec.kd
        self.plant.cut(damping)
        self._deadline = None

    def period(self) -> None:
        """Let one command period pass."""
        left = self.substeps
        if self._deadline is not None and self._deadline - self.plant.step_count < left:
            before = max(0, self._deadline - self.plant.step_count)
            self.plant.advance(before)
            self._counts["watchdog"] += 1
            self.damp()
            left -= before
        self.plant.advance(left)
        self._counts["periods"] += 1
        self._counts["torque_clipped"] += self.plant.is_saturated

    def state(self) -> RobotState:
        """Return a reading of the present; every call is a new one."""
        return self.report(0).state()

    def report(self, acknowledged: int) -> StateReport:
        """The reading as a frame; `acknowledged` is the sequence of the newest command."""
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        return self._readings.take(self._sequence, acknowledged)


def _command_limits(spec: RobotSpec) -> tuple[FloatArray, FloatArray]:
    """Return (5, njoint) least and most of every number in a command."""
    none, most = np.zeros(spec.njoint), np.full(spec.njoint, _PLAUSIBLE)
    speed, torque, slack = spec.velocity_limit, spec.torque_limit, _LIMIT_SLACK
    low = np.stack([spec.position_low - slack, -speed - slack, none, none, -torque - slack])
    high = np.stack([spec.position_high + slack, speed + slack, most, most, torque + slack])
    return low, high
