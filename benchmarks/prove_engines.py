"""Second engine: conformance of MuJoCo and SAPIEN (PhysX 5), and the same policy in both.

    python benchmarks/prove_engines.py [--policy FOLDER] [--bundle FILE] [--rows 100] [--seconds 20]
        [--skip engines|sim2sim] [--fresh]

FOLDER holds policy.onnx and config.yaml (rl_sar's layout) of a go2 policy trained elsewhere; FILE is a bundle of ours.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
from parts import PROVE, table

from trueup.policy.bundle.bundle import load_bundle
from trueup.policy.foreign.layout import read_layout
from trueup.policy.foreign.onnx_net import OnnxNet
from trueup.policy.mlp import PolicySpec
from trueup.policy.runner import Policy
from trueup.tasks.build import EnvCfg
from trueup.tasks.env import TaskEnv
from trueup.tasks.evaluation.evaluate import Played, evaluate
from trueup.tasks.evaluation.open_world import OpenWorld, open_world
from trueup.tasks.foreign import with_layout
from trueup.tasks.load import load_task
from trueup.tasks.task import Task
from trueup.world.engines.choose import ENGINES
from trueup.world.engines.conformance.case import Case
from trueup.world.engines.conformance.run import conformance

Numbers = dict[str, object]
FINE_HZ = 1000.0
HARD, FINE = "mujoco, 1000 Hz, contacts of 4 ms", "sapien, 1000 Hz"
COMMAND = "python benchmarks/prove_engines.py"


def engines() -> None:
    """Every case in both engines."""
    began = time.perf_counter()
    cases = conformance()
    seconds = time.perf_counter() - began
    rows = [(case.name, case.unit, *(_cell(case, engine) for engine in ("", *ENGINES))) for case in cases]
    text = f"""## Engines: conformance

Small experiments with known answers in both engines ({seconds:.0f} s in all): the pendulum at 1000 Hz of physics unless
said otherwise, the block (friction 0.5) and the go2 at 200 Hz.

{table(("case", "unit", "exact", "MuJoCo", "SAPIEN (PhysX 5)"), rows)}

Servo, armature, damping, envelope and delay agree to the digits shown: both engines step the same equations. Free fall
and the servo's step differ from the exact answer alike, by the size of the physics step. What differs is friction at
rest: MuJoCo's constraints are soft, so that a joint or a foot under a steady load below its friction creeps; PhysX
holds it.
"""
    known = [case for case in cases if case.exact is not None]
    apart = max(abs(case.found["mujoco"] - case.found["sapien"]) / abs(case.exact) for case in known if case.exact)
    PROVE.merge("engines", {"engine_cases": len(cases), "engine_worst_relative_difference": apart}, text, COMMAND)


def _cell(case: Case, engine: str) -> str:
    value = case.found[engine] if engine else case.exact
    return "" if value is None else f"{value:.4g}"


@dataclass(frozen=True, kw_only=True)
class Walker:
    """A policy, the task it walks in, and what its figures are kept under."""

    name: str
    part: str
    task: Task
    spec: PolicySpec
    make: Callable[[int], Policy]


def env_of(nrow: int) -> EnvCfg:
    return EnvCfg(nenv=nrow, threads=1, seed=1_000_000, randomize=False, pushes=False, stagger=False)


def theirs(folder: Path) -> Walker:
    """A policy trained elsewhere."""
    task = with_layout(load_task("go2-velocity"), read_layout(folder / "config.yaml"))
    spec = TaskEnv(task, env_of(1)).policy_spec()
    make = partial(OnnxNet, folder / "policy.onnx")
    return Walker(name=f"`{folder.name}`, a policy trained by others", part="sim2sim", task=task, spec=spec, make=make)


def ours(path: Path) -> Walker:
    bundle = load_bundle(path)
    spec = bundle.passport.policy
    task = load_task(spec.task)
    return Walker(name=f"`{spec.task}` of ours", part="sim2sim_ours", task=task, spec=spec, make=bundle.runner)


def sim2sim(walker: Walker, nrow: int, seconds: float, *, fresh: bool) -> None:
    """The same policy on flat ground in both engines, and what moves the difference."""
    setups: dict[str, dict[str, object]] = {
        "mujoco": {"engine": "mujoco"},
        "sapien": {"engine": "sapien"},
        "mujoco, contacts that hold": {"engine": "mujoco", "hold": True},
        "mujoco, contacts twice as hard": {"engine": "mujoco", "contact_timeconst": 0.01},
        HARD: {"engine": "mujoco", "hz": FINE_HZ, "contact_timeconst": 0.004},
        FINE: {"engine": "sapien", "hz": FINE_HZ},
        "mujoco, no joint friction": {"engine": "mujoco", "friction": 0.0},
        "sapien, no joint friction": {"engine": "sapien", "friction": 0.0},
    }

    def measure(key: str) -> Numbers:
        return _play(walker, env_of(nrow), seconds, **setups[key])

    runs = PROVE.each(walker.part, list(setups), measure, fresh=fresh)
    first, second = (float(runs[engine]["velocity_error"]) for engine in ENGINES)
    ratio = second / first
    shown = ("velocity_error", "turn_error", "falls", "power_w", "shuffling", "steps_per_cpu_s")
    rows = [(key, *(_short(float(run[name])) for name in shown)) for key, run in runs.items()]
    head = ("world", "velocity error, m/s", "turn error, rad/s", "falls", "power, W", "shuffling", "steps/CPU-s")
    text = f"""## Sim-to-sim{", ours" if walker.part != "sim2sim" else ""}

