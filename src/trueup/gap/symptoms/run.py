"""Run: one run of a policy at its control rate, from a recording of `trueup deploy`, a log, or a simulation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.hardware.policy_rows import FILE, PHASES, RecordedRows, read_rows
from trueup.policy.reading import gravity_in_body
from trueup.robot.load import Robot

FALLEN_RAD = 1.0  # lean of the IMU from upright; the motor guard's own limit
_ROBOT_LOG = "robot.mcap"
_SIGNALS = ("joint_pos", "joint_vel", "joint_torque", "joint_temperature", "voltage")
_IMU = ("imu_quat", "imu_gyro")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A robot's motion under a policy; row t has the state and the targets sent right after it.

    log        at the control rate, joints in the robot's order, from the policy's first step on
    command    (T, ncommand) of the policy; None where it was not recorded
    late       share of control steps that began later than half a period; None where it is not known
    distance   (T,) RMS z-score of the observations against training; None where it is not known
    stopped    why a guard ended the run; empty if none did
    bundle     the policy's folder as the recording names it
    source     the log at its own rate, for signals faster than control steps
    start_pose of a simulated run: largest start distance from the default pose, rad
    """

    name: str
    log: Log
    control_hz: float
    command: FloatArray | None = None
    late: float | None = None
    distance: FloatArray | None = None
    stopped: str = ""
    bundle: Path | None = None
    source: Log | None = field(default=None, repr=False)
    start_pose: float | None = None

    @property
    def seconds(self) -> float:
        return len(self.log) / self.control_hz

    @property
    def lean(self) -> FloatArray | None:
        """Angle of the IMU from upright (T,), rad; None without one."""
        if "imu_quat" not in self.log:
            return None
        down = gravity_in_body(self.log["imu_quat"])[:, 2]
        out: FloatArray = np.arccos(np.clip(-down, -1.0, 1.0))
        return out

    @property
    def fell_at_s(self) -> float | None:
        """Time from the policy's first step to the fall; None without a fall or without an IMU."""
        lean = self.lean
        if lean is None:
            return None
        if (lean > FALLEN_RAD).any():
            return float(np.argmax(lean > FALLEN_RAD)) / self.control_hz
        # the guard is faster than control steps: it ends a run before a step shows the full lean
        caught = bool(self.stopped) and lean[-1] > 0.5 * FALLEN_RAD
        return self.seconds if caught else None

    def standing(self) -> Run:
        """The part before a fall: motion after it is no symptom of the gait."""
        at = self.fell_at_s
        if at is None:
            return self
        return self.part(0, max(2, round((at - 0.5) * self.control_hz)))

    def part(self, start: int, stop: int) -> Run:
        """Control steps start..stop-1."""
        cut = {name: getattr(self, name) for name in ("command", "distance")}
        cut = {name: None if value is None else value[start:stop] for name, value in cut.items()}
        return replace(self, log=self.log.window(start, stop), **cut)


def read_run(place: str | Path, robot: Robot, command: FloatArray | None = None) -> Run:
    """Read a run: a folder of `trueup deploy`, its policy.rows, or any log; beside a log its policy.rows is found.

    command   (ncommand,) held throughout, for logs without a command
    """
    path = Path(place)
    rows, log = path / FILE, path / _ROBOT_LOG
    if not path.is_dir():
        rows, log = (path, path.with_name(_ROBOT_LOG)) if path.name == FILE else (path.with_name(FILE), path)
        rows = rows if log.name == _ROBOT_LOG or path.name == FILE else path.parent / ""
    if rows.is_file():
        source = read_log(log) if log.is_file() else None
        return of_rows(read_rows(rows), robot, name=rows.parent.name, source=source)
    if path.is_dir():
        raise TrueupError(f"holds no {FILE} of `trueup deploy`; name the log's file", file=path)
    return of_log(read_log(path), robot, name=path.stem, command=command)


def of_rows(rows: RecordedRows, robot: Robot, *, name: str, source: Log | None = None) -> Run:
    """The policy's part of a recording of `trueup deploy`."""
    at = np.flatnonzero(rows.columns["phase"][:, 0] == PHASES.index("policy"))
    if len(at) < 2:
        raise TrueupError(f"{name}: the policy ran for fewer than two control steps")
    part = slice(int(at[0]), int(at[-1]) + 1)
    names = (*_SIGNALS, *(_IMU if rows.header.has_imu else ()))
    signals = {one: np.asarray(rows.columns[one][part], np.float64) for one in names}
    signals = {one: values for one, values in signals.items() if np.isfinite(values).all()}
    signals["target_pos"] = np.asarray(rows.columns["sent_pos"][part], np.float64)
    log = Log(time=rows.columns["time_s"][part, 0], joint_names=rows.header.joint_names, signals=signals)
    late, hz = rows.columns["late_s"][part, 0], rows.header.control_hz
    distance = np.asarray(rows.columns["distance"][part, 0], np.float64)
    return Run(
        name=name,
        log=log.with_joint_order(robot.spec.joint_names),
        control_hz=hz,
        command=np.asarray(rows.columns["command"][part], np.float64),
        late=float(np.mean(late > 0.5 / hz)) if np.isfinite(late).all() else None,
        distance=distance if np.isfinite(distance).any() else None,
        stopped=str(source.meta.get("trip", "") or "") if source is not None else "",
        bundle=Path(rows.header.bundle),
        source=source,
    )


def of_log(log: Log, robot: Robot, *, name: str, command: FloatArray | None = None) -> Run:
    """A whole log as a run: every sample that is nearest to a control step."""
    told = log.meta.get("control_hz", robot.spec.control_hz)
    hz = float(told) if isinstance(told, float | int | str) else robot.spec.control_hz
    for needed in ("joint_pos", "target_pos"):
        if needed not in log:
            raise TrueupError(f"{name}: symptoms need {needed!r}, this log has {', '.join(log.signals)}")
    steps = np.arange(log.time[0], log.time[-1] + 0.5 / hz, 1.0 / hz)
    at = np.clip(np.searchsorted(log.time, steps - 0.25 / log.rate_hz), 0, len(log) - 1)
    signals = {key: values[at] for key, values in log.signals.items()}
    if "imu_quat" not in signals and "base_quat" in signals:
        signals["imu_quat"] = signals["base_quat"]
    taken = replace(log, time=log.time[at], signals=signals).with_joint_order(robot.spec.joint_names)
    asked = None if command is None else np.tile(np.asarray(command, np.float64), (len(taken), 1))
    stopped = str(log.meta.get("trip", "") or "")
    return Run(name=name, log=taken, control_hz=hz, command=asked, stopped=stopped, source=log)
