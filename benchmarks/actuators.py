"""What actuator models are worth, part by part; results are merged into docs/results/actuators.md and .json.

    python benchmarks/actuators.py harmonic     all rungs on go2 twins with springs, hysteresis and bristles
    python benchmarks/actuators.py drift        error over five minutes, minute by minute, on one of these twins
    python benchmarks/actuators.py clean        go2 twins in which nothing is unmodelled: what is recommended?
    python benchmarks/actuators.py real         recordings of robots: SO-101 arm, go2 in the air (--recordings FOLDER)
    python benchmarks/actuators.py supervised   torque error of rungs that learn from measured torque
    python benchmarks/actuators.py speed        control steps per second with a net in the loop; training times

What such models are worth to a policy: `transfer.py`. Recordings and ladders are kept under --runs and go on if
interrupted; `--fresh` forgets a part's numbers. Twins run in lock-step; nothing reads their truth.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from actuator_logs import recorded, twin_ladder
from actuator_real import real_part
from actuator_speed import speed_part
from actuator_torque import supervised_part
from parts import ACTUATORS, table

from trueup.calibrate.actuator.folder import RungResult
from trueup.calibrate.actuator.ladder import Ladder
from trueup.calibrate.actuator.recommend import overfits
from trueup.calibrate.actuator.rungs import rung_named
from trueup.calibrate.actuator.score import roll
from trueup.robot.excitation.excitation import ExcitationCfg
from trueup.robot.load import load_robot

Numbers = dict[str, object]
Part = Literal["harmonic", "drift", "clean", "real", "supervised", "speed"]
MANY, FEW, CLEAN = "all", "pd,pace,fir,net,net_long,uan", "pd,pace,fir,net,uan"


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured (all parts if none is named)."""

    part: tyro.conf.Positional[Part | None] = None
    seeds: tuple[int, ...] = (34, 35, 36)
    """Of twins; the first gets every rung, the others the main ones."""
    recordings: Path | None = None
    """Folder with the public recordings go2_air/ and so101/."""
    anew: str | None = None
    """Rungs that the part `real` fits anew, as `--rungs` of the ladder; the others keep their numbers."""
    runs: Path = Path("runs/actuators")
    fresh: bool = False


def main(cfg: BenchCfg) -> None:
    os.environ["XDG_STATE_HOME"] = str(cfg.runs.resolve() / "state")
    parts: dict[str, Callable[[BenchCfg], tuple[Numbers, str]]] = {
        "harmonic": harmonic,
        "drift": drift,
        "clean": clean,
        "real": real_part,
        "supervised": supervised_part,
        "speed": speed_part,
    }
    for name in parts if cfg.part is None else (cfg.part,):
        numbers, text = parts[name](cfg)
        if text:
            ACTUATORS.merge(name, numbers, text, " ".join(["python", "benchmarks/actuators.py", *_shown()]))


def _shown() -> list[str]:
    """The arguments; folders of this machine by their kind only."""
    return ["FOLDER" if Path(word).is_dir() else word for word in sys.argv[1:]]


def rungs_of(cfg: BenchCfg, seed: int) -> str:
    return MANY if seed == cfg.seeds[0] else FEW


def summary(ladder: Ladder) -> Numbers:
    """What the tables need of a ladder, by rung."""
    file = ladder.file
    usable = {r.rung: r.scores for r in file.rungs if r.scores is not None}
    bad = overfits(usable)
    return {
        "recommended": file.recommendation.rung,
        "reason": file.recommendation.reason,
        "rungs": {r.rung: _facts(r, bad.get(r.rung, "")) for r in file.rungs},
    }


