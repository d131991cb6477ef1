"""Bundles climb the whole ladder as typed, on a twin that speaks as a Unitree robot over DDS on loopback.

    python benchmarks/deploy_ladder.py --bundles walk.bundle theirs.bundle [--uncertified theirs]

Every rung is a `trueup deploy` process at its defaults; the twin is a `trueup twin serve go2 --speak unitree` process,
in the air for hang, on the ground for the others. Shadow looks on while the twin's own sport mode stands. What a rung
says is read from the record that it leaves behind. A rung that was not passed is tried again as often as --tries says,
and the table tells why.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tyro
from parts import DEPLOY, Numbers, table

from trueup.deploy.ladder.records import RUNGS, Rung, read_record

TRUEUP = [sys.executable, "-m", "trueup"]
START_S, RUNG_S = 60.0, 180.0
COMMANDS: dict[Rung, tuple[str, ...]] = {"ground": ("forward=0.3",), "full": ("forward=0.5", "turn=0.3")}


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    bundles: tuple[Path, ...]
    uncertified: tuple[str, ...] = ()
    """Bundles without a certificate, by name."""
    preset: str = "mild"
    seed: int = 0
    domain: int = 211
    """DDS domain of the first bundle, the next ones follow: one that nobody else on this computer uses."""
    tries: int = 3
    """Of each rung."""
    fresh: bool = False


def main(cfg: BenchCfg) -> None:
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp()  # sealed truths of a benchmark are nobody's business
    for number, path in enumerate(cfg.bundles):
        with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
            bundle = Path(shutil.copytree(path, Path(folder) / path.name))
            certificate = path.with_name(f"{path.name}.certificate.json")
            if certificate.exists():
                shutil.copy(certificate, folder)
            domain = cfg.domain + number
            keys = [f"{path.stem} {rung}" for rung in RUNGS]
            DEPLOY.each(
                "ladder", keys, lambda key, b=bundle, d=domain: climb(cfg, b, key, d), fresh=cfg.fresh and not number
            )
    numbers, text = section(DEPLOY.load()["runs"]["ladder"])
    shown = " ".join(f"{path.stem}.bundle" for path in cfg.bundles)
    DEPLOY.merge("ladder", numbers, text, f"python benchmarks/deploy_ladder.py --bundles {shown}")


def climb(cfg: BenchCfg, bundle: Path, key: str, domain: int) -> Numbers:
    """One rung as a user types it."""
    name, rung = key.split()
    asked = [str(bundle), "--rung", rung]
    place = f"lo?domain={domain}"
    if rung == "replay":
        return run_rung(bundle, rung, asked)
    asked += ["--driver", f"unitree:{place}"]
    asked += ["--command", *COMMANDS[rung]] if rung in COMMANDS else []  # type: ignore[index]
    asked += ["--uncertified"] if name in cfg.uncertified and rung != "shadow" else []
    if rung == "hang":
        asked[asked.index("--driver") + 1] += "&stand_down=0"  # it hangs: it need not lie down first
    base = "fixed" if rung == "hang" else "free"
    failed = list[str]()
    while True:
        with served(cfg, place, base):
            found = run_rung(bundle, rung, asked)
        if found["passed"] or len(failed) + 1 >= cfg.tries:
            return found | {"failed": failed}
        judged: dict[str, list[object]] = found.get("judged", {})  # type: ignore[assignment]
        failed.append("; ".join(str(text) for passed, text in judged.values() if not passed) or str(found.get("said")))


@contextlib.contextmanager
def served(cfg: BenchCfg, place: str, base: str) -> Iterator[None]:
    """The robot, in a process of its own."""
    words = ["--preset", cfg.preset, "--seed", str(cfg.seed), "--base", base, "--speak", "unitree", "--place", place]
    twin = subprocess.Popen([*TRUEUP, "twin", "serve", "go2", *words], stdout=subprocess.PIPE, text=True)
    assert twin.stdout is not None
    try:
        if "listens" not in twin.stdout.readline():
            raise RuntimeError("the twin did not start")
        time.sleep(1.0)  # it stands
        yield
    finally:
        twin.terminate()
        twin.wait(10.0)


def run_rung(bundle: Path, rung: str, asked: list[str]) -> Numbers:
    """The process, and the record that it left behind."""
    began = time.monotonic()
    done = subprocess.run([*TRUEUP, "deploy", *asked], capture_output=True, text=True, timeout=RUNG_S)
    took = time.monotonic() - began
    shown = " ".join(word.replace(str(bundle), bundle.name) for word in ["trueup", "deploy", *asked])
    found = sorted(bundle.with_name(f"{bundle.name}.ladder").rglob(f"{rung}.json"))
    if not found:
        said = done.stderr.strip().replace(f"{bundle.parent}/", "")[-300:]
        return {"exit": done.returncode, "passed": False, "said": said, "command": shown}
    record = read_record(found[0])
    return {
        "exit": done.returncode,
        "passed": record.passed,
        "command": shown,
        "seconds": round(record.seconds, 1),
        "took_s": round(took, 1),
        "judged": {one.name: [one.passed, one.found] for one in record.judged},
        "uncertified": bool(record.uncertified),
        "guard": guard_figures(Path(record.folder)) if record.folder else {},
        "load_average": round(os.getloadavg()[0], 1),
    }


def guard_figures(folder: Path) -> dict[str, float]:
    """Lateness, states and commands of the motor guard, from its own summary."""
    file = folder / "events.jsonl"
    events = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    summary = next((event for event in events if event["event"] == "summary"), None)
    if summary is None:
        return {}
    latency = summary["status"]["latency"]
    return {"late_p999_ms": round(latency["late_p999"], 2), "states": summary["states"], "ticks": summary["ticks"]}


def section(rows: dict[str, Numbers]) -> tuple[dict[str, object], str]:
    """A line for each rung."""
    lines = []
    for key, row in rows.items():
        name, rung = key.split()
        judged = row.get("judged", {})
        late = re.search(r"lateness 99.9 % ([\d.]+) ms", judged.get("deadline", [0, ""])[1])  # type: ignore[union-attr]
        failed = "; ".join(f"{one}: {found}" for one, (passed, found) in judged.items() if not passed)  # type: ignore[union-attr]
        facts = [judged[one][1] for one in ("golden", "range", "distance", "upright") if one in judged]  # type: ignore[index,operator]
        guard = row.get("guard") or {}
        earlier = "".join(f" (try {k + 1}: {why})" for k, why in enumerate(row.get("failed") or ()))  # type: ignore[arg-type]
        who = name + (" (uncertified)" if row.get("uncertified") else "")
        cells = (
            who, rung, "passed" if row["passed"] else "**failed**",
            row.get("seconds", "-"), late[1] if late else "-", guard.get("late_p999_ms", "-"),  # type: ignore[union-attr]
            (failed or row.get("said") or "; ".join(facts)) + earlier, row.get("load_average", "-"),
        )  # fmt: skip
        lines.append(cells)
    names = list(dict.fromkeys(key.split()[0] for key in rows))
    passed = {name: sum(bool(row["passed"]) for key, row in rows.items() if key.split()[0] == name) for name in names}
    head = (
        "bundle",
        "rung",
        "",
        "policy ran (s)",
        "late 99.9 % (ms)",
        "guard late 99.9 % (ms)",
        "found",
        "load average",
    )
    about = " ".join(" ".join((__doc__ or "").split("\n\n")[i] for i in (0, 2)).split())
    commands = "\n".join(str(row["command"]) for key, row in rows.items() if key.split()[0] == names[0])
    text = ["## The ladder over DDS", about, f"```\n{commands}\n```", table(head, lines)]
    return {f"ladder_passed_{name}": count for name, count in passed.items()}, "\n\n".join(text)


if __name__ == "__main__":
    main(tyro.cli(BenchCfg, args=sys.argv[1:]))
