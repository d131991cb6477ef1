"""What the wiggle test finds: every single swap, sign, offset and dead joint, and 200 runs without a fault.

    python benchmarks/deploy_wiggle.py [--cache FILE] [--workers 2]

Twins of five presets, many seeds, in lock-step. A mistake is planted between the test and the twin (`Miswired`):

both    in commands and readings alike, as a swapped plug or a motor mounted the other way round does
read    in readings alone, write: in commands alone, as a wrong table of joint names in a program does
offset  the encoder reads b too much, and the servo follows the encoder; b counts with the twin's own encoder bias
dead    the motor gets no command

The twins' stops are hard (`hard_stops`): by the engine's defaults a tenth of its torque limit pushes a light link on a
gear with a spring 0.07 rad beyond its stop.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from parts import DEPLOY, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "helpers"))

from miswired import Miswired, Miswiring

from trueup.deploy.wiggle.wiggle import run_wiggle
from trueup.hardware.drivers.open import open_driver
from trueup.hardware.twin_cfg import TwinCfg
from trueup.robot.load import Robot, load_robot
from trueup.twin.firmware import Twin

PRESETS = ("pace", "payload", "mild", "worn", "harmonic")
CLEAN_SEEDS = 20
OFFSETS = (0.11, -0.11, 0.15, -0.2, 0.3, -0.3)
ROBOTS = ("go2", "so101")
Case = tuple[str, str, int, str, tuple[int, ...], str, float]  # robot, preset, seed, kind, joints, way, offset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cache", type=Path, default=Path("deploy_wiggle.jsonl"), help="runs made so far")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    done = [json.loads(line) for line in asked.cache.read_text().splitlines()] if asked.cache.exists() else []
    known = {run["case"] for run in done}
    left = [case for case in cases() if name(case) not in known]
    with ProcessPoolExecutor(asked.workers) as pool, asked.cache.open("a") as cache:
        for run in pool.map(measure, left):
            print(run["case"], run["verdict"], f"{run['robot_s']:.0f} s", flush=True)
            cache.write(json.dumps(run) + "\n")
            cache.flush()
            done.append(run)
    report(done)


def hard_stops(name: str) -> Robot:
    """A built-in robot whose joint limits do not give way: its files with one line more, in a folder of its own."""
    folder, found = Path(tempfile.gettempdir()) / f"hard_stops_{os.getpid()}" / name, load_robot(name)
    if not folder.exists():
        folder.mkdir(parents=True)
        shutil.copy(found.model_path.parent / "spec.toml", folder)
        model = found.model_path.read_text()
        assert model.count("<default>") == 1
        line = '<default>\n    <joint solimplimit="0.9 0.9999 0.001"/>'
        (folder / found.model_path.name).write_text(model.replace("<default>", line))
    return load_robot(folder)


def cases() -> Iterator[Case]:
    """Every run, faults first."""
    for robot in ROBOTS:
        n, turn = load_robot(robot).spec.njoint, itertools.cycle(PRESETS)
        for i, k in itertools.combinations(range(n), 2):
            for way in ("both", "read", "write"):
                yield robot, next(turn), i + 13 * k, "swap", (i, k), way, 0.0
        for j in range(n):
            for way in ("both", "read", "write"):
                yield robot, next(turn), 200 + j, "sign", (j,), way, 0.0
            for offset in OFFSETS:
                yield robot, next(turn), 300 + j, "offset", (j,), "both", offset
            yield robot, next(turn), 400 + j, "dead", (j,), "write", 0.0
    for robot, preset, seed in itertools.product(ROBOTS, PRESETS, range(CLEAN_SEEDS)):
        yield robot, preset, 1000 + seed, "clean", (), "", 0.0


def name(case: Case) -> str:
    return " ".join(str(part) for part in case)


def measure(case: Case) -> dict[str, object]:
    """Plant the mistake, run the test, judge what it says."""
    robot, preset, seed, kind, joints, way, offset = case
    loaded = hard_stops(robot)
    names = loaded.spec.joint_names
    wiring = planted(case, loaded.spec.njoint)
    driver = open_driver(f"twin:{preset}?seed={seed}", loaded, command_hz=100.0, lockstep=True)
    result = run_wiggle(loaded, Miswired(driver, replace(wiring, reads=way != "write", writes=way != "read")))
    meant = tuple(names[j] for j in joints)
    found = [(finding.kind, finding.joints) for finding in result.findings]
    open_ = kind == "offset" and any(f"offset of {meant[0]}:" in text for text in result.unseen)
    verdict = ("open" if open_ else "missed") if not found else "named" if found == [(kind, meant)] else "found"
    if kind == "clean":
        verdict = "alarm" if found else "quiet"
    return {
        "case": name(case),
        "robot": robot,
        "kind": kind,
        "way": way,
        "verdict": verdict,
        "text": [finding.text for finding in result.findings],
        "unseen": list(result.unseen),
        "offset": next((finding.value for finding in result.findings if finding.value is not None), None),
        "planted": offset,
        "robot_s": result.seconds,
    }


def planted(case: Case, n: int) -> Miswiring:
    """The wiring of a case; an offset is what is left to reach it from the twin's own bias."""
    robot, preset, seed, kind, joints, _, offset = case
    right = Miswiring.right(n)
    if kind == "swap":
        return right.swap(*joints)
    if kind == "sign":
        return right.flip(joints[0])
    if kind == "offset":
        own = Twin(load_robot(robot), TwinCfg(preset=preset, seed=seed)).truth.joint.encoder_bias[joints[0]]
        return right.shift(joints[0], offset - own)
    return replace(right, dead=joints)


