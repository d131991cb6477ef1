"""Recording a twin over its real socket, in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trueup.data.log import Log
from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.write import LogWriter
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.watch import WatchCfg
from trueup.record.record import RecordCfg, RecordResult, record, record_meta
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.excitation.plan import Plan
from trueup.robot.load import load_robot
from trueup.world.rehearse import RehearseCfg, rehearse

pytestmark = pytest.mark.medium
RATE = 200.0


def record_twin(
    name: str, path: Path, *, lockstep: bool = True, seconds: float = 5.0, cfg: RecordCfg | None = None
) -> tuple[RecordResult, Log, Plan]:
    robot, reference = load_robot(name), "twin:mild?seed=5"
    plan = rehearse(robot, excite(robot.spec, ExcitationCfg(seconds=seconds, rate_hz=RATE))).plan
    driver = open_driver(reference, robot, command_hz=RATE, lockstep=lockstep)
    meta = record_meta(robot, plan, cfg, driver=reference)

    def check(way: Plan) -> None:
        rehearse(robot, way, RehearseCfg(scale=False))

    with LogWriter(path, robot.spec.joint_names, meta) as writer:
        result = record(robot, driver, plan, writer, cfg, check_move=check)
    return result, read_mcap(path), plan


def answer_lag(log: Log, kp: float, kd: float, joint: int) -> int:
    """Rows by which the torque follows the servo's law, best fit: 0 means the command of the same row."""
    q, dq, tau, target = (log[name][:, joint] for name in ("joint_pos", "joint_vel", "joint_torque", "target_pos"))
    lags = range(-3, 8)
    rows = slice(200, -200)
    errors = []
    for lag in lags:
        asked = kp * (np.roll(target, lag) - q) - kd * dq
        errors.append(float(np.std((asked - tau)[rows])))
    return list(lags)[int(np.argmin(errors))]


@pytest.mark.parametrize("name", ["go2", "so101"])
def test_five_seconds_of_multisine(name: str, tmp_path: Path) -> None:
    result, log, plan = record_twin(name, tmp_path / "log.mcap")
    spec = load_robot(name).spec
    assert result.ended == "done"
    assert len(log) == result.rows >= 1000
    assert np.diff(log.time) == pytest.approx(1.0 / RATE, abs=2e-9)
    start = result.phases["plan"]
    assert (log["target_pos"][start : start + len(plan)] == plan.target_pos).all()
    assert (log["joint_pos"] >= spec.position_low).all()
    assert (log["joint_pos"] <= spec.position_high).all()
    assert (np.abs(log["joint_vel"]) <= spec.velocity_limit).all()
    assert log.meta["ended"] == "done"
    assert log.meta["driver"] == "twin:mild?seed=5"
    assert ("imu_gyro" in log) == (spec.imu is not None)


def test_torque_answers_commands_of_earlier_rows_never_of_later_ones(tmp_path: Path) -> None:
    _, log, _ = record_twin("go2", tmp_path / "log.mcap")
    spec = load_robot("go2").spec
    lags = [answer_lag(log, spec.kp[j], spec.kd[j], j) for j in range(spec.njoint)]
    # the torque of row t was made before row t's command was sent; the delay of a mild twin adds a few ms
    assert min(lags) >= 1
    assert max(lags) <= 4


def test_lock_step_is_deterministic(tmp_path: Path) -> None:
    (_, one, _), (_, two, _) = (record_twin("pendulum", tmp_path / f"{k}.mcap", seconds=3.0) for k in range(2))
    assert one.signals.keys() == two.signals.keys()
    for name, values in one.signals.items():
        assert (values == two[name]).all(), name


def test_real_time_keeps_the_clock(tmp_path: Path) -> None:
    cfg = RecordCfg(watch=WatchCfg(stale_s=1.0))  # a loaded test machine may pause
    result, log, plan = record_twin("pendulum", tmp_path / "log.mcap", lockstep=False, seconds=3.0, cfg=cfg)
    assert result.ended == "done"
    assert result.loop is not None
    first, last = (result.phases.get(name, result.rows) for name in ("plan", "home"))
    spent = log.time[last - 1] - log.time[first]
    assert spent == pytest.approx(plan.seconds, abs=0.01 + result.loop.late_max_s)
    assert result.rows + result.loop.missed + result.stale_ticks >= len(plan)


def test_the_first_row_of_a_recording_costs_no_more_than_a_tick(tmp_path):
    code = f"""
import time
from pathlib import Path
from trueup.record.session import _WriterOnFirstRow
writer = _WriterOnFirstRow(Path({str(tmp_path / "log.mcap")!r}), ("a", "b"), {{}})
used = time.process_time()
writer.append(0.0, joint_pos=[0.0, 0.0], target_pos=[0.0, 0.0])
print(time.process_time() - used)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 0.05
