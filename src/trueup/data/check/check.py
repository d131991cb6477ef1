"""check_log: all checks on one log, ordered so that one flaw is reported once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.data.check.angles import DEGREE, check_units, degree_columns
from trueup.data.check.clock import GAP, UNITS, check_streams, check_time, row_time, time_unit
from trueup.data.check.columns import check_frozen, check_jumps, check_presence, check_quantisation, check_stale
from trueup.data.check.finding import Finding, Report, ranked
from trueup.data.check.joints import check_limits, check_order, check_tracking, match_reference
from trueup.data.check.pairing import check_pairing
from trueup.data.check.ranges import check_clipping, check_excitation, check_saturation
from trueup.data.check.torque import check_torque_magnitude, check_torque_sign
from trueup.data.check.velocity import check_velocity
from trueup.data.check.view import LogView, column, hold_rows, position_noise, position_quantum, spread
from trueup.data.lag import SLOWEST_DYNAMICS_S, command_lag
from trueup.data.log import Log, RobotReference

__all__ = ["Report", "RobotReference", "check_log", "command_delay_s"]

FEWEST_ROWS = 20  # shorter logs: only the table itself can be checked


def check_log(
    log: Log, reference: RobotReference | None = None, streams: Mapping[str, FloatArray] | None = None
) -> Report:
    """Check a log by itself, against a robot when one is given, and against other clocks when those are given.

    reference  facts of the robot; a caller with a RobotSpec fills it field by field (same names, same order):
               Reference(joint_names=spec.joint_names, position_low=spec.position_low, ..., control_hz=spec.control_hz)
    streams    name -> (T,) stamps of that stream for every row of the log, or (N, 2) columns (own stamp, log time);
               compared with log.time to find drifting clocks

    Returns findings, worst first. Bad content never raises: it is reported.
    """
    robot, found = match_reference(log.joint_names, reference)
    time = np.asarray(log.time, np.float64)
    found += [*check_presence(log), *check_time(time, robot)]
    if streams:
        found += check_streams(time * UNITS[time_unit(time)], streams)
    if "joint_pos" not in log or len(log) < FEWEST_ROWS or not log.joint_names:
        return Report(findings=ranked(found))
    view, units = _view(log, robot)
    found += units
    measured = {"rate_hz": 1.0 / view.dt, "seconds": view.rows * view.dt, "hold_rows": float(view.hold)}
    # earlier checks blame joints that later ones then leave alone
    for check in (check_quantisation, check_frozen, check_stale):
        found += check(view)
    fast, before = view.dt <= SLOWEST_DYNAMICS_S, set(view.blamed)
    if fast:
        found += check_jumps(view)
    leapt = view.blamed - before
    for check in (check_excitation, check_tracking, check_order, check_limits):
        found += check(view)
    found += check_saturation(view, leapt)
    found += check_clipping(view)
    unsigned = list(check_torque_magnitude(view))
    found += unsigned
    if not fast:
        found += check_pairing(view, None)
        return Report(findings=ranked(found), measured=measured)
    wrong = list(check_velocity(view))
    lag = command_lag(replace(view, vel=None) if wrong else view)
    if lag is not None:
        measured |= {"command_lag_s": lag.rows * view.dt, "command_lag_rows": lag.rows}
    pairing = list(check_pairing(view, lag))
    if not unsigned and {f.level for f in pairing} <= {"note"}:
        found += check_torque_sign(view)
    return Report(findings=ranked([*found, *wrong, *pairing]), measured=measured)


def command_delay_s(log: Log) -> float:
    """Least delay, s, from a command to the torque that answers it; NaN where the log does not show it.

    A command of row t that arrives before row t + k is read acts there: a lag of k rows is a delay of k - 1 at least.
    """
    if any(name not in log for name in ("joint_torque", "joint_vel", "target_pos")) or len(log) < FEWEST_ROWS:
        return float("nan")
    view = _view(log, None)[0]
    lag = command_lag(view)
    return max(0.0, lag.rows - 1.0) * view.dt if lag is not None and lag.source == "torque" else float("nan")


def _view(log: Log, robot: RobotReference | None) -> tuple[LogView, list[Finding]]:
    """Prepare the log with units corrected, and report the wrong ones."""
    time = np.asarray(log.time, np.float64)
    scale = UNITS[time_unit(time)]
    dt = row_time(time, scale)
    signals = {
        name: values for name in ("joint_pos", "target_pos", "joint_vel") if (values := column(log, name)) is not None
    }
    degrees = degree_columns(signals["joint_pos"], signals.get("target_pos"), signals.get("joint_vel"), dt, robot)
    units = list(check_units(log.joint_names, degrees, signals))
    for name, joints in degrees.items():
        if joints:
            signals[name] = signals[name].copy()
            signals[name][:, sorted(joints)] /= DEGREE
    pos, target = signals["joint_pos"], signals.get("target_pos")
    noise, quantum = position_noise(pos), position_quantum(pos)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.diff(time) * scale
        regular = (steps > 0) & (steps < GAP * dt)
    view = LogView(
        names=log.joint_names,
        dt=dt,
        pos=pos,
        vel=signals.get("joint_vel"),
        torque=column(log, "joint_torque"),
        target=target,
        target_vel=column(log, "target_vel"),
        hold=hold_rows(target, dt),
        noise=noise,
        quantum=quantum,
        moving=spread(pos) > np.maximum(0.02, 8 * np.hypot(noise, quantum)),
        regular=regular,
        reference=robot,
    )
    return view, units
