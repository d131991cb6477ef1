"""How truly the zoo's robots replay recordings of real ones: today's joint numbers beside those they had before.

    python benchmarks/true_zoo.py --recordings FOLDER [--part go2|so101|all]

FOLDER holds the public recordings `go2_air/` and `so101/`. Only data that no fit has seen are replayed: seconds 20 to
35 of go2_air, base held, and the ten motions of `SO101_JUDGED`. Open loop over a whole motion at the spec's own physics
rate, no encoder bias, no calibration: the robot as `load_robot` gives it. Alone this module prints its tables and one
JSON object; as part `zoo` of `true.py` they go to docs/results/true.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import tyro
from numpy.typing import NDArray

from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.robot.load import Robot, load_robot
from trueup.world.batch import BatchSim
from trueup.world.replay.replay import ReplayCfg, replay

FloatArray = NDArray[np.float64]
Numbers = dict[str, object]
GO2_FITTED_S = 20.0
SO101_JUDGED = (
    "backlash_detection",
    "coupled_joints",
    "friction_gravity",
    "multisine",
    "random_waypoints",
    "single_joint_rotation",
    "sinusoidal_sweep",
    "staircase_motion",
    "step_response",
    "velocity_ramp",
)

ROBOTS = ("go2", "so101")
HEAD = """## The zoo's robots against recordings of real ones

Open-loop position error over whole motions that were not fitted (root mean square, mean over joints), base held, no
encoder bias: the robot as it ships, beside the same robot with the joint numbers of the public models it had before.

Neither judged part is untouched: about ten sets of go2's numbers were compared on it before these were taken, and
so101's motions are half of the data behind its intervals (SOURCES.md of both).
"""

# The numbers of the public models that the zoo had before it was fitted (SOURCES.md of each robot).
BEFORE: dict[str, dict[str, float]] = {
    "go2": {"armature": 0.01, "damping": 2.0, "friction": 0.2, "delay": 0.0},
    "so101": {
        "armature": 0.028,
        "damping": 0.6,
        "friction": 0.052,
        "delay": 0.0,
        "kp": 998.22,
        "kd": 2.731,
        "torque_limit": 2.94,
    },
}


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """Where the recordings are, and which robot is judged."""

    recordings: Path | None = None
    part: Literal["go2", "so101", "all"] = "all"


class HasRecordings(Protocol):
    """A config that may name the folder with the recordings."""

    @property
    def recordings(self) -> Path | None: ...


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Open-loop position errors of one model: (nmotion, njoint) root mean squares, rad, and samples per motion."""

    motions: tuple[str, ...]
    rms: FloatArray
    samples: FloatArray

    @property
    def joints(self) -> FloatArray:
        """Per joint over all motions."""
        return np.sqrt(np.average(self.rms**2, axis=0, weights=self.samples))

    @property
    def mean(self) -> float:
        """Mean over joints."""
        return float(self.joints.mean())


def main(cfg: BenchCfg) -> None:
    numbers, text = zoo(cfg, ROBOTS if cfg.part == "all" else (cfg.part,))
    print(text)
    print(json.dumps(numbers))


def zoo(cfg: HasRecordings, robots: tuple[str, ...] = ROBOTS) -> tuple[Numbers, str]:
    """Headline numbers and the section of a results page."""
    if cfg.recordings is None:
        raise SystemExit("name the folder that holds go2_air/ and so101/: --recordings FOLDER")
    numbers: Numbers = {}
    sections = [HEAD]
    for name in robots:
        found, text = judge(name, cfg.recordings)
        numbers |= found
        sections.append(text)
    return numbers, "\n".join(sections)


def judge(name: str, recordings: Path) -> tuple[Numbers, str]:
    """Numbers and tables of one robot, old and new."""
    robot, logs = load_robot(name), judged_logs(name, recordings)
    before = open_loop_errors(robot, logs, lambda sim: set_values(sim, BEFORE[name]))
    after = open_loop_errors(robot, logs)
    numbers: Numbers = {
        f"zoo_{name}_rmse_rad": after.mean,
        f"zoo_{name}_rmse_rad_before": before.mean,
        f"zoo_{name}_joints": list(robot.spec.joint_names),
        f"zoo_{name}_joints_rad": after.joints.tolist(),
        f"zoo_{name}_joints_rad_before": before.joints.tolist(),
        f"zoo_{name}_motions_rad": dict(zip(after.motions, after.rms.mean(axis=1).tolist(), strict=True)),
        f"zoo_{name}_motions_rad_before": dict(zip(before.motions, before.rms.mean(axis=1).tolist(), strict=True)),
    }
    return numbers, text_of(name, robot.spec.joint_names, before, after)


def judged_logs(name: str, recordings: Path) -> dict[str, Log]:
    """What no fit of the zoo has seen, by motion."""
    if name == "go2":
        log = read_log(next((recordings / "go2_air").glob("*.csv*")), "go2_air")
        return {"go2_air, 20 to 35 s": log.window(round(GO2_FITTED_S * log.rate_hz), len(log))}
    return {motion: read_log(recordings / "so101" / motion, "so101") for motion in SO101_JUDGED}


def open_loop_errors(
    robot: Robot, logs: Mapping[str, Log], prepare: Callable[[BatchSim], None] | None = None
) -> Errors:
    """Replay every log from its first measured state to its end."""
    replays = [replay(robot, log, ReplayCfg(), prepare=prepare) for log in logs.values()]
    return Errors(
        motions=tuple(logs),
        rms=np.stack([result.rmse for result in replays]),
        samples=np.array([result.joint_pos.shape[1] - 1.0 for result in replays]),
    )


def set_values(sim: BatchSim, values: Mapping[str, float]) -> None:
    for name, value in values.items():
        sim.params.set(name, value)


def text_of(name: str, joints: tuple[str, ...], before: Errors, after: Errors) -> str:
    """Two tables in Markdown, errors in mrad: per joint, and per motion as the mean over joints."""
    lines = [f"### {name}: {1e3 * before.mean:.1f} mrad before, {1e3 * after.mean:.1f} mrad now", ""]
    lines += _table("joint", joints, before.joints, after.joints)
    lines += _table("motion", after.motions, before.rms.mean(axis=1), after.rms.mean(axis=1))
    return "\n".join(lines)


def _table(head: str, names: tuple[str, ...], before: FloatArray, after: FloatArray) -> list[str]:
    rows = [
        f"| {name} | {1e3 * old:.1f} | {1e3 * new:.1f} |" for name, old, new in zip(names, before, after, strict=True)
    ]
    return [f"| {head} | before, mrad | now, mrad |", "| --- | --- | --- |", *rows, ""]


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