def _facts(result: RungResult, beaten_by: str) -> Numbers:
    facts: Numbers = {"status": result.status, "reason": result.reason, "count": result.count}
    scores = result.scores
    if scores is None:
        return facts
    motion = scores.motion
    facts |= {"cpu_s": result.cpu_s, "fit_s": result.fit_s, "beaten_by": beaten_by}
    facts |= {"one_step": scores.held[0].mean, "whole": motion.mean, "se": motion.se}
    facts |= {f"{e.seconds:g} s": e.mean for e in scores.held[1:-1]}
    facts |= {"train": scores.train.mean, "torque": scores.torque}
    if "gain" in scores.groups:
        facts["gain"] = scores.groups["gain"].mean
    if result.closed_loop is not None:
        facts["closed_loop"] = result.closed_loop.difference
    if result.long:
        facts |= {"drift": result.long[-1].drift, "bounded": result.bounded}
    return facts


def _mrad(value: object) -> str:
    return f"{1e3 * float(value):.2f}" if isinstance(value, float) else ""


def rung_table(rungs: dict[str, Numbers], chosen: str = "") -> str:
    """All rungs of a ladder; errors in mrad."""
    columns = {"one_step": "one step", "0.1 s": "0.1 s", "1 s": "1 s", "whole": "whole", "se": "+-"}
    columns |= {"train": "fitted motions", "gain": "other gain", "closed_loop": "closed loop", "drift": "drift"}
    kept = [key for key in columns if any(isinstance(r.get(key), float) for r in rungs.values())]
    rows = []
    for name, facts in rungs.items():
        title = rung_named(name).title
        if "whole" not in facts:
            rows.append((title, *[""] * len(kept), "", f"{facts['status']}: {str(facts['reason']).split(':')[0]}"))
            continue
        words = [] if facts["status"] == "done" else [str(facts["status"])]
        words += ["**recommended**"] if name == chosen else []
        words += [f"overfits (worse than {facts['beaten_by']})"] if facts.get("beaten_by") else []
        words += ["runs away"] if facts.get("bounded") is False else []
        cells = [_mrad(facts.get(key)) for key in kept]
        rows.append((title, *cells, f"{facts['cpu_s']:.0f}", ", ".join(words)))
    return table(("rung", *(columns[key] for key in kept), "CPU s", ""), rows)


# --- twins with much that no parameter has ---
def harmonic_runs(cfg: BenchCfg, *, fresh: bool = False) -> dict[str, Numbers]:
    def one(seed: str) -> Numbers:
        folder = cfg.runs / f"harmonic-{seed}"
        return summary(twin_ladder("harmonic", int(seed), folder, rungs_of(cfg, int(seed))))

    return ACTUATORS.each("harmonic", [str(seed) for seed in cfg.seeds], one, fresh=fresh)


def harmonic(cfg: BenchCfg) -> tuple[Numbers, str]:
    runs = harmonic_runs(cfg, fresh=cfg.fresh)
    errors = {
        name: [run["rungs"][name]["whole"] for run in runs.values()]  # type: ignore[index]
        for name in FEW.split(",")
        if all("whole" in run["rungs"].get(name, {}) for run in runs.values())  # type: ignore[index]
    }
    ratio = [u / p for u, p in zip(errors["uan"], errors["pace"], strict=True)]
    ordered = all(u < p < d for u, p, d in zip(errors["uan"], errors["pace"], errors["pd"], strict=True))
    rows = [
        (rung_named(name).title, *map(_mrad, values), _mrad(float(np.median(values))))
        for name, values in errors.items()
    ]
    first = next(iter(runs.values()))
    text = f"""## Twins `harmonic`

go2 in the air; springs that stiffen, hysteresis, bristle friction, delay with jitter, torque-speed line, heat. Fitted
to multisine, random holds and chirp of 20 s each; judged, open loop, on steps and a sine ladder of 20 s each.
Whole-rollout position error on these unseen motions, mrad, by seed:

{table(("rung", *(f"seed {seed}" for seed in runs), "median"), rows)}

UAN over `pace`: {", ".join(f"{r:.2f}" for r in ratio)} (asked: at most 0.5 and UAN < pace < ideal PD; the order holds:
{"yes" if ordered else "no"}; half of `pace`: {sum(r <= 0.5 for r in ratio)} of {len(ratio)} seeds).

All rungs on seed {next(iter(runs))} (errors in mrad; one step, 0.1 s and 1 s: restarted from measured states, steps
under the other gain among them; whole: unseen motions; fitted motions: the same error on what was fitted; other gain:
steps under 1.5 times kp; closed loop: model minus twin under a tracking controller; drift: last against first passage
of five minutes). A net or filter of torque is a servo with the gains of its data: another gain it cannot follow.

{rung_table(first["rungs"], first["recommended"])}

Recommended: {first["recommended"]}. {first["reason"]}.
"""
    numbers: Numbers = {
        "uan_over_pace": float(np.median(ratio)),
        "uan_over_pace_worst": max(ratio),
        "harmonic_order_holds": ordered,
    }
    return numbers, text