def report(runs: list[dict]) -> None:
    """Numbers and text of the results page."""
    rows, missed = [], []
    for robot in ROBOTS:
        for kind, way in sorted({(run["kind"], run["way"]) for run in runs if run["kind"] != "clean"}):
            mine = [run for run in runs if (run["robot"], run["kind"], run["way"]) == (robot, kind, way)]
            counts = [
                sum(run["verdict"] == verdict for run in mine) for verdict in ("named", "found", "open", "missed")
            ]
            rows.append((robot, kind, way, len(mine), *counts))
            missed += [run for run in mine if run["verdict"] == "missed"]
    clean = [run for run in runs if run["kind"] == "clean"]
    alarms = [run for run in clean if run["verdict"] == "alarm"]
    errors = [
        abs(run["offset"] - run["planted"]) for run in runs if run["kind"] == "offset" and run["verdict"] == "named"
    ]
    open_runs = [run for run in clean if any("encoder offset" in text for text in run["unseen"])]
    seconds = {r: sorted(run["robot_s"] for run in clean if run["robot"] == r)[len(clean) // 4] for r in ROBOTS}
    numbers = {
        "wiggle_faults": sum(row[3] for row in rows),
        "wiggle_missed": len(missed),
        "wiggle_open": sum(row[6] for row in rows),
        "wiggle_clean": len(clean),
        "wiggle_false_alarms": len(alarms),
        "wiggle_offset_error_rad": round(max(errors), 4),
        "wiggle_robot_s": {robot: round(value, 1) for robot, value in seconds.items()},
    }
    head = ("robot", "mistake", "in", "runs", "named", "found, several explanations", "told to be open", "missed")
    text = f"""## Wiggle test

Twins of the presets {", ".join(PRESETS)} in lock-step, each run another twin, with their own encoder biases (up to
0.05 rad), play, friction and wrong masses; their joint limits are made hard (solimplimit 0.9999), as metal is.
Every pair of joints swapped, every joint the other way round, offsets of
{", ".join(f"{offset:+g}" for offset in OFFSETS)} rad on every joint (the twin's own bias included), every motor dead.
*Named*: the one finding is the planted mistake. *Found, several explanations*: it is reported, say as a reading
that the joint cannot have, with what could be the cause. *Told to be open*: the test says that the allowed torque did
not move this joint to both ends, so that an offset cannot be told. *Both*: the mistake is in commands and readings
alike, so that no encoder shows it; stops and torques against gravity do.

{table(head, rows)}

Missed: {"; ".join(run["case"] for run in missed) or "none"}. A vertical or balanced axis with a symmetric range looks
the same the other way round from the inside (so101: shoulder_pan, wrist_roll); the test lists such signs as unseen in
every run. Light joints of so101 twins with springs in their gears (worn, harmonic) wind up by 0.1 rad on the motor's
side, where the encoder is, before a stop is felt. The largest error of an offset that was named is
{max(errors):.3f} rad.

{len(clean)} runs without a planted mistake: {len(alarms)} false alarms. In {len(open_runs)} of them an offset was left
open because the allowed torque did not move a joint to both ends. Robot time of a run (median):
{", ".join(f"{robot} {value:.0f} s" for robot, value in seconds.items())}.
"""
    DEPLOY.merge("wiggle", numbers, text, "python benchmarks/deploy_wiggle.py")


if __name__ == "__main__":
    main()
