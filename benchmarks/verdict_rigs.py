"""Are verdicts right when the model lacks something? Rigs of one axis with planted numbers, play, hysteresis and so on.

    python benchmarks/verdict_rigs.py --logs FOLDER [--seeds 60] [--workers 2] [--quick] [--fresh]

Each case (`rig_cases`) is recorded once (into --logs), fitted with one of four sets of parameters, and scored. A value
is *near* the truth within 5 % of it or within 0.05 prior widths (which is what a fit's own scale calls small: for
damping and friction 0.06 of the value plus 0.02 SI units); an encoder's bias within 2 mrad or mm, a delay within 0.5
ms.

    verdict_right  of the values near the truth, the share not called "not visible"; only parameters that positions can
                   show on this rig at all (`Case.hidden`: in a valley, being near is luck); `verdict_right_all`: of all
    verdict_wrong  of the values not near the truth, the share not called "identified"; all parameters
    coverage       share of truths inside the 95 % interval, of all that is not called "not visible"

Every case is on disk as soon as it is done. `--quick` takes 12 cases and prints only.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tyro
from parts import CALIBRATE, table
from rig_cases import EFFECTS, MAKERS, RIGS, SETS, Case, log_of, make_case, rig_robot

from trueup.calibrate.calibrate import Fit, calibrate
from trueup.calibrate.config import CalibrateCfg
from trueup.world.fitted.calibration import Estimate

Numbers = dict[str, object]
Row = dict[str, object]
NEAR, BIAS, DELAY_S = 0.05, 0.002, 0.0005
PHYSICS_HZ = 2000.0  # steps of 1 ms, a fit notes, put 0.5 ms into the delay
NAMES = ("armature", "damping", "friction", "encoder_bias", "delay", "kp", "mass_scale")


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    logs: Path = Path(tempfile.gettempdir()) / "verdict_rigs"
    """Recordings are kept here: a second run only fits."""
    seeds: int = 60
    first_seed: int = 0
    workers: int = 1
    quick: bool = False
    """Twelve cases, printed and not published."""
    fresh: bool = False
    """Fit again what is there already."""


def main(cfg: BenchCfg) -> None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # sealed truths of a benchmark are nobody's business
    keys = [str(cfg.first_seed + k) for k in range(12 if cfg.quick else cfg.seeds)]
    done = {} if cfg.fresh or cfg.quick else CALIBRATE.load()["runs"].get("verdicts", {})  # type: ignore[attr-defined]
    with ProcessPoolExecutor(cfg.workers) as pool:
        jobs = {key: pool.submit(measure, int(key), cfg.logs) for key in keys if key not in done}
        if cfg.quick:
            runs = {key: job.result() for key, job in jobs.items()}
        else:
            runs = CALIBRATE.each("verdicts", keys, lambda key: jobs[key].result(), fresh=cfg.fresh)
    numbers, text = summary(runs)
    if cfg.quick:
        print(text, numbers)
        return
    arguments = [
        "FOLDER" if before == "--logs" else argument
        for before, argument in zip(["", *sys.argv[1:]], sys.argv[1:], strict=False)
    ]
    CALIBRATE.merge("verdicts", numbers, text, " ".join(["python benchmarks/verdict_rigs.py", *arguments]))


# --- one case ---
def measure(seed: int, logs: Path) -> Numbers:
    """Record (or read), fit and score one case."""
    case = make_case(seed)
    log = log_of(case, logs)
    bodies = ("load",) if "mass_scale" in case.params else ()
    cpu = time.process_time()
    cfg = CalibrateCfg(params=case.params, bodies=bodies, physics_hz=PHYSICS_HZ)
    fit = calibrate(rig_robot(case.rig), [log], cfg)
    cpu = time.process_time() - cpu
    return _facts(case, fit) | {"cpu_s": round(cpu, 2), "rows": [score_row(case, e) for e in fit.calibration.estimates]}


def _facts(case: Case, fit: Fit) -> Numbers:
    result = fit.calibration
    assert result.holdout_nominal is not None
    assert result.holdout_calibrated is not None
    return {
        "rig": case.rig,
        "maker": case.maker,
        "effect": case.effect,
        "strength": _short(case.strength),
        "params": case.params,
        "excitation": f"{case.kind} {case.rate_hz:g} Hz",
        "noise": _short(result.misfit.noise[0]),
        "left": _short(result.misfit.left[0]),
        "memory_s": _short(result.misfit.memory_s[0]),
        "holdout_nominal": _short(result.holdout_nominal.open_loop_mean),
        "holdout": _short(result.holdout_calibrated.open_loop_mean),
        "notes": list(result.notes),
    }


def score_row(case: Case, estimate: Estimate) -> Row:
    """One fitted parameter beside its truth."""
    entry, low, high = estimate.parameter, *estimate.interval
    truth = case.truth_of(entry.name)
    return {
        "name": entry.name,
        "value": _short(estimate.value),
        "truth": _short(truth),
        "standard_error": _short(estimate.standard_error),
        "interval": [_short(low), _short(high)],
        "inside": bool(low <= truth <= high),
        "ratio": _short(estimate.ratio),
        "verdict": estimate.verdict,
        "partner": f"{estimate.partner} {estimate.correlation:.2f}",
        "near": is_near(estimate, truth),
        "hidden": entry.name in case.hidden,
    }


def is_near(estimate: Estimate, truth: float) -> bool:
    """Whether a value is as good as right: see the module."""
    entry, off = estimate.parameter, abs(estimate.value - truth)
    if entry.name in ("encoder_bias", "delay"):
        return off <= (BIAS if entry.name == "encoder_bias" else DELAY_S)
    widths = abs(entry.to_x(estimate.value) - entry.to_x(min(max(truth, entry.low), entry.high)))
    return off <= NEAR * abs(truth) or widths <= NEAR


def _short(value: float) -> float:
    return float(f"{value:.4g}")


# --- all of them ---
def summary(runs: dict[str, Numbers]) -> tuple[Numbers, str]:
    """Headline numbers and the section."""
    rows = [row for run in runs.values() for row in _with_case(run)]
    numbers = shares(rows)
    groups: list[tuple[str, str, Iterable[str]]] = [
        ("effect that the model lacks", "effect", EFFECTS),
        ("fitted", "params", SETS),
        ("parameter", "name", NAMES),
        ("rig", "rig", RIGS),
        ("recorded on", "maker", MAKERS),
    ]
    tables = "\n\n".join(_table(title, rows, key, values) for title, key, values in groups)
    text = f"""## Verdicts when the model lacks something

