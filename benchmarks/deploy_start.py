"""How long `trueup deploy` takes from the start of its process to the first command, by part, and what it imports.

    python benchmarks/deploy_start.py [--starts 10] [--bundle FOLDER]

A twin of go2 is running already (in the air, real time). Each start is a fresh process, as on a robot's computer:
Python, imports, bundle with all its checks, ladder, motor guard in its own process, first states, first command. Where
it is allowed, processes run at real-time priority, so that other work on this computer does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from parts import DEPLOY, table
from prove_refused import made

HEAVY = ("mujoco", "torch", "scipy", "plotly", "h5py", "pyarrow", "onnxruntime")
CHILD = """
import json, sys
import tyro
from trueup.deploy.verbs import DeployVerb
asked = tyro.cli(DeployVerb, config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes))
from trueup.deploy.deploy import deploy
done = deploy(asked, lambda line: None)
heavy = [name for name in {heavy!r} if name in sys.modules]
print(json.dumps({{"startup": done.startup, "heavy": heavy, "passed": done.passed}}))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--bundle", type=Path, help="a bundle of go2 in place of one that is made")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bundle = asked.bundle or made(Path(folder), "plain")
        served = [sys.executable, "-m", "trueup", "twin", "serve", "go2", "--preset", "ideal"]
        with subprocess.Popen([*first(32), *served], stdout=subprocess.PIPE, text=True) as twin:
            assert twin.stdout is not None
            reference = twin.stdout.readline().partition("--driver ")[2].split()[0]
            start(bundle, "replay", None, Path(folder) / "replay")
            start(bundle, "shadow", reference, Path(folder) / "shadow")
            found = [start(bundle, "hang", reference, Path(folder) / f"run{k}") for k in range(asked.starts)]
            twin.terminate()
    report(found)


def first(priority: int) -> list[str]:
    """A prefix that runs a command before ordinary ones, where that is allowed."""
    tried = subprocess.run(["chrt", "-f", str(priority), "true"], capture_output=True, check=False)
    return ["chrt", "-f", str(priority)] if tried.returncode == 0 else []


def start(bundle: Path, rung: str, driver: str | None, out: Path) -> dict[str, object]:
    words = [str(bundle), "--rung", rung, "--uncertified", "--seconds", "5", "--no-keys", "--out", str(out)]
    words += [] if driver is None else ["--driver", driver]
    code = CHILD.format(heavy=HEAVY)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*first(31), sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def report(found: list[dict[str, object]]) -> None:
    parts = [one["startup"] for one in found]
    names = [name for name in parts[0] if name != "total"]  # type: ignore[attr-defined]
    column = {name: np.array([one[name] for one in parts]) for name in [*names, "total"]}  # type: ignore[index]
    rows = [(name, f"{np.median(values):.3f}", f"{values.max():.3f}") for name, values in column.items()]
    heavy = sorted({name for one in found for name in one["heavy"]})  # type: ignore[attr-defined]
    text = (
        f"## Cold start\n\nFrom the start of the process to the first command, {len(found)} starts on a twin that is "
        f"running: median {np.median(column['total']):.2f} s, worst {column['total'].max():.2f} s. Of "
        f"{', '.join(HEAVY)}, it imports {', '.join(heavy) or 'none'}.\n\n"
        + table(("part", "median, s", "worst, s"), rows)
    )
    numbers = {
        "start_median_s": float(np.median(column["total"])),
        "start_worst_s": float(column["total"].max()),
        "start_heavy_imports": heavy,
    }
    DEPLOY.merge("start", numbers, text, "python benchmarks/deploy_start.py")


if __name__ == "__main__":
    main()
