"""Measures of one run: scalar quantities with units, from joints, targets and IMU alone; NaN where not available.

The same functions measure the robot's runs and the simulated ones, so that they are comparable.
"""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

from trueup.core.arrays import FloatArray, Mask
from trueup.data.check.check import command_delay_s
from trueup.gap.symptoms.run import Run
from trueup.robot.load import Robot
from trueup.robot.model import ModelCfg, compile_model
from trueup.world.odometry import BasePath, leg_odometry

CONTINUOUS = 0.35  # of the torque limit: assumed continuous torque of a motor whose spec has none
SETTLE_S = 1.0  # of a run before walking is measured
TURNING = 0.2  # rad/s of command, from which a robot counts as turning
_NEAR_LIMIT, _SHAKE_HZ = 0.95, 5.0
_SLIP_S = 0.06  # time over which feet must stand together: averages encoder noise, shorter than a trot's stance

Measures = dict[str, float]


def measure_all(runs: Iterable[Run], robot: Robot) -> list[Measures]:
    """All quantities of every run."""
    legged = bool(robot.spec.feet) and robot.spec.base.floating
    model = compile_model(robot, ModelCfg(base="free")) if legged else None
    return [_measure(run, robot, model) for run in runs]


def _measure(run: Run, robot: Robot, model: mujoco.MjModel | None) -> Measures:
    out = _start(run, robot)
    walking = run.standing()
    settled = walking.part(round(SETTLE_S * run.control_hz), len(walking.log))
    if len(settled.log) < 2 * run.control_hz:
        return out
    out |= _targets(settled) | _motors(settled, robot) | _extras(settled)
    if model is not None and "imu_quat" in settled.log:
        out |= _walk(settled, leg_odometry(robot, settled.log, model))
    return out


def _start(run: Run, robot: Robot) -> Measures:
    """The policy's first state, and the time until a fall."""
    log, spec = run.log, robot.spec
    fell = run.fell_at_s
    out = {
        "fell_s": np.nan if fell is None else fell,
        "start_pose": run.start_pose or float(np.abs(log["joint_pos"][0] - spec.default_pose).max()),
        "seconds": run.seconds,
    }
    if run.lean is not None:
        out["start_tilt"] = float(run.lean[0])
    if "imu_gyro" in log:
        out["start_spin"] = float(np.abs(log["imu_gyro"][0]).max())
    return out


def _targets(run: Run) -> Measures:
    """Roughness of the motion, and tracking error of the joints."""
    log, dt = run.log, 1.0 / run.control_hz
    jerk = np.diff(log["target_pos"], n=2, axis=0) / dt**2
    whole = run.source if run.source is not None else log
    late = log["joint_pos"][1:] - log["target_pos"][:-1]
    out = {"jerk": float(np.sqrt(np.mean(jerk**2))), "tracking": float(np.sqrt(np.mean(late**2)))}
    out["delay"] = command_delay_s(whole)
    if "imu_gyro" in log:
        out["shake"] = float(np.sqrt(np.mean(_fast(log["imu_gyro"][:, :2], run.control_hz) ** 2)))
    return out


def _fast(values: FloatArray, rate_hz: float) -> FloatArray:
    """The part of signals (T, n) above `_SHAKE_HZ`."""
    spectrum = np.fft.rfft(values - values.mean(axis=0), axis=0)
    spectrum[np.fft.rfftfreq(len(values), 1.0 / rate_hz) < _SHAKE_HZ] = 0.0
    out: FloatArray = np.fft.irfft(spectrum, len(values), axis=0)
    return out


def _motors(run: Run, robot: Robot) -> Measures:
    """Use of torque, joint range, heat and supply."""
    log, spec = run.log, robot.spec
    room = np.minimum(log["joint_pos"] - spec.position_low, spec.position_high - log["joint_pos"])
    out = {"joint_margin": float((room / (spec.position_high - spec.position_low)).min())}
    if "joint_torque" in log:
        share = np.abs(log["joint_torque"]) / spec.torque_limit
        out["thermal"] = float((np.mean(share**2, axis=0) / CONTINUOUS**2).max())
        out["at_limit"] = float(np.mean(share > _NEAR_LIMIT))
        if "joint_vel" in log:
            out["power"] = float(np.abs(log["joint_torque"] * log["joint_vel"]).sum(axis=1).mean())
    if "joint_temperature" in log:
        out |= _heat(log["joint_temperature"], run.control_hz)
    if "voltage" in log and log["voltage"].max() > 0:
        volts = log["voltage"][:, 0]
        out["sag"] = float(1.0 - np.quantile(volts, 0.01) / np.quantile(volts, 0.99))
    return out


def _heat(temperature: FloatArray, rate_hz: float) -> Measures:
    """Hottest motor now, and the largest rise a minute, by a straight line."""
    minutes = np.arange(len(temperature)) / rate_hz / 60.0
    slope = np.polyfit(minutes, temperature, 1)[0]
    hottest = int(np.argmax(temperature[-1]))
    return {"temperature": float(temperature[-1, hottest]), "heating": float(slope.max())}


def _extras(run: Run) -> Measures:
    out = {} if run.late is None else {"late": run.late}
    if run.distance is not None:
        out["distance"] = float(np.nanmedian(run.distance))
    return out


def _walk(run: Run, path: BasePath) -> Measures:
    """Velocity, slip and feet, by leg odometry."""
    speed, command = path.velocity, run.command
    asked = np.full_like(speed, np.nan) if command is None or command.shape[1] < 3 else command[:, :3]
    out = {name: float(speed[:, k].mean()) for k, name in enumerate(("forward", "sideways", "turn"))}
    error = speed - asked
    out["velocity_error"] = float(np.linalg.norm(error[:, :2], axis=1).mean())
    out["turn_error"] = float(np.abs(error[:, 2]).mean())
    out["sideways_drift"] = abs(float(error[:, 1].mean()))
    out["turn_drift"] = abs(float(error[:, 2].mean()))
    slip = _slip(path, run.control_hz)
    turning = np.abs(asked[-len(slip) :, 2] if np.isfinite(asked).all() else speed[-len(slip) :, 2]) >= TURNING
    out["slip_turning"] = _rms(slip[turning])
    out["slip_straight"] = _rms(slip[~turning])
    above = path.feet[:, :, 2] - path.feet[:, :, 2].min(axis=1, keepdims=True)
    out["clearance"] = float(np.median(np.quantile(above, 0.95, axis=0)))
    return out


def _slip(path: BasePath, rate_hz: float) -> FloatArray:
    """Speed (T - n, nfoot), m/s, of standing feet against each other over n steps; NaN where one swings or is alone.

    Two standing feet do not move against each other on rigid ground: their relative speed is slip, whatever the base
    does.
    """
    n = max(1, round(_SLIP_S * rate_hz))
    stands: Mask = np.asarray(np.lib.stride_tricks.sliding_window_view(path.stands, n, axis=0).all(axis=-1))
    step = (path.feet[n:, :, :2] - path.feet[:-n, :, :2]) * (rate_hz / n)
    weight = stands[:, :, None] / np.maximum(stands.sum(axis=1), 1)[:, None, None]
    apart = np.linalg.norm(step - (step * weight).sum(axis=1, keepdims=True), axis=2)
    together = stands & (stands.sum(axis=1, keepdims=True) >= 2)
    out: FloatArray = np.where(together, apart, np.nan)
    return out


def _rms(values: FloatArray) -> float:
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) if len(known) > 20 else float("nan")
