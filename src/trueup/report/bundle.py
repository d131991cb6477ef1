"""Terminal output of `trueup export` and `trueup policy import`: content and checks of a bundle."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from trueup.train.bundles import verbs
from trueup.train.bundles.export import Exported


def run_export(verb: verbs.ExportPolicyVerb) -> int:
    """Export a run and print the bundle."""
    console = Console()
    with console.status(f"running the policy for {verb.seconds:g} s in its task, then checking it ..."):
        done = verbs.run_export(verb)
    print_bundle(done, console)
    return 0


def run_import(verb: verbs.ImportPolicyVerb) -> int:
    """Import a policy and print the bundle and the assumptions."""
    console = Console()
    with console.status("opening the network and running it in the task ..."):
        done = verbs.run_import(verb)
    print_bundle(done, console)
    return 0


def print_bundle(done: Exported, console: Console) -> None:
    """Facts of a bundle, one a line."""
    bundle, passport = done.bundle, done.bundle.passport
    spec = passport.policy
    goal = ", ".join(
        f"{name} {low:g} to {high:g} {unit}"
        for name, low, high, unit in zip(
            passport.goal.columns, passport.goal.low, passport.goal.high, passport.goal.units, strict=True
        )
    )
    ranges = passport.ranges
    facts = {
        "bundle": f"{bundle.path}   {bundle.hash[:16]}",
        "policy": f"task {spec.task}, robot {spec.robot}, {spec.control_hz:g} Hz, from {passport.origin.format}",
        "network": f"{spec.observation.nactor} observations, {len(spec.action.controlled_joints)} actions, "
        f"{'with' if bundle.net(1).has_memory else 'no'} memory, opset {bundle.graph.opset}",
        "goal": goal or "none",
        "ranges": passport.ranges_missing if ranges is None else f"measured on {ranges.rows:,} observations",
        "parity": ", ".join(f"{name} {value:.1e}" for name, value in done.parity.items()) + " (allowed 1e-05)",
    }
    for name, text in facts.items():
        console.print(f"{name:8s} {text}", soft_wrap=True, highlight=False)
    for note in done.notes:
        console.print(f"note     {note}", soft_wrap=True, highlight=False)
    console.print(f"next     trueup play {Path(bundle.path)}", soft_wrap=True, highlight=False)
