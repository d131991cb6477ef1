"""Record: carry a plan out on a robot and keep what it did, whatever happens.

Row t of the log holds the state measured at time[t] (the robot's own clock) and the command that was sent right after
it, as the driver reports to have sent it: the command in force from time[t] until time[t + 1]. The command whose effect
is seen in row t is that of row t - 1.

The robot goes from where it is to the start of the plan, through the plan, back to where it was, and is damped. A
violated limit, a stale state, an error of the driver or Ctrl-C damps it at once; rows so far are kept, the row that
tripped the watch among them (with the damping command that answered it), and the log's meta says how it ended.
"""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import numpy as np

from trueup._version import __version__
from trueup.core.arrays import sha256_of, sha256_of_file
from trueup.core.errors import TrueupError
from trueup.hardware.driver import Driver, RobotState
from trueup.hardware.loop import LoopReport, run_loop
from trueup.record.recording import Ended, RecordCfg, Recording, RecordingProgress, RecordResult
from trueup.record.sink import RowSink
from trueup.robot.excitation.excitation import plain
from trueup.robot.excitation.plan import Plan, move_plan
from trueup.robot.load import Robot
from trueup.robot.spec import RobotSpec, spec_to_toml

__all__ = ["Ended", "RecordCfg", "RecordResult", "RecordingProgress", "check_plan", "record", "record_meta"]
_log = logging.getLogger(__name__)
START_MARGIN_RAD = 0.3  # a robot found farther outside its limits is not moved at all


def record(
    robot: Robot,
    driver: Driver,
    plan: Plan,
    writer: RowSink,
    cfg: RecordCfg | None = None,
    *,
    on_progress: Callable[[RecordingProgress], None] | None = None,
    check_move: Callable[[Plan], None] | None = None,
) -> RecordResult:
    """Carry out the plan and log it. The driver is damped and closed in any case; the writer stays open.

    `check_move` is handed the ways to and from the plan before anything moves, and raises to refuse them (the model
    that could tell is not known here; see `world.rehearse`).
    """
    cfg = cfg or RecordCfg()
    check_plan(robot.spec, plan)
    try:
        driver.connect()
        if driver.joint_names != robot.spec.joint_names:
            raise TrueupError(
                f"the driver's joints are {', '.join(driver.joint_names)}; robot {robot.spec.name!r} has "
                f"{', '.join(robot.spec.joint_names)}, and the order counts"
            )
        first = driver.read()
        parts = _parts(robot.spec, first, plan)
        for move in (parts["approach"], parts["home"]):
            if check_move is not None and move is not None:
                check_move(move)
        run = Recording(robot.spec, driver, parts, first, writer, cfg, on_progress)
        return _carry_out(run, driver, writer, 1.0 / plan.dt)
    finally:
        driver.close()


def record_meta(robot: Robot, plan: Plan, cfg: RecordCfg | None = None, *, driver: str) -> dict[str, object]:
    """What a log says about itself before it starts; `driver` is the reference the user gave."""
    return {
        "source": "record",
        "robot": robot.spec.name,
        "robot_options": dict(robot.options),
        "spec_sha256": sha256_of([spec_to_toml(robot.spec)]),
        "model_sha256": sha256_of_file(robot.model_path),
        "driver": driver,
        "excitation": plan.meta,
        "seed": plan.meta.get("seed"),
        "rate_hz": round(1.0 / plan.dt, 9),
        "control_hz": robot.spec.control_hz,
        "record": plain(cfg or RecordCfg()),
        "versions": {"trueup": __version__, "python": platform.python_version(), "numpy": np.__version__},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "ended": "unknown",  # overwritten at the end: a log that still says so was cut
    }


def check_plan(spec: RobotSpec, plan: Plan) -> None:
    """Refuse a plan for other joints or outside the position and velocity limits."""
    if plan.joint_names != spec.joint_names:
        raise TrueupError(f"this plan is for joints {', '.join(plan.joint_names)}, not for robot {spec.name!r}")
    outside = np.maximum(spec.position_low - plan.target_pos, plan.target_pos - spec.position_high)
    speed = np.abs(plan.velocity()) / spec.velocity_limit
    for values, bound, limit in ((outside, 1e-9, "position"), (speed, 1.0 + 1e-9, "velocity")):
        row, j = np.unravel_index(int(np.argmax(values)), values.shape)
        name = spec.joint_names[j]
        if values[row, j] > bound:
            when = f"{plan.time[row]:.3f} s"
            raise TrueupError(f"the plan leaves the {limit} limit of joint {name!r} at {when}", place=name)


def _parts(spec: RobotSpec, first: RobotState, plan: Plan) -> dict[str, Plan | None]:
    """The ways to the plan, the plan, and the way back from it."""
    found = first.joint_pos
    beyond = np.maximum(spec.position_low - found, found - spec.position_high)
    j = int(np.argmax(beyond))
    if not np.isfinite(found).all() or beyond[j] > START_MARGIN_RAD:
        raise TrueupError(
            f"joint {spec.joint_names[j]!r} is found at {found[j]:.3f} rad, "
            f"its limits are {spec.joints[j].position}: check its zero, sign and the joint order first",
            place=spec.joint_names[j],
        )
    here = np.clip(found, spec.position_low, spec.position_high)
    approach, home = (
        move_plan(spec, start, end, rate_hz=1.0 / plan.dt)
        for start, end in ((here, plan.target_pos[0]), (plan.target_pos[-1], here))
    )
    return {"approach": approach, "plan": plan, "home": home}


def _carry_out(run: Recording, driver: Driver, writer: RowSink, rate_hz: float) -> RecordResult:
    """Run the loop and say in the log how it ended, also when it ends in an exception."""
    report: LoopReport | None = None
    try:
        run.align()
        report = run_loop(driver, run.tick, rate_hz=rate_hz)
        if report.ended == "interrupted":
            run.end("interrupted", "stopped by the user")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            run.end("interrupted", "stopped by the user")
        run.end("failed", f"{type(error).__name__}: {error}")
        raise
    finally:
        result = run.result(report)
        try:
            writer.note(msgspec.to_builtins(result))
        except TrueupError as error:
            _log.error("the log could not be told how it ended: %s", error)
    return result
