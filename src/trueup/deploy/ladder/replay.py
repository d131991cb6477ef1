"""Rung replay: recorded readings through the controller that will run the robot; no robot.

golden     the bundle's own sequences, from readings to joint targets: deploy's path must give what was kept at export
recording  policy.rows of an earlier run: the same states must give the same commands, bit for bit
log        any log of the robot: the policy's targets, and whether its observations lie in the training range
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trueup.core.arrays import FloatArray
from trueup.core.errors import TrueupError
from trueup.deploy.control.controller import ControlCfg, Controller
from trueup.deploy.control.goal import AskedGoal
from trueup.deploy.control.monitors import MonitorCfg, Monitors
from trueup.deploy.session.recording import FILE, PHASES, RecordedRows, read_rows
from trueup.hardware.driver import RobotState
from trueup.policy.bundle.bundle import Engine, PolicyBundle, load_bundle
from trueup.policy.bundle.golden import TOLERANCE, distance

_POLICY = PHASES.index("policy")
_COMPARED = ("observation", "raw", "smoothed", "wanted", "target")


def golden_difference(bundle: PolicyBundle, joint_names: tuple[str, ...], cfg: ControlCfg | None = None) -> float:
    """Largest difference between the controller's and the golden targets: absolute below one, relative above.

    The controller gets whole robot states (joints in the robot's order, an IMU quaternion), without smoothing or bound.
    """
    cfg = replace(cfg or ControlCfg(), smoothing=1.0, target_step=np.inf)
    golden, worst = bundle.golden, 0.0
    names = tuple(str(name) for name in golden["joint_names"].ravel())
    order = np.array([names.index(name) for name in joint_names])
    for row, restart in enumerate(golden["walk/restart"].T):
        controller = Controller(bundle, joint_names, cfg)
        for k in range(len(restart)):
            if restart[k]:
                controller.restart()
            others = {n[11:]: np.asarray(v[k, row], float) for n, v in golden.items() if n[:11] == "walk/other/"}
            found = controller.step(_golden_state(golden, k, row, order), golden["walk/asked"][k, row], others)
            worst = float(np.maximum(worst, distance(found.target, golden["walk/target"][k, row][order])))
    return worst


def _golden_state(golden: dict[str, NDArray[np.generic]], k: int, row: int, order: NDArray[np.intp]) -> RobotState:
    read = {name: np.asarray(golden[f"walk/{name}"][k, row], np.float64) for name in ("joint_pos", "joint_vel", "gyro")}
    empty = np.full(len(order), np.nan)
    return RobotState(
        sequence=k,
        time_s=float(k),
        joint_pos=read["joint_pos"][order],
        joint_vel=read["joint_vel"][order],
        joint_torque=empty,
        joint_temperature=empty,
        voltage=float("nan"),
        imu_quat=quat_of_gravity(np.asarray(golden["walk/gravity"][k, row], np.float64)),
        imu_gyro=read["gyro"],
    )


def quat_of_gravity(down: FloatArray) -> FloatArray:
    """A world_from_body quaternion w x y z, without yaw, whose gravity in the body frame is the unit vector `down`.

    It turns `down` into (0, 0, -1) by the shortest way: axis down x (0, 0, -1), w = 1 - down_z before normalising.
    """
    x, y, z = down / np.linalg.norm(down)
    quat = np.array([1.0 - z, -y, x, 0.0]) if z < 1.0 - 1e-12 else np.array([0.0, 1.0, 0.0, 0.0])
    out: FloatArray = quat / np.linalg.norm(quat)
    return out


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """Result of replaying a recording through the controller.

    rows       steps of the policy that were computed again; `damaged` rows of the file were left out
    different  of them, not the same to the last bit; `worst`: largest difference; `first`: row and column of the first
    """

    path: Path
    rows: int
    different: int
    worst: float
    first: str
    damaged: int

    @property
    def same(self) -> bool:
        return self.rows > 0 and self.different == 0


def replay_recording(path: str | Path, bundle: str | Path | None = None) -> Replayed:
    """Compute a recording's commands again from its states; `bundle`: where the recorded one has moved to."""
    file = Path(path) / FILE if Path(path).is_dir() else Path(path)
    recorded = read_rows(file)
    opened = load_bundle(recorded.header.bundle if bundle is None else bundle)
    if opened.hash != recorded.header.bundle_hash:
        told = recorded.header.bundle_hash[:12]
        raise TrueupError(f"was made by the bundle {told}, {opened.path} is {opened.hash[:12]}", file=file)
    return _compare(file, recorded, Controller(opened, recorded.header.joint_names, settings_cfg(recorded)))


def settings_cfg(recorded: RecordedRows) -> ControlCfg:
    """The controller's settings as the recording kept them."""
    said = recorded.header.settings
    step = said.get("target_step")
    engine: Engine = "onnxruntime" if said.get("engine") == "onnxruntime" else "numpy"
    return ControlCfg(
        smoothing=float(said.get("smoothing") or 1.0), target_step=None if step is None else float(step), engine=engine
    )


def _compare(file: Path, recorded: RecordedRows, controller: Controller) -> Replayed:
    columns = recorded.columns
    rows = np.flatnonzero((columns["phase"][:, 0] == _POLICY) & np.isfinite(columns["target"][:, 0]))
    different, worst, first, before = 0, 0.0, "", None
    for count, row in enumerate(rows.tolist()):
        if columns["restart"][row, 0]:
            controller.restart(controller.default_pose)
        elif count == 0 or (before is not None and row != before + 1):
            raise TrueupError(f"lacks the rows before row {row}: the policy's past is not known", file=file)
        before = row
        step = controller.step(recorded.state(row), columns["asked"][row].astype(np.float32))
        found = {name: np.asarray(getattr(step, name), np.float64) for name in _COMPARED}
        odd = [name for name in _COMPARED if not np.array_equal(found[name], columns[name][row])]
        if odd:
            different += 1
            worst = max(worst, *(float(np.abs(found[name] - columns[name][row]).max()) for name in odd))
            first = first or f"row {row}, {odd[0]}"
    damaged = recorded.damaged
    return Replayed(path=file, rows=len(rows), different=different, worst=worst, first=first, damaged=damaged)


@dataclass(frozen=True, kw_only=True)
class LogReplay:
    """The policy run on a log: share of steps in the training range, and its targets against those of the log.

    agreement  RMS difference to the log's targets, rad; NaN where it has none
    """

    steps: int
    in_range: float
    outside: tuple[str, ...]
    distance_median: float
    agreement: float


def replay_log(bundle: PolicyBundle, path: str | Path, joint_names: tuple[str, ...], goal: AskedGoal) -> LogReplay:
    """A robot's log at the control rate through the controller, the goal held; needs the data extra for MCAP."""
    from trueup.data.files import read_log

    log = read_log(path).with_joint_order(joint_names)
    controller, hz = Controller(bundle, joint_names), bundle.passport.policy.control_hz
    if log.rate_hz < 0.9 * hz:
        raise TrueupError(f"has {log.rate_hz:g} rows a second, the policy needs {hz:g}", file=path)
    times = np.arange(log.time[0], log.time[-1] + 1e-9, 1.0 / hz)
    rows = np.clip(np.searchsorted(log.time, times + 1e-9, side="right") - 1, 0, len(log) - 1)
    monitors = Monitors(bundle.passport, MonitorCfg(trip=False))
    away, watched = [], []
    for row in rows.tolist():
        step = controller.step(_log_state(log.signals, row, float(log.time[row])), goal.values)
        watched.append(monitors.watch(step))
        if "target_pos" in log:
            away.append(step.target - log["target_pos"][row])
    outside = {text.partition(" ")[0]: text for one in reversed(watched) for text in one.outside}
    return LogReplay(
        steps=len(watched),
        in_range=float(np.mean([not one.outside for one in watched])),
        outside=tuple(outside.values()),
        distance_median=float(np.median([one.distance for one in watched])),
        agreement=float(np.sqrt(np.mean(np.square(away)))) if away else float("nan"),
    )


def _log_state(signals: dict[str, FloatArray], row: int, time_s: float) -> RobotState:
    empty = np.full(signals["joint_pos"].shape[1], np.nan)
    quat = signals.get("imu_quat", signals.get("base_quat"))
    gyro = signals.get("imu_gyro")
    return RobotState(
        sequence=row,
        time_s=time_s,
        joint_pos=signals["joint_pos"][row],
        joint_vel=signals["joint_vel"][row],
        joint_torque=empty,
        joint_temperature=empty,
        voltage=float("nan"),
        imu_quat=None if quat is None else quat[row],
        imu_gyro=None if gyro is None else gyro[row],
    )


__all__ = [
    "TOLERANCE",
    "LogReplay",
    "Replayed",
    "golden_difference",
    "quat_of_gravity",
    "replay_log",
    "replay_recording",
]
