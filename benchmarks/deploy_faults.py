"""Guards proven by faults: what reached a twin's motors when things went wrong. Results: docs/results/deploy.md, .json.

    python benchmarks/deploy_faults.py --bundle walk.bundle [--part faults plain] [--only "policy NaN"]

faults       a go2 walks (or stands) in real time on a twin at 500 Hz, over UDP, through a relay; the policy runs behind
             the motor guard. Each fault is injected at random times, one run each; counted is what came to the motors
plain        the same faults, and a loop that clips and sends: newest state, policy, np.clip to the joint limits, a
             thread that repeats the newest target; no checks, no damping at the end
false_trips  robot time without faults: twins of several presets and seeds in lock-step, commands that change
sample       some of the faults again, to see that later code still holds them (--only, --repeats)
timing       ten minutes in real time without faults: lateness and drift of the schedule, of policy and guard, beside
             loops that only sleep

A row (a fault, a twin) is on disk as soon as it is done; what is there is not measured again without --fresh.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy: processes are forked

import gc
import math
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from faults.cases import CASES, ROBOT, Case
from faults.hour import full_guard, walk
from faults.page import false_trip_section, fault_section, headline, plain_section, timing_section
from faults.run import BAD, Bench, run_case, served
from faults.sleeper import before, sleepers
from parts import DEPLOY, Numbers

from trueup.hardware.twin_cfg import ServeCfg
from trueup.policy.bundle.bundle import load_bundle
from trueup.robot.load import load_robot
from trueup.twin.firmware import Twin

Part = Literal["faults", "plain", "false_trips", "timing", "sample"]
PARTS: tuple[Part, ...] = ("faults", "plain", "false_trips", "timing")
TWINS = tuple(f"{preset}-{seed}" for preset in ("mild", "harmonic", "payload", "worn", "ideal") for seed in range(2))
NTWIN = 4  # of the matrix
MOST_RUNS, LATE = 12, (0.5, 0.99, 0.999, 1.0)  # of timing: one more after a trip; quantiles of lateness
MOST_EARLY = 5  # runs of a row that may be stopped before their fault, and are done again


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    bundle: Path
    """Of a go2 that walks."""
    part: tuple[Part, ...] = PARTS
    repeats: int = 20
    """Runs of each fault, each at its own time."""
    only: tuple[str, ...] = ()
    """Faults by name; none named: all."""
    minutes: float = 6.0
    """Robot time of each twin in lock-step."""
    twins: tuple[str, ...] = TWINS
    timing_minutes: float = 10.0
    core: int | None = None
    """Run the matrix on this core alone: two halves of it can be measured at a time."""
    fresh: bool = False


def main(cfg: BenchCfg) -> None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # sealed truths of a benchmark are nobody's business
    if cfg.core is not None:
        os.sched_setaffinity(0, {cfg.core})
    measures = {
        "faults": faults, "plain": faults, "sample": faults, "false_trips": false_trips, "timing": timing
    }  # fmt: skip
    for part in cfg.part:
        measures[part](cfg, part)


def faults(cfg: BenchCfg, part: Part) -> None:
    """The matrix, with the guard or without."""
    bench, is_guarded = _bench(cfg), part != "plain"
    cases = {case.name: case for case in CASES if is_guarded or not case.guard}
    names = [name for name in cases if not cfg.only or name in cfg.only]
    DEPLOY.each(part, names, lambda name: _row(bench, cases[name], cfg.repeats, is_guarded), fresh=cfg.fresh)
    found = DEPLOY.load()["runs"][part]
    rows = {name: found[name] for name in cases if name in found}
    section = fault_section if is_guarded else plain_section
    numbers, text = headline(rows, is_guarded=is_guarded), section(rows)
    if part == "sample":
        numbers = {f"sample_{name}": value for name, value in numbers.items()}
        text = text.replace(text.partition("\n")[0], "## A sample of the faults, on the code of now", 1)
    repeats = "" if cfg.repeats == BenchCfg.repeats else f" --repeats {cfg.repeats}"
    DEPLOY.merge(part, numbers, text, _command(part) + repeats + " --only ..." * bool(cfg.only))


def _row(bench: Bench, case: Case, repeats: int, is_guarded: bool) -> Numbers:
    """All runs of one fault."""
    load, runs = os.getloadavg()[0], []
    for repeat in range(repeats + MOST_EARLY):
        runs.append(run_case(bench, case, repeat, is_guarded=is_guarded))
        if sum(run["fault"] and not run["early"] for run in runs) >= repeats:
            break
    found = [run for run in runs if run["fault"] and not run["early"]]
    safe = [run["safe_ms"] for run in found if math.isfinite(run["safe_ms"])]
    late = [run["late_ms"] for run in found if math.isfinite(run["late_ms"]) and run["stopped"]]
    trip = [run["trip_ms"] for run in found if math.isfinite(run["trip_ms"])]
    who = [run["who"] for run in found if run["stopped"] and run["who"]]
    return {
        "expect": case.expect,
        "note": case.note,
        "runs": len(runs),
        "faults": len(found),
        "early": sum(run["early"] or (run["stopped"] and not run["fault"]) for run in runs),
        "stopped": sum(run["stopped"] for run in found),
        "safe": len(safe),
        "safe_median_ms": _rounded(np.median(safe)) if safe else None,
        "safe_worst_ms": _rounded(max(safe)) if safe else None,
        "decided_to_safe_worst_ms": _rounded(max(late)) if late else None,
        "trip_median_ms": _rounded(np.median(trip)) if trip else None,
        "trip_worst_ms": _rounded(max(trip)) if trip else None,
        "by_watchdog": sum(run["by"] == "watchdog" for run in found if math.isfinite(run["safe_ms"])),
        "who": {name: who.count(name) for name in dict.fromkeys(who)},
        "why": next((run["why"] for run in found if run["why"]), ""),
        "early_why": [
            f"{run['who']}: {run['why']}" for run in runs if run["who"] and (not run["fault"] or run["early"])
        ],
        **{name: sum(run[name] for run in runs) for name in (*BAD, "diverged")},
        "bad_runs": sum(any(run[name] for name in BAD) for run in runs),
        "peak_torque": _rounded(max((run["peak_torque"] for run in found), default=math.nan)),
        "fell": sum(run["tilt"] > 1.0 for run in found),
        "overruns": sum(run["overruns"] for run in runs),
        "unrecorded": sum(run["unrecorded"] for run in runs),
        "each_safe_ms": [_rounded(run["safe_ms"]) for run in runs],
        "load_average": round(max(load, os.getloadavg()[0]), 1),
    }


def false_trips(cfg: BenchCfg, part: Part) -> None:
    """Robot time without faults, in lock-step."""
    bundle, robot, guard = load_bundle(cfg.bundle), load_robot(ROBOT), full_guard(load_bundle(cfg.bundle))
    guard = replace(guard, realtime_priority=False)

    def measure(key: str) -> Numbers:
        preset, seed = key.partition(",")[0].rsplit("-", 1)
        reference = f"twin:{preset}?seed={seed}&base=free"
        return walk(
            bundle, robot, reference, guard, seconds=60.0 * cfg.minutes, seed=int(seed), command_hz=200.0, lockstep=True
        )

    DEPLOY.each(part, [f"{twin}, {cfg.bundle.stem}" for twin in cfg.twins], measure, fresh=cfg.fresh)
    _merge_clean()


def timing(cfg: BenchCfg, part: Part) -> None:
    """Robot time without faults, in real time; the twin's process has real-time priority, as a robot is undisturbed."""
    bench, guard = _bench(cfg), full_guard(load_bundle(cfg.bundle))

    def measure(key: str) -> Numbers:
        left, runs, late = 60.0 * cfg.timing_minutes, list[Numbers](), list[float]()
        machine: dict[str, object] = {}
        with sleepers(machine):
            while left > 1.0 and len(runs) < MOST_RUNS:
                with served(bench.twins[0], bench.serve) as twin:
                    place = f"twin@127.0.0.1:{twin.port}"
                    runs.append(walk(bench.bundle, bench.robot, place, guard, seconds=left, seed=len(runs), late=late))
                runs[-1]["twin_gaps"] = [gap._asdict() for gap in twin.log.gaps] if twin.log is not None else []
                left -= float(runs[-1]["robot_s"])  # type: ignore[arg-type]
        for run in runs:
            run["still"] = before(run["trip_s"], machine["stand_stills"])
            gaps = [("robot", gap["time_s"], gap["ms"]) for gap in run["twin_gaps"]]
            run["robot_still"] = [ms for _, ms in before(run["trip_s"], gaps)]
        return {"each": runs, "late_ms": [round(1e3 * float(q), 3) for q in np.quantile(late, LATE)], **machine}

    DEPLOY.each(part, ["mild-0"], measure, fresh=cfg.fresh)
    _merge_clean()


