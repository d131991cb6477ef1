"""Does the gate tell policies apart, and does its prediction hold? Results: docs/results/prove.md and .json.

    python benchmarks/prove.py gate --walk RUN --plain RUN --out FOLDER      a run, and one without randomisation
    python benchmarks/prove.py prediction --walk RUN --out FOLDER            ten twins that it never saw
    python benchmarks/prove.py foreign --walk RUN --policies FOLDER --out FOLDER   policies of others, both engines
    python benchmarks/prove.py suite --walk RUN --out FOLDER                 twelve scenarios of 100 trials, timed

Runs are made by `trueup train go2-velocity --steps 4000000`, the second with --no-randomize.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import tyro
from on_twin import walk_on_twins
from parts import PROVE, Numbers, table

from trueup.evaluate.run import evaluate
from trueup.evaluate.score import PolicyScore, compare
from trueup.policy.bundle.bundle import load_bundle
from trueup.policy.bundle.certificate import Prediction
from trueup.train.bundles.export import export_run
from trueup.train.bundles.verbs import import_policy
from trueup.verify.verbs import VerifyVerb
from trueup.verify.verify import Verified, verify

TWINS = tuple((preset, seed) for preset in ("mild", "harmonic", "worn") for seed in range(700, 704))[:10]
EPISODES = 20
TIMED = ("forward", "turn", "commands", "push_30", "push_50", "payload", "slippery", "weak", "delay", "start")
TIMED_MORE = ("soft", "rough")


@dataclass(frozen=True, kw_only=True)
class BenchCfg:
    """What is measured."""

    part: tyro.conf.Positional[Literal["gate", "prediction", "foreign", "suite"]]
    walk: Path
    plain: Path | None = None
    policies: Path | None = None
    out: Path = Path("runs/prove")
    trials: int = 100
    threads: int = 0


def main(cfg: BenchCfg) -> None:
    parts = {"gate": gate, "prediction": prediction, "foreign": foreign, "suite": suite}
    numbers, text = parts[cfg.part](cfg)
    before = ["", *sys.argv[1:]]
    pairs = zip(before, sys.argv[1:], strict=False)
    words = [word if not flag.startswith("--") or word.isdigit() else "FOLDER" for flag, word in pairs]
    PROVE.merge(cfg.part, numbers, text, " ".join(["python", "benchmarks/prove.py", *words]))


def bundle_of(cfg: BenchCfg, run: Path) -> Path:
    """The run's bundle, exported once."""
    path = cfg.out / f"{run.name}.bundle"
    if not path.exists():
        export_run(run, path)
    return path


def verified(cfg: BenchCfg, bundle: Path) -> Verified:
    return verify(
        VerifyVerb(
            bundle=bundle, trials=cfg.trials, threads=cfg.threads, films=False, out=cfg.out / f"{bundle.stem}.verified"
        )
    )


# --- parts ---
def gate(cfg: BenchCfg) -> tuple[Numbers, str]:
    """The gate on a policy and on one that was trained without randomisation."""
    assert cfg.plain is not None
    both = {run.name: verified(cfg, bundle_of(cfg, run)) for run in (cfg.walk, cfg.plain)}
    walk, plain = (both[run.name].certificate for run in (cfg.walk, cfg.plain))
    answers = {check.name: check for check in plain.checks}
    rows: list[tuple[object, ...]] = [
        (check.name, check.state, check.found, answers[check.name].state, answers[check.name].found)
        for check in walk.checks
        if check.name in answers
    ]
    blocked = [check.name for check in plain.blocking]
    numbers: Numbers = {
        "gate_passes_ours": walk.passed,
        "gate_refuses_plain": not plain.passed,
        "gate_blocks": [check.name for check in walk.blocking],
        "gate_blocks_plain": blocked,
    }
    text = f"""## The gate

`go2-velocity`, 4 M control steps each: with the task's randomisation and pushes (ours), and without both (plain).
Ours {"passes" if walk.passed else "is blocked by " + ", ".join(c.name for c in walk.blocking)}; plain
{"passes" if plain.passed else "is blocked by " + ", ".join(blocked)}. Both were trained on flat ground: ramps of 8
degrees are asked of them, steeper and rougher ground is tried for information. Level ground does not tell the two apart
at these sizes of pushes, loads and delays: the ramps joined the suite because it did not.

{table(("check", "ours", "found", "plain", "found"), rows)}
"""
    return numbers, text


def prediction(cfg: BenchCfg) -> tuple[Numbers, str]:
    """What the gate predicted, against what twins show that it never saw."""
    path = bundle_of(cfg, cfg.walk)
    said = verified(cfg, path).certificate.prediction
    assert isinstance(said, Prediction)
    bundle, rows, covered = load_bundle(path), [], 0
    for preset, seed in TWINS:
        walked = walk_on_twins(
            bundle.runner, bundle.passport.policy, preset, [seed] * EPISODES, command_seed=2700 + seed
        )
        inside = said.covers(walked.error, walked.success)
        covered += inside
        rows.append((f"{preset}-{seed}", f"{walked.error:.3f}", f"{walked.success:.0%}", "yes" if inside else "no"))
        print(*rows[-1], flush=True)
    numbers: Numbers = {"prediction_coverage": covered, "prediction_twins": len(rows)}
    text = f"""## Prediction

From {said.worlds} simulated robots drawn from the task's ranges, in {" and ".join(said.engines)}: velocity error
{said.error:.3f} m/s [{said.error_low:.3f}, {said.error_high:.3f}], episodes without a fall {said.success:.0%}
[{said.success_low:.0%}, {said.success_high:.0%}].
Then {len(rows)} twins of hidden physics, {EPISODES} episodes of 20 s each: {covered} of {len(rows)}
lie within both intervals (asked: 8 of 10).

{table(("twin", "error, m/s", "without a fall", "predicted"), rows)}
"""
    return numbers, text