{len(runs)} recordings of 20 s (seeds {next(iter(runs))} to {list(runs)[-1]}) of a pendulum, a load on a rail and the
same rail upright, half of them on twins and half on a bench that is integrated by other code. Inertia, damping, dry
friction, encoder bias, delay, gain and load are planted; the recordings have play, hysteresis, bristles, friction of
load or a spring in the gears, which the fitted model does not have. Near: within 5 % of the truth, or 0.05 prior widths
(bias 2 mrad or mm, delay 0.5 ms).

| | asked | |
| --- | --- | --- |
| near the truth and not called "not visible" | 0.80 | {numbers["verdict_right"]:.3f} |
| the same, also where the recording cannot show the parameter | | {numbers["verdict_right_all"]:.3f} |
| not near, and not called "identified" | 0.95 | {numbers["verdict_wrong"]:.3f} |
| truth inside the 95 % interval, where something is seen | | {numbers["verdict_coverage"]:.3f} |

{tables}
"""
    return numbers, text


def _with_case(run: Numbers) -> list[Row]:
    """A case's rows, each with what it is a case of."""
    about = {key: run[key] for key in ("rig", "maker", "effect", "params")}
    return [row | about for row in run["rows"]]  # type: ignore[attr-defined]


def shares(rows: list[Row]) -> dict[str, float]:
    """`verdict_right`, `verdict_wrong` and coverage of some rows; nan where there is nothing to count."""
    near = [row for row in rows if row["near"]]
    shown = [row for row in near if not row["hidden"]]
    return {
        "verdict_right": _share(shown, lambda row: row["verdict"] != "not visible"),
        "verdict_right_all": _share(near, lambda row: row["verdict"] != "not visible"),
        "verdict_wrong": _share([r for r in rows if not r["near"]], lambda row: row["verdict"] != "identified"),
        "verdict_coverage": _share(
            [row for row in rows if row["verdict"] != "not visible"], lambda row: bool(row["inside"])
        ),
        "verdict_near": _share(rows, lambda row: bool(row["near"])),
    }


def _share(rows: list[Row], good: Callable[[Row], bool]) -> float:
    return float(np.mean([good(row) for row in rows])) if rows else float("nan")


def _table(title: str, rows: list[Row], key: str, values: Iterable[str]) -> str:
    words = sorted({str(row["verdict"]) for row in rows})
    out: list[tuple[object, ...]] = []
    for value in values:
        mine = [row for row in rows if row[key] == value]
        found = [f"{number:.2f}" if number == number else "-" for number in shares(mine).values()]
        out.append((value, len(mine), *found, *(sum(r["verdict"] == word for r in mine) for word in words)))
    return table((title, "parameters", "right", "right, all", "wrong", "coverage", "near", *words), out)


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