def drift(cfg: BenchCfg) -> tuple[Numbers, str]:
    """Five minutes of the twin against five minutes of the models."""
    seed = cfg.seeds[0]
    names = ("pd", "pace", "fir", "net", "net_long", "uan")

    def one(key: str) -> Numbers:
        folder, robot = cfg.runs / f"harmonic-{key}", load_robot("go2")
        ladder = twin_ladder("harmonic", int(key), folder, MANY)
        motion = ExcitationCfg(kind="random_holds", seconds=300.0, seed=77)
        log = recorded(robot, "harmonic", int(key), motion, folder / "logs" / "minutes.mcap")
        out: Numbers = {}
        for name in (n for n in names if n in ladder.actuators):
            error = roll(robot, [log], ladder.actuators[name], ladder.sim)[0].error[0]
            parts = np.array_split(error, max(1, round(len(error) * 0.005 / 60.0)))
            out[name] = [float(np.sqrt((part**2).mean(axis=0)).mean()) for part in parts]
        return out

    found = ACTUATORS.each("drift", [str(seed)], one, fresh=cfg.fresh)[str(seed)]
    rows = [(rung_named(name).title, *map(_mrad, values)) for name, values in found.items()]  # type: ignore[call-overload]
    minutes = max(len(values) for values in found.values())  # type: ignore[arg-type]
    text = f"""## Five minutes

Twin `harmonic`, seed {seed}: five minutes of random holds that no model has seen, replayed open loop from the first
state on without a restart. Position error in each minute, mrad:

{table(("rung", *(f"minute {k + 1}" for k in range(minutes))), rows)}
"""
    grown = {f"{name}_drift": values[-1] / values[0] for name, values in found.items()}  # type: ignore[index]
    return {"last_over_first_minute": grown}, text


# --- twins with nothing unmodelled ---
def clean(cfg: BenchCfg) -> tuple[Numbers, str]:
    def one(key: str) -> Numbers:
        preset, seed = key.split()
        return summary(twin_ladder(preset, int(seed), cfg.runs / f"{preset}-{seed}", CLEAN))

    keys = [f"pace {seed}" for seed in cfg.seeds]
    runs = ACTUATORS.each("clean", keys, one, fresh=cfg.fresh)
    rows = [
        (
            key,
            *(_mrad(run["rungs"].get(name, {}).get("whole")) for name in CLEAN.split(",")),  # type: ignore[index]
            run["recommended"],
        )
        for key, run in runs.items()
    ]
    parametric = [rung_named(str(run["recommended"])).kind == "params" for run in runs.values()]
    text = f"""## Twins without unmodelled effects

Preset `pace`: everything that differs from the spec is a parameter that `pace` has. The net must not be recommended
({sum(parametric)} of {len(parametric)} times a parametric rung is). In a simulator of 200 Hz it would be, by one
standard error: it mends what the physics step leaves. So the ladder fits the rung in question once more with half the
step before it recommends a net. Whole-rollout error on unseen motions, mrad:

{table(("twin", *(rung_named(name).title for name in CLEAN.split(",")), "recommended"), rows)}

{chr(10).join(f"- {key}: {run['reason']}." for key, run in runs.items())}
"""
    numbers: Numbers = {"clean_parametric": sum(parametric), "clean_twins": len(parametric)}
    return numbers, text


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
