"""How many planted flaws does the validator find, and how often does it cry wolf?

    python benchmarks/validator.py [--seeds 20] [--first-seed 2000] [--out docs/results]

Every flaw of the catalogue is planted into clean logs at two strengths; clean logs are checked with and without their
robot. The seeds are none that thresholds were set on. Writes validator.md and validator.json and prints one JSON
object as its last line.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "data"))

from make_logs import clean  # noqa: E402
from spoil_logs import PLANTS, spoiled  # noqa: E402

from trueup.data.check import check_log  # noqa: E402

STRENGTHS = ("weak", "strong")


def detection(code: str, strength: int, seeds: range) -> tuple[float, Counter[str]]:
    """Share of logs in which the planted flaw is found, and what else was alarmed."""
    hits, others = 0, Counter[str]()
    for seed in seeds:
        case = spoiled(code, strength, seed)
        report = check_log(case.log, case.reference, case.streams)
        hits += code in report.codes
        others.update({finding.code for finding in report.alarms} - {code})
    return hits / len(seeds), others


def false_alarms(seeds: range) -> tuple[float, Counter[str]]:
    """Share of checks of clean logs that raise an error or a warning, and which."""
    alarmed, codes = 0, Counter[str]()
    for seed in seeds:
        sample = clean(seed)
        for reference in (sample.reference, None):
            found = {finding.code for finding in check_log(sample.log, reference).alarms}
            alarmed += bool(found)
            codes.update(found)
    return alarmed / (2 * len(seeds)), codes


def table(rates: dict[str, list[float]], others: dict[str, Counter[str]], summary: dict[str, object]) -> str:
    """The results as Markdown."""
    lines = [
        "# Validator",
        "",
        f"Flaws planted into clean simulated logs (1, 6 and 12 joints, 50 to 1000 Hz, five excitations), "
        f"{summary['seeds']} seeds each, none of them used to set a threshold.",
        "",
        f"- detection rate: {summary['detection_rate']:.4f} (lowest of a flaw and strength "
        f"{summary['lowest_detection_rate']:.2f})",
        f"- false alarm rate on clean logs, with and without the robot: {summary['false_alarm_rate']:.4f}",
        "",
        "| flaw | weak | strong | also alarmed (times) |",
        "| --- | --- | --- | --- |",
    ]
    for code, pair in rates.items():
        also = ", ".join(f"{name} {count}" for name, count in others[code].most_common(4))
        lines.append(f"| {code} | {pair[0]:.2f} | {pair[1]:.2f} | {also} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run, write and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    args = parser.parse_args()
    seeds, begin = range(args.first_seed, args.first_seed + args.seeds), time.perf_counter()
    rates: dict[str, list[float]] = {}
    others: dict[str, Counter[str]] = {}
    for code in PLANTS:
        runs = [detection(code, strength, seeds) for strength in range(len(STRENGTHS))]
        rates[code], others[code] = [rate for rate, _ in runs], runs[0][1] + runs[1][1]
        print(f"{code:24} {rates[code][0]:.2f} {rates[code][1]:.2f}", flush=True)
    wolf, alarms = false_alarms(seeds)
    every = [rate for pair in rates.values() for rate in pair]
    summary: dict[str, object] = {
        "detection_rate": sum(every) / len(every),
        "lowest_detection_rate": min(every),
        "false_alarm_rate": wolf,
        "false_alarms": dict(alarms),
        "seeds": args.seeds,
        "seconds": round(time.perf_counter() - begin, 1),
    }
    args.out.mkdir(parents=True, exist_ok=True)
    detail = {code: dict(zip(STRENGTHS, pair, strict=True)) for code, pair in rates.items()}
    (args.out / "validator.json").write_text(json.dumps({**summary, "flaws": detail}, indent=2) + "\n")
    (args.out / "validator.md").write_text(table(rates, others, summary))
    print(json.dumps(summary))


if __name__ == "__main__":
    main()