def _merge_clean() -> None:
    """Both parts that have no faults."""
    runs = DEPLOY.load()["runs"]
    slow, real = runs.get("false_trips", {}), runs.get("timing", {})
    if slow:
        numbers, text = false_trip_section(slow, real)
        DEPLOY.merge("false_trips", numbers, text, _command("false_trips"))
    if real:
        numbers, text = timing_section(real)
        DEPLOY.merge("timing", numbers, text, _command("timing"))


# --- what is run ---
def _bench(cfg: BenchCfg) -> Bench:
    robot, serve = load_robot(ROBOT), ServeCfg(preset="mild", base="free", command_hz=500.0)
    bundle = load_bundle(cfg.bundle)
    twins = tuple(Twin(robot, replace(serve, seed=seed)) for seed in range(NTWIN))
    gc.collect()
    gc.freeze()  # forked processes have it all, and need not look at it
    guard = replace(full_guard(load_bundle(cfg.bundle)), linger_s=0.2, voltage_derate=25.0, voltage_stop=22.0)
    return Bench(bundle=bundle, robot=robot, serve=serve, twins=twins, guard=guard)


def _rounded(value: float) -> float | None:
    return round(float(value), 2) if math.isfinite(value) else None


def _command(part: str) -> str:
    return f"python benchmarks/deploy_faults.py --bundle BUNDLE --part {part}"


if __name__ == "__main__":
    main(tyro.cli(BenchCfg, args=sys.argv[1:]))
