"""Output of `trueup wiggle`: faults of a robot's joints, measurements of each, undetectable faults."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from trueup.core.documents import write_json
from trueup.deploy.wiggle import verbs
from trueup.deploy.wiggle.analysis.finding import JointResult, WiggleResult
from trueup.report.terminal import text_table

_COLUMNS = ("joint", ">answer", ">held low", ">held high", ">offset rad", ">gravity", ">friction N m")


def run_wiggle(verb: verbs.WiggleVerb) -> int:
    """Run the test and print the findings; 0: none, 1: some."""
    console = Console()
    sweeps = "then drives each slowly through its range" if verb.stops else "nothing more"
    console.print(f"wiggling {verb.robot} on {verb.driver}: moves every joint a little, {sweeps}", highlight=False)
    with console.status("Ctrl-C damps the robot"):
        result = verbs.run(verb)
    print_wiggle(result, console)
    if verb.out is not None:
        write_json(verb.out, result)
    return int(not result.passed)


def print_wiggle(result: WiggleResult, console: Console) -> None:
    """Print a table of the joints, then findings, undetectable faults and omissions."""
    console.print(text_table(_COLUMNS, [_row(joint) for joint in result.joints]))
    for finding in result.findings:
        console.print(f"[red]{finding.kind:8s}[/] {escape(finding.text)}", soft_wrap=True, highlight=False)
    for text in result.unseen:
        console.print(f"[yellow]unseen[/]   {escape(text)}: look at it", soft_wrap=True, highlight=False)
    for text in result.notes:
        console.print(f"note     {escape(text)}", soft_wrap=True, highlight=False)
    colour, word = ("green", "nothing wrong found") if result.passed else ("red", f"{result.nwrong} wrong")
    if result.is_aborted:
        word = f"given up, {word} so far: run it again"
    console.print(f"[{colour}]{word}[/] in {result.seconds:.0f} s of robot time", highlight=False)


def _row(joint: JointResult) -> tuple[str, ...]:
    numbers = (joint.gain, joint.low, joint.high, joint.offset, joint.gravity, joint.friction)
    forms = ("{:.0%}", "{:.3f}", "{:.3f}", "{:+.3f}", "{:.2f}", "{:.2f}")
    return (joint.name, *("-" if n is None else form.format(n) for n, form in zip(numbers, forms, strict=True)))
