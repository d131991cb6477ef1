"""How many planted flaws does the validator find, how often does it cry wolf, and what does it say of real recordings?

    python benchmarks/validator.py [--seeds 20] [--twin-logs 20] [--recordings FOLDER]

Every flaw of the catalogue is planted into clean logs at two strengths. Clean logs, simulated with and without their
robot and recorded from twins of every robot of the zoo, must raise no error and no warning.
Thresholds were set while looking at seeds 0 to 4999, so results on those flatter the validator: take others. FOLDER
holds the public recordings `go2_air/` and `so101/`.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import tyro
from results import publish

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "data"))

from make_logs import clean  # noqa: E402
from spoil_logs import PLANTS, spoiled  # noqa: E402

from trueup.data.check import check_log  # noqa: E402
from trueup.data.finding import Finding  # noqa: E402
from trueup.data.import_table import import_logs  # noqa: E402
from trueup.data.mapping import find_mapping  # noqa: E402
from trueup.robot.excitation import ExcitationCfg  # noqa: E402
from trueup.robot.load import load_robot, zoo_names  # noqa: E402
from trueup.robot.reference import log_reference  # noqa: E402
from trueup.sim.session import SessionCfg, run_session  # noqa: E402

STRENGTHS = ("weak", "strong")
KINDS = ("multisine", "chirp", "steps", "random_holds", "sine_ladder")
PRESETS = ("mild", "harmonic", "worn", "payload")


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """How much is tried."""

    seeds: int = 20
    first_seed: int = 7000
    twin_logs: int = 20
    recordings: Path | None = None


def main(cfg: BenchCfg) -> None:
    begin, seeds = time.perf_counter(), range(cfg.first_seed, cfg.first_seed + cfg.seeds)
    rates: dict[str, list[float]] = {}
    others: dict[str, Counter[str]] = {}
    for code in PLANTS:
        runs = [detection(code, strength, seeds) for strength in range(len(STRENGTHS))]
        rates[code], others[code] = [rate for rate, _ in runs], runs[0][1] + runs[1][1]
        print(f"{code:24} {rates[code][0]:.2f} {rates[code][1]:.2f}", flush=True)
    simulated, simulated_codes = false_alarms(seeds)
    twins, twin_codes = twin_alarms(cfg.twin_logs)
    every = [rate for pair in rates.values() for rate in pair]
    checks = 2 * len(seeds) + cfg.twin_logs * len(zoo_names())
    numbers: dict[str, object] = {
        "detection_rate": round(sum(every) / len(every), 4),
        "lowest_detection_rate": min(every),
        "false_alarm_rate": round((simulated + twins) / checks, 4),
        "false_alarms_simulated": simulated,
        "false_alarms_twin": twins,
        "twin_logs_per_robot": cfg.twin_logs,
        "false_alarm_codes": dict(simulated_codes + twin_codes),
        "seeds": cfg.seeds,
        "first_seed": cfg.first_seed,
        "seconds": round(time.perf_counter() - begin, 1),
        "flaws": {code: dict(zip(STRENGTHS, pair, strict=True)) for code, pair in rates.items()},
    }
    publish("validator", numbers, page(numbers, rates, others, recorded(cfg.recordings)))


def detection(code: str, strength: int, seeds: range) -> tuple[float, Counter[str]]:
    """Share of logs in which the planted flaw is found, and what else was alarmed."""
    hits, others = 0, Counter[str]()
    for seed in seeds:
        case = spoiled(code, strength, seed)
        report = check_log(case.log, case.reference, case.streams)
        hits += code in report.codes
        others.update({finding.code for finding in report.alarms} - {code})
    return hits / len(seeds), others


def false_alarms(seeds: range) -> tuple[int, Counter[str]]:
    """Checks of clean simulated logs that raise an error or a warning, and which."""
    alarmed, codes = 0, Counter[str]()
    for seed in seeds:
        sample = clean(seed)
        for reference in (sample.reference, None):
            found = {finding.code for finding in check_log(sample.log, reference).alarms}
            alarmed += bool(found)
            codes.update(found)
    return alarmed, codes


def twin_alarms(count: int) -> tuple[int, Counter[str]]:
    """The same for recordings of twins: every robot, presets and excitations in turn, 20 s at 200 Hz."""
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()
    alarmed, codes = 0, Counter[str]()
    for name in zoo_names():
        robot = load_robot(name)
        for k in range(count):
            cfg = SessionCfg(
                driver=f"twin:{PRESETS[(k // len(KINDS)) % len(PRESETS)]}?seed={k}",
                excitation=ExcitationCfg(kind=KINDS[k % len(KINDS)], seconds=20.0, seed=k),  # type: ignore[arg-type]
            )
            found = {f.code for f in check_log(run_session(robot, cfg).log, log_reference(robot.spec)).alarms}
            alarmed += bool(found)
            codes.update(found)
        print(f"{name:10} {count} twin logs, {alarmed} alarmed so far", flush=True)
    return alarmed, codes


def recorded(folder: Path | None) -> str:
    """What is said of the public recordings, in words."""
    if folder is None:
        return ""
    lines = [
        "",
        "## Real recordings",
        "",
        "What the validator says of two public recordings (alarms; notes left out):",
        "",
    ]
    for name, robot in (("go2_air", "go2"), ("so101", "so101")):
        reference = log_reference(load_robot(robot).spec)
        said: dict[str, list[str]] = {}
        first: dict[str, Finding] = {}
        for motion, log in import_logs([folder / name], find_mapping(name)):
            for finding in check_log(log, reference).alarms:
                said.setdefault(finding.code, []).append(motion)
                first.setdefault(finding.code, finding)
        for code, motions in said.items():
            where = motions[0] if len(motions) == 1 else f"{len(motions)} motions, first in {motions[0]}"
            lines.append(
                f"- **{name}**, {where}: `{code}`. {first[code].evidence}. {first[code].consequence}"
            )
        if not said:
            lines.append(f"- **{name}**: nothing.")
    return "\n".join(lines) + "\n"


def page(
    numbers: dict[str, object],
    rates: dict[str, list[float]],
    others: dict[str, Counter[str]],
    recordings: str,
) -> str:
    """The results as a page."""
    rows = []
    for code, pair in rates.items():
        also = ", ".join(f"{name} {count}" for name, count in others[code].most_common(4))
        rows.append(f"| {code} | {pair[0]:.2f} | {pair[1]:.2f} | {also} |")
    return f"""# Validator

Flaws planted into clean simulated logs (1, 6 and 12 joints, 50 to 1000 Hz, five excitations),
{numbers["seeds"]} seeds each from {numbers["first_seed"]} on; clean logs of the same kind; and
{numbers["twin_logs_per_robot"]} recordings of twins of every robot of the zoo (presets mild, harmonic, worn, payload;
five excitations).

- detection rate {numbers["detection_rate"]} (lowest of a flaw and strength {numbers["lowest_detection_rate"]})
- false alarm rate {numbers["false_alarm_rate"]}: {numbers["false_alarms_simulated"]} simulated and
  {numbers["false_alarms_twin"]} twin logs {numbers["false_alarm_codes"] or ""}

| flaw | weak | strong | also alarmed (times) |
| --- | --- | --- | --- |
{chr(10).join(rows)}
{recordings}"""


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