{walker.name}, on flat ground: {nrow} rows of {seconds:g} s over the whole range of
commands, same starts and commands in both engines. Its velocity error in SAPIEN is {ratio:.2f} of MuJoCo's
(`{walker.part}_ratio`, asked for: within 0.8 and 1.2).

{table(head, rows)}

{_why(runs)}
"""
    numbers = {f"{walker.part}_ratio": ratio, f"{walker.part}_falls": runs["sapien"]["falls"]}
    numbers |= {"sapien_steps_per_cpu_s": runs["sapien"]["steps_per_cpu_s"]}
    PROVE.merge(walker.part, numbers, text, COMMAND + " --policy FOLDER --bundle FILE")


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000.0 else f"{value:.3g}"


def _why(runs: dict[str, Numbers]) -> str:
    def error(key: str) -> float:
        return float(runs[key]["velocity_error"])

    gap = error("sapien") - error("mujoco")
    hold, hard = (error("sapien") - error(f"mujoco, contacts {how}") for how in ("that hold", "twice as hard"))
    fine = error(FINE) / error(HARD)
    dry = error("sapien, no joint friction") - error("mujoco, no joint friction")
    return (
        f"Between the engines lie {1e3 * gap:+.1f} mm/s. When MuJoCo's feet hold (elliptic cone, impratio 10) it is "
        f"{1e3 * hold:+.1f} mm/s, when its contacts are twice as hard (time constant 10 ms) {1e3 * hard:+.1f} mm/s, "
        f"and without dry friction in the joints of both {1e3 * dry:+.1f} mm/s. At {FINE_HZ:g} Hz of physics, where "
        f"MuJoCo can have contacts of 4 ms in place of 20 ms, SAPIEN's error is {fine:.2f} of MuJoCo's: what lies "
        "between the engines is mostly that MuJoCo's contacts, at the 200 Hz of training, give way under a foot."
    )


def _play(
    walker: Walker,
    env: EnvCfg,
    seconds: float,
    *,
    engine: str,
    hold: bool = False,
    hz: float | None = None,
    **params: float,
) -> Numbers:
    if hz is not None:
        walker = replace(walker, task=replace(walker.task, rates=replace(walker.task.rates, physics_hz=hz)))
    opened = open_world(walker.task, env, engine)
    if hold:
        _make_contacts_hold(opened)
    for name, value in params.items():
        opened.sim.params.set(name, value)
    opened.begin(walker.task, env)
    net = walker.make(env.nenv)
    net.restart(np.arange(env.nenv))
    began = time.process_time()
    played = evaluate(
        opened.world, getattr(net, "act", net), walker.spec, walker.task, opened.goal, seconds, begun=True
    )
    return _figures(played, env.nenv * len(played.standing) / (time.process_time() - began))


def _figures(played: Played, rate: float) -> Numbers:
    names = {"velocity_error": "velocity_error", "turn_error": "turn_error", "power": "power_w"}
    out: Numbers = {to: played.mean(name) for name, to in names.items()}
    return out | {"falls": played.falls, "shuffling": played.mean("flag/shuffling"), "steps_per_cpu_s": round(rate)}


def _make_contacts_hold(opened: OpenWorld) -> None:
    """Friction of MuJoCo's contacts ten times as stiff as their normal direction, in a round cone."""
    batch = opened.sim.batch
    batch.expand("opt.cone")[...] = mujoco.mjtCone.mjCONE_ELLIPTIC
    batch.expand("opt.impratio")[...] = 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policy", type=Path)
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--skip", choices=("engines", "sim2sim"))
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured before")
    args = parser.parse_args()
    if args.skip != "engines":
        engines()
    walkers = [make(path) for make, path in ((theirs, args.policy), (ours, args.bundle)) if path is not None]
    for walker in walkers if args.skip != "sim2sim" else ():
        sim2sim(walker, args.rows, args.seconds, fresh=args.fresh)


if __name__ == "__main__":
    main()
