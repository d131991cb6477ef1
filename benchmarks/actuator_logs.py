"""Recordings of twins for the actuator ladder, kept on disk, and ladders climbed on them, kept too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.ladder import Ladder, run_ladder
from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.record.session import run_session
from trueup.record.verbs import RecordSessionCfg
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.excitation.waves import Kind
from trueup.robot.load import Robot, load_robot

SEEN: tuple[Kind, ...] = ("multisine", "random_holds", "chirp")
UNSEEN: tuple[Kind, ...] = ("steps", "sine_ladder")
OTHER_GAIN = 1.5  # times the spec's kp


@dataclass(frozen=True, kw_only=True)
class TwinLogs:
    """Twenty seconds each: what is fitted, motions that are not, and one of them with another gain."""

    train: list[Log]
    unseen: list[Log]
    gain: list[Log]

    @property
    def held(self) -> list[Log]:
        return [*self.unseen, *self.gain]


def twin_logs(robot: Robot, preset: str, seed: int, folder: Path, *, gain: bool = True) -> TwinLogs:
    """Record, or read what was recorded."""

    def one(kind: Kind, number: int, of: Robot = robot, name: str = "") -> Log:
        path = folder / "logs" / f"{kind}{name}.mcap"
        return recorded(of, preset, seed, ExcitationCfg(kind=kind, seconds=20.0, seed=1000 * seed + number), path)

    return TwinLogs(
        train=[one(kind, k) for k, kind in enumerate(SEEN)],
        unseen=[one(kind, 10 + k) for k, kind in enumerate(UNSEEN)],
        gain=[one("steps", 20, with_kp(robot, OTHER_GAIN), "_gain")] if gain else [],
    )


def recorded(robot: Robot, preset: str, seed: int, excitation: ExcitationCfg, path: Path, options: str = "") -> Log:
    """A log of a twin in lock-step, recorded once."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        cfg = RecordSessionCfg(driver=f"twin:{preset}?seed={seed}{options}", out=path)
        session = run_session(robot, cfg, excitation)
        if session.result.ended != "done":
            path.unlink()
            raise RuntimeError(f"the recording was {session.result.ended}: {session.result.reason}")
    return read_log(path)


def with_kp(robot: Robot, times: float) -> Robot:
    """The robot under another gain."""
    joints = tuple(msgspec.structs.replace(joint, kp=times * joint.kp) for joint in robot.spec.joints)
    return replace(robot, spec=msgspec.structs.replace(robot.spec, joints=joints))


def twin_ladder(preset: str, seed: int, folder: Path, rungs: str, *, robot: str = "go2") -> Ladder:
    """The ladder on a twin's logs; what is there already is not fitted again."""
    made = load_robot(robot)
    logs = twin_logs(made, preset, seed, folder)
    cfg = LadderCfg(rungs=rungs, driver=f"twin:{preset}?seed={seed}")
    return run_ladder(made, logs.train, cfg, holdout=logs.held, folder=folder / "ladder", resume=True)
