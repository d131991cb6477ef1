"""Calibration on recordings of real robots: go2 held in the air, SO-101 arm.

    python benchmarks/calibrate_real.py --recordings FOLDER [--part go2|so101|all]

FOLDER holds the public recordings `go2_air/` and `so101/`. go2: sets of parameters are compared on seconds 14 to 20
after a fit to seconds 0 to 14; the best is fitted to seconds 0 to 20 and judged once, open loop, on the remaining 15 s.
SO-101: fitted to every second motion (in the order of their names) and judged on the others, from the nominal model
over `pace` and `servo` to the friction models M2 to M6. A part that is run alone keeps the other's earlier results.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from results import RESULTS, publish

from trueup.calibrate.calibrate import CalibrateCfg, Fit, calibrate
from trueup.calibrate.fit import FitCfg
from trueup.calibrate.result import Calibration
from trueup.calibrate.score import Score, Scored, score
from trueup.calibrate.windows import WindowCfg
from trueup.data.files import read_log
from trueup.data.log import Log
from trueup.robot.load import Robot, load_robot
from trueup.robot.model import ModelCfg
from trueup.sim.batch import BatchSim, SimCfg

GO2_SETS = ("pace", "pace,kp", "hung,kp")
GO2_TARGET = 0.015  # rad
RUNGS = {
    "pace": "pace",
    "M1": "servo",
    **{f"M{k}": f"servo,friction:M{k}" for k in range(2, 7)},
}
BANDS_HZ = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """Where the recordings are, and which part is made."""

    recordings: Path
    part: Literal["go2", "so101", "all"] = "all"


def main(cfg: BenchCfg) -> None:
    parts: dict[str, Callable[[Path], Row]] = {"go2": go2, "so101": so101}
    made = {name: run(cfg.recordings) for name, run in parts.items() if cfg.part in (name, "all")}
    file = RESULTS / "calibrate_real.json"
    numbers: Row = (json.loads(file.read_text()) if file.exists() else {}) | made
    kept = {name: numbers[name] for name in parts if name in numbers}
    if "go2" in kept:
        kept["go2_air_heldout_rmse_rad"] = kept["go2"]["heldout"]["rmse_rad"]
    publish("calibrate_real", kept, text_of(kept))


# --- go2 held in the air ---
def go2(folder: Path) -> Row:
    robot = load_robot("go2")
    log = read_log(next((folder / "go2_air").glob("*.csv*")), "go2_air")
    rows = [round(seconds * log.rate_hz) for seconds in (14.0, 20.0)]
    early, middle, first, last = (
        log.window(*span) for span in ((0, rows[0]), (rows[0], rows[1]), (0, rows[1]), (rows[1], len(log)))
    )
    trials, ends = {}, {}
    for params in GO2_SETS:
        fit, cpu_s = fitted(robot, [early], [middle], go2_cfg(params))
        trials[params], ends[params] = (
            {**row(fit.calibration.holdout_calibrated), "cpu_s": cpu_s},
            fit.calibration,
        )
        print(params, trials[params], flush=True)
    chosen = min(trials, key=lambda name: trials[name]["rmse_rad"])
    fit, cpu_s = fitted(robot, [first], [last], go2_cfg(chosen), ends[chosen])
    print(chosen, row(fit.calibration.holdout_calibrated), flush=True)
    plain, _ = fitted(robot, [first], [last], go2_cfg("pace"), ends["pace"])
    return {
        "validation": trials,
        "chosen": chosen,
        "heldout": {**row(fit.calibration.holdout_calibrated), "cpu_s": cpu_s},
        "pace": row(plain.calibration.holdout_calibrated),
        "nominal": row(fit.calibration.holdout_nominal),
        "hand_tuned": row(score(robot, [last], held_sim(), hand_tuned).score),
        "joints": list(robot.spec.joint_names),
        "bands": bands(fit.calibrated),
        "found": found(fit.calibration),
        "notes": list(fit.calibration.notes),
    }


def go2_cfg(params: str) -> CalibrateCfg:
    return CalibrateCfg(params=params, physics_hz=400.0, check=False, fit=FitCfg(method="local"))


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
def so101(folder: Path) -> Row:
    robot = load_robot("so101")
    motions = sorted(path for path in (folder / "so101").iterdir() if path.is_dir())
    logs = [read_log(path, "so101") for path in motions]
    train, held = logs[1::2], logs[0::2]
    rungs: Row = {}
    notes: list[str] = []
    said: set[str] = set()
    start: Calibration | None = None
    best: tuple[float, Fit] | None = None
    for name, params in RUNGS.items():
        fit, cpu_s = fitted(robot, train, held, so101_cfg(params, start), start)
        result = fit.calibration
        rungs.setdefault("nominal", {**row(result.holdout_nominal), "cpu_s": 0.0, "parameters": 0})
        rungs[name] = {**row(result.holdout_calibrated), "cpu_s": cpu_s, "parameters": len(result.estimates)}
        rungs[name]["fit_rmse_rad"] = result.fit_calibrated.open_loop_mean
        notes += [f"{name}: {note}" for note in result.notes if note not in said]
        said.update(result.notes)
        print(name, rungs[name], flush=True)
        if name == "M1":
            start = result  # the higher rungs begin where the simplest ended
        if best is None or rungs[name]["rmse_rad"] < best[0]:
            best = rungs[name]["rmse_rad"], fit
    assert best is not None
    return {
        "train": [path.name for path in motions[1::2]],
        "held": [path.name for path in motions[0::2]],
        "rungs": rungs,
        "joints": list(robot.spec.joint_names),
        "best": min(RUNGS, key=lambda name: rungs[name]["rmse_rad"]),
        "bands": bands(best[1].calibrated),
        "notes": notes,
    }


def so101_cfg(params: str, start: Calibration | None) -> CalibrateCfg:
    """Thin: thirty windows of 1.5 s out of ten motions, physics six times the log's rate."""
    fit = FitCfg(method="auto" if start is None else "local")
    window = WindowCfg(window_s=1.5, max_windows=30)
    return CalibrateCfg(params=params, physics_hz=250.0, check=False, fit=fit, window=window)


