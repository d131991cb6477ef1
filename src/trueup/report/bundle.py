"""Terminal output of `trueup export`, `trueup policy import` and `policy feedforward`: a bundle and its checks."""

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


def run_feedforward(verb: verbs.FeedforwardVerb) -> int:
    """Learn a feedforward, round by round, and print the bundle."""
    from trueup.train.bundles.feedforward import Round, learn_feedforward

    console = Console()

    def show(k: int, made: Round, left_s: float) -> None:
        falls = f", {made.falls} of {verb.nenv} fell" if made.falls else ""
        left = f", {left_s:.0f} s left" if k < verb.rounds else ""
        console.print(
            f"round {k:3d}   joints {1e3 * made.joints_rad:5.1f} mrad, bodies {1e3 * made.near_m:5.1f} mm{falls}{left}",
            highlight=False,
        )

    done = learn_feedforward(verb, show)
    first, kept = done.rounds[0], done.rounds[done.kept]
    gained = f"{1e3 * first.near_m:.1f} -> {1e3 * kept.near_m:.1f} mm from the motion in this simulator"
    console.print(
        f"kept     round {done.kept}: {gained}" if done.kept else "kept     no offsets: no round was better than none",
        highlight=False,
    )
    console.print(f"bundle   {done.bundle.path}   {done.bundle.hash[:16]}", soft_wrap=True, highlight=False)
    console.print(f"next     trueup play {done.bundle.path}", soft_wrap=True, highlight=False)
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