def imported(cfg: BenchCfg, name: str, layout: str, robot: str) -> Path:
    """A policy of others as a bundle, from its own files, imported once."""
    assert cfg.policies is not None
    path, folder = cfg.out / f"{name}.bundle", cfg.policies / name
    if not path.exists():
        import_policy(folder / "policy.onnx", layout=folder / layout, robot=robot, out=path, task=f"{robot}-velocity")
    return path


def certificates(cfg: BenchCfg, bundles: list[Path]) -> str:
    """What the gate says of policies of others."""
    rows: list[tuple[object, ...]] = []
    for bundle in bundles:
        one = verified(cfg, bundle).certificate
        said = one.prediction
        told = "-" if said is None else f"{said.error:.3f} [{said.error_low:.3f}, {said.error_high:.3f}]"
        rows.append((one.name, one.robot, "passes" if one.passed else ", ".join(c.name for c in one.blocking), told))
    return table(("policy", "robot", "gate: blocked by", "predicted error, m/s"), rows)


def foreign(cfg: BenchCfg) -> tuple[Numbers, str]:
    """Ours beside a policy of others, scenario by scenario, in both engines."""
    theirs = imported(cfg, "go2_robot_lab", "config.yaml", "go2")
    ours = bundle_of(cfg, cfg.walk)
    rows: list[tuple[object, ...]] = []
    count = {"won": 0, "drawn": 0, "lost": 0}
    ratios = {}
    for engine in ("mujoco", "sapien"):
        a, b = (_score(cfg, bundle, engine) for bundle in (ours, theirs))
        for duel in compare(a, b):
            count[duel.outcome] += 1
            mine, other = a[duel.name], b[duel.name]
            rows.append((engine, mine.title, *_cells(mine), *_cells(other), duel.outcome))
        for name, score in (("ours", a), ("theirs", b)):
            ratios[name, engine] = score["commands"].mean("error")
    differ = {name: ratios[name, "sapien"] / ratios[name, "mujoco"] for name in ("ours", "theirs")}  # type: ignore[operator]
    numbers: Numbers = {
        "vs_foreign": count,
        "sim2sim_ratio_ours": differ["ours"],
        "sim2sim_ratio_foreign": differ["theirs"],
    }
    text = f"""## Beside a policy of others

Ours against `go2_robot_lab` (trained in Isaac Lab on a GPU, runs on real go2s; imported from its own files),
{cfg.trials} trials of each scenario, the same trials for both. Won or lost: by McNemar's exact test at 5 %, else drawn.
Ours: {count["won"]} won, {count["drawn"]} drawn, {count["lost"]} lost.
Error over the whole range of commands, SAPIEN against MuJoCo: ours {differ["ours"]:.2f}, theirs {differ["theirs"]:.2f}.

{table(("engine", "scenario", "ours", "error", "power, W", "theirs", "error", "power, W", "ours"), rows)}

The gate on policies of others:

{certificates(cfg, [theirs, imported(cfg, "g1_velocity", "deploy.yaml", "g1")])}
"""
    return numbers, text


def suite(cfg: BenchCfg) -> tuple[Numbers, str]:
    """Time of twelve scenarios of 100 trials."""
    path = bundle_of(cfg, cfg.walk)
    wall, cpu = time.perf_counter(), time.process_time()
    score = evaluate(path, only=(*TIMED, *TIMED_MORE), trials=100, threads=cfg.threads)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    numbers: Numbers = {"suite_minutes": wall / 60.0, "suite_cpu_minutes": cpu / 60.0}
    text = f"""## Time

{len(score.results)} scenarios of 100 trials: {wall / 60:.1f} minutes, {cpu / 60:.1f} minutes of CPU time (asked: 3
minutes on two cores).
"""
    return numbers, text


def _score(cfg: BenchCfg, bundle: Path, engine: Literal["mujoco", "sapien"]) -> PolicyScore:
    folder = cfg.out / f"{bundle.stem}.{engine}"
    return evaluate(bundle, trials=cfg.trials, engine=engine, out=folder, films=False, threads=cfg.threads)


def _cells(one: object) -> tuple[str, str, str]:
    rate, error, power = one.rate, one.mean("error"), one.mean("power")  # type: ignore[attr-defined]
    shown = [f"{value:.3f}" if value is not None and np.isfinite(value) else "-" for value in (error,)]
    return f"{rate.share:.0%}", shown[0], "-" if power is None else f"{power:.0f}"


if __name__ == "__main__":
    main(tyro.cli(BenchCfg))