# --- common ---
def fitted(
    robot: Robot,
    train: Sequence[Log],
    held: Sequence[Log],
    cfg: CalibrateCfg,
    start: Calibration | None = None,
) -> tuple[Fit, float]:
    begin = time.process_time()
    fit = calibrate(robot, list(train), cfg, holdout=list(held), start=start)
    return fit, round(time.process_time() - begin, 1)


def row(found_score: Score | None) -> Row:
    assert found_score is not None
    return {
        "rmse_rad": found_score.open_loop_mean,
        "spread": list(found_score.spread),
        "window_rmse_rad": found_score.window_mean,
        "joints_rad": found_score.open_loop,
    }


def bands(scored: Scored) -> list[list[float]]:
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


# --- the page ---
def text_of(numbers: Row) -> str:
    out = ["# Calibration on recordings of real robots", ""]
    if "go2" in numbers:
        out += go2_text(numbers["go2"])
    if "so101" in numbers:
        out += so101_text(numbers["so101"])
    return "\n".join(out)


def go2_text(part: Row) -> list[str]:
    held = part["heldout"]
    verdict = "reached" if held["rmse_rad"] < GO2_TARGET else "missed"
    out = [
        "## go2 in the air",
        "",
        "Open-loop position error, mean over joints of the root mean square (rad); in brackets 5 % and 95 % over "
        "bootstrap draws of 1 s blocks. Sets of parameters were compared on seconds 14 to 20 after a fit to seconds 0 "
        "to 14:",
        "",
        "| parameters | validation, rad | windows of 0.5 s, rad | CPU s |",
        "| --- | --- | --- | --- |",
    ]
    for name, trial in part["validation"].items():
        out.append(f"| {name} | {shown(trial)} | {trial['window_rmse_rad']:.4f} | {trial['cpu_s']:.0f} |")
    out += [
        "",
        f"Chosen: `{part['chosen']}`, fitted to seconds 0 to 20 and judged on seconds 20 to 35 (target "
        f"below {GO2_TARGET}: {verdict}):",
        "",
        "| simulator | seconds 20 to 35, rad |",
        "| --- | --- |",
        f"| nominal | {shown(part['nominal'])} |",
        f"| set by hand (armature 0.01, damping 0.2, no dry friction, 5 ms delay) | {shown(part['hand_tuned'])} |",
        f"| pace | {shown(part['pace'])} |",
        f"| {part['chosen']} | **{shown(held)}** |",
        "",
        "What remains, by joint and frequency (mrad):",
        "",
        *band_table(part),
        "",
        "What the fit says of how the robot was held:",
        "",
        "| parameter | estimate | verdict |",
        "| --- | --- | --- |",
    ]
    for label, (value, error, unit, word) in part["found"].items():
        out.append(f"| {label} | {value:.3g} +- {error:.2g} {unit} | {word} |")
    return [*out, "", *(f"- {note}" for note in part["notes"]), ""]


def so101_text(part: Row) -> list[str]:
    out = [
        "## SO-101 arm",
        "",
        f"Fitted to {', '.join(part['train'])}; judged on {', '.join(part['held'])}. Open-loop position error over "
        "whole motions of 40 to 120 s. M1 is the set `servo` (pace with the servo's gains and torque limit), M2 to M6 "
        "add their friction coefficients to it.",
        "",
        f"| model | parameters | judged, rad | windows of 0.5 s | fitted | {' | '.join(part['joints'])} | CPU s |",
        "| --- " * (6 + len(part["joints"])) + "|",
    ]
    for name, rung in part["rungs"].items():
        joints = " | ".join(f"{value:.4f}" for value in rung["joints_rad"])
        fit = f"{rung['fit_rmse_rad']:.4f}" if "fit_rmse_rad" in rung else ""
        out.append(
            f"| {name} | {rung['parameters']} | {shown(rung)} | {rung['window_rmse_rad']:.4f} | {fit} | {joints} | "
            f"{rung['cpu_s']:.0f} |"
        )
    out += [
        "",
        f"Best: {part['best']}. What remains of it, by joint and frequency (mrad):",
        "",
        *band_table(part),
        "",
    ]
    return [*out, *(f"- {note}" for note in part["notes"]), ""]


def band_table(part: Row) -> list[str]:
    heads = [f"{low:g}-{high:g} Hz" for low, high in pairwise(BANDS_HZ)]
    out = [f"| joint | {' | '.join(heads)} |", "| --- " * (len(heads) + 1) + "|"]
    for joint, values in zip(part["joints"], part["bands"], strict=True):
        out.append(f"| {joint} | {' | '.join(f'{1e3 * value:.1f}' for value in values)} |")
    return out


def shown(item: Row) -> str:
    return f"{item['rmse_rad']:.4f} ({item['spread'][0]:.4f} to {item['spread'][1]:.4f})"


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
