"""Calibration on recordings of real robots: go2 held in the air, SO-101 arm.

    python benchmarks/calibrate_real.py --recordings FOLDER [--part go2|so101|all] [--kept FOLDER]

FOLDER holds the public recordings `go2_air/` and `so101/`. go2: sets of parameters are compared on seconds 14 to 20
after a fit to seconds 0 to 14; the best is fitted to seconds 0 to 20 and judged, open loop, on the remaining 15 s.
SO-101: fitted to every second motion (in the order of their names) and judged on the others, from the nominal model
over `pace` and `servo` to the friction models M2 to M6. A part that is run alone keeps the other's earlier results.

What is said about parameters and handed on is judged on the same recording of the go2: from the built-in numbers and
from those of public models (damping 2 in every joint), held on a stand or not, with and without gains.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from calibrate_real_page import BANDS_HZ, Row, text_of
from results import RESULTS, publish
from transfer_worlds import public_go2

from trueup.calibrate.calibrate import calibrate
from trueup.calibrate.config import CalibrateCfg, FitCfg, WindowCfg
from trueup.calibrate.uncertainty.scores import ScoredReplays, score
from trueup.core.files import write_atomic
from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.world.batch import BatchSim, SimCfg
from trueup.world.fitted.calibration import Calibration, FitScore, read_calibration

GO2_SETS = ("pace", "pace,kp", "hung", "hung,kp")
RUNGS = {"pace": "pace", "M1": "servo", **{f"M{k}": f"servo,friction:M{k}" for k in range(2, 7)}}


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """Where the recordings are, and which part is made."""

    recordings: Path
    part: Literal["go2", "so101", "all"] = "all"
    kept: Path | None = None
    """Fits are kept in this folder as they end, and not made again."""


def main(cfg: BenchCfg) -> None:
    parts: dict[str, Callable[[BenchCfg], Row]] = {"go2": go2, "so101": so101}
    made = {name: run(cfg) for name, run in parts.items() if cfg.part in (name, "all")}
    file = RESULTS / "calibrate_real.json"
    numbers: Row = (json.loads(file.read_text()) if file.exists() else {}) | made
    kept = {name: numbers[name] for name in parts if name in numbers}
    if "go2" in kept:
        kept["go2_air_heldout_rmse_rad"] = kept["go2"]["heldout"]["rmse_rad"]
        handed = kept["go2"]["handed_on"]
        kept["predictive_median_ratio"] = handed["public numbers, pace"]["median_ratio"]
        kept["predictive_q95_ratio"] = handed["public numbers, pace"]["q95_ratio"]
        kept["damping_2_excluded"] = handed["public numbers, pace"]["damping_excluded"]
        kept["kp_identified"] = handed["hung,kp"]["kp_identified"]
        kept["calves_agree"] = handed["hung"]["calves_agree"]
    publish("calibrate_real", kept, text_of(kept))


# --- go2 held in the air ---
def go2(cfg: BenchCfg) -> Row:
    robot = load_robot("go2")
    log = read_log(next((cfg.recordings / "go2_air").glob("*.csv*")), "go2_air")
    rows = [round(seconds * log.rate_hz) for seconds in (14.0, 20.0)]
    early, middle, first, last = (
        log.window(*span) for span in ((0, rows[0]), (rows[0], rows[1]), (0, rows[1]), (rows[1], len(log)))
    )
    trials, ends = {}, {}
    for params in GO2_SETS:
        done = made_once(cfg, f"go2_14s_{params}", robot, [early], [middle], go2_cfg(params))
        trials[params], ends[params] = done.row, done.calibration
    chosen = min(trials, key=lambda name: trials[name]["rmse_rad"])
    finals = {
        params: made_once(cfg, f"go2_20s_{params}", robot, [first], [last], go2_cfg(params), ends[params])
        for params in ("pace", "hung", "hung,kp")
    }
    final = finals[chosen] if chosen in finals else finals["hung"]
    with tempfile.TemporaryDirectory() as folder:
        public = public_go2(Path(folder) / "public")
        wrong = made_once(cfg, "go2_20s_public", public, [first], [last], go2_cfg("pace"))
    fits = {name: one.calibration for name, one in finals.items()}
    return {
        "validation": trials,
        "chosen": chosen,
        "heldout": final.row,
        "finals": {name: one.row for name, one in finals.items()},
        "public": row(wrong.calibration.holdout_nominal),
        "public_pace": wrong.row,
        "handed_on": {
            name: handed_on(fit) for name, fit in {**fits, "public numbers, pace": wrong.calibration}.items()
        },
        "nominal": row(final.calibration.holdout_nominal),
        "hand_tuned": row(score(robot, [last], held_sim(), hand_tuned).score),
        "joints": list(robot.spec.joint_names),
        "bands": final.bands,
        "found": found(final.calibration),
        "notes": list(final.calibration.notes),
    }


def handed_on(result: Calibration) -> Row:
    """Words of a fit, how its draws replay, and what is said of gains, dampings and the four calves."""
    check = result.predictive
    assert check is not None
    words = [entry.verdict for entry in result.estimates]
    of = {name: [e for e in result.estimates if e.parameter.name == name] for name in ("kp", "damping")}
    calves = [e for e in result.estimates if e.parameter.name == "armature" and "calf" in e.parameter.of[0]]
    return {
        "words": {word: words.count(word) for word in ("identified", "bounded", "weak", "not visible")},
        "excluded": sum(entry.nominal_excluded for entry in result.estimates),
        "median_ratio": check.median_ratio,
        "q95_ratio": check.q95_ratio,
        "error_rad": check.estimate_error,
        "expected_rad": list(check.spread),
        "covered": check.covered,
        "kp_identified": sum(entry.verdict == "identified" for entry in of["kp"]),
        "kp": [[e.parameter.label, e.value, *e.interval, e.verdict] for e in of["kp"]],
        "damping_excluded": sum(entry.nominal_excluded for entry in of["damping"]),
        "damping": [[e.parameter.label, e.value, *e.interval, e.verdict] for e in of["damping"]],
        "calves": [[e.parameter.label, e.value, *e.interval, e.verdict] for e in calves],
        "calves_agree": max(e.interval[0] for e in calves) <= min(e.interval[1] for e in calves),
        "alarms": list(result.alarms),
    }


def go2_cfg(params: str) -> CalibrateCfg:
    return CalibrateCfg(params=params, physics_hz=400.0, fit=FitCfg(method="local"))


def held_sim() -> SimCfg:
    return SimCfg(physics_hz=400.0, model=ModelCfg(base="fixed"))


def hand_tuned(sim: BatchSim) -> None:
    """Public values set by hand for this recording."""
    for name, value in {"armature": 0.01, "damping": 0.2, "friction": 0.0, "delay": 0.005}.items():
        sim.params.set(name, value)


def found(result: Calibration) -> Row:
    """What the fit says of the stand, the stops and the tilt."""
    names = ("stop_", "mount_", "tilt", "delay")
    shown = [entry for entry in result.estimates if entry.parameter.name.startswith(names)]
    return {
        entry.parameter.label: [entry.value, entry.standard_error, entry.parameter.unit, entry.verdict]
        for entry in shown
    }


# --- SO-101 ---
def so101(cfg: BenchCfg) -> Row:
    robot = load_robot("so101")
    motions = sorted(path for path in (cfg.recordings / "so101").iterdir() if path.is_dir())
    logs = [read_log(path, "so101") for path in motions]
    train, held = logs[1::2], logs[0::2]
    rungs: Row = {}
    notes: dict[str, str] = {}
    ends: dict[str, Made] = {}
    for name, params in RUNGS.items():
        start = ends["M1"].calibration if "M1" in ends else None  # higher rungs begin where the simplest ended
        done = made_once(cfg, f"so101_{name}", robot, train, held, so101_cfg(params, start), start)
        result, ends[name] = done.calibration, done
        rungs.setdefault("nominal", {**row(result.holdout_nominal), "cpu_s": 0.0, "parameters": 0})
        rungs[name] = {**done.row, "parameters": len(result.estimates)}
        rungs[name]["fit_rmse_rad"] = result.fit_calibrated.open_loop_mean
        notes = dict.fromkeys(result.notes, name) | notes
    best = min(RUNGS, key=lambda name: rungs[name]["rmse_rad"])
    return {
        "train": [path.name for path in motions[1::2]],
        "held": [path.name for path in motions[0::2]],
        "rungs": rungs,
        "joints": list(robot.spec.joint_names),
        "best": best,
        "bands": ends[best].bands,
        "notes": [f"{name}: {note}" for note, name in notes.items()],
    }


def so101_cfg(params: str, start: Calibration | None) -> CalibrateCfg:
    """Thin: sixteen windows of 1.5 s out of ten motions, physics six times the log's rate."""
    fit = FitCfg(method="auto" if start is None else "local")
    window = WindowCfg(window_s=1.5, max_windows=16)
    return CalibrateCfg(params=params, physics_hz=250.0, fit=fit, window=window)


