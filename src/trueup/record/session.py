"""A recording session: plan an excitation, rehearse it in the model, carry it out through a driver, keep the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import ArrayLike

from trueup.core.errors import TrueupError
from trueup.data.log import SIGNALS, Log
from trueup.data.mcap.read import read_mcap
from trueup.data.mcap.ros2 import row_layout
from trueup.data.mcap.write import LogWriter
from trueup.hardware.drivers.open import open_driver
from trueup.record.record import RecordResult, record_meta
from trueup.record.record import record as carry_out
from trueup.record.sink import LogRows, RowSink
from trueup.record.verbs import RecordSessionCfg, RecordVerb
from trueup.robot.excitation.excitation import ExcitationCfg, excite
from trueup.robot.excitation.plan import Plan
from trueup.robot.excitation.squat import squat, stiffened
from trueup.robot.excitation.waves import Kind
from trueup.robot.load import Robot, load_robot
from trueup.world.rehearse import Rehearsal, RehearseCfg, rehearse


@dataclass(frozen=True, kw_only=True)
class RecordSession:
    """The log, how the recording ended, and what the model had said about it."""

    log: Log
    result: RecordResult
    rehearsal: Rehearsal


def plan_session(robot: Robot, motion: ExcitationCfg) -> Rehearsal:
    """Plan and rehearse; the plan that may be carried out is `.plan`. Nothing moves."""
    if motion.kind == "squat":
        return rehearse(stiffened(robot), squat(robot, motion))
    return rehearse(robot, excite(robot.spec, motion))


def refuse_to_overwrite(cfg: RecordSessionCfg) -> None:
    """Raise a TrueupError if there is a recording where this one shall go."""
    if cfg.out is not None and cfg.out.exists() and not cfg.overwrite:
        raise TrueupError("there is a recording here already; choose another name or overwrite it", file=cfg.out)


def run_session(
    robot: Robot,
    cfg: RecordSessionCfg,
    motion: ExcitationCfg | Rehearsal,
    *,
    progress: Callable[[float], None] | None = None,
) -> RecordSession:
    """Record a motion, which is rehearsed first unless it has been; however it ends, the robot is damped, rows kept."""
    refuse_to_overwrite(cfg)
    rehearsal = motion if isinstance(motion, Rehearsal) else plan_session(robot, motion)
    plan, reference = rehearsal.plan, cfg.driver or "twin:mild"
    robot = stiffened(robot) if plan.meta.get("kind") == "squat" else robot
    driver = open_driver(reference, robot, command_hz=1.0 / plan.dt, lockstep=cfg.lockstep)
    meta = record_meta(robot, plan, driver=reference)

    def play(sink: RowSink) -> RecordResult:
        return carry_out(
            robot,
            driver,
            plan,
            sink,
            on_progress=None if progress is None else lambda at: progress(at.seconds / max(at.total_s, 1e-9)),
            check_move=lambda move: _refuse(robot, move),
        )

    names = robot.spec.joint_names
    if cfg.out is None:
        rows = LogRows(names, meta)
        return RecordSession(result=play(rows), log=rows.log(), rehearsal=rehearsal)
    with _WriterOnFirstRow(cfg.out, names, meta) as writer:
        result = play(writer)
    if not writer.rows:
        raise TrueupError(f"nothing was recorded ({result.ended}): {result.reason}", file=cfg.out)
    return RecordSession(result=result, log=read_mcap(cfg.out), rehearsal=rehearsal)


class _WriterOnFirstRow:
    """A LogWriter that touches the disk with the first row: a robot that does not answer costs no older log."""

    def __init__(self, path: Path, joint_names: tuple[str, ...], meta: dict[str, object]) -> None:
        self._path, self._joint_names, self._meta = path, joint_names, meta
        self._writer: LogWriter | None = None
        row_layout(joint_names, tuple(SIGNALS))  # loads message types, 0.2 s that a timed loop does not have

    @property
    def rows(self) -> int:
        return 0 if self._writer is None else self._writer.rows

    def append(self, time_s: float, **signals: ArrayLike) -> None:
        """Add one row."""
        if self._writer is None:
            self._writer = LogWriter(self._path, self._joint_names, self._meta, overwrite=True)
        self._writer.append(time_s, **signals)

    def note(self, meta: Mapping[str, object]) -> None:
        """Add to what the log says about itself."""
        self._meta |= meta
        if self._writer is not None:
            self._writer.note(meta)

    def __enter__(self) -> _WriterOnFirstRow:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._writer is not None:
            self._writer.close()


def record(
    robot: Robot | str,
    *,
    driver: str = "twin:mild",
    excitation: Kind | Rehearsal = "multisine",
    seconds: float = 20.0,
    rate: float | None = None,
    joints: tuple[str, ...] = (),
    one_by_one: bool = False,
    amplitude: float = 0.4,
    seed: int = 0,
    out: str | Path | None = None,
    overwrite: bool = False,
    lockstep: bool = True,
) -> Log:
    """Excite the robot within `amplitude` rad of its default pose and return its log; raises if it was cut short.

    excitation  shape of the motion, or a rehearsed plan such as `tu.plan_active(robot, fit).rehearsal`
    lockstep    run a twin as fast as it can

    The others are the flags of `trueup record`.
    """
    robot = load_robot(robot)
    verb = RecordVerb(
        robot=robot.spec.name,
        driver=driver,
        excitation="multisine" if isinstance(excitation, Rehearsal) else excitation,
        seconds=seconds,
        rate=rate,
        joints=joints,
        one_by_one=one_by_one,
        amplitude=amplitude,
        seed=seed,
        out=None if out is None else Path(out),
        overwrite=overwrite,
        lockstep=lockstep,
    )
    motion = excitation if isinstance(excitation, Rehearsal) else verb.motion(robot.spec)
    session = run_session(robot, verb, motion)
    if session.result.ended != "done":
        raise TrueupError(f"the recording was {session.result.ended}: {session.result.reason}", file=out)
    return session.log


def _refuse(robot: Robot, move: Plan) -> None:
    """Raise if the way to or from the plan does not pass as it is."""
    rehearse(robot, move, RehearseCfg(scale=False))
