"""Logs of every kind through `calibrate` and the ladder: each must end in a result or in one line.

    python benchmarks/fuzz_logs.py [--recordings FOLDER] [--count 200]

Good logs come from twins (pendulum, so101, go2) and, with --recordings, from the public recordings `go2_air/` and
`so101/`; `spoiled` makes them what users bring. Fits get a small budget: their quality is not asked for here. Every
eighth call climbs the quick rungs of the ladder, and every result is scored again with `score`.
"""

from __future__ import annotations

import json
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from actuator_logs import recorded
from parts import table
from results import publish
from spoiled import SPOILS, Spoil

from trueup.calibrate.actuator.config import LadderCfg
from trueup.calibrate.actuator.ladder import run_ladder
from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg, WindowCfg
from trueup.calibrate.score_logs import score_logs
from trueup.core.errors import TrueupError
from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.load import Robot, load_robot

_SECONDS = 12.0
_LADDER_EVERY, _UNCHECKED_EVERY = 8, 3


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """How many calls, and where the recordings are."""

    recordings: Path | None = None
    count: int = 200
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How one call ended: "result", "error" or "traceback", and its words."""

    kind: str
    words: str = ""


def main(cfg: BenchCfg) -> None:
    sources = _sources(cfg)
    rows: list[tuple[str, str, Ended, float]] = []
    for k in range(cfg.count):
        rng = np.random.default_rng([cfg.seed, k])
        name, robot, log = sources[k % len(sources)]
        spoil = SPOILS[k % len(SPOILS)]
        began = time.monotonic()
        ended = attempt(robot, spoil, rng, log, ladder=k % _LADDER_EVERY == 3, check=k % _UNCHECKED_EVERY > 0)
        rows.append((spoil.__name__, name, ended, time.monotonic() - began))
        print(k, spoil.__name__, name, f"{rows[-1][3]:.1f} s", ended.kind, ended.words, flush=True)
    publish("fuzz_logs", numbers_of(rows), text_of(rows, [name for name, _, _ in sources]))


def attempt(
    robot: Robot, spoil: Spoil, rng: np.random.Generator, log: Log, *, ladder: bool = False, check: bool = True
) -> Ended:
    """Spoil a log, fit, and score the fit on the same logs; never raises."""
    logs = spoil(rng, log)
    try:
        if ladder:
            run_ladder(robot, logs, LadderCfg(rungs="pd,delay", long_s=(5.0,), check=check))
        else:
            fit = calibrate(robot, logs, small(robot, check=check))
            score_logs(robot, logs, fit.calibration)
    except TrueupError as error:
        return Ended(kind="error" if "\n" not in str(error) else "traceback", words=str(error))
    except Exception:  # that is what is sought
        return Ended(kind="traceback", words=traceback.format_exc())
    return Ended(kind="result")


def small(robot: Robot, *, check: bool = True) -> CalibrateCfg:
    """A fit that takes about a second."""
    return CalibrateCfg(
        params="armature,damping,delay",
        physics_hz=robot.spec.physics_hz,
        tie="all",
        check=check,
        window=WindowCfg(max_windows=6),
        fit=FitCfg(method="local", starts=1, iterations=2, budget_s=5.0),
    )


def _sources(cfg: BenchCfg) -> list[tuple[str, Robot, Log]]:
    """(name, robot, good log): cheap robots more often than go2."""
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(("pendulum", "so101", "pendulum", "so101", "go2")):
            robot = load_robot(name)
            motion = ExcitationCfg(kind="multisine", seconds=_SECONDS, seed=number)
            path = Path(folder) / f"{name}{number}.mcap"
            out.append((f"{name} twin", robot, recorded(robot, "mild", number, motion, path)))
    if cfg.recordings is not None:
        go2, arm = load_robot("go2"), load_robot("so101")
        log = read_log(next((cfg.recordings / "go2_air").glob("*.csv*")), "go2_air")
        out.append(("go2_air", go2, log.window(0, round(10.0 * log.rate_hz))))
        motions = [path for path in sorted((cfg.recordings / "so101").iterdir()) if path.is_dir()]
        out += [("so101 recording", arm, read_log(path, "so101")) for path in motions[1:7:5]]
    return out


def numbers_of(rows: list[tuple[str, str, Ended, float]]) -> dict[str, object]:
    kinds = Counter(ended.kind for _, _, ended, _ in rows)
    errors = Counter(_kind(ended.words) for _, _, ended, _ in rows if ended.kind == "error")
    return {
        "calls": len(rows),
        "tracebacks": kinds["traceback"],
        "results": kinds["result"],
        "errors": kinds["error"],
        "error_kinds": dict(errors.most_common()),
        "traces": [ended.words for _, _, ended, _ in rows if ended.kind == "traceback"],
        "seconds": round(sum(seconds for *_, seconds in rows), 1),
    }


def _kind(words: str) -> str:
    """The first words of an error, without its numbers."""
    plain = "".join("#" if c.isdigit() else c for c in words)
    return " ".join(plain.split()[:8])


def text_of(rows: list[tuple[str, str, Ended, float]], sources: list[str]) -> str:
    by: dict[str, Counter[str]] = {}
    for spoil, _, ended, _ in rows:
        by.setdefault(spoil.replace("_", " "), Counter())[ended.kind] += 1
    body = [(name, found["result"], found["error"], found["traceback"]) for name, found in by.items()]
    found = numbers_of(rows)
    kinds = json.loads(json.dumps(found["error_kinds"]))
    return "\n\n".join(
        [
            "# Logs of every kind",
            f"{found['calls']} calls of `calibrate` (every eighth: the quick rungs of the ladder) with logs made from "
            f"{', '.join(dict.fromkeys(sources))}: {found['results']} ended in a result, {found['errors']} in a line "
            f"that says what is wrong, {found['tracebacks']} in a traceback.",
            table(("made by", "results", "errors in a line", "tracebacks"), body),
            "What the errors said (digits as #):",
            table(("error", "times"), list(kinds.items())),
        ]
    )


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
