"""What a bundle refuses: 50 seeded corruptions of its passport and 400 bit flips, before a step is taken.

    python benchmarks/prove_refused.py [--bundle FOLDER]

Without --bundle, two bundles of go2-velocity are made: a plain network and a student with memory (random weights: what
is refused does not depend on what was learned).

as it lies    spec.json is changed on disk, the manifest stays: the hashes
re-signed     spec.json is changed and every hash is made right again: golden sequences and consistency
from the start  the mistake is made before the golden sequences are: only the robot's own limits can contradict it
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from parts import PROVE, table

from trueup.core.errors import TrueupError
from trueup.policy.bundle.bundle import decode_passport, load_bundle, write_bundle
from trueup.policy.bundle.manifest import NETWORK, SPEC, read_files, write_files
from trueup.policy.bundle.passport import PolicyOrigin
from trueup.policy.bundle.robot_check import check_against_robot
from trueup.policy.graph.policy_onnx import policy_onnx
from trueup.policy.net import NetWiring, PolicyNet
from trueup.policy.normalizer import Normalizer
from trueup.policy.runner import PolicyRunner
from trueup.robot.load import load_robot
from trueup.tasks.load import EnvCfg, load_task, make_env
from trueup.train.bundles.measure import goal_facts, make_passport, measure_ranges

Spec = dict[str, Any]
CORRUPTIONS, FLIPS = 50, 400


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundle", type=Path, help="a bundle of your own in place of those that are made")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bundles = [asked.bundle] if asked.bundle else [made(Path(folder), "plain"), made(Path(folder), "latent")]
        for bundle in bundles:
            load_bundle(bundle)
        found = [corrupted(bundles[k % len(bundles)], Path(folder) / "case", k) for k in range(CORRUPTIONS)]
        flips = [flipped(bundles[k % len(bundles)], Path(folder) / "case", k) for k in range(FLIPS)]
    report(found, flips)


def made(folder: Path, kind: str) -> Path:
    """A bundle of go2-velocity with random weights."""
    env = make_env(load_task("go2-velocity"), EnvCfg(nenv=8, threads=1))
    rng, (nobs, naction) = np.random.default_rng(7), (env.nactor, env.naction)
    normalizer = Normalizer(nobs)
    normalizer.update(rng.normal(0.2, 1.0, (500, nobs)))
    past = 5 * (nobs + naction)

    def layers(*sizes: int) -> tuple[Any, ...]:
        return tuple(
            (rng.normal(0, n**-0.5, (m, n)).astype(np.float32), rng.normal(0, 0.1, m).astype(np.float32))
            for n, m in itertools.pairwise(sizes)
        )

    wiring = NetWiring() if kind == "plain" else NetWiring(kind="latent", steps=5)
    net = PolicyNet(
        spec=wiring,
        normalizer=normalizer,
        actor=layers(nobs + (8 if wiring.steps else 0), 64, naction),
        encoder=layers(past, 32, 8) if wiring.steps else (),
    )
    ranges, commands = measure_ranges(env, PolicyRunner(net, env.nenv), 1.0)
    spec = msgspec.structs.replace(env.policy_spec(), net=net.spec)
    passport = make_passport(env, spec, goal_facts(env, commands), PolicyOrigin(format="trueup", run=kind), ranges)
    return write_bundle(folder / f"{kind}.bundle", passport, policy_onnx(net)).path


# --- corruptions of the passport ---
def order(spec: Spec, rng: np.random.Generator) -> str:
    """Two joints exchanged in the names, in observation and action alike."""
    names = spec["policy"]["action"]["joint_names"]
    a, b = (int(k) for k in rng.choice(len(names), 2, replace=False))
    for part in ("observation", "action"):
        listed = spec["policy"][part]["joint_names"]
        listed[a], listed[b] = listed[b], listed[a]
    return f"{names[a]} and {names[b]}"


def sign(spec: Spec, rng: np.random.Generator) -> str:
    """One joint turned: pose, action scale and its sign, as a wrong direction would be written everywhere."""
    k = int(rng.integers(len(spec["signs"])))
    spec["signs"][k] *= -1
    spec["policy"]["action"]["scale"][k] *= -1
    for term in spec["policy"]["observation"]["terms"]:
        if term["signal"] in ("joint_pos", "joint_vel"):
            scale = term["scale"]
            scale = scale if isinstance(scale, list) else [scale] * len(spec["signs"])
            term["scale"] = [-x if j == k else x for j, x in enumerate(scale)]
    return spec["policy"]["action"]["joint_names"][k]


def scale(spec: Spec, rng: np.random.Generator) -> str:
    """An action scale or the scale of a term."""
    factor, terms = float(rng.choice([0.5, 0.9, 1.1, 2.0, 10.0])), spec["policy"]["observation"]["terms"]
    k = int(rng.integers(len(terms) + 1))
    if k == len(terms):
        spec["policy"]["action"]["scale"] = [factor * x for x in spec["policy"]["action"]["scale"]]
        return f"action x {factor}"
    terms[k]["scale"] *= factor
    return f"{terms[k]['signal']} x {factor}"


def gains(spec: Spec, rng: np.random.Generator) -> str:
    """kp, kd or the torque limit of one joint or of all."""
    name, factor = str(rng.choice(["kp", "kd", "torque_limit"])), float(rng.choice([0.5, 0.9, 1.2, 2.0, 10.0]))
    place = spec if name == "torque_limit" else spec["policy"]
    k = int(rng.integers(len(place[name]) + 1))
    place[name] = [x * factor if k in (j, len(place[name])) else x for j, x in enumerate(place[name])]
    return f"{name} x {factor}"


def rate(spec: Spec, rng: np.random.Generator) -> str:
    """Control or physics rate."""
    if rng.random() < 0.3:
        spec["physics_hz"] *= 2
        return f"physics {spec['physics_hz']:g} Hz"
    spec["policy"]["control_hz"] = float(rng.choice([25.0, 40.0, 100.0, 200.0]))
    return f"control {spec['policy']['control_hz']:g} Hz"


def frame(spec: Spec, rng: np.random.Generator) -> str:
    """The frame or the unit that a term is said to be in."""
    term = spec["terms"][int(rng.integers(len(spec["terms"])))]
    key, value = [("frame", "world"), ("unit", "deg")][int(rng.integers(2))]
    term[key] = value
    return f"{term['signal']} in {value}"


def default_pose(spec: Spec, rng: np.random.Generator) -> str:
    """One joint of the pose, in observation or action."""
    part = str(rng.choice(["observation", "action"]))
    pose = spec["policy"][part]["default_pose"]
    k, by = int(rng.integers(len(pose))), float(rng.choice([-0.2, -0.02, 0.02, 0.1, 3.0]))
    pose[k] += by
    return f"{part} {by:+g} rad"


def history(spec: Spec, rng: np.random.Generator) -> str:
    """Length or order of the frames."""
    seen = spec["policy"]["observation"]
    kind = int(rng.integers(3))
    if kind == 0:
        seen["history"] += 1
        return "one frame more"
    if kind == 1:
        seen["ages"] = list(range(seen["history"]))
        return "newest first"
    seen["by_term"] = not seen["by_term"]
    return "by term"


def normalizer(spec: Spec, rng: np.random.Generator) -> str:
    """A column of the statistics."""
    name = str(rng.choice(["mean", "std"]))
    values = spec["normalizer"][name]
    k = int(rng.integers(len(values)))
    values[k] = values[k] * 1.5 + 0.1
    return f"{name} of column {k}"


KINDS: tuple[Callable[[Spec, np.random.Generator], str], ...] = (
    order, sign, scale, gains, rate, frame, default_pose, history, normalizer,
)  # fmt: skip


def corrupted(bundle: Path, case: Path, seed: int) -> dict[str, str]:
    """One corruption in three ways; who refused it, or "accepted"."""
    change = KINDS[seed % len(KINDS)]
    spec = json.loads((bundle / SPEC).read_text())
    what = change(spec, np.random.default_rng(seed))
    text = json.dumps(spec, indent=1).encode()
    copied(bundle, case)
    (case / SPEC).write_bytes(text)
    out = {"kind": change.__name__, "what": what, "as it lies": tried(lambda: load_bundle(case))}
    manifest, files, _ = read_files(bundle)
    write_files(case, files | {SPEC: text}, manifest.opset, manifest.operators)
    out["re-signed"] = tried(lambda: load_bundle(case))
    robot = load_robot(spec["robot"]["name"]).spec

    def from_the_start() -> None:
        given = decode_passport(text, case / SPEC)
        written = write_bundle(case, given, files[NETWORK])
        check_against_robot(written.passport, robot)
        out["from the start"] = "accepted" if written.passport == given else "mended"

    out["from the start"] = "accepted"
    by = tried(from_the_start)
    out["from the start"] = by if refused(by) or by != "accepted" else out["from the start"]
    print(seed, json.dumps(out), flush=True)
    return out


def flipped(bundle: Path, case: Path, seed: int) -> dict[str, str]:
    """One to four bits of one file."""
    rng = np.random.default_rng(10_000 + seed)
    copied(bundle, case)
    file = sorted(case.iterdir())[seed % 4]
    data = bytearray(file.read_bytes())
    for place in rng.integers(0, 8 * len(data), int(rng.integers(1, 5))):
        data[place // 8] ^= 1 << int(place % 8)
    if bytes(data) == file.read_bytes():  # the same bit twice
        data[0] ^= 1
    file.write_bytes(bytes(data))
    return {"file": file.name, "by": tried(lambda: load_bundle(case))}


def copied(bundle: Path, case: Path) -> None:
    shutil.rmtree(case, ignore_errors=True)
    shutil.copytree(bundle, case)


def tried(open_it: Callable[[], object]) -> str:
    """What refused it; only a TrueupError counts as a refusal."""
    try:
        open_it()
    except TrueupError as error:
        text = str(error)
        for mark, name in (
            ("hash does not fit", "hash"),
            ("golden sequences", "golden"),
            ("give the golden", "golden"),
            ("contradicts robot", "robot"),
            ("passport", "passport"),
        ):
            if mark in text:
                return name
        return "reader"
    except Exception as error:
        return f"crashed: {type(error).__name__}"
    return "accepted"


def refused(by: str) -> bool:
    return by not in ("accepted", "mended") and not by.startswith("crashed")


def report(found: list[dict[str, str]], flips: list[dict[str, str]]) -> None:
    ways = ("as it lies", "re-signed", "from the start")
    n, (lies, signed, start) = len(found), (sum(refused(one[way]) for one in found) for way in ways)
    bits = sum(refused(one["by"]) for one in flips)
    mended = sum(one["from the start"] == "mended" for one in found)
    rows = []
    for kind in KINDS:
        of = [one for one in found if one["kind"] == kind.__name__]
        cells = [f"{sum(refused(one[way]) for one in of)} ({_by(one[way] for one in of)})" for way in ways]
        rows.append((kind.__name__.replace("_", " "), len(of), *cells))
    files = [
        (name, sum(one["file"] == name for one in flips), _by(one["by"] for one in flips if one["file"] == name))
        for name in sorted({one["file"] for one in flips})
    ]
    text = f"""## What a bundle refuses

{lies + bits} of {n + len(flips)} damaged bundles are refused before a step is taken: {lies} of {n} corruptions of the
passport as it lies on disk, {bits} of {len(flips)} flips of one to four bits. If whoever changed it also makes
every hash right again, {signed} of {n} are refused: the golden sequences no longer come out. A mistake that was there
before the golden sequences were made agrees with itself: the passport's own checks and the robot find {start} of {n} of
those, and {mended} are mended, since a normaliser's statistics are read from the network; the others are what
`trueup evaluate` is for.

{table(("corruption", "cases", *(f"{way}: refused (by)" for way in ways)), rows)}

{table(("file with flipped bits", "cases", "refused by"), files)}"""
    PROVE.merge(
        "refused",
        {
            "refused": lies + bits,
            "refused_of": len(found) + len(flips),
            "refused_resigned": signed,
            "refused_from_the_start": start,
            "mended_from_the_start": mended,
            "refused_corruptions": len(found),
        },
        text,
        "python benchmarks/prove_refused.py",
    )


def _by(names: Any) -> str:
    return ", ".join(f"{name} {count}" for name, count in Counter(names).most_common())


if __name__ == "__main__":
    main()