# --- common ---
@dataclass(frozen=True, kw_only=True)
class Made:
    """A fit and what the page says of it."""

    calibration: Calibration
    row: Row
    bands: list[list[float]]


def made_once(
    cfg: BenchCfg,
    name: str,
    robot: Robot,
    train: Sequence[Log],
    held: Sequence[Log],
    how: CalibrateCfg,
    start: Calibration | None = None,
) -> Made:
    """Fit and judge, or read what an earlier run kept."""
    folder = None if cfg.kept is None else cfg.kept / name.replace(",", "_").replace(":", "_")
    if folder is not None and (folder / "row.json").exists():
        kept = json.loads((folder / "row.json").read_text())
        return Made(calibration=read_calibration(folder), row=kept["row"], bands=kept["bands"])
    begin = time.process_time()
    fit = calibrate(robot, list(train), how, holdout=list(held), start=start)
    cpu_s = round(time.process_time() - begin, 1)
    judged = {**row(fit.calibration.holdout_calibrated), "cpu_s": cpu_s}
    done = Made(calibration=fit.calibration, row=judged, bands=bands(fit.calibrated))
    if folder is not None:
        fit.write(folder)
        write_atomic(folder / "row.json", json.dumps({"row": done.row, "bands": done.bands}))
    print(name, done.row, flush=True)
    return done


def row(found_score: FitScore | None) -> Row:
    assert found_score is not None
    return {
        "rmse_rad": found_score.open_loop_mean,
        "spread": list(found_score.spread),
        "window_rmse_rad": found_score.window_mean,
        "joints_rad": found_score.open_loop,
    }


def bands(scored: ScoredReplays) -> list[list[float]]:
    """(joint, band) root mean square of the open-loop error in each band of frequency, rad."""
    total: list[np.ndarray] = []
    weights: list[int] = []
    for replay in scored.replays:
        error = (replay.joint_pos - replay.measured_pos)[0]
        power = np.abs(np.fft.rfft(error, axis=0)) ** 2 / len(error) ** 2
        power[1:] *= 2.0
        frequency = np.fft.rfftfreq(len(error), float(replay.time[1] - replay.time[0]))
        inside = [(frequency >= low) & (frequency < high) for low, high in pairwise(BANDS_HZ)]
        total.append(np.array([power[mask].sum(axis=0) for mask in inside]))
        weights.append(len(error))
    mean = np.average(total, axis=0, weights=weights)
    return np.sqrt(mean.T).tolist()


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
